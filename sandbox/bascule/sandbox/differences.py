"""What is different about an engine, in words for its operator: each is said, none is silently weaker."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from bascule.sandbox.engine import EngineInfo
from bascule.sandbox.ungrouped import engine_differences, must_be_alone

_PROGRAMS: Final = {
    "kata": ("containerd-shim-kata-v2", "kata-runtime"),
    "runsc": ("runsc",),
    "crun": ("crun",),
}


def describe_differences(engine: EngineInfo) -> list[str]:
    """Return one sentence for each property of the engine that changes what holds or how fast it is."""
    options = " ".join(engine.security_options)
    said: list[str] = []
    if engine.cgroup_version == "1" and not engine.cannot_limit:
        said.append("control groups version 1: all limits hold; an unprivileged user cannot have them")
    if must_be_alone(engine.cannot_limit):
        said.append(
            "no control groups for memory or processes: a guest may start no second process, and the limits "
            "of its one process stand in; frames cross attached streams, which is slower"
        )
    said += engine_differences(engine.cannot_limit).values()
    if engine.rootless:
        said.append(
            "rootless: an escape from the container is an unprivileged user of this machine, not root"
        )
    if engine.userns_remap:
        said.append("user namespaces: root in a container is nobody outside")
    if not (engine.rootless or engine.userns_remap):
        said.append("no user namespaces: guests run as 65534 inside and outside; the engine itself is root")
    if "name=apparmor" in options:
        said.append("AppArmor: the engine's default profile is a further wall")
    elif "name=selinux" in options:
        said.append("SELinux: labels are a further wall; frames cross attached streams, which is slower")
    else:
        said.append("neither AppArmor nor SELinux: one wall less; our system-call list does not rely on it")
    if "name=seccomp" not in options and "seccomp" not in options:
        said.append("no system-call filter: the engine or its kernel has none, and the self-check will fail")
    if not engine.local:
        said.append(
            "remote: frames cross the network inside attached streams, and the kernel's counters are not read"
        )
    if engine.is_podman:
        said.append(
            "podman speaks Docker's API; /tmp is not writable at all, because it cannot limit the files in it"
        )
    return said


def unused_runtimes(engine: EngineInfo) -> list[str]:
    """Return one sentence for each runtime that is installed here and that the engine was not told of."""
    if not engine.local or engine.is_podman:
        return []
    return [
        f"{name} is installed and the engine does not know it: add it to `runtimes` in dockerd's daemon.json"
        for name, programs in _PROGRAMS.items()
        if any(shutil.which(program) for program in programs)
        and not any(name in known for known in engine.runtimes)
    ]


def describe_machines(engine: EngineInfo, *, kvm: Path = Path("/dev/kvm")) -> list[str]:
    """Say whether sandboxes can be virtual machines here, where the engine offers none.

    Args:
        kvm: the device that Kata's machines need.
    """
    if not engine.local or engine.is_podman or any("kata" in name for name in engine.runtimes):
        return []
    if not kvm.exists():
        return [f"sandboxes cannot be virtual machines here: no {kvm}, which Kata needs"]
    return ["no sandbox is a virtual machine here: the engine has no Kata among its runtimes"]


def usable_runtimes(engine: EngineInfo) -> list[str]:
    """Return the engine's runtimes under the names that operators use, the default first.

    Podman names all that it has heard of, installed or not, and uses its default whatever it is asked for.
    """
    if engine.is_podman:
        return [engine.default_runtime]
    names = {name for name in engine.runtimes if not name.startswith("io.containerd.")}
    names |= {name for name in engine.runtimes if "kata" in name}  # its only name in newer engines
    return sorted(
        names | {engine.default_runtime} - {""}, key=lambda name: (name != engine.default_runtime, name)
    )
