"""The page of one run: where it stands, its script, its calls, what it printed, and what can be done next.

Everything in it that stems from a script or a tool goes through `show`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bascule.bridge.display import show, show_block, show_json
from bascule.bridge.requests import describe_record
from bascule.bridge.result import describe_error
from bascule.cli.summary import MAX_ROWS, describe_receipts, describe_usage, next_commands
from bascule.cli.times import describe_age, describe_time

if TYPE_CHECKING:
    from bascule.bridge.approvals_table import ApprovalRecord
    from bascule.bridge.run_view import RunView
    from bascule.cli.next_steps import NextSteps

SCRIPT_LINES: Final = 12
"""Lines of the script that are shown; ``--json`` has all."""

OUTPUT_LINES: Final = 20
_LINE_CHARS: Final = 200


def describe_run(view: RunView, steps: NextSteps, *, width: int) -> str:
    """Return the page as text, safe to show.

    Args:
        width: columns for the table of calls.
    """
    parts = [_head(view), _script(view)]
    if view.calls:
        waiting = [each.seq for each in view.pending]
        parts.append(describe_receipts(view.calls, title="calls", width=width, waiting=waiting))
    if view.output != "":
        parts.append(_output(view.output))
    if view.pending:
        parts.append(_pending(view.pending))
    if view.result is not None:
        parts.append("".join(f"{show_block(describe_error(error))}\n" for error in view.result.errors))
        parts.append(f"{describe_usage(view.result.usage)}\n")
    elif view.error is not None:
        parts.append(f"error {view.error}; its details were dropped by retention\n")
    next_ = next_commands(view, steps)
    if next_:
        parts.append("next\n" + "".join(f"  {command}\n" for command in next_))
    return "\n".join(part for part in parts if part)


def describe_state(view: RunView) -> str:
    """Return in one word, or a few, where a run stands."""
    if view.left_behind:
        return f"{view.record.status}, nobody works on it"
    return view.record.outcome or view.record.status


def _head(view: RunView) -> str:
    row = view.record
    rows = [("status", describe_state(view))]
    if row.reason and row.status == "suspended":
        rows.append(("waits", show(row.reason, max_chars=500)))
    if row.wake_at is not None and row.status == "suspended":
        rows.append(("wakes", describe_time(row.wake_at)))
    begun = f"{describe_time(view.began_at)} ({describe_age(time.time() - view.began_at)} ago)"
    rows += [("user", show(row.user or "-", max_chars=100)), ("begun", begun)]
    if row.session is not None:
        rows.append(("session", f"{show(row.session, max_chars=100)}, script {row.ordinal}"))
    rows.append(("image", row.image[:12]))
    return f"{row.run_id}\n" + "".join(f"  {name:<10} {text}\n" for name, text in rows)


def _script(view: RunView) -> str:
    title = f"script (sha256 {view.record.script_sha256[:16]})"
    if view.script is None:
        return f"{title}\n  dropped by retention\n"
    lines = view.script.removesuffix("\n").split("\n")
    shown = "".join(
        f"  {number:>4}  {show_block(line[:_LINE_CHARS])}\n"
        for number, line in enumerate(lines[:SCRIPT_LINES], 1)
    )
    return f"{title}\n{shown}{_left_out(len(lines) - SCRIPT_LINES)}"


def _output(output: str | None) -> str:
    if output is None:
        return "output\n  dropped by retention\n"
    lines = output.removesuffix("\n").split("\n")
    shown = "".join(f"  {show_block(line[:_LINE_CHARS])}\n" for line in lines[:OUTPUT_LINES])
    size = len(output.encode("utf-8", "replace"))
    return f"output ({size:,} bytes)\n{shown}{_left_out(len(lines) - OUTPUT_LINES)}"


def _left_out(count: int) -> str:
    return f"        {count} more lines\n" if count > 0 else ""


def _pending(records: Sequence[ApprovalRecord]) -> str:
    lines = ["waits for people\n"]
    for record in records[:MAX_ROWS]:
        request = describe_record(record)
        until = "" if record.expires_at is None else f", until {describe_time(record.expires_at)}"
        lines.append(
            f"  {record.id}  call {record.seq}: {show(request.tool, max_chars=60)}"
            f" {show_json(request.spelled, max_chars=200)}{until}\n"
        )
    if len(records) > MAX_ROWS:
        lines.append(f"  {len(records) - MAX_ROWS} more approvals\n")
    return "".join(lines)
