"""The corpus itself: large enough, each row named, classed and with its source, none twice."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.escape.rows import CANARY, Layer, Observed, Outcome, Row, fault, load

LAYERS: tuple[Layer, ...] = ("interpreter", "container", "bridge", "frames", "legit")
ROWS = [row for layer in LAYERS for row in load(layer)]


def test_there_are_at_least_three_hundred_attacks() -> None:
    assert len([row for row in ROWS if row.layer != "legit"]) >= 300


def test_every_row_has_its_own_name_and_code() -> None:
    assert [name for name, count in Counter(row.id for row in ROWS).items() if count > 1] == []
    assert [code for code, count in Counter(row.code for row in ROWS).items() if count > 1] == []


def test_every_row_names_its_class_and_source() -> None:
    assert [row.id for row in ROWS if not (row.kind and row.source)] == []


def observed(status: str, *, output: str = "", text: str = "", signal: int | None = None) -> Observed:
    """Return an observation with everything else empty."""
    return Observed(status=status, error="", text=text or output, output=output, signal=signal)


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        ("inert", observed("ok", output="ESCAPED:x\n")),
        ("raise", observed("failed", text=f"ValueError: {CANARY}")),
        ("reject", observed("failed")),
        ("raise", observed("ok")),
        ("kill", observed("ok")),
        ("kill", observed("lost", signal=11)),
        ("raise", observed("lost", signal=9)),
        ("ok", observed("failed")),
    ],
)
def test_a_wrong_outcome_is_found(outcome: Outcome, seen: Observed) -> None:
    row = Row(id="x", layer="interpreter", kind="k", outcome=outcome, source="s", code="")
    assert fault(row, seen) is not None


@pytest.mark.parametrize(
    ("outcome", "seen"),
    [
        ("raise", observed("refused")),
        ("raise", observed("ok", output="refused ValueError\n")),
        ("kill", observed("lost", signal=9)),
        ("kill", observed("limit")),
        ("inert", observed("ok", text="the word ESCAPED inside a message")),
    ],
)
def test_a_right_outcome_passes(outcome: Outcome, seen: Observed) -> None:
    row = Row(id="x", layer="interpreter", kind="k", outcome=outcome, source="s", code="")
    assert fault(row, seen) is None
