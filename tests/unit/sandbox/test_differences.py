"""What is said of an engine: each difference once, and the runtimes under the names that operators use."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bascule.sandbox import (
    EngineInfo,
    describe_differences,
    describe_machines,
    unused_runtimes,
    usable_runtimes,
)

PLAIN = EngineInfo(
    host="unix:///var/run/docker.sock",
    name="Engine",
    version="28.0",
    api_version="1.48",
    operating_system="Debian",
    kernel="6.1",
    architecture="x86_64",
    cgroup_version="2",
    cgroup_driver="systemd",
    storage_driver="overlay2",
    runtimes=("io.containerd.runc.v2", "runc", "runsc"),
    default_runtime="runc",
    security_options=("name=seccomp,profile=default", "name=apparmor"),
    rootless=False,
    userns_remap=False,
    local=True,
)


@pytest.mark.parametrize(
    ("engine", "word"),
    [
        (replace(PLAIN, cgroup_version="1"), "version 1"),
        (replace(PLAIN, rootless=True), "rootless"),
        (replace(PLAIN, userns_remap=True), "user namespaces"),
        (replace(PLAIN, local=False), "remote"),
        (replace(PLAIN, name="Podman Engine"), "podman"),
        (replace(PLAIN, security_options=("name=seccomp",)), "neither AppArmor"),
        (replace(PLAIN, security_options=("name=selinux", "name=seccomp")), "SELinux"),
        (replace(PLAIN, security_options=()), "no system-call filter"),
        (replace(PLAIN, cannot_limit=frozenset({"cpu"})), "no control group for CPU"),
        (replace(PLAIN, cannot_limit=frozenset({"pids"})), "no control groups for memory or processes"),
    ],
)
def test_each_difference_is_said(engine: EngineInfo, word: str) -> None:
    assert any(word in sentence for sentence in describe_differences(engine))
    assert not any(sentence.startswith(word) for sentence in describe_differences(PLAIN))


def test_the_default_runtime_is_tried_first_and_each_once() -> None:
    assert usable_runtimes(replace(PLAIN, default_runtime="runsc")) == ["runsc", "runc"]


def test_kata_is_found_under_the_only_name_that_newer_engines_have_for_it() -> None:
    engine = replace(PLAIN, runtimes=("io.containerd.kata.v2", "io.containerd.runc.v2", "runc"))
    assert usable_runtimes(engine) == ["runc", "io.containerd.kata.v2"]


def test_it_is_said_why_no_sandbox_is_a_virtual_machine(tmp_path: Path) -> None:
    kvm = tmp_path / "kvm"
    assert describe_machines(PLAIN, kvm=kvm) == [
        f"sandboxes cannot be virtual machines here: no {kvm}, which Kata needs"
    ]
    kvm.write_bytes(b"")
    assert "no Kata among its runtimes" in describe_machines(PLAIN, kvm=kvm)[0]
    assert describe_machines(replace(PLAIN, runtimes=("io.containerd.kata.v2",)), kvm=kvm) == []
    assert describe_machines(replace(PLAIN, local=False), kvm=kvm) == []


def test_of_podman_only_the_runtime_is_usable_that_it_uses_whatever_it_is_asked_for() -> None:
    podman = replace(PLAIN, name="Podman Engine", runtimes=("crun", "kata", "runc"), default_runtime="crun")
    assert usable_runtimes(podman) == ["crun"]
    assert unused_runtimes(podman) == []


def test_a_runtime_that_is_installed_and_that_the_engine_was_not_told_of_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kata-runtime").write_text("", "ascii")
    (tmp_path / "kata-runtime").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (sentence,) = unused_runtimes(PLAIN)
    assert sentence.startswith("kata is installed")
    assert unused_runtimes(replace(PLAIN, runtimes=("kata", "runc"))) == []
    assert unused_runtimes(replace(PLAIN, local=False)) == []
