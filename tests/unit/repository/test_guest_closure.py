"""The image's build context is all a guest needs: run it with nothing else importable and talk to it.

Trusts the interpreter that runs the tests to stand for the image's; the engine tests run the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from bascule.sandbox.image import build_context
from bascule.wire import (
    PROTOCOL,
    Finish,
    FrameSplitter,
    GuestLimits,
    Hello,
    Start,
    decode_guest_frame,
    encode_frame,
)

CLEAN_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONDONTWRITEBYTECODE": "1"}
LIMITS = GuestLimits(
    wall_s=10,
    cpu_s=10,
    memory_bytes=256 << 20,
    output_bytes=1 << 16,
    recursion=200,
    calls=10,
    frame_bytes=1 << 20,
)
STANDARD_LIBRARY = (
    sysconfig.get_path("stdlib"),
    sysconfig.get_path("platstdlib"),
    str(Path(os.__file__).parent),
)
OUTSIDE = f"""
import json, sys
sys.path.insert(0, sys.argv[1])
import bascule.guest.main
allowed = (sys.argv[1], *{STANDARD_LIBRARY!r})
files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
print(json.dumps([file for file in files if file and not file.startswith(allowed)]))
"""


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    into = tmp_path_factory.mktemp("context")
    return into, build_context(into)


def guest_root(folder: Path) -> Path:
    """Return the folder inside the build context that holds `__main__.py`."""
    (main,) = [path for path in folder.rglob("__main__.py") if (path.parent / "bascule").is_dir()]
    return main.parent


def test_the_build_context_alone_runs_a_script(context: tuple[Path, str]) -> None:
    folder, image_hash = context
    start = Start(script="print(6 * 7)\n'done'", tools=(), seed=1, now=1_700_000_000.0, limits=LIMITS)
    process = subprocess.run(
        [sys.executable, "-S", "-s", "-P", str(guest_root(folder))],
        input=encode_frame(start, max_bytes=1 << 20),
        capture_output=True,
        env=CLEAN_ENVIRONMENT,
        cwd="/",
        timeout=60,
        check=False,
    )
    assert process.returncode == 0, process.stderr.decode()
    payloads = list(FrameSplitter(max_bytes=1 << 20).feed(process.stdout))
    hello, finish = decode_guest_frame(payloads[0]), decode_guest_frame(payloads[-1])
    assert isinstance(hello, Hello)
    assert (hello.protocol, hello.image) == (PROTOCOL, image_hash)
    assert isinstance(finish, Finish)
    assert (finish.status, finish.value, finish.value_source) == ("ok", "done", "last_expression")


def test_nothing_outside_context_and_standard_library_is_imported(context: tuple[Path, str]) -> None:
    folder, _ = context
    listing = subprocess.run(
        [sys.executable, "-S", "-s", "-P", "-c", OUTSIDE, str(guest_root(folder))],
        capture_output=True,
        env=CLEAN_ENVIRONMENT,
        cwd="/",
        timeout=60,
        check=True,
    )
    assert json.loads(listing.stdout) == []


def test_the_same_content_gives_the_same_hash(context: tuple[Path, str], tmp_path: Path) -> None:
    _, image_hash = context
    assert build_context(tmp_path) == image_hash


def test_the_build_context_holds_no_host_code(context: tuple[Path, str]) -> None:
    folder, _ = context
    assert {path.name for path in (guest_root(folder) / "bascule").iterdir()} == {"guest", "wire"}
