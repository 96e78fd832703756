"""What stands in for control groups where an engine or a user has none: limits of the guest's one process.

The filter then lets the guest start no second process, so that a limit of one process is a limit of the
sandbox. A share of CPU cannot be had that way. Each sentence here is told to the operator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, cast

from bascule.sandbox.limits import SandboxLimits
from bascule.sandbox.process_walls import resource_limits

CPU: Final = "no control group for CPU: it is limited by seconds in all and not by share"

_SETTINGS: Final = {
    "memory": ("Memory", "MemorySwap"),
    "pids": ("PidsLimit",),
    "cpu": ("NanoCpus",),
}
"""What an engine is not asked for, because it would refuse it or, worse, discard it with a warning."""


def engine_differences(cannot_limit: Collection[str]) -> dict[str, str]:
    """Return the checks that fail with an engine that cannot limit these, and why."""
    return {"cpu": CPU} if "cpu" in cannot_limit else {}


def must_be_alone(cannot_limit: Collection[str]) -> bool:
    """Whether the guest may start no second process, because nothing would limit all of them together."""
    return bool({"memory", "pids"} & set(cannot_limit))


def without_groups(
    settings: Mapping[str, object], cannot_limit: Collection[str], limits: SandboxLimits
) -> dict[str, object]:
    """Return an engine's settings less what it cannot limit, with limits of a process in their place.

    Args:
        settings: from ``container_settings``, with ``alone`` where ``must_be_alone``.
        cannot_limit: of ``memory``, ``pids``, ``cpu``.
    """
    host = dict(cast("dict[str, Any]", settings["HostConfig"]))
    for kind in cannot_limit:
        for name in _SETTINGS[kind]:
            host.pop(name)
    bounds = {each["Name"]: each["Hard"] for each in host["Ulimits"]}
    wanted = resource_limits(limits)
    if must_be_alone(cannot_limit):
        host["Init"] = False  # it could not start the guest
        # Engines know no limit of address space; this one counts what a process may write to.
        bounds |= {"data": wanted["RLIMIT_AS"], "nproc": wanted["RLIMIT_NPROC"]}
    if "cpu" in cannot_limit:
        bounds["cpu"] = wanted["RLIMIT_CPU"]
    host["Ulimits"] = [{"Name": name, "Soft": value, "Hard": value} for name, value in bounds.items()]
    return {**settings, "HostConfig": host}
