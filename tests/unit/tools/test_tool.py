"""The decorator, its options, and what a tool is besides a function."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from typing import Any

import pytest

from bascule.tools import AnyTool, Tool, ToolContext, ToolDefinitionError, render_stubs, tool


@tool
def bare(name: str) -> str:
    """Greet somebody. Politely."""
    return f"hello {name}"


@tool()
def empty_parentheses() -> None:
    """Do nothing."""


@tool(
    effects="read",
    labels={"untrusted", "external"},
    timeout_s=5,
    parallel_safe=True,
    resource="crm:main",
    name="crm.find",
)
async def find(name: str, *, limit: int = 3) -> list[str]:
    """Find."""
    return [name] * limit


def test_the_bare_decorator_gives_safe_defaults() -> None:
    assert isinstance(bare, Tool)
    assert (bare.name, bare.effects, bare.labels, bare.resource) == ("bare", "once", frozenset(), None)
    assert (bare.timeout_s, bare.parallel_safe, bare.is_async) == (60.0, False, False)
    assert (bare.summary, bare.description) == ("Greet somebody.", "Greet somebody. Politely.")
    assert bare.location is not None
    assert bare.location.startswith("test_tool.py:")
    assert empty_parentheses.effects == "once"


def test_options_are_kept_as_declared() -> None:
    assert (find.name, find.__name__, find.effects) == ("crm.find", "find", "read")
    assert find.labels == {"untrusted", "external"}
    assert (find.timeout_s, find.parallel_safe, find.resource, find.is_async) == (5.0, True, "crm:main", True)
    assert repr(find) == "<Tool crm.find effects=read>"


def test_a_tool_is_still_the_function() -> None:
    assert bare("you") == "hello you"
    assert asyncio.run(find("a", limit=2)) == ["a", "a"]
    assert list(inspect.signature(find).parameters) == ["name", "limit"]
    assert inspect.unwrap(bare)("you") == "hello you"


def test_a_call_runs_with_validated_values() -> None:
    arguments = find.validate({"name": "b"})
    assert arguments.canonical == b'{"limit":3,"name":"b"}'

    async def call() -> bytes:
        return find.dump_result(await find.call(arguments.values))

    assert asyncio.run(call()) == b'["b","b","b"]'


def test_a_tool_cannot_be_changed() -> None:
    changing: Any = bare
    with pytest.raises(dataclasses.FrozenInstanceError):
        changing.effects = "read"
    with pytest.raises((AttributeError, TypeError)):
        changing.extra = 1


def test_the_stub_is_what_the_guest_is_told() -> None:
    stub = find.stub()
    assert (stub.name, stub.summary) == ("crm.find", "Find.")
    assert stub.parameters == find.parameters
    assert stub.returns == {"type": "array", "items": {"type": "string"}}


def variant(**options: Any) -> AnyTool:
    def same(name: str) -> str:
        """Do the same."""
        return name

    return tool(**options)(same)


def test_the_digest_changes_with_everything_a_policy_sees() -> None:
    variants = [
        variant(),
        variant(effects="read"),
        variant(labels={"private"}),
        variant(timeout_s=1),
        variant(parallel_safe=True),
        variant(resource="r"),
        variant(name="other"),
        variant(returns=int),
    ]
    digests = {each.digest for each in variants}
    assert len(digests) == len(variants)
    assert all(len(digest) == 64 for digest in digests)
    assert variant().digest == variants[0].digest


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effects": "write"}, "must be one of read, idempotent, once"),
        ({"timeout_s": 0}, "above 0"),
        ({"timeout_s": 3601}, "at most 3600"),
        ({"timeout_s": float("nan")}, "above 0"),
        ({"timeout_s": float("inf")}, "at most 3600"),
        ({"labels": "private"}, "write a set"),
        ({"labels": {"two words"}}, "label 'two words'"),
        ({"labels": {"x" * 65}}, "1 to 64"),
        ({"resource": ""}, "resource ''"),
    ],
)
def test_an_option_out_of_range_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolDefinitionError, match=words) as caught:
        variant(**options)
    assert caught.value.code == "tool_option_invalid"


@pytest.mark.parametrize(
    "name",
    ["", ".", "a.", ".a", "a..b", "1a", "_a", "a._b", "a b", "é", "a-b", "a\n", "x" * 65, "__import__"],
)
def test_a_name_that_scripts_cannot_write_is_refused(name: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        variant(name=name)
    assert caught.value.code == "tool_name_invalid"


@pytest.mark.parametrize("name", ["print", "len", "class", "crm.import", "list.find", "ToolError", "sorted"])
def test_a_name_that_scripts_need_themselves_is_refused(name: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        variant(name=name)
    assert caught.value.code == "tool_name_reserved"


@pytest.mark.parametrize("name", ["open", "crm.print", "a1.b_2.C", "match", "x" * 64])
def test_other_names_are_free(name: str) -> None:
    assert variant(name=name).name == name


def test_a_lambda_needs_a_name_and_types() -> None:
    with pytest.raises(ToolDefinitionError, match="<lambda>"):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).call({}) == 1


def test_examples_are_checked_when_the_tool_is_defined_and_shown_in_full() -> None:
    @tool(effects="read", examples=[{"name": "Ada"}, {"name": "Bob", "limit": 1}], version="2.1")
    def find(name: str, limit: int = 3) -> str:
        """Find."""
        return name * limit

    assert find.version == "2.1"
    assert 'Examples:\n        find(name="Ada")\n        find(name="Bob", limit=1)\n' in render_stubs(
        [find], detail="full"
    )
    with pytest.raises(ToolDefinitionError, match=r"example 1 is no valid call: limit: .*\(test_tool\.py:"):
        tool(examples=[{"name": "Ada", "limit": "many"}])(find.function)


def test_version_examples_and_secrets_change_the_digest_and_nothing_else_of_old_ones() -> None:
    def read(context: ToolContext) -> str:
        """Read."""
        return context.secrets["API_KEY"]

    plain = tool(read)
    assert len({plain.digest, tool(version="2")(read).digest, tool(secrets={"API_KEY"})(read).digest}) == 3
    assert tool(examples=[{}])(read).digest != plain.digest
    assert tool(preview=lambda values, context: "")(read).digest == plain.digest
    assert plain.parameters["properties"] == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"secrets": "API_KEY"}, "secrets is a text"),
        ({"secrets": {"a b"}}, "secret 'a b' must be"),
        ({"version": "one two"}, "version 'one two' must be"),
    ],
)
def test_wrong_secrets_and_versions_are_refused(options: dict[str, Any], message: str) -> None:
    def read(context: ToolContext) -> str:
        """Read."""
        return ""

    with pytest.raises(ToolDefinitionError, match=message):
        tool(**options)(read)


def test_secrets_need_a_context_to_arrive_in() -> None:
    with pytest.raises(ToolDefinitionError, match="add a parameter: context: ToolContext"):
        tool(secrets={"API_KEY"})(bare.function)
