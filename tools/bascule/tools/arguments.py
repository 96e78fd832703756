"""Validation of what a script passes: all problems at once, or canonical bytes and the values they mean.

Decides which spellings are the same value. pydantic reads the arguments in strict JSON mode, so only what
JSON cannot say otherwise is converted (text to dates, lists to sets); on top of that, four conversions that
lose nothing are allowed (`_find_repair`). The values that reach the function are read back *from the
canonical bytes*: what an operator saw is what runs. Trusts nothing in the arguments.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, cast

import msgspec
from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from bascule.tools.canonical import canonical_json, check_plain, join_path
from bascule.tools.errors import ArgumentsInvalid, Problem, ToolDefinitionError
from bascule.tools.problems import (
    MAX_PROBLEMS,
    MAX_SHOWN_PROBLEMS,
    Loc,
    bounded_json,
    describe_problems,
    resolve,
    unknown_text,
    value_at,
)
from bascule.tools.schema import JsonSchema
from bascule.tools.sets import sort_sets
from bascule.tools.type_text import literal_text, plain_names, type_text

_MIDNIGHT = ("T00:00:00", " 00:00:00", "T00:00", "T00:00:00Z", "T00:00:00+00:00")
_ATOMS = (str, int, bool, type(None))
_ISO_DATE_CHARS = len("2025-06-30")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a tool.

    Attributes:
        schema: its JSON Schema, with description and default.
        adapter: reads and writes its values.
        required: whether a call must pass it.
        default: what stands in the canonical arguments when it is not passed.
        extra: ``forbid`` unless the type itself takes unknown fields.
        sets_in: definitions its schema refers to when there are sets in it, else None.
        left_out: whether it stands in the canonical arguments only when it is passed: the service behind the
            tool has defaults of its own.
        skips_null: whether passing null is the same as not passing it.
    """

    name: str
    schema: JsonSchema
    adapter: TypeAdapter[Any]
    required: bool
    default: JsonValue = None
    extra: Literal["forbid"] | None = "forbid"
    sets_in: JsonSchema | None = None
    left_out: bool = False
    skips_null: bool = False

    def read(self, value: JsonValue) -> Any:
        """Return the Python value of a plain value.

        Raises:
            ValidationError: it does not fit the type.
        """
        return self.adapter.validate_json(msgspec.json.encode(value), strict=True, extra=self.extra)

    def write(self, value: object) -> JsonValue:
        """Return the plain value of a Python value, as the schema describes it."""
        plain: JsonValue = self.adapter.dump_python(value, mode="json", by_alias=True, warnings="error")
        return plain if self.sets_in is None else sort_sets(plain, self.schema, self.sets_in)

    def is_passed(self, given: Mapping[str, JsonValue]) -> bool:
        """Tell whether a call passes this parameter."""
        return self.name in given and not (self.skips_null and given[self.name] is None)

    def __str__(self) -> str:
        text = f"{self.name}: {type_text(self.schema, name_object=plain_names)}"
        return text if self.required else f"{text} = {_short_default(self.default)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """Valid arguments of one call.

    Attributes:
        canonical: RFC 8785 bytes with every default filled in; shown, hashed, journaled, executed.
        plain: what these bytes say.
        values: the same as Python values, for the function.
    """

    canonical: bytes
    plain: dict[str, JsonValue]
    values: dict[str, Any]

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical bytes, in hex."""
        return sha256(self.canonical).hexdigest()


def validate_arguments(
    tool: str, parameters: Mapping[str, Parameter], defs: JsonSchema, args: object
) -> Arguments:
    """Validate a call's arguments, untrusted, as decoded from JSON.

    Raises:
        ArgumentsInvalid: with every problem; the script can correct them.
        ToolDefinitionError: ``tool_arguments_unstable``: a type of the tool writes itself as something else
            than it reads, so that operators would see other values than those that run.
    """
    given = _check_shape(tool, parameters, args)
    problems = _check_names(parameters, given)
    plain: dict[str, JsonValue] = {}
    same: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.is_passed(given):
            value, found = _read_argument(parameter, given[parameter.name], defs)
            problems += found
            if not found:
                written = plain[parameter.name] = _write_argument(tool, parameter, value)
                if _is_same(given[parameter.name], written):
                    same[parameter.name] = value
        elif not parameter.required and not parameter.left_out:
            plain[parameter.name] = parameter.default
    if problems:
        raise _refuse(tool, parameters, problems)
    return _freeze_arguments(tool, parameters, plain, same)


def _is_same(given: JsonValue, written: JsonValue) -> bool:
    """Tell whether reading what was written repeats the reading just done: an atom that stayed as it was.

    Not floats: canonical bytes may spell one as an integer.
    """
    return type(written) in _ATOMS and type(given) is type(written) and given == written


def _freeze_arguments(
    tool: str, parameters: Mapping[str, Parameter], plain: dict[str, JsonValue], same: Mapping[str, Any]
) -> Arguments:
    """Make arguments of values that are valid and complete, and prove that the bytes mean these values.

    Args:
        same: values whose plain form was read just now; that they read back is proven.

    Raises:
        ToolDefinitionError: ``tool_arguments_unstable``, as above.
    """
    canonical = canonical_json(plain)
    plain = msgspec.json.decode(canonical)
    values: dict[str, Any] = {}
    for parameter in parameters.values():
        if parameter.left_out and parameter.name not in plain:
            continue
        if parameter.name in same:
            values[parameter.name] = same[parameter.name]
            continue
        try:
            value = parameter.read(plain[parameter.name])
        except Exception as error:  # validators are the tool's own code
            raise _unstable(tool, parameter) from error
        written = _write_argument(tool, parameter, value)
        # A float beyond 2**53 is written with digits of which it only is the nearest: compare the spelling.
        if written != plain[parameter.name] and canonical_json(written) != canonical_json(
            plain[parameter.name]
        ):
            raise _unstable(tool, parameter)
        values[parameter.name] = value
    return Arguments(canonical=canonical, plain=plain, values=values)


