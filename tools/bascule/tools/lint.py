"""What makes models call tools wrongly, found in definitions before a model ever sees them.

Each finding names the tool, what is the matter and what to do. Judges words, never behaviour; it is advice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bascule.tools.tool import AnyTool
from bascule.tools.words import STOP_WORDS, split_words

MANY_TOOLS: Final = 20
"""Tools shown at once from which on models choose worse; above it, search belongs."""

MIN_DESCRIPTION_WORDS: Final = 3
OVERLAP: Final = 0.8
"""Share of words that two descriptions have in common from which on they say the same."""

VAGUE_NAMES: Final = frozenset(
    {"call", "data", "do", "execute", "get", "handle", "helper", "info", "manage", "process", "query", "run",
     "set", "task", "tool", "update", "util", "work"}
)  # fmt: skip
VAGUE_PARAMETERS: Final = frozenset(
    {"arg", "args", "config", "data", "info", "input", "item", "kwargs", "obj", "object", "options", "opts",
     "param", "params", "payload", "stuff", "thing", "val", "value", "var", "x", "y", "z"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to improve.

    Attributes:
        rule: its stable name.
        tool: the tool it is about, empty for the set of all.
        message: what is the matter.
        advice: what to do.
        location: ``file.py:12``, or None.
    """

    rule: str
    tool: str
    message: str
    advice: str
    location: str | None = None

    def __str__(self) -> str:
        where = f" ({self.location})" if self.location else ""
        subject = f"{self.tool}: " if self.tool else ""
        return f"{subject}{self.message}{where}. {self.advice} [{self.rule}]"


def judge_note(note: str) -> Finding:
    """Return what a source repaired or left out of its definitions as a finding about no one tool."""
    return Finding(
        rule="import-note",
        tool="",
        message=note,
        advice="See the service's document, and what is chosen of it",
    )


def lint_tools(tools: Iterable[AnyTool], *, searchable: bool = False) -> list[Finding]:
    """Return what is to be improved, in the order of the tools.

    Args:
        searchable: models are given a search over them, so there may be many.
    """
    listed = list(tools)
    findings = [finding for each in listed for finding in _lint_one(each)]
    findings += _lint_overlaps(listed)
    has_search = searchable or any(each.name.endswith("search_tools") for each in listed)
    if len(listed) > MANY_TOOLS and not has_search:
        findings.append(
            Finding(
                rule="too-many-tools",
                tool="",
                message=f"{len(listed)} tools are shown at once",
                advice=f"Above {MANY_TOOLS}, show some and let models search the rest: SearchableTools(...)",
            )
        )
    return findings


def _lint_one(tool: AnyTool) -> Iterator[Finding]:
    def find(rule: str, message: str, advice: str) -> Finding:
        return Finding(rule=rule, tool=tool.name, message=message, advice=advice, location=tool.location)

    own_name = tool.name.rsplit(".", 1)[-1]
    if own_name.lower() in VAGUE_NAMES or len(own_name) < 3:
        yield find(
            "vague-name",
            f"the name {own_name} does not say what it does",
            "Name verb and thing, like find_contact",
        )
    words = [word for word in split_words(tool.description) if word not in STOP_WORDS]
    if not words:
        yield find(
            "no-description", "it has no description", "Say in one sentence what it does and when to use it"
        )
    elif len(words) < MIN_DESCRIPTION_WORDS and not any(ord(word[0]) > 0x2E7F for word in words):
        yield find(
            "short-description",
            f"{tool.summary!r:.60} says too little",
            "Say what it does, to what, and what comes back",
        )
    elif set(words) <= set(split_words(own_name)):
        yield find(
            "repeated-name",
            "the description only repeats the name",
            "Say what the name does not: when, what, how",
        )
    if tool.returns is None:
        yield find(
            "no-return-type",
            "it declares no return type, so models guess the shape of its result",
            "Annotate the result with a model, TypedDict or dataclass",
        )
    yield from _lint_parameters(tool, find)


def _lint_parameters(tool: AnyTool, find: Any) -> Iterator[Finding]:
    properties: Mapping[str, Any] = tool.parameters["properties"]
    defs: Mapping[str, Any] = tool.parameters.get("$defs", {})
    booleans = [name for name, schema in properties.items() if schema.get("type") == "boolean"]
    if len(booleans) >= 2:
        yield find(
            "two-booleans",
            f"{' and '.join(booleans[:4])} are each yes or no",
            'Where only some combinations make sense, take one Literal["a", "b", "c"] instead',
        )
    for name, schema in properties.items():
        described = bool(str(schema.get("description", "")).strip())
        if (name.lower() in VAGUE_PARAMETERS or len(name) == 1) and not described:
            yield find(
                "vague-parameter",
                f"the parameter {name} does not explain itself",
                "Rename it, or describe it under Args: in the docstring",
            )
        if _is_untyped(schema, defs):
            yield find(
                "untyped-parameter",
                f"the parameter {name} takes anything",
                "Declare what it is: a model or TypedDict for objects, the items of a list",
            )


def _is_untyped(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> bool:
    """Tell whether a schema says nothing of a value, or only that it is some object or list."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return reference.endswith("/JsonValue")
    if any(key in schema for key in ("enum", "const", "allOf")):
        return False
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return any(_is_untyped(option, defs) for option in options)
    kind = schema.get("type")
    if kind == "object":
        return not schema.get("properties") and schema.get("additionalProperties", True) in (True, {})
    if kind == "array":
        items = schema.get("items")
        return "prefixItems" not in schema and (not items or _is_untyped(items, defs))
    return kind is None


def _lint_overlaps(tools: Sequence[AnyTool]) -> Iterator[Finding]:
    """Find descriptions that say the same; every tool is reported with the first it is like."""
    said = [(each, frozenset(split_words(each.summary)) - STOP_WORDS) for each in tools]
    for index, (tool, words) in enumerate(said):
        if len(words) < MIN_DESCRIPTION_WORDS:
            continue
        for other, others in said[:index]:
            if len(words & others) >= OVERLAP * len(words | others):
                yield Finding(
                    rule="overlapping-descriptions",
                    tool=tool.name,
                    message=f"it is described like {other.name}",
                    advice="Say in both how they differ and which to prefer when",
                    location=tool.location,
                )
                break
