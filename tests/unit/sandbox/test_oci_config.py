"""The two forms of the hardening say the same: what the engine is asked for, the runtime is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from bascule.sandbox import SandboxLimits
from bascule.sandbox.hardening import container_settings
from bascule.sandbox.limits import MIB
from bascule.sandbox.oci_config import oci_config
from bascule.sandbox.seccomp import seccomp_profile


def settings() -> dict[str, Any]:
    return container_settings(
        SandboxLimits(memory_bytes=64 * MIB, cpus=0.5, pids=9),
        image="image",
        run_id="run-1",
        owner="owner",
        seccomp=seccomp_profile(channel=True),
        runtime=None,
        command=None,
        channel="/tmp/place",
    )


def translated(asked: dict[str, Any], *, init: bool = False) -> dict[str, Any]:
    return oci_config(asked, rootfs=Path("/image"), cgroup="/group", init=init)


def test_every_wall_of_the_engines_form_stands_in_the_runtimes() -> None:
    asked, told = settings(), translated(settings())
    host = cast("dict[str, Any]", asked["HostConfig"])
    process, linux = told["process"], told["linux"]
    assert {each["type"] for each in linux["namespaces"]} >= {
        "network",
        "pid",
        "ipc",
        "uts",
        "mount",
        "cgroup",
    }
    assert told["root"] == {"path": "/image", "readonly": host["ReadonlyRootfs"]}
    assert not any(process["capabilities"].values())
    assert len(process["capabilities"]) == 5
    assert process["noNewPrivileges"] is True
    assert f"{process['user']['uid']}:{process['user']['gid']}" == asked["User"]
    assert process["args"] == asked["Cmd"]
    assert process["env"] == asked["Env"]
    assert process["cwd"] == asked["WorkingDir"]
    assert process["oomScoreAdj"] == host["OomScoreAdj"]
    assert linux["maskedPaths"] == host["MaskedPaths"]
    assert linux["readonlyPaths"] == host["ReadonlyPaths"]
    assert {each["type"]: each["hard"] for each in process["rlimits"]} == {
        f"RLIMIT_{each['Name'].upper()}": each["Hard"] for each in host["Ulimits"]
    }


def test_the_limits_are_the_same_numbers() -> None:
    host = cast("dict[str, Any]", settings()["HostConfig"])
    resources = translated(settings())["linux"]["resources"]
    assert resources["memory"] == {"limit": host["Memory"], "swap": host["MemorySwap"]}
    assert resources["pids"]["limit"] == host["PidsLimit"]
    assert resources["cpu"]["quota"] / resources["cpu"]["period"] == host["NanoCpus"] / 1e9
    assert resources["devices"] == [{"allow": False, "access": "rwm"}]


def test_the_filter_is_the_same_but_for_its_table_of_processors() -> None:
    ours = json.loads(seccomp_profile(channel=True))
    told = translated(settings())["linux"]["seccomp"]
    assert len(told.pop("architectures")) == 1
    ours.pop("archMap")
    assert told == ours


def test_what_can_be_written_is_the_temporary_folder_only() -> None:
    mounts = translated(settings())["mounts"]
    writable = [each["destination"] for each in mounts if "ro" not in each.get("options", [])]
    assert writable == ["/proc", "/dev", "/tmp"]  # /proc is masked, /dev belongs to root
    tmp = next(each for each in mounts if each["destination"] == "/tmp")
    host = cast("dict[str, Any]", settings()["HostConfig"])
    assert ",".join(tmp["options"]) == host["Tmpfs"]["/tmp"]
    channel = next(each for each in mounts if each["destination"] == "/channel")
    assert {"ro", "nosuid", "nodev", "noexec"} <= set(channel["options"])


def test_a_program_that_is_not_the_guest_gets_an_init() -> None:
    asked = settings()
    args = translated(asked, init=True)["process"]["args"]
    assert args[-len(asked["Cmd"]) :] == asked["Cmd"]
    assert args[4].endswith("guest/init.py")


@pytest.mark.parametrize(
    "change",
    [
        {"NetworkMode": "bridge"},
        {"Privileged": True},
        {"CapDrop": []},
        {"CapAdd": ["CAP_SYS_ADMIN"]},
        {"SomethingNew": 1},
        {"Mounts": [{"Type": "bind", "Source": "/", "Target": "/x", "ReadOnly": False}]},
    ],
)
def test_a_setting_without_a_translation_is_an_error(change: dict[str, Any]) -> None:
    asked = settings()
    cast("dict[str, Any]", asked["HostConfig"]).update(change)
    with pytest.raises(ValueError, match="no translation"):
        translated(asked)
