"""`python -m tests.bench.tokens`: what scripts save on tasks that others wrote, run in the container.

Writes what was measured to artifacts/exchanges.jsonl; `bascule bench tokens` makes tables and chart of it.
``TOKEN_TASKS`` bounds the tasks of each set, ``BENCH_KEEP=1`` writes the documentation anew.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

from bascule.models.counting import O200kCounter
from bascule.models.exchange_file import write_exchanges
from bascule.sandbox import Backend, WarmPool, open_backend
from tests.bench.exchanges import Measured, measure_travel, measure_written
from tests.bench.nestful import load_travel
from tests.conformance.tasks import load_tasks

ROOT = Path(__file__).parents[2]
EXCHANGES = ROOT / "artifacts" / "exchanges.jsonl"
DOCS = ROOT / "docs" / "models"


async def measure_all(backend: Backend, at_most: int | None) -> list[Measured]:
    """Measure both sets."""
    counter = O200kCounter()
    api, tasks = load_travel()
    measured = await measure_travel(api, tasks[:at_most], backend, counter)
    return measured + await measure_written(load_tasks()[:at_most], backend, counter)


def main() -> int:
    """Measure, write, draw; return 1 when a call differed from what was recorded."""
    bound = os.environ.get("TOKEN_TASKS")

    async def run() -> list[Measured]:
        backend = WarmPool(open_backend("container", build=True))
        try:
            return await measure_all(backend, None if bound is None else int(bound))
        finally:
            await backend.close()

    begun = time.monotonic()
    measured = asyncio.run(run())
    wrong = [each for each in measured if each.problem]
    print(f"{len(measured) - len(wrong)} of {len(measured)} tasks made exactly the recorded calls,", end=" ")
    print(f"in {time.monotonic() - begun:.0f} s")
    for each in wrong:
        print(f"  {each.id}: {each.problem[:300]}")
    EXCHANGES.parent.mkdir(exist_ok=True)
    write_exchanges([each.exchange for each in measured if each.exchange is not None], EXCHANGES)
    command = [sys.executable, "-m", "bascule.cli.main", "bench", "tokens", str(EXCHANGES)]
    if os.environ.get("BENCH_KEEP") == "1":
        command += ["--json", str(DOCS / "tokens.json"), "--svg", str(DOCS / "tokens.svg")]
        command += ["--into", str(DOCS / "when-scripts-pay-off.md")]
    drawn = subprocess.run(command, check=False)
    return drawn.returncode or bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
