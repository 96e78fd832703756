"""Charts of a run as SVG, made here: calls over time, and the bytes that stayed out of the model's context.

Only numbers and words of ours go into a chart. Colours and fonts come from the page's style sheet by class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup

from bascule.console.run_views import CallView, RunView
from bascule.console.shown import size, span

WIDTH: Final = 720
ROW: Final = 14
MAX_ROWS: Final = 60
"""Calls drawn; of more, the first ones."""

_LEFT: Final = 44
_AXIS: Final = 24
_BAR: Final = 9


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart and what it says in words, for those who do not see it."""

    svg: Markup
    words: str


def draw_calls(view: RunView) -> Chart | None:
    """Draw when each call waited for people and when its tool ran; None without calls."""
    calls = list(view.calls.values())[:MAX_ROWS]
    if not calls:
        return None
    begin = view.entries[0].at
    end = max([view.entries[-1].at, *(call.ended_at or 0.0 for call in calls)])
    scale = (WIDTH - _LEFT - 8) / max(end - begin, 0.001)
    parts: list[str] = []
    for number, call in enumerate(calls):
        y = number * ROW + 3
        parts.append(f'<text class="tick" x="{_LEFT - 8}" y="{y + 8}" text-anchor="end">{call.seq}</text>')
        for kind, first, last in _spans(call, end):
            x = _LEFT + (first - begin) * scale
            width = max((last - first) * scale, 2.0)
            parts.append(
                f'<rect class="bar {kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" rx="2"/>'
            )
    height = len(calls) * ROW + _AXIS
    parts += _axis(height, end - begin)
    waited = sum(
        last - first for call in calls for kind, first, last in _spans(call, end) if kind == "people"
    )
    count = "1 call" if len(view.calls) == 1 else f"{len(view.calls)} calls"
    words = f"{count} in {span(end - begin)}; waiting for people took {span(waited)}" + (
        f"; the first {MAX_ROWS} are drawn" if len(view.calls) > MAX_ROWS else ""
    )
    return Chart(_svg(height, parts, "Calls over time"), words)


def draw_bytes(view: RunView) -> Chart | None:
    """Draw how the bytes of results added up, beside what came back to the model; None without results."""
    done = sorted(
        (call.ended_at, call.result_bytes) for call in view.calls.values() if call.ended_at is not None
    )
    total = sum(count for _, count in done)
    if not total:
        return None
    result: dict[str, Any] = view.result or {}
    usage: dict[str, Any] = result.get("usage") or {}
    returned = int(usage.get("returned_bytes", len(view.output.encode("utf-8", "replace"))))
    begin = view.entries[0].at
    end = max(view.entries[-1].at, begin + 0.001)
    height, top = 120, 8
    floor = height - _AXIS
    high = max(total, returned)
    x_scale, y_scale = (WIDTH - _LEFT - 8) / (end - begin), (floor - top) / high
    points, kept = [f"{_LEFT},{floor}"], 0
    for at, count in done:
        x = _LEFT + (at - begin) * x_scale
        points.append(f"{x:.1f},{floor - kept * y_scale:.1f}")
        kept += count
        points.append(f"{x:.1f},{floor - kept * y_scale:.1f}")
    points += [f"{WIDTH - 8},{floor - kept * y_scale:.1f}", f"{WIDTH - 8},{floor}"]
    line = floor - returned * y_scale
    parts = [
        f'<polygon class="area" points="{" ".join(points)}"/>',
        f'<line class="returned" x1="{_LEFT}" x2="{WIDTH - 8}" y1="{line:.1f}" y2="{line:.1f}"/>',
        f'<text class="tick" x="{_LEFT - 8}" y="{top + 8}" text-anchor="end">{size(high)}</text>',
        f'<text class="tick" x="{_LEFT - 8}" y="{floor}" text-anchor="end">0</text>',
        *_axis(height, end - begin),
    ]
    words = f"{size(total)} of results stayed in the script, {size(returned)} came back to the model"
    return Chart(_svg(height, parts, "Bytes kept out of the context"), words)


def _spans(call: CallView, end: float) -> Sequence[tuple[str, float, float]]:
    found: list[tuple[str, float, float]] = []
    if call.asked_at is not None:
        over = call.decided_at if call.decided_at is not None else call.ended_at
        found.append(("people", call.asked_at, end if over is None else over))
    if call.started_at is not None:
        kind = "failed" if call.state in ("failed", "unknown") or call.in_doubt else "tool"
        found.append((kind, call.started_at, end if call.ended_at is None else call.ended_at))
    elif call.ended_at is not None and call.asked_at is None:
        found.append(("refused", call.issued_at, call.ended_at))
    return found


def _axis(height: int, seconds: float) -> list[str]:
    y = height - _AXIS + 4
    return [
        f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - 8}" y1="{y}" y2="{y}"/>',
        f'<text class="tick" x="{_LEFT}" y="{height - 4}">0</text>',
        f'<text class="tick" x="{WIDTH - 8}" y="{height - 4}" text-anchor="end">{span(seconds)}</text>',
    ]


def _svg(height: int, parts: Sequence[str], title: str) -> Markup:
    inner = "".join(parts)
    return Markup(  # numbers and words of ours only
        f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">{inner}</svg>'
    )
