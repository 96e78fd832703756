"""From a function to what a tool promises: its parameters, their schemas, the schema of its result.

Everything that can be wrong with a definition is found here, so that a script never meets it.
"""

from __future__ import annotations

import copy
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import JsonValue, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from bascule.tools.arguments import Parameter
from bascule.tools.canonical import canonical_json, check_plain
from bascule.tools.context import Pending
from bascule.tools.docstrings import read_description, read_parameters
from bascule.tools.errors import ToolDefinitionError
from bascule.tools.schema import (
    JsonSchema,
    SchemaError,
    describe_types,
    is_array,
    is_object,
    make_adapter,
    takes_unknown_fields,
)
from bascule.tools.sets import has_sets
from bascule.tools.signature import ABSENT, Declared, check_annotation, read_signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a function's signature and docstring promise.

    Attributes:
        schema: JSON Schema of all arguments.
        context: the parameter that takes the `ToolContext`.
        returns: JSON Schema of the result and the adapter that checks it; None when nothing is declared.
    """

    description: str
    parameters: dict[str, Parameter]
    context: str | None
    schema: JsonSchema
    returns: JsonSchema | None
    result_adapter: TypeAdapter[Any] | None
    location: str | None


def define(name: str, function: Callable[..., object], *, returns: object = ABSENT) -> Definition:
    """Read a function's definition.

    Args:
        name: the tool's name, for messages.
        returns: the type of the result or its JSON Schema, in place of the annotation.

    Raises:
        ToolDefinitionError: naming the parameter and the reason.
    """
    signature = read_signature(function)
    location = signature.location
    description = read_description(function.__doc__)
    adapters = {
        declared.name: _adapter(f"{name}(): parameter {declared.name}", _nullable(declared), location)
        for declared in signature.parameters
    }
    schemas, defs = _describe_parameters(name, adapters, location)
    told = read_parameters(description, list(adapters))
    parameters = {
        declared.name: _make_parameter(
            name, declared, adapters[declared.name], schemas[declared.name], defs, told, location
        )
        for declared in signature.parameters
    }
    schema = _object_schema(parameters, defs)
    result, adapter = _read_result(name, signature.returns if returns is ABSENT else returns, location)
    try:
        canonical_json([description, schema, result])
    except ValueError as error:
        raise ToolDefinitionError(
            "tool_text_invalid",
            f"{name}(): its description or schema holds what JSON cannot carry: {error}",
            location=location,
        ) from error
    return Definition(
        description=description,
        parameters=parameters,
        context=signature.context,
        schema=schema,
        returns=result,
        result_adapter=adapter,
        location=location,
    )


def _read_result(
    name: str, declared: object, location: str | None
) -> tuple[JsonSchema | None, TypeAdapter[Any] | None]:
    """Return the JSON Schema of a result and what checks it, from a type or from a JSON Schema."""
    if is_object(declared):
        from bascule.tools.imported.own_schema import read_result_schema  # few tools need it

        return read_result_schema(name, declared, location)
    returned = without_pending(declared)
    check_annotation(f"{name}(): the return type", returned, location)
    if returned is ABSENT:
        return None, None
    adapter = _adapter(f"{name}(): the return type", returned, location)
    return _describe_result(name, adapter, location), adapter


def without_pending(returned: object) -> object:
    """Read ``-> Report | Pending`` as a script sees it: it waits, and gets a Report."""
    if returned is Pending:
        return ABSENT
    members = typing.get_args(returned)
    if typing.get_origin(returned) not in (typing.Union, types.UnionType) or Pending not in members:
        return returned
    rest: object = None
    for member in members:
        if member is not Pending:
            rest = member if rest is None else typing.Union[rest, member]  # noqa: UP007
    return rest


def _nullable(declared: Declared) -> object:
    """Read ``x: str = None`` as it is meant."""
    if declared.default is None:
        return typing.Optional[declared.annotation]  # noqa: UP045
    return declared.annotation


def _adapter(where: str, annotation: object, location: str | None) -> TypeAdapter[Any]:
    try:
        return make_adapter(annotation)
    except SchemaError as error:
        raise _unsupported(where, error, location) from error


def _unsupported(where: str, reason: object, location: str | None) -> ToolDefinitionError:
    return ToolDefinitionError("tool_type_unsupported", f"{where}: {reason}", location=location)


def _describe_parameters(
    name: str, adapters: dict[str, TypeAdapter[Any]], location: str | None
) -> tuple[dict[str, JsonSchema], JsonSchema]:
    for parameter, adapter in adapters.items():  # one by one, so that an error names its parameter
        try:
            describe_types({parameter: adapter}, "validation")
        except SchemaError as error:
            raise _unsupported(f"{name}(): parameter {parameter}", error, location) from error
    return describe_types(adapters, "validation")


def _describe_result(name: str, adapter: TypeAdapter[Any], location: str | None) -> JsonSchema:
    try:
        schemas, defs = describe_types({"return": adapter}, "serialization")
    except SchemaError as error:
        raise _unsupported(f"{name}(): the return type", error, location) from error
    schema = schemas["return"]
    return {**schema, "$defs": defs} if defs else schema


def _make_parameter(
    tool: str,
    declared: Declared,
    adapter: TypeAdapter[Any],
    schema: JsonSchema,
    defs: JsonSchema,
    told: dict[str, str],
    location: str | None,
) -> Parameter:
    schema = {key: value for key, value in schema.items() if key != "default"}
    if declared.name in told:
        schema.setdefault("description", told[declared.name])
    used = _reachable(schema, defs)
    extra: Literal["forbid"] | None = None if takes_unknown_fields([schema, used]) else "forbid"
    parameter = Parameter(
        name=declared.name,
        schema=schema,
        adapter=adapter,
        required=True,
        extra=extra,
        sets_in=defs if has_sets([schema, used]) else None,
    )
    default = _find_default(tool, declared, location)
    if default is ABSENT:
        return parameter
    plain = _plain_default(tool, parameter, default, location)
    return replace(parameter, schema={**schema, "default": plain}, required=False, default=plain)


def _find_default(tool: str, declared: Declared, location: str | None) -> object:
    if declared.default is not ABSENT or typing.get_origin(declared.annotation) is not typing.Annotated:
        return declared.default
    for mark in reversed(typing.get_args(declared.annotation)):
        if not isinstance(mark, FieldInfo) or mark.is_required():
            continue
        first, second = (mark.get_default(call_default_factory=True, validated_data={}) for _ in range(2))
        if first is not PydanticUndefined and first != second:
            raise ToolDefinitionError(
                "tool_default_invalid",
                f"{tool}(): parameter {declared.name}: its default differs each time; "
                "use None and make the value in the function",
                location=location,
            )
        return first
    return ABSENT


def _plain_default(tool: str, parameter: Parameter, default: object, location: str | None) -> JsonValue:
    """Return the default as it stands in canonical arguments, proven to be a value the type accepts."""
    try:
        plain = parameter.write(parameter.adapter.validate_python(copy.deepcopy(default)))
        check_plain(plain, path=parameter.name)
        if canonical_json(parameter.write(parameter.read(plain))) != canonical_json(plain):
            raise ValueError("it does not read back what it writes as JSON")
    except Exception as error:  # validators and serializers are the author's own code
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise ToolDefinitionError(
            "tool_default_invalid",
            f"{tool}(): parameter {parameter.name}: the default {default!r:.60} does not fit: {reason}",
            location=location,
        ) from error
    return plain


def _object_schema(parameters: dict[str, Parameter], defs: JsonSchema) -> JsonSchema:
    schema: JsonSchema = {
        "type": "object",
        "properties": {name: parameter.schema for name, parameter in parameters.items()},
        "required": [name for name, parameter in parameters.items() if parameter.required],
        "additionalProperties": False,
    }
    if defs:
        schema["$defs"] = defs
    return schema


def _reachable(schema: JsonSchema, defs: JsonSchema) -> list[JsonSchema]:
    """Return the definitions a schema refers to, directly or not."""
    found: dict[str, JsonSchema] = {}
    waiting: list[object] = [schema]
    while waiting:
        node = waiting.pop()
        if is_object(node):
            reference = node.get("$ref")
            if isinstance(reference, str):
                name = reference.rsplit("/", 1)[-1]
                if name in defs and name not in found:
                    found[name] = defs[name]
                    waiting.append(defs[name])
            waiting.extend(node.values())
        elif is_array(node):
            waiting.extend(node)
    return list(found.values())
