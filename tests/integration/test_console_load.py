"""The short version of ``make bench``'s load on the console: the same code, fewer of everything."""

from __future__ import annotations

from pathlib import Path

from tests.bench.console_load import measure

MEMORY_GROWTH_BYTES = 64 << 20


def test_no_decision_is_lost_or_doubled_and_no_stream_misses_the_end(tmp_path: Path) -> None:
    load = measure(tmp_path, streams=15, pending=60, per_second=20, seconds=2)
    assert (load.decided, load.written, load.executed) == (40, 40, 40)
    assert load.refused == 20  # the second of two people who decide at once
    assert load.missed == 0
    assert load.problems == ()
    before, highest = load.memory_bytes
    assert highest - before < MEMORY_GROWTH_BYTES
