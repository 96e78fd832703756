"""Two engines on one machine: the second takes nothing of the first one's, and neither sweeps the other's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bascule.sandbox import GuestImage, SandboxLimits, find_engine, open_backend
from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.seccomp import seccomp_profile
from tests.integration.test_sandbox_container import ECHO, Containers, echoes, python

pytestmark = [pytest.mark.engine, pytest.mark.anyio]

WITH_ENGINE = Path(__file__).parents[2] / ".ci" / "with-engine"

INSIDE = """
import json, os, sys
links = sorted(os.listdir("/sys/class/net"))
print(json.dumps({"host": os.environ["DOCKER_HOST"], "links": links}), flush=True)
sys.stdin.readline()
"""


async def test_a_second_engine_takes_no_network_and_no_container_of_the_first(
    guest_image: GuestImage, containers_of: Containers, run_id: str
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can start an engine")
    first = open_backend("container")
    living = await first.start(SandboxLimits(), run_id=run_id, command=python(ECHO))
    links = sorted(os.listdir("/sys/class/net"))
    with tempfile.TemporaryDirectory(prefix="bascule-second-") as folder:
        starting = subprocess.Popen(  # noqa: ASYNC220  # nothing else runs on this loop
            [str(WITH_ENGINE), sys.executable, "-c", INSIDE],
            env={**os.environ, "BASCULE_ENGINE_DIR": folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert starting.stdout is not None
            told = json.loads(starting.stdout.readline())
            assert told["links"] == links == sorted(os.listdir("/sys/class/net"))
            second = ContainerBackend(
                Engine(docker_host=told["host"]),
                image=guest_image.tag,
                image_hash=guest_image.hash,
                seccomp=seccomp_profile(),
            )
            assert await second.sweep() == await first.sweep() == 0
            await second.close()
        finally:
            starting.communicate("\n", timeout=120)
        assert starting.returncode == 0
    assert links == sorted(os.listdir("/sys/class/net"))
    assert find_engine().host != told["host"]
    await echoes(living)
    assert len(containers_of(run_id)) == 1
    await living.kill()
    await living.close()
    await first.close()
