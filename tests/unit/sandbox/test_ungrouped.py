"""An engine is never asked for a limit that it would discard; limits of the one process stand in for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bascule.sandbox import SandboxLimits
from bascule.sandbox.limits import MIB
from bascule.sandbox.ungrouped import engine_differences, must_be_alone, without_groups
from tests.unit.sandbox.test_oci_config import settings

LIMITS = SandboxLimits(memory_bytes=64 * MIB, cpus=0.5, pids=9)


def changed(*cannot_limit: str) -> tuple[dict[str, Any], dict[str, int]]:
    host = cast("dict[str, Any]", without_groups(settings(), cannot_limit, LIMITS)["HostConfig"])
    return host, {each["Name"]: each["Hard"] for each in host["Ulimits"]}


def test_an_engine_that_limits_everything_is_asked_for_all_of_it() -> None:
    assert without_groups(settings(), (), LIMITS) == settings()
    assert not must_be_alone(())
    assert engine_differences(()) == {}


def test_without_control_groups_the_one_process_is_limited_and_nothing_is_asked_that_would_be_discarded() -> (
    None
):
    host, bounds = changed("memory", "pids", "cpu")
    assert {"Memory", "MemorySwap", "PidsLimit", "NanoCpus"}.isdisjoint(host)
    assert not host["Init"]
    assert bounds["data"] < 1024 * MIB
    assert (bounds["nproc"], bounds["cpu"], bounds["core"]) == (9, 600, 0)


def test_without_a_share_of_cpu_only_that_is_missing_and_told() -> None:
    host, bounds = changed("cpu")
    assert (host["Memory"], host["PidsLimit"], host["Init"]) == (64 * MIB, 9, True)
    assert "data" not in bounds
    assert bounds["cpu"] == 600
    assert set(engine_differences({"cpu"})) == {"cpu"}


@pytest.mark.parametrize(("cannot", "alone"), [("memory", True), ("pids", True), ("cpu", False)])
def test_a_guest_is_alone_where_nothing_would_limit_all_of_its_processes(cannot: str, alone: bool) -> None:
    assert must_be_alone({cannot}) is alone
    assert changed(cannot)[0]["Init"] is not alone
