"""The person at the terminal: what is shown, and that nothing but an explicit yes approves."""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Iterator

import pytest

from bascule.bridge import ApprovalRequest, ask_in_terminal
from bascule.bridge.cards import describe_request
from bascule.bridge.terminal import converse, screen, whoami
from tests.unit.bridge.terminals import Terminal

pytestmark = pytest.mark.anyio

REQUEST = ApprovalRequest(
    run_id="run-1",
    seq=7,
    tool="mail.send",
    description="Send a mail.\nMore.",
    digest="d" * 64,
    arguments='{"body":"hello\\n\u202eevil","to":"\u0430nna@example.com"}'.encode(),
    effects="once",
    why=("mail", "late"),
    line=3,
    source="mail.send('x')\x1b[2J",
    duplicate=True,
)


@pytest.fixture(autouse=True)
def _quick_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bascule.bridge.terminal.READ_S", 0.05)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("typed", "verdict", "reason"),
    [
        ("y\n", "approve", ""),
        ("YES\n", "approve", ""),
        ("n\n", "reject", ""),
        ("n wrong customer\n", "reject", "wrong customer"),
        ("\x04", "reject", "the terminal was closed"),
    ],
)
async def test_an_answer_decides(terminal: Terminal, typed: str, verdict: str, reason: str) -> None:
    asking = asyncio.ensure_future(converse(REQUEST, read=terminal.slave, write=terminal.shown))
    await terminal.prompted()
    terminal.type(typed)
    decision = await asking
    assert (decision.verdict, decision.reason, decision.by) == (verdict, reason, whoami())


@pytest.mark.parametrize("typed", ["\n", "ok\n", "y please\n", "approve\n", " \n"])
async def test_anything_else_asks_again(terminal: Terminal, typed: str) -> None:
    asking = asyncio.ensure_future(converse(REQUEST, read=terminal.slave, write=terminal.shown))
    await terminal.prompted()
    terminal.type(typed)
    await terminal.prompted(2)
    terminal.type("n\n")
    assert (await asking).verdict == "reject"


async def test_what_was_typed_before_the_prompt_does_not_count(terminal: Terminal) -> None:
    terminal.type("y\n")
    asking = asyncio.ensure_future(converse(REQUEST, read=terminal.slave, write=terminal.shown))
    await terminal.prompted()
    terminal.type("n\n")
    assert (await asking).verdict == "reject"


async def test_a_yes_meant_for_the_card_before_does_not_count(terminal: Terminal) -> None:
    first = asyncio.ensure_future(converse(REQUEST, read=terminal.slave, write=terminal.shown))
    await terminal.prompted()
    first.cancel()
    await asyncio.wait({first})
    assert "withdrawn" in terminal.shown.getvalue()
    second = asyncio.ensure_future(converse(REQUEST, read=terminal.slave, write=terminal.shown))
    await asyncio.sleep(0.01)  # the second card is there; the finger was quicker than the eye
    terminal.type("y\n")
    await terminal.prompted(2)
    terminal.type("n\n")
    assert (await second).verdict == "reject"


async def test_a_letter_without_enter_is_no_answer(terminal: Terminal) -> None:
    asking = asyncio.ensure_future(converse(REQUEST, read=terminal.slave, write=terminal.shown))
    await terminal.prompted()
    terminal.type("y\x04")
    await terminal.prompted(2)
    terminal.type("n\n")
    assert (await asking).verdict == "reject"


async def test_one_prompt_at_a_time_whatever_the_event_loop(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Input:
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            return terminal.slave

    monkeypatch.setattr(sys, "stdin", Input())
    monkeypatch.setattr(sys, "stderr", terminal.shown)
    with screen:
        asking = asyncio.ensure_future(ask_in_terminal(REQUEST))
        await asyncio.sleep(0.2)
        assert "mail.send" not in terminal.shown.getvalue()
    await terminal.prompted()
    assert screen.locked()
    terminal.type("y\n")
    assert (await asking).verdict == "approve"
    assert not screen.locked()


async def test_a_long_argument_can_be_viewed_in_full(terminal: Terminal) -> None:
    long = '{"body":"' + "x" * 9000 + '"}'
    request = ApprovalRequest(**{**_fields(REQUEST), "arguments": long.encode()})  # type: ignore[arg-type]
    asking = asyncio.ensure_future(converse(request, read=terminal.slave, write=terminal.shown))
    await terminal.prompted()
    assert "characters left out, sha256" in terminal.shown.getvalue()
    assert long not in terminal.shown.getvalue()
    terminal.type("v\n")
    await terminal.prompted(2)
    assert long in terminal.shown.getvalue()
    terminal.type("n\n")
    await asking


def test_the_card_shows_everything_and_nothing_acts_on_the_terminal() -> None:
    card = describe_request(REQUEST)
    assert "mail.send (once)" in card
    assert "\\u202eevil" in card
    assert "\\u0430nna@example.com" in card
    assert "mail, late" in card
    assert "line 3: mail.send('x')\\u001b[2J" in card
    assert "already made in this run" in card
    assert "\x1b" not in card
    assert "\u202e" not in card


async def test_without_a_terminal_it_denies_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    decision = await ask_in_terminal(REQUEST)
    assert decision.verdict == "reject"
    assert "no terminal to ask about mail.send" in capsys.readouterr().err


def _fields(request: ApprovalRequest) -> dict[str, object]:
    return {name: getattr(request, name) for name in ApprovalRequest.__dataclass_fields__}
