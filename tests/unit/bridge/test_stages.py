"""The stages around a tool: its own check, retries, circuit breaker, redaction."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from bascule.bridge import Executor, Result, approve_all
from bascule.bridge.circuits import OPEN_S, OPENS_AFTER, Circuits
from bascule.bridge.failure import CallFailed
from bascule.bridge.redaction import Redactor
from bascule.bridge.transient import find_retry_after_s, find_status
from bascule.tools import AnyTool, ToolContext, ToolDefinitionError, tool
from tests.unit.bridge.guests import Guest, GuestBackend, calls, sequence

pytestmark = pytest.mark.anyio

SECRET = "sk-live-0123456789"


async def run(guest: Guest, *tools: AnyTool, **options: Any) -> Result:
    executor = Executor(tools, approver=approve_all, backend=GuestBackend(guest), **options)
    async with executor, asyncio.timeout(30):
        return await executor.run("x")


class Response(Exception):
    """An exception as HTTP libraries raise it."""

    def __init__(self, status: int, retry_after: str | None = None) -> None:
        super().__init__(f"status {status}")
        self.response = self
        self.status_code = status
        self.headers = {} if retry_after is None else {"Retry-After": retry_after}


def flaky(effects: Any, failures: list[Exception], **options: Any) -> tuple[AnyTool, list[int]]:
    ran: list[int] = []

    @tool(effects=effects, name="flaky", **options)
    async def call() -> str:
        """Fail, then succeed."""
        ran.append(1)
        if len(ran) <= len(failures):
            raise failures[len(ran) - 1]
        return "ok"

    return call, ran


# ---------------------------------------------------------------- checks


async def test_a_check_refuses_a_call_before_anybody_is_asked() -> None:
    seen: list[tuple[Mapping[str, Any], int]] = []

    def check(args: Mapping[str, Any], context: ToolContext) -> None:
        seen.append((args, context.seq))
        if args["amount"] > 10:
            raise ValueError("no more than 10 for this customer")
        if args["amount"] < 0:
            raise PermissionError("never")

    @tool(effects="once", check=check)
    def pay(amount: int) -> int:
        """Pay."""
        return amount

    result = await run(sequence(*[("pay", {"amount": amount}) for amount in (11, -1, 5)]), pay)
    assert [call.state for call in result.calls] == ["not_started", "denied", "done"]
    assert isinstance(result.value, list)
    assert result.value[:1] == [["failed", "no more than 10 for this customer"]]
    assert seen[0][1] == 1


# ---------------------------------------------------------------- retries


@pytest.mark.parametrize("effects", ["read", "idempotent"])
@pytest.mark.parametrize("failure", [ConnectionResetError(104, "gone"), Response(503), Response(429, "0")])
async def test_failures_that_pass_are_tried_again_where_that_does_no_harm(
    effects: str, failure: Exception
) -> None:
    made, ran = flaky(effects, [failure])
    result = await run(calls(("flaky", {})), made)
    assert result.calls[0].state == "done"
    assert len(ran) == 2


async def test_declared_exceptions_are_tried_again() -> None:
    made, ran = flaky("read", [LookupError("index is rebuilt")], transient=(LookupError,))
    result = await run(calls(("flaky", {})), made)
    assert result.calls[0].state == "done"
    assert len(ran) == 2


@pytest.mark.parametrize(
    ("effects", "failure"),
    [
        ("once", ConnectionResetError(104, "gone")),
        ("read", ConnectionError("not now")),
        ("read", ValueError("wrong")),
        ("read", Response(404)),
    ],
)
async def test_nothing_else_is_tried_again(effects: str, failure: Exception) -> None:
    made, ran = flaky(effects, [failure])
    result = await run(calls(("flaky", {})), made)
    assert result.calls[0].state == "failed"
    assert len(ran) == 1


async def test_a_service_that_asks_to_wait_longer_than_the_call_may_take_is_not_waited_for() -> None:
    made, ran = flaky("read", [Response(429, "3600")], timeout_s=5)
    result = await run(calls(("flaky", {})), made)
    assert result.calls[0].error is not None
    assert result.calls[0].error.kind == "unavailable"
    assert len(ran) == 1


async def test_refused_credentials_of_the_host_go_to_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    made, ran = flaky("read", [Response(401)])
    with caplog.at_level(logging.ERROR, "bascule.bridge"):
        result = await run(calls(("flaky", {})), made)
    assert result.calls[0].error is not None
    assert "operator" in result.calls[0].error.message
    assert "credentials (status 401)" in caplog.text
    assert len(ran) == 1


def test_retry_after_is_read_in_each_form() -> None:
    assert find_retry_after_s(Response(429, "7")) == 7.0
    assert find_retry_after_s(Response(429, "Wed, 21 Oct 2015 07:28:00 GMT")) == 0.0
    assert find_retry_after_s(Response(429, "soon")) is None
    assert find_retry_after_s(ValueError()) is None
    assert find_status(Response(429)) == 429


# ---------------------------------------------------------------- rates and circuits


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="10/minute"):

        @tool(rate="often")
        def ask() -> int:
            """Ask."""
            return 1


async def test_a_tool_that_keeps_failing_is_not_called_for_a_while() -> None:
    now = 0.0
    circuits = Circuits(read=lambda: now)
    made, _ = flaky("read", [])
    for _ in range(OPENS_AFTER):
        circuits.admit(made)
        circuits.note(made, transient_failure=True)
    with pytest.raises(CallFailed, match="in a row"):
        circuits.admit(made)
    now = OPEN_S + 1
    circuits.admit(made)
    with pytest.raises(CallFailed):
        circuits.admit(made)
    circuits.note(made, transient_failure=False)
    circuits.admit(made)


# ---------------------------------------------------------------- redaction


async def test_secrets_reach_neither_script_nor_receipt_nor_log(caplog: pytest.LogCaptureFixture) -> None:
    @tool(effects="read")
    def leak(how: str) -> Any:
        """Leak."""
        if how == "raise":
            raise ValueError(f"the key {SECRET} is wrong")
        if how == "bug":
            raise AttributeError(SECRET)
        return {"text": f"a {SECRET} b", SECRET: [SECRET], "other": "token-12345678"}

    wanted = [("leak", {"how": how}) for how in ("return", "raise", "bug")]
    with caplog.at_level(logging.INFO, "bascule.bridge"):
        result = await run(calls(*wanted), leak, secrets=[SECRET], secret_patterns=[r"token-\d+"])
    assert result.status == "ok"
    assert SECRET not in repr(result)
    assert "token-1" not in repr(result)
    assert "[redacted]" in repr(result.value)
    assert SECRET not in caplog.text
    assert "[redacted]" in caplog.text


async def test_a_call_that_carries_a_secret_is_refused() -> None:
    ran: list[str] = []

    @tool(effects="read")
    def send(text: str) -> None:
        """Send."""
        ran.append(text)

    result = await run(calls(("send", {"text": f"x{SECRET}"})), send, secrets=[SECRET])
    assert ran == []
    assert result.calls[0].state == "denied"


def test_encoded_forms_are_found_and_short_secrets_refused() -> None:
    redactor = Redactor(["pass word/1"])
    assert redactor.text("a pass%20word%2F1 b cGFzcyB3b3JkLzE= c") == "a [redacted] b [redacted]= c"
    assert redactor.json(b'{"a":"x"}') == b'{"a":"x"}'
    with pytest.raises(ValueError, match="characters"):
        redactor.register("abc")
