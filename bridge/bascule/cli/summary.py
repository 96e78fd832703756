"""Prints a result: the answer on standard output, table of receipts and account elsewhere.

Values, output and errors come from an untrusted guest. On a terminal they are made safe to show; into a file
or pipe they go as they are, because there they are data.
"""

from __future__ import annotations

import io
import json as json_library
import shutil
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Final, TextIO

from bascule.bridge import Receipt, Result, Usage
from bascule.bridge.display import show, show_block, show_json
from bascule.bridge.requests import describe_record
from bascule.bridge.result import JsonValue, describe_error

if TYPE_CHECKING:
    from bascule.bridge.run_view import RunView
    from bascule.cli.next_steps import NextSteps

FILE_WIDTH: Final = 140
"""Columns of a table that does not go to a terminal."""

MAX_COMMANDS: Final = 5
"""Approvals for which a command of its own is printed."""

MAX_ROWS: Final = 20
"""Receipts shown before the middle ones are counted only; ``--json`` gives all."""


def print_result(result: Result, *, json: bool, tokens: JsonValue = None) -> None:
    """Print what came back, or all of the result as JSON; errors go to standard error.

    What can be done with a suspended run depends on its store: see `print_suspension`.

    Args:
        tokens: the account of the run, for JSON.
    """
    if json:
        print_json(result.to_json(tokens=tokens))
        return
    _print_text(result.output, sys.stdout)
    if result.status == "ok" and result.value_source != "none":
        value = result.value
        text = value if isinstance(value, str) else json_library.dumps(value, indent=2, ensure_ascii=False)
        _print_text(text, sys.stdout)
    sys.stdout.flush()
    for note in result.notes:
        _print_text(f"note: {note.message}", sys.stderr)
    if result.status == "ok":
        return
    if result.status == "suspended":
        return
    print(f"bascule: {result.status}", file=sys.stderr)
    for error in result.errors:
        _print_text(describe_error(error), sys.stderr)
    if result.happened:
        _print_text("calls with effects before the end:\n" + "\n".join(result.happened), sys.stderr)


def print_json(line: bytes) -> None:
    """Print one line of JSON."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.flush()


def print_receipts(result: Result, stream: TextIO) -> None:
    """Print one row per call; nothing for a run without calls."""
    if not result.calls:
        return
    width = shutil.get_terminal_size().columns if stream.isatty() else FILE_WIDTH
    stream.write(describe_receipts(result.calls, title=f"Receipts of {result.run_id}", width=width))


def describe_receipts(
    calls: Sequence[Receipt], *, title: str, width: int, waiting: Collection[int] = ()
) -> str:
    """Return a table with one row per call, safe to show.

    Args:
        waiting: numbers of calls that people have yet to decide about.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for column in ("#", "tool", "effects", "arguments", "state", "ms", "bytes"):
        table.add_column(column, justify="right" if column in ("#", "ms", "bytes") else "left")
    for index, call in enumerate(calls):
        if MAX_ROWS // 2 <= index < len(calls) - MAX_ROWS // 2:
            if index == MAX_ROWS // 2:
                table.add_row("...", f"{len(calls) - MAX_ROWS // 2 * 2} more calls")
            continue
        state: str = "waits for approval" if call.seq in waiting else call.state
        if call.approved_by is not None:
            state = f"{state}, approved by {call.approved_by}"
        if call.edited_by is not None:
            state = f"{state}, edited by {call.edited_by}"
        if call.answered_by is not None:
            state = f"{state}, answered by {call.answered_by}"
        if call.error is not None:
            state = f"{state}: {call.error.message}"
        table.add_row(
            str(call.seq),
            Text(show(call.tool, max_chars=100)),
            call.effects or "-",
            Text(show_json(call.arguments, max_chars=60)),
            Text(show(state, max_chars=120)),
            f"{call.duration_s * 1000:.1f}",
            f"{call.result_bytes:,}",
        )
    text = io.StringIO()
    Console(file=text, highlight=False, width=width).print(table)
    return text.getvalue()


def print_account(result: Result, stream: TextIO) -> None:
    """Print in one line what the run cost and what it kept out of the context."""
    print(describe_usage(result.usage), file=stream)


def describe_usage(usage: Usage) -> str:
    """Return in one line what a run cost and what it kept out of the context."""
    peak = f", peak memory {usage.peak_memory_bytes >> 20} MiB" if usage.peak_memory_bytes else ""
    return (
        f"{usage.calls} call{'s' if usage.calls != 1 else ''}, {usage.result_bytes:,} bytes of results"
        f" stayed in the script, {usage.returned_bytes:,} bytes came back; {usage.wall_s:.2f} s in all,"
        f" {usage.active_s:.2f} s in the script{peak}"
    )


def print_suspension(view: RunView, steps: NextSteps, stream: TextIO) -> None:
    """Print what a suspended run waits for, and the commands that carry it on."""
    lines = [f"bascule: {view.record.run_id} is suspended: {show(view.record.reason, max_chars=500)}"]
    for record in view.pending[:MAX_ROWS]:
        request = describe_record(record)
        what = f"{show(request.tool, max_chars=60)} {show_json(request.spelled, max_chars=200)}"
        lines.append(f"  approval {record.id}: call {record.seq}, {what}")
    if len(view.pending) > MAX_ROWS:
        lines.append(f"  {len(view.pending) - MAX_ROWS} more approvals")
    lines += ["next:", *(f"  {command}" for command in next_commands(view, steps))]
    print("\n".join(lines), file=stream)


def print_wait(view: RunView, steps: NextSteps, stream: TextIO) -> None:
    """Print what a run waits for that this command will carry on, and the commands that decide about it."""
    commands = [steps.show_approval(each.id) for each in view.pending[:MAX_COMMANDS]]
    commands += [steps.resolve(view.record.run_id, seq) for seq in view.unknown]
    lines = [f"bascule: {view.record.run_id} waits: {show(view.record.reason, max_chars=500)}"]
    print("\n".join([*lines, *(f"  {command}" for command in commands)]), file=stream, flush=True)


def next_commands(view: RunView, steps: NextSteps) -> list[str]:
    """Return the commands that carry a run on; none for one that is finished."""
    run_id = view.record.run_id
    if view.record.status == "finished":
        return []
    commands = [steps.show_approval(each.id) for each in view.pending]
    if len(commands) > MAX_COMMANDS:
        commands = [steps.list_approvals()]
    commands += [steps.resolve(run_id, seq) for seq in view.unknown]
    if view.record.status == "suspended" or view.left_behind:
        commands.append(steps.resume(run_id, view.command))
    return [command for command in commands if command]


def _print_text(text: str, stream: TextIO) -> None:
    text = text.removesuffix("\n")
    if not text:
        return
    if stream.isatty():
        text = show_block(text)
    stream.write(text.encode("utf-8", "replace").decode() + "\n")
