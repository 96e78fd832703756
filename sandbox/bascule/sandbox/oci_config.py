"""The same hardening for a runtime without an engine: the engine's settings translated into an OCI config.

``hardening`` stays the only place where a wall is decided. Every setting must have its translation here: one
that has none is an error, not a wall that silently is not there.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any, cast

from bascule.sandbox.hardening import INIT

_PERIOD_US = 100_000

_MOUNTS: tuple[dict[str, object], ...] = (
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {
        "destination": "/dev",
        "type": "tmpfs",
        "source": "tmpfs",
        "options": ["nosuid", "noexec", "strictatime", "mode=755", "size=64k"],
    },
    {
        "destination": "/sys",
        "type": "sysfs",
        "source": "sysfs",
        "options": ["nosuid", "noexec", "nodev", "ro"],
    },
    {
        "destination": "/sys/fs/cgroup",
        "type": "cgroup",
        "source": "cgroup",
        "options": ["nosuid", "noexec", "nodev", "relatime", "ro"],
    },
)

MOUNT_POINTS = {"proc": 0o555, "dev": 0o555, "sys": 0o555, "channel": 0o555, "tmp": 0o700}
"""Folders the root file system needs, because it is read-only when they are mounted on, and their modes: runc
gives what it mounts the mode of what was there."""

_WITHOUT_MEANING = (
    *("Image", "Entrypoint", "Domainname", "AttachStdin", "AttachStdout", "AttachStderr"),
    *("OpenStdin", "StdinOnce"),
)
"""Said to an engine only: a runtime is given the pipes themselves."""

_EXPECTED: dict[str, object] = {
    "NetworkMode": "none",
    "Privileged": False,
    "IpcMode": "none",
    "CgroupnsMode": "private",
    "CapDrop": ["ALL"],
    "LogConfig": {"Type": "none"},
    "Binds": [],
    "Devices": [],
    "PublishAllPorts": False,
    "RestartPolicy": {"Name": "no"},
    "AutoRemove": False,
}
"""Settings whose translation is fixed below; another value would need another one."""


def oci_config(settings: dict[str, object], *, rootfs: Path, cgroup: str, init: bool) -> dict[str, Any]:
    """Translate the body of an engine's create call.

    Args:
        settings: from ``hardening.container_settings``.
        rootfs: unpacked image, shared by all containers and mounted read-only.
        cgroup: path of the container's control group.
        init: put an init in front of the program; the guest brings its own.

    Raises:
        ValueError: a setting has no translation.
    """
    left = {name: value for name, value in settings.items() if name not in _WITHOUT_MEANING}
    host = cast("dict[str, Any]", left.pop("HostConfig"))
    host = dict(host)
    for name, expected in _EXPECTED.items():
        if host.pop(name, expected) != expected:
            raise ValueError(f"no translation for {name} other than {expected!r}")
    if left.pop("Tty") or not left.pop("NetworkDisabled"):
        raise ValueError("no translation for a terminal or a network")
    if not host.pop("Init") and init:
        raise ValueError("no translation for an init that was not asked for")
    uid, gid = map(int, str(left.pop("User")).split(":"))
    command = cast("list[str]", left.pop("Cmd"))
    config: dict[str, Any] = {
        "ociVersion": "1.0.2",
        "process": {
            "terminal": False,
            "user": {"uid": uid, "gid": gid},
            "args": [*INIT, *command] if init else command,
            "env": left.pop("Env"),
            "cwd": left.pop("WorkingDir"),
            "capabilities": {
                kind: [] for kind in ("bounding", "effective", "inheritable", "permitted", "ambient")
            },
            "rlimits": [
                {"type": f"RLIMIT_{each['Name'].upper()}", "soft": each["Soft"], "hard": each["Hard"]}
                for each in host.pop("Ulimits")
            ],
            "noNewPrivileges": "no-new-privileges:true" in host["SecurityOpt"],
            "oomScoreAdj": host.pop("OomScoreAdj"),
        },
        "root": {"path": str(rootfs), "readonly": host.pop("ReadonlyRootfs")},
        "hostname": left.pop("Hostname"),
        "annotations": left.pop("Labels"),
        "mounts": [*_MOUNTS, *_tmpfs_mounts(host.pop("Tmpfs")), *_bind_mounts(host.pop("Mounts", []))],
        "linux": {
            "namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup")],
            "cgroupsPath": cgroup,
            "resources": {
                "devices": [{"allow": False, "access": "rwm"}],
                "memory": {"limit": host.pop("Memory"), "swap": host.pop("MemorySwap")},
                "pids": {"limit": host.pop("PidsLimit")},
                "cpu": {"quota": host.pop("NanoCpus") * _PERIOD_US // 10**9, "period": _PERIOD_US},
            },
            "seccomp": _seccomp(host.pop("SecurityOpt")),
            "maskedPaths": host.pop("MaskedPaths"),
            "readonlyPaths": host.pop("ReadonlyPaths"),
            "rootfsPropagation": "private",
        },
    }
    if left or host:
        raise ValueError(f"no translation for {sorted([*left, *host])}")
    return config


def _tmpfs_mounts(asked: dict[str, str]) -> list[dict[str, object]]:
    return [
        {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options.split(",")}
        for place, options in asked.items()
    ]


def _bind_mounts(asked: list[dict[str, Any]]) -> list[dict[str, object]]:
    if not all(each["Type"] == "bind" and each["ReadOnly"] for each in asked):
        raise ValueError("no translation for a mount that can be written")
    return [
        {
            "destination": each["Target"],
            "type": "bind",
            "source": each["Source"],
            "options": ["bind", "ro", "nosuid", "nodev", "noexec", "rprivate"],
        }
        for each in asked
    ]


def _seccomp(options: list[str]) -> dict[str, Any]:
    """Return the engine's form of a profile in the runtime's: it names the one processor, not a table."""
    (text,) = (each.removeprefix("seccomp=") for each in options if each.startswith("seccomp="))
    profile: dict[str, Any] = json.loads(text)
    profile.pop("archMap")
    return {**profile, "architectures": [f"SCMP_ARCH_{platform.machine().upper()}"]}
