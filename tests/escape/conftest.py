"""Prints how large the corpus is, so that a shrinking one is seen."""

from __future__ import annotations

import pytest

from tests.escape.rows import Layer, load

LAYERS: tuple[Layer, ...] = ("interpreter", "container", "reuse", "bridge", "frames", "legit")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the rows of each layer."""
    counts = {layer: len(load(layer)) for layer in LAYERS}
    attacks = sum(count for layer, count in counts.items() if layer != "legit")
    each = ", ".join(f"{layer} {count}" for layer, count in counts.items())
    terminalreporter.write_line(f"corpus: {attacks} attacks ({each})")
