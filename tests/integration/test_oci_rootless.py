"""Isolation oci for a user who is not root: the walls, the limits in place of control groups, the words."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bascule.sandbox import SandboxError, build_bundle
from bascule.sandbox.cache import cache_dir

pytestmark = pytest.mark.engine

REPOSITORY = Path(__file__).parents[2]
USER = 54_321
FIRST_ID = 2_000_000
TIMEOUT_S = 300


@pytest.fixture(scope="module")
def home() -> Generator[Path]:
    """Give a home of the user, with the parts of the image that were fetched already."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    if shutil.which("runc") is None:
        pytest.skip("no runc here")
    if not Path(__file__).stat().st_mode & stat.S_IROTH:
        pytest.skip("this checkout is readable for its owner only")
    try:
        build_bundle()
    except SandboxError as error:
        pytest.skip(error.message)
    with tempfile.TemporaryDirectory(prefix="bascule-test-home-") as folder:
        cache = Path(folder, ".cache", "bascule")
        shutil.copytree(cache_dir("wheels"), cache / "wheels")
        for base in cache_dir("oci").glob("*/base.*"):
            place = cache / "oci" / base.parent.name
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(base, place)
        for path in (Path(folder), *Path(folder).rglob("*")):
            os.chown(path, USER, USER)
        if as_user(Path(folder), "unshare", "--user", "true", known=False).returncode != 0:
            pytest.skip("this kernel gives ordinary users no user namespaces")
        yield Path(folder)


def as_user(home: Path, *command: str, known: bool) -> subprocess.CompletedProcess[str]:
    """Run a command as the user; known to the machine, with ids to give away, or a number without a name."""
    tables: dict[str, str] = {}
    if known:
        tables = {"/etc/passwd": f"scripts:x:{USER}:{USER}::{home}:/usr/sbin/nologin\n"}
        tables |= dict.fromkeys(("/etc/subuid", "/etc/subgid"), f"scripts:{FIRST_ID}:65536\n")
    folders = {sys.base_prefix, sys.prefix, str(REPOSITORY)}
    return subprocess.run(
        [
            *(sys.executable, str(Path(__file__).with_name("unprivileged.py"))),
            *(str(USER), ":".join(folders), json.dumps(tables), *command),
        ],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def look(home: Path, *, known: bool) -> dict[str, Any]:
    done = as_user(home, sys.executable, "-m", "tests.integration.rootless_driver", known=known)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check_what_holds(found: dict[str, Any]) -> None:
    """Hold what is the same for every user who is not root."""
    assert found["uid"] == USER
    assert set(found["broken"]) == set(found["told"])
    assert all(any(why in said for said in found["warned"]) for why in found["told"].values())
    assert found["called"] == ["ok", 3]
    assert found["bombed"] == ["limit", "memory_limit"]
    assert found["second process"] == "Operation not permitted"
    assert found["reuse"] == "isolation_unsupported"
    assert found["swept"] == 0


def test_a_user_with_ids_to_give_gets_every_wall_but_a_share_of_cpu(home: Path) -> None:
    if shutil.which("newuidmap") is None:
        pytest.skip("newuidmap is not installed (Debian: apt-get install uidmap)")
    found = look(home, known=True)
    check_what_holds(found)
    assert set(found["told"]) == {"cpu"}


def test_a_user_with_one_id_is_told_that_the_guest_has_it_too(home: Path) -> None:
    found = look(home, known=False)
    check_what_holds(found)
    assert set(found["told"]) == {"cpu", "user"}


@pytest.mark.skipif(os.environ.get("BASCULE_ALL_ATTACKS") != "1", reason="`make escape` runs these")
@pytest.mark.parametrize("known", [True, False])
def test_unrestricted_python_stays_inside_a_users_container_too(home: Path, known: bool) -> None:
    suite = "tests/escape/test_container_alone.py"
    wanted = "oci and (stays_inside or still_works or another_run)"
    done = as_user(
        home, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", suite, "-k", wanted, known=known
    )
    assert done.returncode == 0, done.stdout[-4000:]


def test_the_doctor_says_what_differs_and_that_nothing_is_broken(home: Path) -> None:
    done = as_user(
        home,
        sys.executable,
        "-m",
        "bascule.cli.main",
        "doctor",
        "--isolation",
        "oci",
        "--runtime",
        "runc",
        known=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "differs    cpu" in done.stdout
    assert "without a capability" in done.stdout
    assert "BROKEN" not in done.stdout


def test_gvisor_is_refused_to_a_user_and_the_way_round_told(home: Path) -> None:
    if shutil.which("runsc") is None:
        pytest.skip("gVisor is not installed (Debian: apt-get install runsc)")
    code = (
        "from bascule.sandbox import SandboxError, open_backend\n"
        "try: open_backend('oci', runtime='runsc')\nexcept SandboxError as error: print(error)"
    )
    done = as_user(home, sys.executable, "-c", code, known=False)
    assert "as root only; use runc or crun" in done.stdout, done.stderr
