"""What is different about an engine, in words for its operator: each is said, none is silently weaker."""

from __future__ import annotations

from bascule.sandbox.engine import EngineInfo


def describe_differences(engine: EngineInfo) -> list[str]:
    """Return one sentence for each property of the engine that changes what holds or how fast it is."""
    options = " ".join(engine.security_options)
    said: list[str] = []
    if engine.cgroup_version == "1":
        said.append("control groups version 1: all limits hold; an unprivileged user cannot have them")
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


def usable_runtimes(engine: EngineInfo) -> list[str]:
    """Return the engine's runtimes under the names that operators use, the default first."""
    names = {name for name in engine.runtimes if not name.startswith("io.containerd.")}
    return sorted(
        names | {engine.default_runtime} - {""}, key=lambda name: (name != engine.default_runtime, name)
    )
