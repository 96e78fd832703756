"""The sandbox's protocols work on another event loop than asyncio's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.conformance.packages import fetch_wheel

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).parents[2]


def test_scripts_run_in_every_isolation_on_uvloop(tmp_path: Path) -> None:
    with zipfile.ZipFile(fetch_wheel("uvloop==0.23.0")) as wheel:
        wheel.extractall(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance.uvloop_driver", "container", "oci", "process"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("loop").startswith("uvloop")
    well = ["ok", 3, 100_001]
    assert found["container"] == well
    assert all(told in (well, "isolation_unsupported") for told in found.values()), found
