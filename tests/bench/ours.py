"""What Bascule takes for the same things, through the whole executor."""

from __future__ import annotations

import subprocess
import sys
import time

from bascule.bridge import Executor, Limits
from bascule.sandbox import Backend
from bascule.tools import AnyTool, tool

CALLS = 1000
WAITS = 100
WAIT_S = 0.05
LIMITS = Limits(wall_s=60, cpu_s=60, calls=10_000, memory_bytes=1 << 30, result_bytes=64 << 20)

HELLO = "print('hello')"


def in_turn(count: int) -> str:
    """Return a script that makes calls one after the other."""
    return f"for i in range({count}):\n    noop(n=i)\n"


def at_once(count: int) -> str:
    """Return a script that makes calls side by side."""
    return (
        f"import asyncio\nasync def main():\n    await asyncio.gather(*[noop(n=i) for i in range({count})])\n"
        "asyncio.run(main())\n"
    )


SEQUENTIAL = in_turn(CALLS)
THREADED = SEQUENTIAL.replace("noop", "threaded")
PARALLEL = at_once(CALLS)
WAITING = PARALLEL.replace("noop", "slow").replace(f"range({CALLS})", f"range({WAITS})")

_TIMED = """
import sys, time
text = sys.stdin.read()
code = compile(text, "<script>", "exec")
began = time.process_time()
exec(code, {"__name__": "__main__"})
print(time.process_time() - began, file=sys.stderr)
"""


@tool(effects="read", inline=True)
def noop(n: int) -> int:
    """Do nothing.

    Args:
        n: given back.
    """
    return n


@tool(effects="read")
def threaded(n: int) -> int:
    """Do nothing, on a thread of its own as functions that may wait are.

    Args:
        n: given back.
    """
    return n


@tool(effects="read")
async def slow(n: int) -> int:
    """Wait 50 ms.

    Args:
        n: given back.
    """
    import asyncio

    await asyncio.sleep(WAIT_S)
    return n


def make_executor(backend: Backend) -> Executor:
    """Return an executor with the measured tools; the backend stays open."""
    return executor_of([noop, threaded, slow], backend)


def executor_of(tools: list[AnyTool], backend: Backend) -> Executor:
    """Return an executor with these tools; the backend stays open."""
    return Executor(tools, limits=LIMITS, backend=backend)


async def run_s(executor: Executor, script: str) -> float:
    """Wall time from the order to the result."""
    began = time.perf_counter()
    result = await executor.run(script, seed=1)
    took_s = time.perf_counter() - began
    assert result.status == "ok", result.error
    return took_s


async def restricted_cpu_s(executor: Executor, script: str, idle_cpu_s: float) -> float:
    """CPU time a guest spends on a script, less what an empty one costs."""
    return max(await guest_cpu_s(executor, script) - idle_cpu_s, 1e-6)


async def guest_cpu_s(executor: Executor, script: str) -> float:
    """CPU time the guest measured of itself."""
    result = await executor.run(script, seed=1)
    assert result.status == "ok", result.error
    return result.usage.cpu_s


def plain_cpu_s(script: str) -> float:
    """CPU time plain Python spends on a script, its start and compilation not counted."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", _TIMED], input=script, capture_output=True, text=True, check=True
    )
    return float(done.stderr.strip().splitlines()[-1])
