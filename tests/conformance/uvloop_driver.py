"""Run by test_uvloop.py with uvloop on its path: one script in each isolation, printed as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import cast

from bascule.bridge import Executor
from bascule.sandbox import Isolation, SandboxError, open_backend
from tests.integration import given_tools


async def run_everywhere() -> dict[str, object]:
    """Return what became of the script, by isolation; none where it is not to be had."""
    found: dict[str, object] = {"loop": type(asyncio.get_running_loop()).__module__}
    for isolation in cast("list[Isolation]", sys.argv[1:]):
        try:
            backend = await asyncio.to_thread(open_backend, isolation, build=True)
        except SandboxError as error:
            found[isolation] = error.code
            continue
        async with Executor([given_tools.add], backend=backend) as executor:
            result = await executor.run("print('x' * 100_000)\nadd(add(1))")
        await backend.close()
        found[isolation] = [result.status, result.value, len(result.output)]
    return found


if __name__ == "__main__":
    print(json.dumps(import_module("uvloop").run(run_everywhere())))
