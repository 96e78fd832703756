"""``bascule bench``: what scripts save, from what was really run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Optional

import typer

from bascule.cli.exits import Exit

if TYPE_CHECKING:
    from bascule.models.counting import TokenCounter
    from bascule.models.exchange import Exchange

app: Final = typer.Typer(help="Measure what scripts save.", no_args_is_help=True, add_completion=False)

MAX_STORED_RUNS: Final = 10_000
"""Finished runs of a store that are counted, the newest ones."""

_Files = Annotated[
    Optional[list[Path]],  # noqa: UP045  # read by typer at run time
    typer.Argument(help="Recordings, transcripts (with --store), files of exchanges.", dir_okay=False),
]
_Store = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option(
        "--store", envvar="BASCULE_STORE", help="Count the finished runs of a store.", dir_okay=False
    ),
]
_Svg = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option("--svg", help="Draw the chart into this file.", dir_okay=False),
]
_Json = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option("--json", help="Write the figures into this file.", dir_okay=False),
]
_Page = Annotated[
    Optional[Path],  # noqa: UP045  # as above
    typer.Option("--into", help="Write the tables between the markers of this page.", dir_okay=False),
]


@app.callback()
def bench() -> None:
    """Measure what scripts save."""


@app.command()
def tokens(
    files: _Files = None,
    store: _Store = None,
    svg: _Svg = None,
    json: _Json = None,
    into: _Page = None,
) -> None:
    """Count the tokens of runs, against what their calls would have cost directly; print the tables.

    Counted exactly with the `tokens` extra, else estimated from bytes, and then the tables say so.
    """
    if store is None and not files:
        print("bascule: give FILE or --store FILE: what is to be counted", file=sys.stderr)
        raise typer.Exit(Exit.USAGE)
    import msgspec

    from bascule.bridge.display import show_block
    from bascule.bridge.errors import ResumeError
    from bascule.models.counting import open_counter
    from bascule.models.exchange_file import ExchangesInvalid
    from bascule.models.token_chart import draw_chart
    from bascule.models.token_summary import summarise
    from bascule.models.token_table import put_tables, render_tables
    from bascule.models.transcript_account import HEADER as TRANSCRIPT

    counter = open_counter()
    if not counter.exact:
        print("bascule: estimating; pip install 'bascule[tokens]' counts exactly", file=sys.stderr)
    try:
        transcripts = [path for path in files or () if _begins(path, TRANSCRIPT)]
        found = [each for path in files or () if path not in transcripts for each in _read(path, counter)]
        found += _read_store(store, counter, transcripts)
        summary = summarise(found)
        if not summary.sets:
            print("bascule: there is no run with a call to count", file=sys.stderr)
            raise typer.Exit(Exit.NO_INPUT)
        if json is not None:
            text = msgspec.json.format(msgspec.json.encode(summary), indent=2)
            json.write_bytes(text + b"\n")
        if svg is not None:
            svg.write_text(draw_chart(summary), encoding="utf-8")
        if into is not None:
            page = put_tables(into.read_text(encoding="utf-8"), summary)
            into.write_text(page, encoding="utf-8")
    except (OSError, ValueError, ExchangesInvalid, ResumeError) as error:
        print(show_block(f"bascule: {error}"), file=sys.stderr)
        raise typer.Exit(Exit.NO_INPUT) from error
    print(render_tables(summary), end="")


def _read(path: Path, counter: TokenCounter) -> list[Exchange]:
    """Return the exchanges of one file, whichever kind it is."""
    from bascule.bridge.recording import read_recording
    from bascule.models.exchange_file import HEADER, read_exchanges
    from bascule.models.run_account import account_journal

    if _begins(path, HEADER):
        return read_exchanges(path)
    recording = read_recording(path)
    return [account_journal(recording.run_id, recording.entries, counter)]


def _begins(path: Path, head: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(head)) == head


def _read_store(path: Path | None, counter: TokenCounter, transcripts: Sequence[Path]) -> list[Exchange]:
    """Return the exchanges of a store: of the runs that the transcripts name, or of all."""
    from bascule.bridge.errors import ResumeError
    from bascule.cli.store_option import open_store
    from bascule.models.run_account import account_journal
    from bascule.models.transcript_account import read_usage

    if path is None:
        if transcripts:
            raise ValueError("a transcript needs --store FILE, which has its runs")
        return []
    used = [read_usage(each) for each in transcripts]
    for each in used:
        print(f"bascule: the provider counted {each.input:,} tokens in, {each.output:,} out", file=sys.stderr)
    opened = open_store(path)
    found: list[Exchange] = []
    left_out = 0
    try:
        named = [run_id for each in used for run_id in each.runs]
        stored = [] if used else opened.runs(status="finished", limit=MAX_STORED_RUNS)
        for run_id in named or [row.run_id for row in stored]:
            journal = opened.journal(run_id)
            try:
                if journal is None:
                    left_out += 1
                else:
                    found.append(account_journal(run_id, journal.entries, counter))
            except ResumeError:
                left_out += 1
    finally:
        opened.close()
    if left_out:
        print(f"bascule: {left_out} runs that are not there whole were left out", file=sys.stderr)
    return found
