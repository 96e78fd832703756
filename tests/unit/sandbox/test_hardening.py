"""The container's settings as data: what the engine is asked for, and what is never asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from bascule.sandbox.hardening import INIT, container_settings, for_podman
from bascule.sandbox.limits import MIB, SandboxLimits
from bascule.sandbox.refused import SYSTEM_CALLS
from bascule.sandbox.seccomp import profile_file, seccomp_profile


def settings(run_id: str = "run-1", **limits: Any) -> dict[str, Any]:
    return container_settings(
        SandboxLimits(**limits),
        image="image",
        run_id=run_id,
        owner="owner",
        seccomp="{}",
        runtime=None,
        command=None,
    )


def test_every_wall_is_asked_for() -> None:
    host = settings()["HostConfig"]
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert host["IpcMode"] == "none"
    assert host["LogConfig"] == {"Type": "none"}
    assert not host["Privileged"]


def test_nothing_of_the_host_is_mounted_or_passed_on() -> None:
    asked = settings()
    assert asked["HostConfig"]["Binds"] == []
    assert asked["HostConfig"]["Devices"] == []
    assert not set(asked["HostConfig"]) & {
        "Mounts",
        "VolumesFrom",
        "CapAdd",
        "PidMode",
        "UTSMode",
        "UsernsMode",
    }
    assert asked["User"] == "65534:65534"


def test_memory_limit_includes_swap() -> None:
    host = settings(memory_bytes=64 * MIB)["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 64 * MIB


@pytest.mark.parametrize("run_id", ["", "a b", "../x", "a/b", "-x", "a\n", "x" * 65, "é"])
def test_a_run_id_with_other_characters_is_refused(run_id: str) -> None:
    with pytest.raises(ValueError, match="run_id"):
        settings(run_id)


@pytest.mark.parametrize(
    "limits",
    [
        {"memory_bytes": 0},
        {"memory_bytes": 31 * MIB},
        {"cpus": 0.0},
        {"cpus": float("nan")},
        {"cpus": float("inf")},
        {"pids": 0},
        {"pids": -1},
        {"tmpfs_bytes": 0},
        {"tmpfs_files": 0},
        {"nofile": 0},
        {"frame_bytes": 0},
        {"start_timeout_s": 0.0},
        {"exit_grace_s": float("inf")},
        {"engine_timeout_s": 601.0},
    ],
)
def test_no_limit_can_be_switched_off(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        SandboxLimits(**limits)


def test_the_filter_denies_by_default_and_allows_no_call_that_the_probe_tries() -> None:
    profile = cast("dict[str, Any]", json.loads(seccomp_profile()))
    allowed = {
        name for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]
    }
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    assert not allowed & {*SYSTEM_CALLS, "socket", "bind", "connect", "clone3", "mknod", "vfork"}


def test_the_filter_allows_clone_only_without_namespaces() -> None:
    profile = cast("dict[str, Any]", json.loads(seccomp_profile()))
    rules = [rule for rule in profile["syscalls"] if "clone" in rule["names"]]
    every_namespace_flag = 0x7E020000
    assert [rule["args"][0]["value"] for rule in rules] == [every_namespace_flag]
    assert rules[0]["args"][0] | {"valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"} == rules[0]["args"][0]


def test_a_channel_adds_one_kind_of_socket_to_the_filter_and_nothing_else() -> None:
    plain = cast("dict[str, Any]", json.loads(seccomp_profile()))
    wider = cast("dict[str, Any]", json.loads(seccomp_profile(channel=True)))
    added = [rule for rule in wider["syscalls"] if rule not in plain["syscalls"]]
    assert [rule["names"] for rule in added] == [["socket"], ["connect"]]
    unix, stream_cloexec = 1, 1 | 0o2000000
    assert [arg["value"] for arg in added[0]["args"]] == [unix, stream_cloexec, 0]
    assert all(arg["op"] == "SCMP_CMP_EQ" for arg in added[0]["args"])
    assert {**wider, "syscalls": plain["syscalls"]} == plain


def test_a_channel_mounts_one_folder_read_only_and_tells_the_guest_where_it_is() -> None:
    asked = container_settings(
        SandboxLimits(),
        image="image",
        run_id="run-1",
        owner="owner",
        seccomp="{}",
        runtime=None,
        command=None,
        channel="/tmp/place",
    )
    host = cast("dict[str, Any]", asked["HostConfig"])
    assert host["Mounts"] == [
        {"Type": "bind", "Source": "/tmp/place", "Target": "/channel", "ReadOnly": True}
    ]
    assert cast("list[str]", asked["Cmd"])[-1] == "unix:/channel/host"


def test_podman_gets_nothing_that_it_refuses_and_no_folder_that_can_be_written() -> None:
    asked = for_podman(settings(), guest=True)
    host = cast("dict[str, Any]", asked["HostConfig"])
    assert not any(word in options for options in host["Tmpfs"].values() for word in ("uid=", "nr_inodes"))
    assert host["Tmpfs"]["/run"].startswith("ro,")
    assert host["Tmpfs"]["/var/tmp"].startswith("ro,")
    assert host["Init"] is False
    assert asked["Cmd"] == settings()["Cmd"]
    assert for_podman({**settings(), "Cmd": ["x"]}, guest=False)["Cmd"] == [*INIT, "x"]


def test_a_reused_container_can_write_nothing_and_brings_its_own_init() -> None:
    asked = container_settings(
        SandboxLimits(),
        image="image",
        run_id="run-1",
        owner="owner",
        seccomp="{}",
        runtime=None,
        command=None,
        channel="/somewhere",
        reuse=True,
    )
    host = cast("dict[str, Any]", asked["HostConfig"])
    assert (host["Tmpfs"], host["Init"]) == ({}, False)
    assert cast("list[str]", asked["Cmd"])[-1] == "reuse"


def test_a_profile_for_engines_that_read_files_is_kept_in_the_users_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = Path(profile_file(seccomp_profile()))
    place.chmod(0o600)
    place.write_text("{}", "utf-8")
    assert profile_file(seccomp_profile()) == str(place)
    assert place.read_text("utf-8") == seccomp_profile()
