"""The attacks as rows: where they are kept, what each claims, and when a run of one counts as a failure.

Two formats. `corpus/*.jsonl` holds one object a line; `corpus/own_*.txt` holds scripts as they are read best,
each under a heading `## id | outcome | source`. A row's `class` is the construct it attacks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

CORPUS = Path(__file__).parent / "corpus"

Outcome = Literal["reject", "raise", "reject_or_raise", "kill", "inert", "host_reject", "ok"]
Layer = Literal["interpreter", "container", "reuse", "bridge", "frames", "legit"]

CANARY = "bascule-canary-7f3a91"
"""The secret put where an escape would find it; it may appear in no output."""

_HEADING = re.compile(r"^## (?P<id>\S+) \| (?P<outcome>\w+) \| (?P<source>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One attack.

    Attributes:
        outcome: `reject` before anything runs; `raise` an error inside the script, or reject; `kill` a limit
            fires, an error about it inside passes too; `inert` may finish; `host_reject` the host refuses and
            stays healthy; `ok` legitimate, must work and print `stdout`.
    """

    id: str
    layer: Layer
    kind: str
    outcome: Outcome
    source: str
    code: str
    stdout: str | None = None


def load(layer: Layer) -> list[Row]:
    """Return every row of one layer, in a fixed order."""
    if layer in ("frames", "reuse"):
        return list(_from_text(CORPUS / f"{layer}.txt", layer))
    rows = list(_from_lines(CORPUS / f"{layer}.jsonl", layer))
    if layer == "interpreter":
        for path in sorted(CORPUS.glob("own_*.txt")):
            rows += _from_text(path, layer)
    if layer == "container":
        for path in sorted(CORPUS.glob("walls_*.txt")):
            rows += _from_text(path, layer)
    return rows


def _from_lines(path: Path, layer: Layer) -> Iterator[Row]:
    for line in path.read_text(encoding="utf-8").splitlines():
        data = cast("dict[str, object]", json.loads(line))
        yield Row(
            id=str(data["id"]),
            layer=layer,
            kind=str(data["class"]),
            outcome=cast("Outcome", data["outcome"]),
            source=str(data["source"] or data["expect"]),
            code=str(data["code"])
            if "code" in data
            else _repeated(cast("dict[str, object]", data["repeat"])),
            stdout=str(data["stdout"]) if "stdout" in data else None,
        )


def _repeated(parts: dict[str, object]) -> str:
    """Build a script whose point is its size, instead of keeping a megabyte of it."""
    return f"{parts['head']}{str(parts['unit']) * int(str(parts['times']))}{parts['tail']}"


def _from_text(path: Path, layer: Layer) -> Iterator[Row]:
    text = path.read_text(encoding="utf-8")
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    for heading, end in zip(headings, ends, strict=True):
        yield Row(
            id=heading["id"],
            layer=layer,
            kind=path.stem.partition("_")[2] or path.stem,
            outcome=cast("Outcome", heading["outcome"]),
            source=heading["source"],
            code=text[heading.end() + 1 : end].strip("\n") + "\n",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What became of one attack.

    Attributes:
        status: as in Finish, or `lost` when the guest ended without a Finish (killed or crashed).
        error: kind of the first error, with the exception's name when there was one.
        text: all that came back: output, value, error messages and notes.
        output: printed text alone.
        signal: the signal that ended a lost process, if one did.
    """

    status: str
    error: str
    text: str
    output: str
    signal: int | None = None


LIMIT_SIGNALS = frozenset({9, 24})
"""SIGKILL by the supervisor or the kernel, SIGXCPU: endings that a limit gives. SIGSEGV is a crash."""


def fault(row: Row, seen: Observed) -> str | None:
    """Say what is wrong with the outcome of a row; None when it is as the row asks."""
    if CANARY in seen.text or any(
        line.startswith("ESCAPED:") or line == "ESCAPED" for line in seen.output.splitlines()
    ):
        return f"escaped: {seen.output[:200]!r}"
    if seen.signal is not None and seen.signal not in LIMIT_SIGNALS:
        return f"the guest crashed with signal {seen.signal}"
    allowed: dict[Outcome, frozenset[str]] = {
        "reject": frozenset({"refused"}),
        "raise": frozenset({"refused", "failed"}),
        "reject_or_raise": frozenset({"refused", "failed"}),
        "kill": frozenset({"refused", "failed", "limit", "lost"}),
        "inert": frozenset({"refused", "failed", "ok", "limit"}),
        "host_reject": frozenset({"refused", "failed", "ok", "limit"}),
        "ok": frozenset({"ok"}),
    }
    caught = row.outcome == "raise" and seen.status == "ok" and re.search(r"refused|, ok|denied", seen.output)
    if seen.status not in allowed[row.outcome] and not caught:
        return f"status {seen.status} ({seen.error}), wanted {row.outcome}; said {seen.text[:300]!r}"
    if row.stdout is not None and seen.output != row.stdout:
        return f"printed {seen.output[:300]!r}, wanted {row.stdout!r}"
    return None
