"""Which functions can be tools, and what their definition errors say."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar, cast

import pytest
from pydantic import AfterValidator, BaseModel, Field, SecretStr

from bascule.tools import ToolDefinitionError, tool

T = TypeVar("T")


class Opaque:
    """A class pydantic knows nothing of."""


class Box(BaseModel):
    """A model with a member that cannot be described."""

    callback: Callable[[int], int]


def variadic(*names: str) -> None: ...
def keywords(**names: str) -> None: ...
def positional_only(name: str, /) -> None: ...
def untyped(name) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore
def method_like(self, name: str) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore
def opaque(thing: Opaque) -> None: ...
def boxed(box: Box) -> None: ...
def anything(thing: object) -> None: ...
def nested_object(things: list[object]) -> None: ...
def called_back(callback: Callable[[int], int]) -> None: ...
def iterated(numbers: Iterable[int]) -> None: ...
def secret(password: SecretStr) -> None: ...
def generic(thing: T, other: T) -> None: ...
def classes(kind: type[int]) -> None: ...
def complex_number(number: complex) -> None: ...
def unknown(thing: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore
def wrong_default(count: int = cast("int", "three")) -> None: ...
def opaque_default(name: str = cast("str", Opaque())) -> None: ...
def one_or_call(value: int | Callable[[], int]) -> None: ...
def unstable_default(text: Annotated[str, AfterValidator(lambda text: f"{text}!")] = "a") -> None: ...
def changing_default(
    name: Annotated[str, Field(default_factory=iter("abcdef").__next__)],
) -> None: ...


REFUSED: list[tuple[Callable[..., object], str, list[str]]] = [
    (variadic, "tool_parameter_variadic", ["names", "declare a list"]),
    (keywords, "tool_parameter_variadic", ["**names"]),
    (positional_only, "tool_parameter_positional_only", ["name", "remove the /"]),
    (cast("Callable[..., object]", untyped), "tool_parameter_untyped", ["parameter name", "name its type"]),
    (cast("Callable[..., object]", method_like), "tool_parameter_untyped", ["self", "tool(instance.method)"]),
    (opaque, "tool_type_unsupported", ["parameter thing", "Opaque"]),
    (boxed, "tool_type_unsupported", ["parameter box", "CallableSchema"]),
    (anything, "tool_type_unsupported", ["parameter thing", "`object` says nothing"]),
    (nested_object, "tool_type_unsupported", ["parameter things"]),
    (called_back, "tool_type_unsupported", ["parameter callback"]),
    (iterated, "tool_type_unsupported", ["parameter numbers", "declare a list"]),
    (secret, "tool_type_unsupported", ["parameter password", "never pass through a script"]),
    (generic, "tool_type_unsupported", ["parameter thing", "type variable"]),
    (classes, "tool_type_unsupported", ["parameter kind", "a class is not data"]),
    (complex_number, "tool_type_unsupported", ["parameter number", "no JSON form"]),
    (
        cast("Callable[..., object]", unknown),
        "tool_annotation_unknown",
        ["of thing", "Nowhere", "module level"],
    ),
    (wrong_default, "tool_default_invalid", ["parameter count", "'three'", "valid integer"]),
    (opaque_default, "tool_default_invalid", ["parameter name"]),
    (one_or_call, "tool_type_unsupported", ["parameter value", "Callable"]),
    (unstable_default, "tool_default_invalid", ["parameter text", "does not read back"]),
    (changing_default, "tool_default_invalid", ["parameter name", "differs each time"]),
]


@pytest.mark.parametrize(("function", "code", "words"), REFUSED)
def test_a_function_that_cannot_be_described_is_refused_with_parameter_and_reason(
    function: Callable[..., object], code: str, words: list[str]
) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(function)
    assert caught.value.code == code
    assert function.__name__ in str(caught.value)
    assert caught.value.location is not None
    assert caught.value.location.startswith("test_signature.py:")
    for word in words:
        assert word in str(caught.value)


def returns_iterator() -> Iterator[int]: ...  # type: ignore[empty-body]
def returns_bytes() -> dict[str, bytes]: ...  # type: ignore[empty-body]
def returns_opaque() -> Opaque: ...  # type: ignore[empty-body]
def returns_object() -> object: ...


@pytest.mark.parametrize("function", [returns_iterator, returns_bytes, returns_opaque, returns_object])
def test_a_return_type_without_json_form_is_refused(function: Callable[..., object]) -> None:
    with pytest.raises(ToolDefinitionError, match="the return type"):
        tool(function)


def numbers() -> Iterator[int]:
    yield 1


async def async_numbers() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [numbers, async_numbers])
def test_a_generator_is_refused_with_advice_to_return_a_list(function: Callable[..., object]) -> None:
    with pytest.raises(ToolDefinitionError, match="return a list"):
        tool(function)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (functools.partial(print, 1), "wrap it in a function"),
        (Opaque, "Opaque is a class"),
        (len, "is not a function"),
        (3, "int is not a function"),
    ],
)
def test_what_is_no_function_is_refused(thing: Any, words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words):
        tool(thing)


class Client:
    """Something with a method worth calling."""

    def fetch(self, key: str) -> str:
        """Fetch a value."""
        return f"<{key}>"


def test_a_bound_method_is_a_tool_without_self() -> None:
    made = tool(Client().fetch)
    assert made.name == "fetch"
    assert list(made.parameters["properties"]) == ["key"]
    assert made.call(made.validate({"key": "a"}).values) == "<a>"


def awaited() -> Awaitable[int]:
    raise NotImplementedError


def test_an_awaitable_return_type_is_what_it_gives() -> None:
    assert tool(awaited).returns == {"type": "integer"}


def test_a_decorated_function_is_described_by_the_one_it_wraps() -> None:
    def inner(kind: Literal["a", "b"]) -> str:
        """Do it."""
        return kind

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> str:
        return inner(*args, **kwargs).upper()

    made = tool(outer)
    assert made.parameters["properties"]["kind"]["enum"] == ["a", "b"]
    assert made.call(made.validate({"kind": "a"}).values) == "A"
