"""The hardened container, as data: every setting the engine is given, with its reason.

Nothing here comes from a script, a tool or a run except the numbers of ``SandboxLimits`` and a run id whose
alphabet is checked. Figures in comments were measured on Engine 20.10, runc 1.1.5, cgroup v1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from bascule.sandbox.limits import SandboxLimits

USER = "65534:65534"
"""nobody:nogroup; owns no file of the image and has no entry that gives it anything."""

CONTEXT_DIR = "/bascule"
"""Where the image holds the guest's packages; root-owned, mode 0555."""

CHANNEL_DIR = "/channel"
"""Where the folder with the host's socket is mounted, when there is one."""

CHANNEL_NAME = "host"

CHANNEL_ARGUMENT = f"unix:{CHANNEL_DIR}/{CHANNEL_NAME}"

REUSE_ARGUMENT = "reuse"
"""Makes the guest a parent of one child per run: ``bascule.guest.nursery``."""

COMMAND = ("python3", "-S", "-s", "-P", CONTEXT_DIR)
"""No site, no user site, no script folder on the path. Not -I: the environment below is ours and wanted."""

ALONE_ARGUMENT = "alone"
"""Keeps the guest from leaving an init behind, where its filter lets it start no process."""

INIT = ("python3", "-S", "-s", "-P", f"{CONTEXT_DIR}/bascule/guest/init.py")
"""In front of a program that is not the guest, where no engine brings an init; the guest brings its own."""

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "PYTHONHASHSEED": "0",  # set order repeats in every run: replays need it
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONDONTWRITEBYTECODE": "1",  # nothing is writable anyway; saves the attempts
    "PYTHONUNBUFFERED": "1",  # stderr must be complete when the guest is killed
    "HOME": "/tmp",
}
"""The whole environment of a guest. Never anything of the host's."""

OWNER_LABEL = "bascule.owner"
"""Host process that started the container; the orphan sweep reads it."""

RUN_LABEL = "bascule.run"

MASKED_PATHS = (
    *("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/scsi"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/sys/firmware"),
    "/proc/interrupts",  # its timing tells keystrokes; engines mask it since 2024
    "/sys/devices/virtual/powercap",  # power use leaks what others compute: CVE-2020-8694
    "/proc/kallsyms",  # addresses and options of the kernel help its exploits only
    "/proc/config.gz",
)
"""Unreadable in the guest: what engines mask by default, and what they forgot when this was written."""

READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

_PODMAN_REFUSES = re.compile(r",(nr_inodes|uid|gid)=\d+")
_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def container_settings(
    limits: SandboxLimits,
    *,
    image: str,
    run_id: str,
    owner: str,
    seccomp: str,
    runtime: str | None,
    command: Sequence[str] | None,
    channel: str | None = None,
    reuse: bool = False,
    alone: bool = False,
) -> dict[str, object]:
    """Return the body of the engine's create call.

    Args:
        limits: of this sandbox.
        image: id or tag of the guest image.
        run_id: letters, digits, ``_``, ``.`` and ``-``, at most 64.
        owner: name of this host process.
        seccomp: the profile, as JSON text.
        runtime: a runtime the engine knows (``runc``, ``crun``, ``runsc``), None for its default.
        command: replaces the guest program, for self-checks and tests.
        channel: folder of this host where the guest meets it, None for attached streams.
        reuse: the container serves several runs of one principal. Then nothing in it can be written at all,
            so that no file crosses from one run to the next, and the guest brings its own init, whose memory
            is closed.
        alone: the guest may start no second process, so it brings no init.

    Raises:
        ValueError: ``run_id`` has other characters.
    """
    if _RUN_ID.fullmatch(run_id) is None:
        raise ValueError(f"run_id must match {_RUN_ID.pattern}")
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": list(command or _guest_command(channel=channel is not None, reuse=reuse, alone=alone)),
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
        "User": USER,
        "WorkingDir": "/",  # fixed and in the image: CVE-2024-21626 needs a chosen one
        "Hostname": "guest",  # the same in every run: nothing to fingerprint, replays agree
        "Domainname": "",
        "Labels": {RUN_LABEL: run_id, OWNER_LABEL: owner},
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "OpenStdin": True,
        "StdinOnce": True,  # the guest sees end of file when the host's connection breaks
        "Tty": False,
        "NetworkDisabled": True,
        "HostConfig": host_settings(limits, seccomp=seccomp, runtime=runtime, channel=channel, reuse=reuse),
    }


