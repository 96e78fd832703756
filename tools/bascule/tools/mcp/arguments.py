"""The arguments of a server's tool, read from whatever schema it gives.

Servers write all kinds of root schemas: references, unions, ``allOf``, none at all. What has properties gives
arguments by name; what takes any object gives one argument that is that object.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from bascule.tools.canonical import check_plain
from bascule.tools.imported.bounds import MAX_ARGUMENT_NODES
from bascule.tools.imported.narrowing import narrow_unions
from bascule.tools.imported.taming import Tamer, read_pointer
from bascule.tools.imported.tool import Member
from bascule.tools.schema import JsonSchema, is_array, is_object

WHOLE: Final = "arguments"
"""The one argument of a tool that takes any object."""


def read_members(
    schema: object, *, hidden: Collection[str] = ()
) -> tuple[tuple[Member, ...], JsonSchema, str | None]:
    """Return the arguments, the definitions they refer to, and the name of the one that is the whole object.

    Args:
        schema: untrusted.
        hidden: arguments that scripts do not see.
    """
    tamer = Tamer(
        lambda reference: read_pointer(schema, reference), side="argument", max_nodes=MAX_ARGUMENT_NODES
    )
    root = _flatten(tamer, tamer.find(schema))
    properties: dict[str, Any] = root.get("properties", {}) if is_object(root.get("properties")) else {}
    needed = root.get("required")
    required: list[Any] = needed if is_array(needed) else []
    shown = {name: member for name, member in properties.items() if name not in hidden and _is_name(name)}
    tamed = {name: tamer.tame(member) for name, member in shown.items()}
    whole = None
    if not properties and root.get("additionalProperties") not in (None, False):
        anything: dict[str, Any] = {}
        whole, shown, required = WHOLE, {WHOLE: anything}, []
        tamed = {WHOLE: {"type": "object", "description": "everything the tool takes, by name"}}
    defs = tamer.definitions()
    together, defs = narrow_unions({"properties": tamed}, defs)
    members = tuple(
        Member(
            name=name,
            schema=together["properties"][name],
            required=name in required,
            default=_default_of(member),
        )
        for name, member in shown.items()
    )
    return tuple(sorted(members, key=lambda each: not each.required)), defs, whole


def _flatten(tamer: Tamer, root: JsonSchema) -> JsonSchema:
    """Return an object schema for a root that is a union or a sum of several."""
    if is_array(root.get("allOf")):
        root = tamer.merge(root)
    options = root.get("anyOf", root.get("oneOf"))
    if not is_array(options) or not options:
        return root
    found = [tamer.merge(tamer.find(option)) for option in options]
    variants: dict[str, list[Any]] = {}
    for each in found:
        if is_object(each.get("properties")):
            for name, member in each["properties"].items():
                variants.setdefault(name, []).append(member)
    properties = {name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in variants.items()}
    own = root.get("properties")
    lists: list[list[Any]] = [each["required"] for each in found if is_array(each.get("required"))]
    needed: list[Any] = list(root["required"]) if is_array(root.get("required")) else []
    if len(lists) == len(found):
        needed += [name for name in lists[0] if all(name in others for others in lists)]
    return {**root, "properties": {**properties, **(own if is_object(own) else {})}, "required": needed}


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 200


def _default_of(member: object) -> Any:
    default = member.get("default") if is_object(member) else None
    try:
        check_plain(default, path="")
    except ValueError:
        return None
    return default
