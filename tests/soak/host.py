"""A host that runs scripts until it is killed or has done its share; one JSON line for each outcome.

Run as ``python -m tests.soak.host ISOLATION DOCKER_HOST RUNS``; an empty DOCKER_HOST is the usual engine.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from bascule.bridge import Executor, Limits
from bascule.sandbox import Isolation, SandboxError
from bascule.tools import tool

AT_ONCE = 4
RETRY_S = 0.2


@tool(effects="read")
def double(n: int) -> int:
    """Double a number.

    Args:
        n: the number.
    """
    return 2 * n


def tell(**words: object) -> None:
    """Print one line at once: the next moment may be the last."""
    os.write(1, json.dumps(words).encode() + b"\n")


async def has_run(executor: Executor, number: int) -> bool:
    """Run one script; return False when there was no sandbox to be had just now."""
    try:
        result = await executor.run(f"total = 0\nfor i in range(5):\n    total += double({number})\ntotal")
    except SandboxError as error:
        tell(event="refused", code=error.code)
        return False
    kind = None if result.error is None else result.error.kind
    why = None if result.error is None else result.error.message
    tell(event="run", status=result.status, kind=kind, why=why, right=result.value == 10 * number)
    return True


async def run_all(isolation: Isolation, docker_host: str | None, runs: int) -> None:
    """Do the share, several at once."""
    left = iter(range(runs))
    limits = Limits(wall_s=10, start_s=15)
    tell(event="start", files=len(os.listdir("/proc/self/fd")))
    async with Executor(
        [double], isolation=isolation, docker_host=docker_host, limits=limits, warm=2
    ) as executor:

        async def worker() -> None:
            for number in left:
                while not await has_run(executor, number):  # noqa: ASYNC110  # no engine tells when it is back
                    await asyncio.sleep(RETRY_S)

        await asyncio.gather(*(worker() for _ in range(AT_ONCE)))
    tell(event="end", files=len(os.listdir("/proc/self/fd")))


def main() -> None:
    """Run with the arguments."""
    isolation: Isolation = "oci" if sys.argv[1] == "oci" else "container"
    asyncio.run(run_all(isolation, sys.argv[2] or None, int(sys.argv[3])))


if __name__ == "__main__":
    main()
