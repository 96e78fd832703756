"""The tables of docs/bench/README.md, made of the figures beside it: ``python -m tests.bench.tables``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "bench"
PAGE = FOLDER / "README.md"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->"

Kept = dict[str, Any]


def newest() -> Kept:
    """Return the newest figures that were kept."""
    kept: Kept = json.loads(sorted(FOLDER.glob("bench-*.json"))[-1].read_text("utf-8"))
    return kept


def make_tables(kept: Kept) -> str:
    """Return verdicts and peers as Markdown."""
    before, after = kept["load"]
    lines = [
        f"Commit {kept['commit']}, {kept['date']}, Python {kept['python']}, {kept['cores']} cores; "
        f"load {before:g} before and {after:g} after.",
        "",
        "| ratio | value | target | |",
        "|---|---|---|---|",
    ]
    for name, verdict in kept["verdicts"].items():
        sign = ">=" if verdict["at_least"] else "<="
        word = "met" if verdict["met"] else "**missed**"
        lines.append(f"| {name} | {verdict['value']:.3g} | {sign} {verdict['target']:g} | {word} |")
    lines += [
        "",
        "| peer, milliseconds | hello | 100 calls | CPU loop | 1 MiB result |",
        "|---|---|---|---|---|",
    ]
    for peer, found in kept["peers"].items():
        if isinstance(found, str):
            lines.append(f"| {peer} | does not run here: {found.replace('|', ' ')} | | | |")
            continue
        cells = [f"{found[name] * 1000:.3g}" if name in found else "-" for name in _MEASURES]
        lines.append(f"| {peer} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


_MEASURES = ("hello", "100 calls", "CPU loop", "1 MiB result")


def main() -> None:
    """Write the tables into the page."""
    head, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}{make_tables(newest())}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
