"""AppArmor, where the kernel has it: an engine applies its default profile, a bare runtime applies none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PROFILES: Final = ("bascule-guest", "docker-default", "containers-default")
"""Profiles that fit a guest, the best first: an operator's own, and the defaults of engines."""


def find_profile(sys_folder: Path = Path("/sys")) -> str | None:
    """Return the best profile that is loaded and enforced; None without AppArmor, or for who may not look."""
    try:
        if (sys_folder / "module/apparmor/parameters/enabled").read_text("ascii").strip() != "Y":
            return None
        lines = (sys_folder / "kernel/security/apparmor/profiles").read_text("utf-8").splitlines()
    except OSError:
        return None
    # podman's name ends in its version
    enforced = [line.removesuffix(" (enforce)") for line in lines if line.endswith(" (enforce)")]
    fitting = (
        name for wanted in PROFILES for name in enforced if name == wanted or name.startswith(f"{wanted}-")
    )
    return next(fitting, None)
