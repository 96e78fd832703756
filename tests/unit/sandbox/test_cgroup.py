"""What the kernel counted, read from trees of files as each version of control groups lays them out.

The trees are written from the kernel's documentation (cgroup-v1, cgroup-v2.rst); version 2 itself was never
seen by these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bascule.sandbox.cgroup import Counters, Folders, read_counters, read_limits

VERSION_1 = {
    "memory/memory.max_usage_in_bytes": "12582912\n",
    "memory/memory.limit_in_bytes": "268435456\n",
    "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
    "cpuacct/cpuacct.usage": "1500000000\n",
    "cpu/cpu.cfs_quota_us": "50000\n",
    "cpu/cpu.cfs_period_us": "100000\n",
    "pids/pids.max": "64\n",
    "pids/pids.events": "max 7\n",
}
VERSION_2 = {
    "group/memory.peak": "12582912\n",
    "group/memory.max": "268435456\n",
    "group/memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\noom_group_kill 0\n",
    "group/cpu.stat": "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\nnr_periods 0\n",
    "group/cpu.max": "50000 100000\n",
    "group/pids.max": "64\n",
    "group/pids.events": "max 7\n",
}


def lay_out(root: Path, files: dict[str, str]) -> Folders:
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "ascii")
    names = {path.partition("/")[0] for path in files}
    return {"" if name == "group" else name: [str(root / name)] for name in names}


@pytest.mark.parametrize("files", [VERSION_1, VERSION_2], ids=["version 1", "version 2"])
def test_both_versions_tell_the_same(files: dict[str, str], tmp_path: Path) -> None:
    folders = lay_out(tmp_path, files)
    counted = read_counters(folders)
    assert counted.cpu_s == pytest.approx(1.5)
    assert (counted.peak_memory_bytes, counted.oom_kills, counted.refused_forks) == (12582912, 2, 7)
    assert read_limits(folders) == {"memory_bytes": 268435456, "pids": 64, "cpu_millis": 500}


def test_no_limit_is_no_number(tmp_path: Path) -> None:
    unlimited = {"group/cpu.max": "max 100000\n", "group/memory.max": "max\n", "group/pids.max": "max\n"}
    folders = lay_out(tmp_path, {**VERSION_2, **unlimited})
    assert read_limits(folders) == {}


def test_what_is_gone_is_none_and_never_a_guess(tmp_path: Path) -> None:
    assert read_counters({"": [str(tmp_path / "gone")]}) == Counters()
    assert read_counters({}) == Counters()