def _unstable(tool: str, parameter: Parameter) -> ToolDefinitionError:
    return ToolDefinitionError(
        "tool_arguments_unstable",
        f"{tool}(): the type of {parameter.name} does not read back what it writes as JSON; "
        "its validators and serializers must agree",
    )


def _write_argument(tool: str, parameter: Parameter, value: object) -> JsonValue:
    try:
        plain = parameter.write(value)
        check_plain(plain, path=parameter.name)
    except Exception as error:  # serializers are the tool's own code
        raise _unstable(tool, parameter) from error
    return plain


def _check_shape(tool: str, parameters: Mapping[str, Parameter], args: object) -> dict[str, JsonValue]:
    if not isinstance(args, dict):
        problem = Problem(path="arguments", message=f"must be an object, not a {type(args).__name__}")
        raise _refuse(tool, parameters, [problem])
    try:
        check_plain(cast("object", args), path="")
    except ValueError as error:
        path, _, message = str(error).partition(": ")
        raise _refuse(tool, parameters, [Problem(path=path or "arguments", message=message)]) from None
    return cast("dict[str, JsonValue]", args)


def _check_names(parameters: Mapping[str, Parameter], given: dict[str, JsonValue]) -> list[Problem]:
    problems = [
        Problem(path=name, message=f"missing, must be {type_text(parameter.schema, name_object=plain_names)}")
        for name, parameter in parameters.items()
        if parameter.required and name not in given
    ]
    unknown = [name for name in given if name not in parameters]
    problems += [
        Problem(
            path=join_path("", name),
            message=unknown_text(name, parameters, "parameters"),
            got=bounded_json(given[name]),
        )
        for name in unknown[:MAX_PROBLEMS]
    ]
    return problems


def _read_argument(parameter: Parameter, value: JsonValue, defs: JsonSchema) -> tuple[Any, list[Problem]]:
    try:
        return parameter.read(value), []
    except ValidationError as error:
        errors = error.errors(include_url=False)
    except Exception as error:  # validators are the tool's own code
        return None, [_unreadable(parameter, value, error)]
    repairs = [repair for found in errors if (repair := _find_repair(value, found)) is not None]
    if repairs:
        try:
            return parameter.read(_apply_repairs(value, repairs)), []
        except ValidationError as error:
            errors = error.errors(include_url=False)
        except Exception as error:  # as above
            return None, [_unreadable(parameter, value, error)]
    return None, describe_problems(parameter.name, value, errors, parameter.schema, defs)


def _unreadable(parameter: Parameter, value: JsonValue, error: Exception) -> Problem:
    """Say that a validator failed in its own way; its text is for the operator, not for the script."""
    return Problem(
        path=parameter.name,
        message=f"the tool cannot read this value ({type(error).__name__})",
        got=bounded_json(value),
    )


def _find_repair(value: JsonValue, error: ErrorDetails) -> tuple[Loc, JsonValue] | None:
    """Find a conversion by which nothing can be lost or mistaken; anything else is left for the message.

    3.0 for an int; a midnight for a date; a date for a datetime (its midnight); seconds for a duration.
    """
    steps = resolve(value, error["loc"])
    fixed = _convert(error["type"], value_at(value, steps))
    return None if fixed is None else (steps, fixed)


def _apply_repairs(value: JsonValue, repairs: list[tuple[Loc, JsonValue]]) -> JsonValue:
    repaired: Any = [copy.deepcopy(value)]  # in a list, so that the whole value has a holder too
    for steps, fixed in repairs:
        holder = repaired
        for step in (0, *steps)[:-1]:
            holder = holder[step]
        holder[(0, *steps)[-1]] = fixed
    whole: JsonValue = repaired[0]
    return whole


def _convert(kind: str, value: JsonValue) -> JsonValue:
    if kind == "int_type" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind == "time_delta_type" and isinstance(value, int | float) and not isinstance(value, bool):
        return f"PT{value:.6f}S" if value >= 0 else f"-PT{-value:.6f}S"
    if isinstance(value, str):
        if kind.startswith("date_") and value[_ISO_DATE_CHARS:] in _MIDNIGHT:
            return value[:_ISO_DATE_CHARS]
        if kind == "datetime_parsing" and len(value) == _ISO_DATE_CHARS:
            return f"{value}T00:00:00"
    return None


def _refuse(tool: str, parameters: Mapping[str, Parameter], problems: list[Problem]) -> ArgumentsInvalid:
    shown = [f"- {problem}" for problem in problems[:MAX_SHOWN_PROBLEMS]]
    if len(problems) > MAX_SHOWN_PROBLEMS:
        shown.append(f"- and {len(problems) - MAX_SHOWN_PROBLEMS} more")
    signature = f"{tool}({', '.join(map(str, parameters.values()))})"
    message = "\n".join([f"{tool}(): wrong arguments", *shown, f"Write: {signature}"])
    return ArgumentsInvalid(message, problems=tuple(problems))


def _short_default(value: JsonValue) -> str:
    text = literal_text(value)
    return text if len(text) <= 40 else "..."
