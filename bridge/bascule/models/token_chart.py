"""A token summary as one SVG: how many times fewer input tokens a script needs, by number of calls.

Drawn by hand, because it is a few lines and rectangles and must be readable in a light and in a dark page,
scaled, printed, and read aloud: colours follow the reader's scheme, both series differ in shape as well, and
title and description say in words what is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from typing import Final

from bascule.models.token_summary import Row, Spread, TokenSet, TokenSummary

_WIDTH: Final = 760
_ROW: Final = 46
_LEFT: Final = 170
_RIGHT: Final = 76
_HEAD: Final = 74
_TICKS: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)

_STYLE: Final = """
  svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }
  text { fill: #1c1e21; } .quiet { fill: #55595f; } .back { fill: #ffffff; }
  .grid { stroke: #d5d8dc; } .even { stroke: #1c1e21; stroke-dasharray: 4 3; }
  .one { stroke: #0b5cad; fill: #0b5cad; } .par { stroke: #9a4600; fill: #9a4600; }
  @media (prefers-color-scheme: dark) {
    text { fill: #eceef0; } .quiet { fill: #b3b8be; } .back { fill: #16181b; }
    .grid { stroke: #3a3e44; } .even { stroke: #eceef0; }
    .one { stroke: #7db8f5; fill: #7db8f5; } .par { stroke: #f5a95c; fill: #f5a95c; }
  }
"""


def draw_chart(summary: TokenSummary) -> str:
    """Return the chart as an SVG document.

    Raises:
        ValueError: the summary has no set.
    """
    if not summary.sets:
        raise ValueError("there is nothing to draw: no exchange has a call")
    scale = _Scale(summary)
    parts: list[str] = []
    top = _HEAD
    for found in summary.sets:
        parts.append(_text(16, top + 6, found.name, weight="600"))
        top += 22
        for row in found.by_calls:
            parts.extend(_draw_row(row, top, scale))
            top += _ROW
        top += 18
    height = top + 26
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img"'
            ' aria-labelledby="title description">',
            '<title id="title">How many times fewer input tokens a script needs than direct calls</title>',
            f'<desc id="description">{escape(_describe(summary))}</desc>',
            f"<style>{_STYLE}</style>",
            f'<rect class="back" width="{_WIDTH}" height="{height}"/>',
            *_legend(),
            *scale.grid(_HEAD - 8, height - 30),
            *parts,
            "</svg>",
            "",
        ]
    )


class _Scale:
    """A logarithmic scale of ratios that holds every drawn value, and 1."""

    def __init__(self, summary: TokenSummary) -> None:
        rows = [row for found in summary.sets for row in found.by_calls]
        spreads = [spread for row in rows for spread in (row.one_by_one, row.parallel)]
        low = min(1.0, *(spread.p10 for spread in spreads))
        high = max(1.0, *(spread.p90 for spread in spreads))
        self._low = math.log10(max(low, 0.01) * 0.9)
        self._span = max(0.3, math.log10(high * 1.1) - self._low)

    def x(self, ratio: float) -> float:
        share = (math.log10(max(ratio, 0.01)) - self._low) / self._span
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def grid(self, top: float, bottom: float) -> Iterable[str]:
        for tick in _TICKS:
            x = self.x(tick)
            if _LEFT - 1 <= x <= _WIDTH - _RIGHT + 1:
                kind = "even" if tick == 1 else "grid"
                yield f'<line class="{kind}" x1="{x}" y1="{top}" x2="{x}" y2="{bottom}"/>'
                yield _text(x, bottom + 16, f"{tick:g}×", anchor="middle", kind="quiet")


def _draw_row(row: Row, top: float, scale: _Scale) -> Iterable[str]:
    yield _text(16, top + 16, row.label)
    yield _text(16, top + 32, f"{row.tasks:,} tasks", kind="quiet")
    yield from _draw_spread(row.one_by_one, top + 10, "one", scale)
    yield from _draw_spread(row.parallel, top + 28, "par", scale)


def _draw_spread(spread: Spread, y: float, kind: str, scale: _Scale) -> Iterable[str]:
    low, middle, high = scale.x(spread.p10), scale.x(spread.median), scale.x(spread.p90)
    yield f'<line class="{kind}" stroke-width="3" x1="{low}" y1="{y}" x2="{high}" y2="{y}"/>'
    if kind == "one":
        yield f'<circle class="{kind}" cx="{middle}" cy="{y}" r="6"/>'
    else:
        yield f'<rect class="{kind}" x="{middle - 5.5:.1f}" y="{y - 5.5}" width="11" height="11"/>'
    yield _text(high + 10, y + 4.5, f"{spread.median:.1f}×", kind="quiet")


def _legend() -> Iterable[str]:
    yield _text(16, 24, "Input tokens of direct calls, as a multiple of those of one script", weight="600")
    yield '<circle class="one" cx="22" cy="44" r="6"/>'
    yield _text(34, 48.5, "against one call a round")
    yield '<rect class="par" x="212" y="38.5" width="11" height="11"/>'
    yield _text(230, 48.5, "against perfectly parallel rounds")
    yield _text(462, 48.5, "mark: median, line: 10 % to 90 % of tasks", kind="quiet")


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", kind: str = "", weight: str = "400"
) -> str:
    chosen = f' class="{kind}"' if kind else ""
    return (
        f'<text x="{x}" y="{y}"{chosen} text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
    )


def _describe(summary: TokenSummary) -> str:
    return " ".join(f"{found.name}: {_describe_set(found)}." for found in summary.sets)


def _describe_set(found: TokenSet) -> str:
    return "; ".join(
        f"{row.label}, {row.one_by_one.median:.2f} times fewer than one call a round and"
        f" {row.parallel.median:.2f} times fewer than parallel rounds in the median"
        for row in found.by_calls
    )
