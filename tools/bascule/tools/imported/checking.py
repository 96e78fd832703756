"""Whether a value fits a tamed schema: the findings are pydantic's, so that they read as those of own tools.

The subset: types, enum, const, properties, required, additionalProperties, items, prefixItems, anyOf, bounds
of numbers and lengths, pattern (in linear time). ``format`` is told, not checked. What a schema does not say
in this subset is left to the service. Trusts neither the schema nor the value: every step is counted.
"""

from __future__ import annotations

import contextlib
from functools import lru_cache
from typing import Annotated, Any, Final, cast

from pydantic import AfterValidator, JsonValue, TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError, SchemaValidator

from bascule.tools.imported.bounds import MAX_CHECKED_STEPS, MAX_REFERENCE_CHAIN, MAX_SCHEMA_DEPTH
from bascule.tools.imported.taming import compile_pattern
from bascule.tools.schema import JsonSchema, is_array

MAX_FINDINGS: Final = 100

Loc = tuple[int | str, ...]

_TYPE_ERRORS: Final = {
    "string": "string_type",
    "integer": "int_type",
    "number": "float_type",
    "boolean": "bool_type",
    "array": "list_type",
    "object": "dict_type",
}
_PYTHON: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


class TooMuchToCheck(Exception):
    """The value needs more steps than are spent on one; it is neither right nor wrong."""


class Checker:
    """Checks values against one schema and the definitions it refers to."""

    __slots__ = ("_defs", "_left", "_schema")

    def __init__(self, schema: JsonSchema, defs: JsonSchema) -> None:
        self._schema = schema
        self._defs = defs
        self._left = 0

    def check(self, value: JsonValue) -> None:
        """Return when the value fits.

        Raises:
            ValidationError: with up to `MAX_FINDINGS` findings.
            TooMuchToCheck: see there.
        """
        self._left = MAX_CHECKED_STEPS
        found = self._check(value, self._schema, (), 0)
        if found:
            raise ValidationError.from_exception_data("value", found[:MAX_FINDINGS])

    def _check(self, value: JsonValue, schema: JsonSchema, loc: Loc, depth: int) -> list[InitErrorDetails]:
        self._left -= 1
        if self._left < 0:
            raise TooMuchToCheck
        if depth > 4 * MAX_SCHEMA_DEPTH:
            return []
        for _ in range(MAX_REFERENCE_CHAIN):
            reference = schema.get("$ref")
            if not isinstance(reference, str):
                break
            schema = self._defs.get(reference.rsplit("/", 1)[-1], {})
        options = schema.get("anyOf")
        if is_array(options):
            return self._check_union(value, options, loc, depth)
        kind = schema.get("type")
        if isinstance(kind, str) and not _is_kind(value, kind):
            if kind == "null":
                return [_say(loc, value, "must be None")]
            return [InitErrorDetails(type=_TYPE_ERRORS[kind], loc=loc, input=value)]
        for key in ("enum", "const"):
            if key in schema and not any(
                _same(value, each) for each in ([schema[key]] if key == "const" else schema[key])
            ):
                return [_say(loc, value, "must be one of the values that are listed")]
        if isinstance(value, str):
            return _check_text(value, schema, loc)
        if isinstance(value, dict):
            return self._check_members(value, schema, loc, depth)
        if isinstance(value, list):
            return self._check_items(value, schema, loc, depth)
        if value is not None and not isinstance(value, bool):
            return _check_number(value, schema, loc)
        return []

    def _check_union(
        self, value: JsonValue, options: list[Any], loc: Loc, depth: int
    ) -> list[InitErrorDetails]:
        """Return nothing if one option fits, else what the option that comes nearest finds."""
        nearest: list[InitErrorDetails] = []
        of_types: list[InitErrorDetails] = []
        for option in options:
            found = self._check(value, option, loc, depth + 1)
            if not found:
                return []
            if len(found) == 1 and found[0].get("loc") == loc:
                of_types += found
            elif not nearest or len(found) < len(nearest):
                nearest = found
        return nearest or of_types

    def _check_members(
        self, value: dict[str, JsonValue], schema: JsonSchema, loc: Loc, depth: int
    ) -> list[InitErrorDetails]:
        properties = cast("dict[str, JsonSchema]", schema.get("properties", {}))
        others = schema.get("additionalProperties", True)
        found = [
            InitErrorDetails(type="missing", loc=(*loc, name), input=value)
            for name in schema.get("required", ())
            if name not in value
        ]
        for name, member in value.items():
            if len(found) >= MAX_FINDINGS:
                break
            if name in properties:
                found += self._check(member, properties[name], (*loc, name), depth + 1)
            elif others is False:
                found.append(InitErrorDetails(type="extra_forbidden", loc=(*loc, name), input=member))
            elif others is not True:
                found += self._check(member, others, (*loc, name), depth + 1)
        return found

    def _check_items(
        self, value: list[JsonValue], schema: JsonSchema, loc: Loc, depth: int
    ) -> list[InitErrorDetails]:
        found = _check_length(len(value), schema, loc, value, "minItems", "maxItems", "items")
        prefix = cast("list[JsonSchema]", schema.get("prefixItems", []))
        rest = cast("JsonSchema", schema.get("items", {}))
        if not prefix and not rest:
            return found
        for index, item in enumerate(value):
            if len(found) >= MAX_FINDINGS:
                break
            inner = prefix[index] if index < len(prefix) else rest
            found += self._check(item, inner, (*loc, index), depth + 1)
        return found


