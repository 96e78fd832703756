"""Runs attacks through the whole bridge on a given backend and says what became of each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Result
from bascule.sandbox import Backend
from tests.escape.rows import CANARY, Observed, Row
from tests.escape.tools import NOTE, make_tools

LIMITS = Limits(
    wall_s=2.0, cpu_s=2.0, run_s=20.0, memory_bytes=128 << 20, output_bytes=64 << 10, calls=100, recursion=400
)

Outcomes = dict[str, tuple[Observed, list[str]]]
"""By row: what was seen, and the targets that `danger` really ran for."""


class Refuser:
    """Denies every approval and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[ApprovalRequest] = []

    def __call__(self, request: ApprovalRequest) -> Decision:
        """Decide one request."""
        self.shown.append(request)
        return Decision(verdict="reject", reason="not in a test")


def prepare_notes(root: Path) -> Path:
    """Fill a folder with notes, a secret beside them and a link that leads to it; return the secret."""
    secret = root / "canary"
    secret.write_text(CANARY, encoding="utf-8")
    notes = root / "notes"
    notes.mkdir()
    (notes / "ok.txt").write_text(NOTE, encoding="utf-8")
    (notes / "link-to-canary").symlink_to(secret)
    return secret


def observe(result: Result) -> Observed:
    """Reduce a result to what the corpus judges."""
    said = [f"{error.exception or ''} {error.message} {error.suggestion or ''}" for error in result.errors]
    noted = [note.message for note in result.notes]
    lost = result.error is not None and result.error.kind in ("guest_crashed", "guest_killed")
    return Observed(
        status="lost" if lost else result.status,
        error=f"{result.error.kind} {result.error.exception or ''}".strip() if result.error else "",
        text="\n".join([result.output, repr(result.value), *said, *noted]),
        output=result.output,
    )


async def attack_all(
    backend: Backend, rows: Sequence[Row], root: Path, *, at_once: int, canary: str
) -> Outcomes:
    """Run every row, ``at_once`` at a time.

    Args:
        canary: path that stands for ``/canary`` in the scripts.
    """
    slots = asyncio.Semaphore(at_once)

    async def one(row: Row) -> tuple[Observed, list[str]]:
        ran: list[str] = []
        async with slots:
            executor = Executor(make_tools(root, ran), approver=Refuser(), limits=LIMITS, backend=backend)
            async with executor:
                result = await executor.run(row.code.replace("/canary", canary), seed=1)
        return observe(result), ran

    seen = await asyncio.gather(*(one(row) for row in rows))
    return {row.id: outcome for row, outcome in zip(rows, seen, strict=True)}
