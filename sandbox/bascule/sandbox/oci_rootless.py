"""Containers of an unprivileged user: what a user namespace gives, what it cannot, and what stands in for it.

The same configuration, less control groups, which that user does not have. The limits come from the kernel
all the same: the guest's filter lets it start no second process, so that limits of one process are limits of
the sandbox. What cannot be had is said (``differences``), never left out silently.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bascule.sandbox.hardening import USER
from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.process_walls import resource_limits
from bascule.sandbox.ungrouped import CPU

_NOBODY: Final = int(USER.partition(":")[0])
_FILES: Final = {"uid": "/etc/subuid", "gid": "/etc/subgid"}

_CPU: Final = f"rootless: {CPU}; memory is limited as address space, of one process"
_OWN_ID: Final = (
    "rootless without subordinate ids: the guest is this user outside, without a capability; with newuidmap "
    "(Debian: `apt-get install uidmap`) and a line in /etc/subuid and /etc/subgid it would be nobody"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserMap:
    """Ids of a container to ids of this host.

    Attributes:
        uids: (in the container, outside) pairs; the first is root, whom nobody is after the start.
        gids: the same of groups.
    """

    uids: tuple[tuple[int, int], ...]
    gids: tuple[tuple[int, int], ...]

    @property
    def has_nobody(self) -> bool:
        """Whether the guest is somebody outside who owns nothing."""
        return len(self.uids) > 1 and len(self.gids) > 1

    def differences(self) -> dict[str, str]:
        """Return the checks of the self-check that fail for such a user, and why."""
        return {"cpu": _CPU} if self.has_nobody else {"cpu": _CPU, "user": _OWN_ID}


def find_user_map(files: Mapping[str, str] = _FILES) -> UserMap:
    """Return the best map this user may have: with a subordinate id for the guest, else their own id only.

    Args:
        files: ``uid`` and ``gid`` to the tables of subordinate ids (subuid(5)).
    """
    own = own_id()
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return own  # newuidmap refuses users whom passwd does not know
    if shutil.which("newuidmap") is None or shutil.which("newgidmap") is None:
        return own
    uid, gid = (_subordinate(files[kind], name) for kind in ("uid", "gid"))
    if uid is None or gid is None:
        return own
    return UserMap(uids=(*own.uids, (_NOBODY, uid)), gids=(*own.gids, (_NOBODY, gid)))


def own_id() -> UserMap:
    """Return the map that every user may have: root in the container is this user outside."""
    return UserMap(uids=((0, os.geteuid()),), gids=((0, os.getegid()),))


def make_rootless(config: dict[str, Any], users: UserMap) -> None:
    """Change a runtime's configuration, in place, to one that an unprivileged user may have."""
    linux = config["linux"]
    linux["namespaces"].append({"type": "user"})
    for name, pairs in (("uidMappings", users.uids), ("gidMappings", users.gids)):
        linux[name] = [{"containerID": inside, "hostID": outside, "size": 1} for inside, outside in pairs]
    del linux["resources"]
    linux.pop("cgroupsPath", None)
    config["mounts"] = [each for each in config["mounts"] if each["type"] != "cgroup"]


def bound_process(config: dict[str, Any], users: UserMap, limits: SandboxLimits) -> None:
    """Give a guest, in place, the limits that stand in for a control group's, and an id that the map has."""
    process = config["process"]
    # The same names as the engine's, and those that are a control group's work elsewhere.
    bounds = {each["type"]: each["hard"] for each in process["rlimits"]} | resource_limits(limits)
    process["rlimits"] = [{"type": name, "soft": value, "hard": value} for name, value in bounds.items()]
    if not users.has_nobody:
        process["user"] = {"uid": 0, "gid": 0}
        for mount in config["mounts"]:
            mount["options"] = [
                each.replace(f"={_NOBODY}", "=0") if each.startswith(("uid=", "gid=")) else each
                for each in mount.get("options", [])
            ]


def _subordinate(file: str, user: str) -> int | None:
    """Return the first subordinate id of the user in such a table, which names them by name or number."""
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, rest = line.partition(":")
        first, _, count = rest.partition(":")
        if name in (user, str(os.geteuid())) and first.isdecimal() and count.isdecimal() and int(count) > 0:
            return int(first)
    return None
