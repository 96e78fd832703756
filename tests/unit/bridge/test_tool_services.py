"""What an executor does for its tools beside calling them: sources, secrets, context, previews, observing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, MemoryStore, Policy, User
from bascule.bridge.cards import describe_request
from bascule.bridge.errors import PolicyError
from bascule.bridge.observing import observe_store
from bascule.tools import AnyTool, ToolContext, ToolDefinitionError, ToolLoadError, render_stubs, tool
from bascule.tools.discovery import SearchableTools
from tests.unit.bridge.guests import GuestBackend, calls

pytestmark = pytest.mark.anyio


@tool(effects="read")
def near() -> str:
    """Be near."""
    return "near"


class Source:
    """One tool; counts how often it is opened and closed."""

    name = "source"

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.opened = self.closed = 0

    async def open(self) -> list[AnyTool]:
        self.opened += 1
        if self.fails:
            raise ToolLoadError("tool_source_broken", "broken.json:3: it is broken")

        @tool(name="far.away", effects="read")
        def away() -> str:
            """Be far away."""
            return "far"

        return [away]

    async def close(self) -> None:
        self.closed += 1


async def test_sources_are_open_while_the_executor_is_and_their_tools_are_called() -> None:
    source = Source()
    executor = Executor([near, source], backend=GuestBackend(calls(("near", {}), ("far.away", {}))))
    assert executor.registry.names() == ("near",)
    async with executor:
        assert executor.registry.names() == ("near", "far.away")
        for _ in range(2):
            result = await executor.run("")
            assert result.value == {"1": '"near"', "2": '"far"'}
        assert (source.opened, source.closed) == (1, 0)
    assert (source.opened, source.closed) == (1, 1)


async def test_a_source_that_cannot_be_opened_closes_the_others_and_says_where() -> None:
    good, bad = Source(), Source(fails=True)
    with pytest.raises(ToolLoadError, match=r"broken\.json:3"):
        async with Executor([good, bad], backend=GuestBackend(calls())):
            raise AssertionError("it opened")
    assert (good.closed, bad.closed) == (1, 1)


async def test_policy_is_checked_against_the_tools_of_sources_when_they_are_open() -> None:
    right = Policy.parse("version: 1\nrules: [{id: a, effect: deny, match: {tool: far.away}}]")
    async with Executor([Source()], policy=right, backend=GuestBackend(calls(("far.away", {})))) as executor:
        assert (await executor.run("")).calls[0].state == "denied"
    wrong = Policy.parse("version: 1\nrules: [{id: a, effect: deny, match: {tool: far.off}}]")
    source = Source()
    with pytest.raises(PolicyError):
        async with Executor([source], policy=wrong, backend=GuestBackend(calls())):
            raise AssertionError("it opened")
    assert source.closed == 1


async def test_a_script_searches_all_tools_and_is_told_the_nearest_name() -> None:
    guest = calls(("search_tools", {"query": "away"}), ("describe_tool", {"name": "far.awya"}))
    async with Executor([SearchableTools([near, Source()])], backend=GuestBackend(guest)) as executor:
        result = await executor.run("")
    assert isinstance(result.value, dict)
    assert '"name":"far.away"' in str(result.value["1"])
    error = result.calls[1].error
    assert error is not None
    assert "did you mean far.away?" in error.message


# ------------------------------------------------------------ context and secrets


async def test_a_tool_is_told_user_tenant_and_the_secrets_it_declares() -> None:
    told: list[ToolContext] = []

    @tool(effects="read", secrets={"CRM_TOKEN"})
    def look(context: ToolContext) -> str:
        """Look."""
        told.append(context)
        return f"as {context.user}, not telling {context.secrets['CRM_TOKEN']}"

    @tool(effects="read")
    def plain(context: ToolContext) -> str:
        """Look."""
        told.append(context)
        return "ok"

    async with Executor(
        [look, plain],
        user=User(name="ann", tenant="north"),
        secrets={"CRM_TOKEN": "s3cret-token", "OTHER": "other-secret"},
        backend=GuestBackend(calls(("look", {}), ("plain", {}))),
    ) as executor:
        result = await executor.run("")
    assert (told[0].user, told[0].tenant, dict(told[0].secrets)) == (
        "ann",
        "north",
        {"CRM_TOKEN": "s3cret-token"},
    )
    assert dict(told[1].secrets) == {}
    assert "s3cret" not in repr(told[0])
    assert result.value == {"1": '"as ann, not telling [redacted]"', "2": '"ok"'}


async def test_a_secret_that_was_not_given_is_found_before_anything_runs() -> None:
    @tool(effects="read", secrets={"CRM_TOKEN"})
    def look(context: ToolContext) -> str:
        """Look."""
        return ""

    with pytest.raises(ToolDefinitionError, match="look needs the secret CRM_TOKEN"):
        Executor([look], secrets=["a-value-without-name"])


# ------------------------------------------------------------ previews


def make_delete(preview: Any) -> AnyTool:
    @tool(effects="once", preview=preview)
    def delete(path: str) -> str:
        """Delete a file."""
        return path

    return delete


async def ask_about(*asked: str, preview: Any) -> list[ApprovalRequest]:
    shown: list[list[ApprovalRequest]] = []

    class Approver:
        async def __call__(self, request: ApprovalRequest) -> Decision:
            return (await self.ask_batch([request]))[0]

        async def ask_batch(self, requests: Any) -> list[Decision]:
            shown.append(list(requests))
            return [Decision(verdict="approve", by="ann") for _ in requests]

    async with Executor(
        [make_delete(preview)],
        approver=Approver(),
        secrets={"KEY": "s3cret-key"},
        limits=Limits(run_s=20),
        backend=GuestBackend(calls(*(("delete", {"path": each}) for each in asked))),
    ) as executor:
        result = await executor.run("")
    assert [call.state for call in result.calls] == ["done"] * len(asked)
    assert len(shown) == 1  # one card, although previews take their time
    return shown[0]


async def test_the_card_shows_what_the_tool_says_the_call_would_do() -> None:
    def preview(values: Mapping[str, Any], context: ToolContext) -> str:
        return f"deletes {values['path']}\n  digest [forged]\x1b[2J s3cret-key"

    first, second = await ask_about("a.txt", "b.txt", preview=preview)
    assert first.preview.startswith("deletes a.txt\n")
    card = describe_request(first)
    assert "  preview    | deletes a.txt\n" + " " * 13 + "| ␣␣digest [forged]" in card
    assert "\x1b" not in card
    assert "s3cret" not in card
    assert second.preview.startswith("deletes b.txt\n")


async def test_a_preview_may_be_async_and_plain_data_and_long() -> None:
    async def preview(values: Mapping[str, Any], context: ToolContext) -> dict[str, str]:
        return {"would": "delete " * 4000}

    (request,) = await ask_about("a", preview=preview)
    assert request.preview.startswith('{"would":"delete')
    assert request.preview.endswith("characters left out]")
    assert len(request.preview) < 8100


async def test_a_preview_that_fails_is_said_and_changes_nothing() -> None:
    def preview(values: Mapping[str, Any], context: ToolContext) -> str:
        raise RuntimeError("s3cret-key")

    (request,) = await ask_about("a", preview=preview)
    assert request.preview == "the preview failed: RuntimeError"


# ------------------------------------------------------------ observing


async def test_shapes_of_recorded_results_show_in_stubs() -> None:
    @tool(effects="read")
    def look(word: str):  # type: ignore[no-untyped-def]  # the point: nothing is declared
        """Look."""
        if word == "bad":
            raise ValueError("no such word")
        return {"word": word, "hits": [1, 2]}

    store = MemoryStore(keep_values=True)
    guest = calls(("look", {"word": "a"}), ("look", {"word": "bad"}))
    async with Executor([look], store=store, backend=GuestBackend(guest)) as executor:
        await executor.run("")
    (seen,) = observe_store([look], store)
    assert "class LookResult(TypedDict):\n    word: str\n    hits: list[int]\n" in render_stubs([seen])
