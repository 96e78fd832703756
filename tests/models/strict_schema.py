"""The rules of OpenAI and of Anthropic for schemas in strict mode, as their documentation tells them."""

from __future__ import annotations

from typing import Any

from tests.models.servers import require

ALLOWED = {
    "type", "description", "enum", "const", "anyOf", "properties", "required", "additionalProperties",
    "items", "$ref", "$defs", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems", "title",
}  # fmt: skip
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


def check_strict(name: str, schema: Any, *, root: bool = True, where: str = "()") -> None:
    """Refuse a schema that strict mode would refuse."""

    def need(condition: object, what: str) -> None:
        require(condition, f"Invalid schema for function '{name}': In context={where}, {what}.")

    need(isinstance(schema, dict), "schema must be an object")
    for key in schema:
        need(key in ALLOWED, f"'{key}' is not permitted")
    if "$ref" in schema:
        need(set(schema) == {"$ref"}, "$ref cannot have keywords besides it")
        return
    need("type" in schema or "anyOf" in schema, "schema must have a 'type' key")
    if root:
        need(schema.get("type") == "object" and "anyOf" not in schema, "schema must be of type object")
    if schema.get("type") == "object":
        need(schema.get("additionalProperties") is False, "'additionalProperties' must be false")
        properties = schema.get("properties", {})
        need(
            sorted(schema.get("required", [])) == sorted(properties),
            "'required' is required to be supplied and to be an array including every key in properties",
        )
        for key, each in properties.items():
            check_strict(name, each, root=False, where=f"{where}.{key}")
    if schema.get("type") == "array":
        need("items" in schema, "array schema missing items")
        check_strict(name, schema["items"], root=False, where=f"{where}[]")
    need(schema.get("format", "date") in FORMATS, "format is not supported")
    for each in schema.get("anyOf", []):
        check_strict(name, each, root=False, where=f"{where}|")
    for key, each in schema.get("$defs", {}).items():
        check_strict(name, each, root=False, where=f"{where}/{key}")


ANTHROPIC_ALLOWED = {
    "type", "description", "title", "enum", "const", "anyOf", "allOf", "properties", "required",
    "additionalProperties", "items", "minItems", "format", "$ref", "$defs",
}  # fmt: skip


def check_anthropic_strict(tools: list[Any]) -> None:
    """Refuse strict tools that Anthropic would refuse, alone or together."""
    strict = [tool for tool in tools if tool.get("strict")]
    require(len(strict) <= 20, "tools: too many strict tools")
    counted = [0, 0]
    for tool in strict:
        require("allowed_callers" not in tool, "tools: strict is not supported with allowed_callers")
        _check_anthropic(tool["input_schema"], counted)
    require(counted[0] <= 24, "tools: too many optional parameters in strict tools")
    require(counted[1] <= 16, "tools: too many parameters with union types in strict tools")


def _check_anthropic(schema: Any, counted: list[int]) -> None:
    for key in schema:
        require(key in ANTHROPIC_ALLOWED, f"tools: the keyword {key} is not supported in strict mode")
    require(schema.get("minItems", 0) in (0, 1), "tools: minItems may be 0 or 1")
    if schema.get("type") == "object":
        require(schema.get("additionalProperties") is False, "tools: additionalProperties must be false")
        counted[0] += len(schema.get("properties", {})) - len(schema.get("required", []))
    counted[1] += "anyOf" in schema
    inner = [*schema.get("anyOf", []), *schema.get("properties", {}).values()]
    inner += schema.get("$defs", {}).values()
    inner += [schema["items"]] if "items" in schema else []
    for each in inner:
        _check_anthropic(each, counted)
