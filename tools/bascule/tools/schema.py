"""From types to JSON Schema, both for what a script passes and for what it gets back.

Decides how each Python type looks on the wire: Decimal is text with format ``decimal``, named tuples that
are returned are objects, durations that are returned are seconds (as `results` writes them). A type without
a JSON form raises, naming the reason; nothing ever becomes a string or an empty schema silently.
"""

from __future__ import annotations

from typing import Any, Literal, TypeGuard

from pydantic import ConfigDict, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema as cs

JsonSchema = dict[str, Any]
"""A JSON Schema object, as plain data (the type the wire declares for it)."""

_DATA_KEYWORDS = frozenset({"default", "examples", "example", "enum", "const"})
_SCHEMA_MAPS = frozenset({"properties", "$defs", "patternProperties"})
_CONFIG = ConfigDict(ser_json_timedelta="iso8601", ser_json_bytes="utf8", allow_inf_nan=False)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Tell whether a value from JSON is an object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Tell whether a value from JSON is an array."""
    return isinstance(value, list)


class SchemaError(Exception):
    """A type has no JSON form; the message is the reason."""


class ToolJsonSchema(GenerateJsonSchema):
    """pydantic's generator, minus what would mislead a script."""

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        """Refuse what pydantic merely warns of: a default or a choice that has no JSON form would be lost."""
        raise SchemaError(detail)

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Leave generated titles out: they repeat the name and cost tokens."""
        return False

    def bytes_schema(self, schema: cs.BytesSchema) -> JsonSchemaValue:
        """Refuse bytes as results; as arguments they are UTF-8 text."""
        if self.mode == "serialization":
            raise SchemaError("bytes have no JSON form; return text, or base64 text")
        return super().bytes_schema(schema)

    def decimal_schema(self, schema: cs.DecimalSchema) -> JsonSchemaValue:
        """Describe Decimal as text that keeps its digits; arguments may also be numbers."""
        text: JsonSchema = {"type": "string", "format": "decimal"}
        if self.mode == "serialization":
            return text
        number: JsonSchema = {"type": "number"}
        self.update_with_validations(number, schema, self.ValidationsMapping.numeric)
        bounds = {key: float(bound) for key, bound in number.items() if key != "type"}
        return {"anyOf": [text, {"type": "number", **bounds}]}

    def timedelta_schema(self, schema: cs.TimedeltaSchema) -> JsonSchemaValue:
        """Describe durations: results are seconds, arguments ISO 8601 text or seconds."""
        if self.mode == "serialization":
            return {"type": "number", "format": "seconds"}
        return {"anyOf": [{"type": "string", "format": "duration"}, {"type": "number", "format": "seconds"}]}

    def named_tuple_schema(self, schema: cs.NamedTupleSchema) -> JsonSchemaValue:
        """Describe named tuples as the objects they are returned as, with every field present."""
        if self.mode == "validation":
            return super().named_tuple_schema(schema)
        properties = {field["name"]: self.generate_inner(field["schema"]) for field in schema["fields"]}
        return {"type": "object", "properties": properties, "required": list(properties)}

    def field_is_required(
        self, field: cs.ModelField | cs.DataclassField | cs.TypedDictField, total: bool
    ) -> bool:
        """Say that every field of a result is there: defaults are filled by then."""
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return field.get("serialization_exclude_if") is None
        return super().field_is_required(field, total)

    def default_schema(self, schema: cs.WithDefaultSchema) -> JsonSchemaValue:
        """Leave defaults out of results, where they say nothing."""
        if self.mode == "serialization":
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def is_subclass_schema(self, schema: cs.IsSubclassSchema) -> JsonSchemaValue:
        """Refuse classes as values; pydantic would say that anything goes."""
        raise SchemaError("a class is not data")

    def complex_schema(self, schema: cs.ComplexSchema) -> JsonSchemaValue:
        """Refuse complex numbers: JSON has none, and text would be a surprise."""
        raise SchemaError("complex numbers have no JSON form; declare two floats")

    def generator_schema(self, schema: cs.GeneratorSchema) -> JsonSchemaValue:
        """Refuse Iterable and Iterator: pydantic would check their items only when they are used."""
        raise SchemaError("an iterator is not data; declare a list")

    def model_schema(self, schema: cs.ModelSchema) -> JsonSchemaValue:
        """Say that unknown fields are refused, unless the model itself takes them."""
        described = super().model_schema(schema)
        extra = schema["cls"].model_config.get("extra")
        return self._close(described, is_open=extra in ("allow", "ignore"))

    def dataclass_schema(self, schema: cs.DataclassSchema) -> JsonSchemaValue:
        """Say that unknown fields are refused."""
        return self._close(super().dataclass_schema(schema), is_open=False)

    def typed_dict_schema(self, schema: cs.TypedDictSchema) -> JsonSchemaValue:
        """Say that unknown keys are refused."""
        return self._close(super().typed_dict_schema(schema), is_open=False)

    def _close(self, described: JsonSchemaValue, *, is_open: bool) -> JsonSchemaValue:
        if self.mode == "validation" and "properties" in described:
            described["additionalProperties"] = is_open
        return described


def make_adapter(annotation: Any) -> TypeAdapter[Any]:
    """Build the validator of a type.

    Raises:
        SchemaError: pydantic has no idea how to read the type from JSON.
    """
    try:
        try:
            return TypeAdapter(annotation, config=_CONFIG)
        except PydanticUserError as error:
            if error.code != "type-adapter-config-unused":
                raise
            return TypeAdapter(annotation)  # models bring their own configuration
    except Exception as error:  # a type's own hooks may raise anything
        raise SchemaError(_reason(error)) from error


def describe_types(
    adapters: dict[str, TypeAdapter[Any]], mode: Literal["validation", "serialization"]
) -> tuple[dict[str, JsonSchema], JsonSchema]:
    """Return the schema of each type and the shared definitions they refer to.

    Raises:
        SchemaError: a type has no JSON form.
    """
    inputs: list[tuple[str, JsonSchemaMode, TypeAdapter[Any]]] = [
        (name, mode, adapter) for name, adapter in adapters.items()
    ]
    try:
        schemas, shared = TypeAdapter.json_schemas(
            inputs, by_alias=mode == "validation", schema_generator=ToolJsonSchema
        )
    except SchemaError:
        raise
    except Exception as error:  # as above: hooks of the types
        raise SchemaError(_reason(error)) from error
    tidied = {name: tidy_schema(schemas[name, mode]) for name in adapters}
    return tidied, {name: tidy_schema(schema) for name, schema in shared.get("$defs", {}).items()}


def takes_unknown_fields(schema: object) -> bool:
    """Tell whether some model in a schema says itself that it takes fields it does not declare."""
    if is_array(schema):
        return any(map(takes_unknown_fields, schema))
    if is_object(schema):
        if "properties" in schema and schema.get("additionalProperties") is True:
            return True
        return any(map(takes_unknown_fields, schema.values()))
    return False


def tidy_schema(schema: JsonSchema) -> JsonSchema:
    """Return a copy without titles: they repeat names and cost tokens."""
    tidied: JsonSchema = {}
    for key, value in schema.items():
        if key == "title" and isinstance(value, str):
            continue
        if key in _DATA_KEYWORDS:
            tidied[key] = value
        elif key in _SCHEMA_MAPS:
            tidied[key] = {name: tidy_schema(member) for name, member in value.items()}
        elif is_object(value):
            tidied[key] = tidy_schema(value)
        elif is_array(value):
            tidied[key] = [tidy_schema(item) if is_object(item) else item for item in value]
        else:
            tidied[key] = value
    return tidied


def _reason(error: Exception) -> str:
    """Return pydantic's reason without its links and advice for people who write models."""
    text = str(error).split("\n\nFor further information", 1)[0]
    return text.split(". Set `arbitrary_types_allowed", 1)[0].strip() or type(error).__name__
