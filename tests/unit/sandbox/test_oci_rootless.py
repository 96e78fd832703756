"""What an ordinary user's containers are configured to: ids, no control groups, limits all the same."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from bascule.sandbox import SandboxLimits
from bascule.sandbox.limits import MIB
from bascule.sandbox.oci_rootless import UserMap, bound_process, find_user_map, make_rootless, own_id
from tests.unit.sandbox.test_oci_config import settings, translated

BOTH = UserMap(uids=((0, 1000), (65534, 100_000)), gids=((0, 1000), (65534, 100_000)))


def test_every_wall_stays_but_the_control_group_and_a_user_namespace_is_added() -> None:
    before, after = translated(settings()), translated(settings())
    make_rootless(after, BOTH)
    kinds = [each["type"] for each in after["linux"]["namespaces"]]
    assert kinds == [*[each["type"] for each in before["linux"]["namespaces"]], "user"]
    assert after["linux"]["uidMappings"] == [
        {"containerID": 0, "hostID": 1000, "size": 1},
        {"containerID": 65534, "hostID": 100_000, "size": 1},
    ]
    gone = [each for each in before["mounts"] if each not in after["mounts"]]
    assert [each["destination"] for each in gone] == ["/sys/fs/cgroup"]
    assert {"resources", "cgroupsPath"}.isdisjoint(after["linux"])
    for name in ("seccomp", "maskedPaths", "readonlyPaths"):
        assert after["linux"][name] == before["linux"][name]
    for name in ("capabilities", "noNewPrivileges", "env", "cwd"):
        assert after["process"][name] == before["process"][name]


def test_limits_of_a_control_group_become_limits_of_the_one_process() -> None:
    config = translated(settings())
    bound_process(config, BOTH, SandboxLimits(memory_bytes=64 * MIB, pids=9))
    bounds = {each["type"]: (each["soft"], each["hard"]) for each in config["process"]["rlimits"]}
    assert bounds["RLIMIT_NPROC"] == (9, 9)
    assert bounds["RLIMIT_AS"][1] < 1024 * MIB
    assert bounds["RLIMIT_CPU"][1] == 600
    assert bounds["RLIMIT_SIGPENDING"] == (256, 256)
    assert config["process"]["user"] == {"uid": 65534, "gid": 65534}


def test_a_user_with_one_id_owns_the_temporary_folder_inside_and_is_told() -> None:
    config, alone = translated(settings()), own_id()
    bound_process(config, alone, SandboxLimits())
    assert config["process"]["user"] == {"uid": 0, "gid": 0}
    (tmp,) = (each for each in config["mounts"] if each["destination"] == "/tmp")
    assert {"uid=0", "gid=0"} <= set(tmp["options"])
    assert set(alone.differences()) == {"cpu", "user"}
    assert set(BOTH.differences()) == {"cpu"}


@pytest.mark.parametrize(
    ("lines", "first"),
    [
        ("somebody:5:65536\n{name}:70000:65536\n", 70_000),
        ("{uid}:90000:1\n", 90_000),
        ("{name}:70000:0\n", None),
        ("{name}:x:y\n{name}\n\n", None),
        ("", None),
    ],
)
def test_the_first_subordinate_id_of_a_user_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, first: int | None
) -> None:
    for program in ("newuidmap", "newgidmap"):
        (tmp_path / program).write_text("", "ascii")
        (tmp_path / program).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    table = tmp_path / "table"
    table.write_text(lines.format(name=pwd.getpwuid(os.geteuid()).pw_name, uid=os.geteuid()), "ascii")
    found = find_user_map({"uid": str(table), "gid": str(table)})
    assert found.has_nobody == (first is not None)
    if first is not None:
        assert found.uids[1] == found.gids[1] == (65534, first)


def test_without_the_programs_that_map_or_the_tables_a_user_has_one_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_user_map() == own_id()
    for program in ("newuidmap", "newgidmap"):
        (tmp_path / program).write_text("", "ascii")
        (tmp_path / program).chmod(0o755)
    missing = str(tmp_path / "missing")
    assert find_user_map({"uid": missing, "gid": missing}) == own_id()
