"""The profile for a bare runtime: found where AppArmor is on and one is enforced, else none."""

from __future__ import annotations

from pathlib import Path

import pytest

from bascule.sandbox.apparmor import find_profile


def make_sys(folder: Path, enabled: str, profiles: str) -> Path:
    (folder / "module/apparmor/parameters").mkdir(parents=True)
    (folder / "module/apparmor/parameters/enabled").write_text(enabled, "ascii")
    (folder / "kernel/security/apparmor").mkdir(parents=True)
    (folder / "kernel/security/apparmor/profiles").write_text(profiles, "utf-8")
    return folder


@pytest.mark.parametrize(
    ("enabled", "profiles", "found"),
    [
        ("Y\n", "/usr/bin/man (enforce)\ndocker-default (enforce)\n", "docker-default"),
        ("Y\n", "docker-default (enforce)\nbascule-guest (enforce)\n", "bascule-guest"),
        ("Y\n", "containers-default-0.50.1 (enforce)\n", "containers-default-0.50.1"),
        ("Y\n", "docker-default (complain)\n", None),
        ("Y\n", "", None),
        ("N\n", "docker-default (enforce)\n", None),
    ],
)
def test_the_best_enforced_profile_is_taken(
    tmp_path: Path, enabled: str, profiles: str, found: str | None
) -> None:
    assert find_profile(make_sys(tmp_path, enabled, profiles)) == found


def test_a_kernel_without_apparmor_has_none(tmp_path: Path) -> None:
    assert find_profile(tmp_path) is None