def host_settings(
    limits: SandboxLimits,
    *,
    seccomp: str,
    runtime: str | None,
    channel: str | None = None,
    reuse: bool = False,
) -> dict[str, object]:
    """Return the HostConfig: the walls themselves."""
    settings: dict[str, object] = {
        "NetworkMode": "none",  # only lo; every other family of sockets is seccomp's job
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges:true", f"seccomp={seccomp}"],
        "Privileged": False,
        "IpcMode": "none",  # no /dev/shm, no System V objects
        "CgroupnsMode": "private",  # hides the container's id, works on cgroup v1 and v2
        "PidsLimit": limits.pids,  # counted per container; zombies included
        "Memory": limits.memory_bytes,
        "MemorySwap": limits.memory_bytes,  # equal: no swap at all
        "NanoCpus": int(limits.cpus * 1e9),
        "OomScoreAdj": 1000,  # a host short of memory kills guests first
        "Ulimits": [{"Name": name, "Soft": value, "Hard": value} for name, value in _ulimits(limits).items()],
        "Tmpfs": {"/tmp": _tmpfs(limits)},
        "LogConfig": {"Type": "none"},  # the default log writes all output to the host's disk
        "Init": True,  # reaps zombies, and pid 1 is then not the script's to confuse
        "MaskedPaths": list(MASKED_PATHS),
        "ReadonlyPaths": list(READONLY_PATHS),
        "Binds": [],
        "Devices": [],
        "PublishAllPorts": False,
        "RestartPolicy": {"Name": "no"},
        "AutoRemove": False,  # the ending is inspected first
    }
    if channel is not None:
        # The one thing of the host that is mounted: a folder with one socket, empty once the guest connected.
        settings["Mounts"] = [{"Type": "bind", "Source": channel, "Target": CHANNEL_DIR, "ReadOnly": True}]
    if runtime is not None:
        settings["Runtime"] = runtime
    if reuse:
        settings.update(Init=False, Tmpfs={})
    return settings


def for_podman(settings: dict[str, object], *, guest: bool) -> dict[str, object]:
    """Return the settings as podman takes them: it knows neither an owner nor a number of files for a tmpfs.

    So /tmp is root's there, and the guest may not write it at all. Its init does not start behind our filter;
    ours does.

    Args:
        guest: the program is the guest itself, which brings its own init.
    """
    host = cast("dict[str, Any]", settings["HostConfig"])
    tmpfs = {place: _PODMAN_REFUSES.sub("", options) for place, options in host["Tmpfs"].items()}
    # Else it would mount folders there that can be written.
    tmpfs |= dict.fromkeys(("/run", "/var/tmp"), "ro,noexec,nosuid,nodev,size=4k,mode=0555")
    command = cast("list[str]", settings["Cmd"])
    return {
        **settings,
        "Cmd": command if guest else [*INIT, *command],
        "HostConfig": {**host, "Tmpfs": tmpfs, "Init": False},
    }


def _guest_command(*, channel: bool, reuse: bool, alone: bool) -> tuple[str, ...]:
    return (
        *COMMAND,
        *([CHANNEL_ARGUMENT] if channel else []),
        *([REUSE_ARGUMENT] if reuse else []),
        *([ALONE_ARGUMENT] if alone else []),
    )


def _ulimits(limits: SandboxLimits) -> dict[str, int]:
    return {
        "nofile": limits.nofile,
        "fsize": limits.tmpfs_bytes,  # bytes; the only files are in the tmpfs
        "core": 0,  # a core file would carry tool results
        "nproc": 16_384,  # backstop only: counted per uid over all containers, pids is the limit
        "msgqueue": 0,  # /dev/mqueue stays mounted with IpcMode none
        "memlock": 0,
        "sigpending": 256,
    }


def _tmpfs(limits: SandboxLimits) -> str:
    """The only writable place; nr_inodes because empty files take memory too."""
    return (
        f"rw,noexec,nosuid,nodev,size={limits.tmpfs_bytes},nr_inodes={limits.tmpfs_files},"
        "mode=0700,uid=65534,gid=65534"
    )
