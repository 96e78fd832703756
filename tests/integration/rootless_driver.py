"""Runs as an ordinary user, for test_oci_rootless.py: uses isolation oci and prints what it saw as JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import os

from bascule.bridge import Executor
from bascule.sandbox import SandboxError, SandboxLimits, WarmPool, open_backend, runtime_differences
from bascule.sandbox.selfcheck import check_sandbox
from tests.integration import given_tools

MEMORY_BOMB = "x = []\nwhile True:\n    x.append(bytearray(1 << 20))\n"

PROCESS_BOMB = """
import os, time
said = "a second process started"
try:
    if os.fork() == 0:
        time.sleep(1000)
except OSError as error:
    said = error.strerror
os.write(1, len(said).to_bytes(4, "big") + said.encode())
"""


class Kept(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


async def look() -> dict[str, object]:
    """Open, check and use a backend; return what was found."""
    kept = Kept()
    logging.getLogger("bascule.sandbox").addHandler(kept)
    backend = await asyncio.to_thread(open_backend, "oci", build=True)
    checks = await check_sandbox(backend)
    async with Executor([given_tools.add], backend=backend) as executor:
        called = await executor.run("add(add(1))")
        bombed = await executor.run(MEMORY_BOMB)
    sandbox = await backend.start(
        SandboxLimits(), run_id="second", command=["python3", "-S", "-c", PROCESS_BOMB]
    )
    second = (await sandbox.receive()).decode()
    await sandbox.close()
    pool = WarmPool(backend, reuse="principal", principal="ada")
    try:
        await pool.start(SandboxLimits(), run_id="reuse")
        refused = ""
    except SandboxError as error:
        refused = error.code
    await pool.close()
    return {
        "uid": os.geteuid(),
        "broken": {check.name: check.detail for check in checks if not check.holds},
        "told": runtime_differences(),
        "warned": kept.said,
        "called": [called.status, called.value],
        "bombed": [bombed.status, None if bombed.error is None else bombed.error.kind],
        "second process": second,
        "reuse": refused,
        "swept": await backend.sweep(),
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(look())))
