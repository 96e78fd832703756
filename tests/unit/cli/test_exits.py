"""Exit statuses and what is printed where, without a sandbox."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from bascule.bridge import (
    CallError,
    Event,
    ExecutorClosedError,
    HandshakeError,
    LimitsError,
    PolicyError,
    Receipt,
    Result,
    ScriptError,
    Usage,
)
from bascule.bridge.events import EventName
from bascule.bridge.rehearsal import Rehearsal
from bascule.bridge.result import Status
from bascule.bridge.settings import SETTINGS
from bascule.cli.exits import MEANINGS, Exit, exit_for_error, exit_for_rehearsal, exit_for_result
from bascule.cli.main import main
from bascule.cli.progress import MAX_CALLS, Progress
from bascule.cli.remote import RemoteError
from bascule.cli.summary import MAX_ROWS, print_account, print_receipts, print_result
from bascule.sandbox import SandboxError
from bascule.tools import ToolLoadError
from bascule.wire import BasculeError

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ("ok", 0),
        ("failed", 1),
        ("refused", 3),
        ("limit", 4),
        ("suspended", 5),
        ("cancelled", 6),
        ("diverged", 7),
    ],
)
def test_every_status_of_a_result_has_its_exit(status: Status, code: int) -> None:
    assert exit_for_result(Result(run_id="run-1", status=status)) == code


def test_a_guest_that_broke_the_protocol_is_no_failure_of_the_script() -> None:
    error = ScriptError(kind="protocol_violation", message="x")
    assert exit_for_result(Result(run_id="run-1", status="failed", errors=(error,))) == Exit.INTERNAL


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ("ok", None, 0),
        ("failed", "rehearsal_end", 0),
        ("failed", "uncaught_exception", 1),
        ("refused", "x", 3),
    ],
)
def test_a_rehearsal_did_well_when_it_found_out_what_can_be_found_out(
    status: Status, kind: str | None, code: int
) -> None:
    errors = () if kind is None else (ScriptError(kind=kind, message="x"),)
    result = Result(run_id="run-1", status=status, errors=errors)
    assert exit_for_rehearsal(Rehearsal(effects=(), complete=status == "ok", result=result)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SandboxError("engine_unavailable", "x"), Exit.UNAVAILABLE),
        (PolicyError("policy.yaml", ["x"]), Exit.CONFIGURATION),
        (RemoteError("right_missing", "x"), Exit.NO_PERMISSION),
        (RemoteError("token_missing", "x"), Exit.NO_PERMISSION),
        (RemoteError("already_decided", "x"), Exit.FAILED),
        (ToolLoadError("tool_source_missing", "x"), Exit.CONFIGURATION),
        (LimitsError("x"), Exit.USAGE),
        (HandshakeError("protocol_mismatch", "x"), Exit.INTERNAL),
        (ExecutorClosedError(), Exit.INTERNAL),
    ],
)
def test_every_error_of_the_host_has_its_exit(error: BasculeError, code: Exit) -> None:
    assert exit_for_error(error) == code


def test_every_exit_is_in_the_help_and_in_the_documentation(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bascule", "-h"])
    with pytest.raises(SystemExit):
        main()
    help_text = " ".join(capsys.readouterr().out.split())
    documentation = (ROOT / "docs" / "cli.md").read_text()
    for code, meaning in MEANINGS.items():
        assert f"{int(code)} {meaning}" in help_text
        assert f"| {int(code)} | {meaning} |" in documentation


def test_every_setting_is_documented_with_its_bounds_and_has_a_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bascule", "run", "--help"])
    with pytest.raises(SystemExit):
        main()
    help_text = capsys.readouterr().out
    documentation = (ROOT / "docs" / "cli.md").read_text()
    for setting in SETTINGS:
        assert setting.flag in help_text
        assert setting.environment in help_text
        row = (
            f"| `{setting.flag}` | `{setting.environment}` | {setting.default:,} | {setting.minimum:,}"
            f" | {setting.maximum:,} | {setting.unit} |"
        )
        assert row in documentation


CALL = Receipt(
    seq=1, tool="send\x1b", effects="once", arguments=b'{"to":"\xd0\xb0nna"}', line=2, state="done"
)
RESULT = Result(
    run_id="run-1",
    status="failed",
    output="printed\n",
    errors=(ScriptError(kind="uncaught_exception", exception="ValueError", message="wrong", line=3),),
    calls=(CALL,),
    usage=Usage(calls=1, result_bytes=2000, returned_bytes=8),
)


def test_output_goes_to_stdout_and_errors_with_what_happened_to_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_result(RESULT, json=False)
    out, err = capsys.readouterr()
    assert out == "printed\n"
    assert "ValueError (line 3): wrong" in err
    assert "(line 2): done" in err


@pytest.mark.parametrize(
    ("value", "shown"), [("text", "text\n"), ({"a": 1}, '{\n  "a": 1\n}\n'), (None, "null\n")]
)
def test_a_value_is_printed_as_text_or_as_json(
    value: object, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    print_result(
        Result(run_id="r", status="ok", value=value, value_source="return"),  # type: ignore[arg-type]
        json=False,
    )
    assert capsys.readouterr().out == shown


def test_receipts_are_a_table_whose_middle_is_counted() -> None:
    stream = io.StringIO()
    failed = Receipt(
        seq=2,
        tool="look",
        effects=None,
        arguments=b"{}",
        line=1,
        state="failed",
        error=CallError(kind="failed", message="no\nsuch"),
        approved_by="Ada",
    )
    print_receipts(Result(run_id="r", status="ok", calls=(CALL, failed, *[CALL] * MAX_ROWS)), stream)
    table = stream.getvalue()
    assert "send\\u001b" in table
    assert "\\u0430nna" in table
    assert "no\\nsuch" in table
    assert "2 more calls" in table


def test_the_account_says_what_stayed_and_what_came_back() -> None:
    stream = io.StringIO()
    print_account(RESULT, stream)
    assert "1 call, 2,000 bytes of results stayed in the script, 8 bytes came back" in stream.getvalue()


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    names: tuple[EventName, ...] = (
        "run.started",
        "call.started",
        "call.waiting_approval",
        "call.completed",
        "call.denied",
    )
    for name in names:
        progress(Event(name=name, run_id="r", at=0.0, seq=1, tool="send", text="why", duration_s=0.25))
    assert stream.getvalue().splitlines() == [
        "   1 send waits for approval why",
        "   1 send done in 250 ms",
        "   1 send denied in 250 ms why",
    ]


def test_a_script_of_many_calls_is_not_told_call_by_call_but_where_one_fails() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    for seq in range(1, 1_000):
        progress(Event(name="call.started", run_id="r", at=0.0, seq=seq, tool="look"))
    for seq in range(1, 1_000):
        name: EventName = "call.failed" if seq == 900 else "call.completed"
        progress(Event(name=name, run_id="r", at=0.0, seq=seq, tool="look", text="why"))
    for name in ("call.waiting_approval", "call.started", "call.completed"):
        progress(Event(name=name, run_id="r", at=0.0, seq=1_000, tool="put", text="{}"))
    lines = stream.getvalue().splitlines()
    assert lines[:MAX_CALLS] == [f"{seq:>4} look done" for seq in range(1, MAX_CALLS + 1)]
    assert lines[MAX_CALLS:] == [
        "     further calls are told where they wait or fail",
        " 900 look failed why",
        "1000 put waits for approval {}",
        "1000 put done",
    ]
