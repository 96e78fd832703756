"""A function's signature as parameters: what may be passed, under which name, with which default.

Decides which functions can be tools at all. Trusts the function: it is the host's own code. Whatever a
script could not be told precisely is refused here, when the tool is defined, and never guessed.
"""

from __future__ import annotations

import collections.abc
import contextlib
import functools
import inspect
import os
import typing
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from pydantic import SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from bascule.tools.context import ToolContext
from bascule.tools.errors import ToolDefinitionError

_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)
_REFUSED: dict[object, str] = {
    object: "`object` says nothing about the value; name a type, or Any if it can be any JSON value",
    SecretStr: "secrets never pass through a script; read the secret inside the tool",
    SecretBytes: "secrets never pass through a script; read the secret inside the tool",
}


class Absent(Enum):
    """Marks a parameter without default: None is a default of its own."""

    ABSENT = 0


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One parameter as the signature declares it; ``annotation`` is a type, possibly Annotated."""

    name: str
    annotation: object
    default: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a function takes and gives; ``returns`` is ABSENT when the annotation is missing.

    Attributes:
        context: the parameter that takes the `ToolContext`, None when there is none; not among the others.
    """

    parameters: tuple[Declared, ...]
    context: str | None
    returns: object
    location: str | None


def read_signature(function: Callable[..., object]) -> Signature:
    """Read a function's parameters, with all annotations evaluated.

    Raises:
        ToolDefinitionError: it is no function, or a parameter cannot be offered to a script.
    """
    _check_kind(function)
    location = find_location(function)
    hints = _evaluate_hints(function, location)
    declared = inspect.signature(function).parameters
    context = _find_context(function, declared.values(), hints, location)
    parameters = [
        _read_parameter(function, parameter, hints, location)
        for parameter in declared.values()
        if parameter.name != context
    ]
    returns = hints.get("return", ABSENT)
    if typing.get_origin(returns) in _AWAITABLES:
        returns = typing.get_args(returns)[-1]
    return Signature(parameters=tuple(parameters), context=context, returns=returns, location=location)


def find_location(function: Callable[..., object]) -> str | None:
    """Return ``file.py:12`` for a function, without the folders, or None when it has no source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}" if code else None


def _name(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _check_kind(function: object) -> None:
    if inspect.isfunction(function) or inspect.ismethod(function):
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise ToolDefinitionError(
                "tool_is_generator",
                f"{_name(function)}() yields; a tool returns one value: return a list",
                location=find_location(function),
            )
        return
    if isinstance(function, functools.partial):
        advice = "a partial has no name and hides its parameters; wrap it in a function"
    elif isinstance(function, type):
        advice = f"{function.__name__} is a class; write a function that makes the instance"
    else:
        advice = f"{type(function).__name__} is not a function; write a function that calls it"
    raise ToolDefinitionError("tool_not_a_function", advice)


def _evaluate_hints(function: Callable[..., object], location: str | None) -> dict[str, object]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except Exception as error:  # annotations are arbitrary expressions
        missing: str | None = getattr(error, "name", None)
        texts: dict[str, object] = {}
        with contextlib.suppress(NameError):  # Python 3.14 evaluates annotations here, too
            texts = getattr(inspect.unwrap(function), "__annotations__", {})
        found = [name for name, text in texts.items() if missing and missing in str(text)]
        where = f" of {found[0]}" if found else ""
        raise ToolDefinitionError(
            "tool_annotation_unknown",
            f"{_name(function)}(): the annotation{where} cannot be evaluated: {error}; "
            "define or import the type at module level",
            location=location,
        ) from error


def _find_context(
    function: Callable[..., object],
    parameters: Iterable[inspect.Parameter],
    hints: dict[str, object],
    location: str | None,
) -> str | None:
    found = [each for each in parameters if hints.get(each.name) is ToolContext]
    if len(found) > 1:
        raise ToolDefinitionError(
            "tool_context_invalid",
            f"{_name(function)}(): two parameters are annotated ToolContext",
            location=location,
        )
    if found and found[0].kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY):
        raise ToolDefinitionError(
            "tool_context_invalid",
            f"{_name(function)}(): the ToolContext is passed by name; make {found[0].name} a plain parameter",
            location=location,
        )
    return found[0].name if found else None


def _read_parameter(
    function: Callable[..., object],
    parameter: inspect.Parameter,
    hints: dict[str, object],
    location: str | None,
) -> Declared:
    where = f"{_name(function)}(): parameter {parameter.name}"
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
        raise ToolDefinitionError(
            "tool_parameter_variadic",
            f"{where}: {stars}{parameter.name} cannot be described; declare a list or a dict parameter",
            location=location,
        )
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise ToolDefinitionError(
            "tool_parameter_positional_only",
            f"{where} is positional-only, but calls go by name; remove the /",
            location=location,
        )
    if parameter.name not in hints:
        advice = "name its type"
        if parameter.name in ("self", "cls"):
            advice = "make a tool of the bound method: tool(instance.method)"
        raise ToolDefinitionError(
            "tool_parameter_untyped", f"{where} has no annotation; {advice}", location=location
        )
    annotation: object = hints[parameter.name]
    check_annotation(where, annotation, location)
    default: object = ABSENT if parameter.default is parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        annotation = typing.Annotated[annotation, default]
        default = ABSENT
    return Declared(name=parameter.name, annotation=annotation, default=default)


def check_annotation(where: str, annotation: object, location: str | None) -> None:
    """Refuse, at any depth of an annotation, types that pydantic would accept without saying anything.

    Raises:
        ToolDefinitionError: ``tool_type_unsupported``, naming ``where`` and the reason.
    """
    reason = None
    if isinstance(annotation, typing.TypeVar):
        reason = f"{annotation} is a type variable; name a type"
    elif isinstance(annotation, type) or typing.get_origin(annotation) is None:
        reason = _REFUSED.get(annotation) if isinstance(annotation, collections.abc.Hashable) else None
    if reason:
        raise ToolDefinitionError("tool_type_unsupported", f"{where}: {reason}", location=location)
    if typing.get_origin(annotation) is typing.Literal:
        return
    for argument in typing.get_args(annotation):
        if (
            typing.get_origin(annotation) is typing.Annotated
            and argument is not typing.get_args(annotation)[0]
        ):
            continue
        check_annotation(where, argument, location)
