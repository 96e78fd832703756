"""Tools that JSON Schema describes instead of a Python function: those of MCP servers and OpenAPI documents.

They go through the same validation, canonical arguments, results and digests as any other tool. The schema is
somebody else's and was tamed before (`taming`); the function belongs to us and speaks to the service.
"""

from __future__ import annotations

import keyword
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from bascule.tools.arguments import Parameter
from bascule.tools.context import ToolContext
from bascule.tools.docstrings import read_summary
from bascule.tools.imported.checking import Checker, TooMuchToCheck, make_result_adapter
from bascule.tools.imported.choosing import repair_word
from bascule.tools.options import Effects
from bascule.tools.schema import JsonSchema
from bascule.tools.tool import AnyTool, tool

Call = Callable[[dict[str, JsonValue], ToolContext], Awaitable[object]]
"""Takes the arguments under the names the service knows, and returns plain data."""

_CONTEXT: Final = "<context>"
"""No parameter can have this name."""

MAX_ARGUMENT_CHARS: Final = 60

_ANY: Final[TypeAdapter[Any]] = TypeAdapter(Any)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedParameter(Parameter):
    """A parameter whose values a `Checker` reads instead of a pydantic type."""

    checker: Checker = field(repr=False, compare=False)

    def read(self, value: JsonValue) -> Any:
        """Return the value as it is, if it fits.

        Raises:
            ValidationError: it does not fit.
        """
        try:
            self.checker.check(value)
        except TooMuchToCheck:
            reason = PydanticCustomError("schema", "is too large to be checked; pass less at once")
            found = [InitErrorDetails(type=reason, loc=(), input=None)]
            raise ValidationError.from_exception_data("value", found) from None
        return value

    def write(self, value: object) -> JsonValue:
        """Return the value as it is."""
        return cast("JsonValue", value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One argument of a service's operation.

    Attributes:
        name: under which the call gets it: what the service calls it, or another key that no other has.
        wanted: what scripts should write if they can; empty for the name.
        schema: tamed; references are to the definitions of the tool.
        default: what the service says it takes when the argument is left out. Only told, never sent.
    """

    name: str
    schema: JsonSchema
    required: bool
    default: JsonValue = None
    wanted: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What an imported tool is made of; see `Tool` for the fields that are not explained here.

    Attributes:
        call: reaches the service.
        members: its arguments, tamed.
        defs: definitions the members refer to.
        returns: tamed schema of the result that stands alone, None for none.
        checks_result: whether results must fit it.
    """

    name: str
    description: str
    members: tuple[Member, ...]
    defs: JsonSchema
    returns: JsonSchema | None
    call: Call
    location: str
    effects: Effects
    labels: Collection[str] = ()
    timeout_s: float
    transient: tuple[type[Exception], ...] = ()
    resource: str | None = None
    parallel_safe: bool = False
    checks_result: bool = False


def import_tool(operation: Operation) -> AnyTool:
    """Return the tool of an operation.

    Raises:
        ToolDefinitionError: name, effects, labels or time are not possible.
    """
    names = choose_parameter_names({each.name: each.wanted or each.name for each in operation.members})
    parameters = {
        names[member.name]: _parameter(names[member.name], member, operation.defs)
        for member in operation.members
    }
    originals = {ours: theirs for theirs, ours in names.items()}

    async def call(**values: Any) -> object:
        context = values.pop(_CONTEXT)
        return await operation.call({originals[name]: value for name, value in values.items()}, context)

    async def nothing() -> None: ...

    make = tool(
        name=operation.name,
        effects=operation.effects,
        labels=operation.labels,
        timeout_s=operation.timeout_s,
        transient=operation.transient,
        resource=operation.resource,
        parallel_safe=operation.parallel_safe,
    )
    made: AnyTool = make(nothing)
    schema: JsonSchema = {
        "type": "object",
        "properties": {name: parameter.schema for name, parameter in parameters.items()},
        "required": [name for name, parameter in parameters.items() if parameter.required],
        "additionalProperties": False,
    }
    if operation.defs:
        schema["$defs"] = operation.defs
    return replace(
        made,
        description=operation.description,
        summary=read_summary(operation.description),
        parameters=schema,
        returns=operation.returns,
        location=operation.location,
        is_async=True,
        function=call,
        _parameters=parameters,
        _context=_CONTEXT,
        _result_adapter=_result_adapter(operation),
    )


def choose_parameter_names(wanted: Mapping[str, str]) -> Mapping[str, str]:
    """Return what scripts write for each argument, by its key; identifiers stay as they are.

    Args:
        wanted: the name each would have, by key; two may want the same.
    """
    chosen: dict[str, str] = {}
    for key, text in wanted.items():
        if _is_fine(text) and text not in chosen.values():
            chosen[key] = text
    taken = set(chosen.values())
    for key, text in wanted.items():
        if key in chosen:
            continue
        base = repair_word(text, fallback="argument")[:MAX_ARGUMENT_CHARS]
        ours, number = base, 2
        while ours in taken:
            ours, number = f"{base}_{number}", number + 1
        taken.add(ours)
        chosen[key] = ours
    return chosen


def _is_fine(name: str) -> bool:
    return (
        name.isascii()
        and name.isidentifier()
        and not keyword.iskeyword(name)
        and len(name) <= 64
        and name[0] != "_"
    )


def _parameter(name: str, member: Member, defs: JsonSchema) -> ImportedParameter:
    schema = member.schema
    skips_null = not member.required and not _takes_null(schema, defs)
    checker = Checker(schema, defs)
    if not member.required:
        if member.default is None and skips_null and schema:
            about = {key: schema[key] for key in ("description",) if key in schema}
            bare = {key: value for key, value in schema.items() if key != "description"}
            options = bare["anyOf"] if list(bare) == ["anyOf"] else [bare]
            schema = {"anyOf": [*options, {"type": "null"}], **about}
        schema = {**schema, "default": member.default}
    return ImportedParameter(
        name=name,
        schema=schema,
        adapter=_ANY,
        required=member.required,
        left_out=True,
        skips_null=skips_null,
        checker=checker,
    )


def _takes_null(schema: JsonSchema, defs: JsonSchema) -> bool:
    if not schema:
        return False  # anything: null says nothing more than leaving it out
    try:
        Checker(schema, defs).check(None)
    except ValidationError:
        return False
    return True


def _result_adapter(operation: Operation) -> TypeAdapter[Any] | None:
    if operation.returns is None or not operation.checks_result:
        return None
    return make_result_adapter(operation.returns)
