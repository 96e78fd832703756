"""Tools that are told about their call: the context is injected, and nobody outside the host sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from bascule.tools import Pending, Registry, ToolContext, ToolDefinitionError, render_stubs, tool


@tool(effects="idempotent")
def pay(amount: int, context: ToolContext, note: str = "") -> str:
    """Pay."""
    return f"{amount} {note} {context.idempotency_key} {context.attempt}"


def test_the_context_is_passed_by_name_and_stands_in_no_schema() -> None:
    assert list(pay.parameters["properties"]) == ["amount", "note"]
    assert "context" not in render_stubs([pay])
    assert "context" not in str(pay.stub())
    arguments = pay.validate({"amount": 3})
    context = ToolContext(idempotency_key="KEY", run_id="run-1", seq=4, attempt=2)
    assert pay.call(arguments.values, context) == "3  KEY 2"
    assert pay.call(arguments.values) == "3   1"


def test_a_script_cannot_give_the_context_itself() -> None:
    with pytest.raises(Exception, match="context"):
        pay.validate({"amount": 3, "context": {"idempotency_key": "mine"}})


def test_a_tool_without_context_is_called_as_before() -> None:
    def plain(x: int) -> int:
        """Return x."""
        return x

    made = Registry([plain]).get("plain")
    assert made is not None
    assert made.call({"x": 1}, ToolContext()) == 1


def test_two_contexts_and_positional_ones_are_refused() -> None:
    def two(a: ToolContext, b: ToolContext) -> None:
        """Take two."""

    def positional(a: ToolContext, /) -> None:
        """Take one by position."""

    for function in cast("tuple[Callable[..., None], ...]", (two, positional)):
        with pytest.raises(ToolDefinitionError) as refused:
            tool(function)
        assert refused.value.code == "tool_context_invalid"


def test_a_tool_that_may_hand_over_declares_what_its_job_gives_in_the_end() -> None:
    @tool(effects="once", check_back=lambda token: 1)
    def train() -> int | Pending:
        """Train."""
        return Pending(check_after_s=60, token="job")

    @tool(effects="once", check_back=lambda token: 1)
    def load() -> Pending:
        """Load."""
        return Pending(check_after_s=60, token="job")

    assert train.returns == {"type": "integer"}
    assert load.returns is None
