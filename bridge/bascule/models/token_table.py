"""A token summary as Markdown: the tables of the documentation, and what the command prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bascule.models.exchange import WAYS, Way
from bascule.models.token_summary import Row, Spread, TokenSet, TokenSummary

BEGIN: Final = "<!-- begin: bascule bench tokens -->"
END: Final = "<!-- end: bascule bench tokens -->"

_WAYS: Final[dict[Way, str]] = {
    "one_by_one": "direct, one call a round",
    "parallel": "direct, perfectly parallel rounds",
    "script": "one script",
}


def render_tables(summary: TokenSummary) -> str:
    """Return all tables of a summary; empty when there is no set."""
    return "\n".join(_render_set(each) for each in summary.sets)


def put_tables(page: str, summary: TokenSummary) -> str:
    """Return a page with the tables between its markers written anew.

    Raises:
        ValueError: it has no markers, or not in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{render_tables(summary)}\n{END}{after}"


def _render_set(found: TokenSet) -> str:
    counted = "" if found.exact else " Tokens of results are **estimates** from their size in bytes."
    size = f"the largest has {found.largest_result_bytes:,} bytes"
    lines = [
        f"### {found.name}",
        "",
        f"{found.tasks:,} {'task' if found.tasks == 1 else 'tasks'}, {found.calls:,} calls;"
        f" their results have {found.result_tokens:,} tokens, of"
        f" which {found.returned_tokens:,} came back; {size}.{counted}",
        "",
        "| | input tokens | read once only | output tokens | rounds |",
        "|---|---:|---:|---:|---:|",
        *_totals(found),
        "",
        *_ratios("by number of calls", found.by_calls, found.whole),
        "",
        *_ratios("by size of all results", found.by_size, None),
        "",
    ]
    return "\n".join(lines)


def _totals(found: TokenSet) -> Iterable[str]:
    base = found.totals["script"]
    for way in WAYS:
        each = found.totals[way]
        times = "" if way == "script" else f" ({each.input / max(1, base.input):.2f}×)"
        once = "" if way == "script" else f" ({each.fresh / max(1, base.fresh):.2f}×)"
        tokens = f"{each.input:,}{times} | {each.fresh:,}{once} | {each.output:,}"
        yield f"| {_WAYS[way]} | {tokens} | {each.rounds:,} |"


def _ratios(title: str, rows: Iterable[Row], whole: Row | None) -> Iterable[str]:
    yield (
        f"| {title} | tasks | times fewer than one call a round | than parallel rounds | read once only |"
        " script needs more |"
    )
    yield "|---|---:|---:|---:|---:|---:|"
    for row in (*rows, *(() if whole is None else (whole,))):
        yield (
            f"| {row.label} | {row.tasks:,} | {_spread(row.one_by_one)} | {_spread(row.parallel)}"
            f" | {_spread(row.fresh)} | {row.loses:.0%} |"
        )


def _spread(found: Spread) -> str:
    return f"**{found.median:.2f}** ({found.p10:.2f} to {found.p90:.2f}, worst {found.worst:.2f})"
