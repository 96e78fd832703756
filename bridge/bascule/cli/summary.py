"""Prints a result: the answer on standard output, table of receipts and account elsewhere.

Values, output and errors come from an untrusted guest. On a terminal they are made safe to show; into a file
or pipe they go as they are, because there they are data.
"""

from __future__ import annotations

import json as json_library
import sys
from typing import Final, TextIO

from bascule.bridge import Result
from bascule.bridge.display import show, show_block, show_json
from bascule.bridge.result import describe_error

MAX_ROWS: Final = 20
"""Receipts shown before the middle ones are counted only; ``--json`` gives all."""


def print_result(result: Result, *, json: bool) -> None:
    """Print what came back, or all of the result as JSON; errors go to standard error."""
    if json:
        sys.stdout.flush()
        sys.stdout.buffer.write(result.to_json() + b"\n")
        sys.stdout.flush()
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
    print(f"bascule: {result.status}", file=sys.stderr)
    for error in result.errors:
        _print_text(describe_error(error), sys.stderr)
    if result.happened:
        _print_text("calls with effects before the end:\n" + "\n".join(result.happened), sys.stderr)


def print_receipts(result: Result, stream: TextIO) -> None:
    """Print one row per call."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Receipts of {result.run_id}", title_justify="left")
    for column in ("#", "tool", "effects", "arguments", "state", "ms", "bytes"):
        table.add_column(column, justify="right" if column in ("#", "ms", "bytes") else "left")
    for index, call in enumerate(result.calls):
        if MAX_ROWS // 2 <= index < len(result.calls) - MAX_ROWS // 2:
            if index == MAX_ROWS // 2:
                table.add_row("...", f"{len(result.calls) - MAX_ROWS // 2 * 2} more calls")
            continue
        state = call.state if call.approved_by is None else f"{call.state}, approved by {call.approved_by}"
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
    width = None if stream.isatty() else 140
    Console(file=stream, highlight=False, width=width).print(table)


def print_account(result: Result, stream: TextIO) -> None:
    """Print in one line what the run cost and what it kept out of the context."""
    usage = result.usage
    print(
        f"{usage.calls} calls, {usage.result_bytes:,} bytes of results stayed in the script,"
        f" {usage.returned_bytes:,} bytes came back; {usage.wall_s:.2f} s in all,"
        f" {usage.active_s:.2f} s in the script, peak memory {usage.peak_memory_bytes >> 20} MiB",
        file=stream,
    )


def _print_text(text: str, stream: TextIO) -> None:
    text = text.removesuffix("\n")
    if not text:
        return
    if stream.isatty():
        text = show_block(text)
    stream.write(text.encode("utf-8", "replace").decode() + "\n")