def make_result_adapter(schema: JsonSchema) -> TypeAdapter[Any]:
    """Return what checks results against a tamed schema that stands alone; too large ones are let pass."""
    defs = schema.get("$defs", {})

    def check(value: Any) -> Any:
        with contextlib.suppress(TooMuchToCheck):
            Checker(schema, defs).check(value)
        return value

    return TypeAdapter(Annotated[Any, AfterValidator(check)])


def _is_kind(value: JsonValue, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON[kind])


def _same(left: JsonValue, right: JsonValue) -> bool:
    """Tell whether two values are equal in JSON, where true is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def _say(loc: Loc, value: JsonValue, message: str) -> InitErrorDetails:
    return InitErrorDetails(
        type=PydanticCustomError("schema", "{text}", {"text": message}), loc=loc, input=value
    )


def _check_text(value: str, schema: JsonSchema, loc: Loc) -> list[InitErrorDetails]:
    found = _check_length(len(value), schema, loc, value, "minLength", "maxLength", "characters")
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not found:
        matcher = _matcher(pattern)
        try:
            if matcher is not None:
                matcher.validate_python(value)
        except ValidationError:
            found.append(_say(loc, value, f"must match the pattern {pattern}"))
    return found


@lru_cache(maxsize=1000)
def _matcher(pattern: str) -> SchemaValidator | None:
    return compile_pattern(pattern)


def _check_length(
    length: int, schema: JsonSchema, loc: Loc, value: JsonValue, least: str, most: str, noun: str
) -> list[InitErrorDetails]:
    if length < schema.get(least, 0):
        return [_say(loc, value, f"must have at least {schema[least]} {noun}")]
    if length > schema.get(most, length):
        return [_say(loc, value, f"must have at most {schema[most]} {noun}")]
    return []


def _check_number(value: int | float, schema: JsonSchema, loc: Loc) -> list[InitErrorDetails]:
    if value < schema.get("minimum", value):
        return [_say(loc, value, f"must be at least {schema['minimum']}")]
    if value > schema.get("maximum", value):
        return [_say(loc, value, f"must be at most {schema['maximum']}")]
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return [_say(loc, value, f"must be above {schema['exclusiveMinimum']}")]
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return [_say(loc, value, f"must be below {schema['exclusiveMaximum']}")]
    step = schema.get("multipleOf")
    if isinstance(step, int) and isinstance(value, int) and value % step:
        return [_say(loc, value, f"must be a multiple of {step}")]
    return []
