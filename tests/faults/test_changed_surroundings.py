"""What changed while no host lived, or while one was only thought dead: tools, image, time, disk, lease.

Hosts are real processes that are killed or stopped; what they leave is taken up by others, on one SQLite
file.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from bascule.bridge import Decision
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.decide import decide
from bascule.bridge.errors import DecisionRefused, ResumeError
from bascule.bridge.sqlite_store import SqliteStore
from bascule.sandbox import Backend, open_backend
from tests.faults.host import SCRIPT, Death, OutsideWorld, live
from tests.faults.test_killed_hosts import answer_truthfully, go_on

pytestmark = pytest.mark.anyio

ASKING = "print('asks')\ntry:\n    r = put(2)\nexcept ToolDenied as e:\n    r = str(e)\n[r, look(1)]"
EXPIRING = """
version: 1
rules: [{id: short, effect: ask, match: {tool: put}, approval: {expires_in: 2s}}]
"""
HOST = [sys.executable, "-m", "tests.faults.host"]


def host(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Let one host live."""
    return subprocess.run(
        [*HOST, str(folder), *more], capture_output=True, text=True, timeout=60, check=False
    )


def kill(folder: Path, point: str, *more: str) -> str:
    """Let one host live until it is killed at a point; return its run."""
    done = host(folder, "--die", point, *more)
    assert done.returncode == -signal.SIGKILL, (done.returncode, done.stdout, done.stderr[-2000:])
    return the_run(folder)


def the_run(folder: Path) -> str:
    store = SqliteStore(folder / "runs.db")
    (row,) = store.runs()
    store.close()
    return row.run_id


def resume(folder: Path, run_id: str, *more: str) -> dict[str, Any]:
    """Have another process go on; return its result."""
    done = host(folder, "--resume", run_id, *more)
    assert done.returncode == 0, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def executed(folder: Path) -> list[tuple[str, int]]:
    return [(name, n) for name, n, _ in OutsideWorld(folder / "world.log", Death("")).lines()]


def pending(store: SqliteStore) -> ApprovalRecord:
    (record,) = store.approvals.find(states=["pending"])
    return record


def approve(store: SqliteStore, record: ApprovalRecord) -> str:
    decision = Decision(verdict="approve", by="ops")
    return decide(store.approvals, record.id, decision, digest=record.digest, channel="test").state


@pytest.fixture
def asking(tmp_path: Path) -> list[str]:
    """Return the flags of a host whose script asks once."""
    (tmp_path / "script.py").write_text(ASKING, "utf-8")
    (tmp_path / "rules.yaml").write_text(EXPIRING, "utf-8")
    return ["--elsewhere", "--script", str(tmp_path / "script.py")]


@pytest.mark.parametrize("decided", ["before", "after"])
def test_an_approval_for_a_tool_that_changed_meanwhile_is_asked_for_anew(
    decided: str, tmp_path: Path, asking: list[str]
) -> None:
    run_id = kill(tmp_path, "after-approval_requested", *asking)
    store = SqliteStore(tmp_path / "runs.db")
    old = pending(store)
    if decided == "before":
        assert approve(store, old) == "approved"
    waits = resume(tmp_path, run_id, "--changed", *asking)
    assert waits["status"] == "suspended"
    assert executed(tmp_path) == []
    after = store.approvals.get(old.id)
    assert after is not None
    assert after.state == "invalidated"
    with pytest.raises(DecisionRefused):
        approve(store, old)
    new = pending(store)
    assert b'"urgent"' in new.body.replace(b'\\"', b'"')
    assert approve(store, new) == "approved"
    store.close()
    result = resume(tmp_path, run_id, "--changed", *asking)
    assert (result["status"], result["value"], result["output"]) == ("ok", [20, 2], "asks\n")
    assert executed(tmp_path) == [("put", 2), ("look", 1)]


async def test_a_run_whose_image_is_gone_stays_until_the_image_is_back(tmp_path: Path) -> None:
    run_id = kill(tmp_path, "after-completed:2")
    before = executed(tmp_path)

    class Another:
        """A backend whose guest is another program."""

        def __init__(self, inner: Backend) -> None:
            self.name = inner.name
            self.start = inner.start
            self.sweep = inner.sweep
            self.close = inner.close
            self.image_hash = "0" * 64

    backend = open_backend("process")
    with pytest.raises(ResumeError) as refused:
        await live(
            tmp_path,
            script=SCRIPT,
            run_id=run_id,
            death=Death(""),
            backend=Another(backend),
            approver=_nobody,
        )
    assert refused.value.code == "image_gone"
    assert executed(tmp_path) == before
    await go_on(tmp_path, backend)


async def _nobody(request: object) -> Decision:
    raise AssertionError("nobody is asked")


@pytest.mark.parametrize("decided", [True, False])
def test_an_expiry_that_comes_while_no_host_lives_wins_over_every_later_decision(
    decided: bool, tmp_path: Path, asking: list[str]
) -> None:
    rules = ["--policy", str(tmp_path / "rules.yaml")]
    run_id = kill(tmp_path, "after-approval_requested", *asking, *rules)
    store = SqliteStore(tmp_path / "runs.db")
    record = pending(store)
    assert record.expires_at is not None
    if decided:
        assert approve(store, record) == "approved"  # in time, but nobody lives to act on it in time
    time.sleep(max(0.0, record.expires_at - time.time()) + 0.05)  # the expiry itself is under test
    with pytest.raises(DecisionRefused):
        approve(store, record)
    first = resume(tmp_path, run_id, *asking, *rules)
    assert executed(tmp_path) in ([], [("look", 1)])
    if decided:  # what was approved in time is asked about again, and nothing ran
        assert first["status"] == "suspended"
        assert pending(store).id != record.id
    else:
        assert first["status"] == "ok"
        assert "nobody decided about this call in time" in first["value"][0]
    store.close()


def test_of_two_people_at_two_command_lines_one_decides_and_the_run_goes_on(
    tmp_path: Path, asking: list[str]
) -> None:
    run_id = kill(tmp_path, "after-approval_requested", *asking)
    store = SqliteStore(tmp_path / "runs.db")
    record = pending(store)
    command = [sys.executable, "-m", "bascule.cli.main", "approvals"]
    flags = [record.id, "--store", str(store.path), "--digest", record.digest]
    people = [
        subprocess.Popen([*command, verdict, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for verdict in ("approve", "reject")
    ]
    ended = [person.wait(60) for person in people]
    for person in people:
        person.communicate()
    assert sorted(ended) == [0, 1]
    result = resume(tmp_path, run_id, *asking)
    assert result["status"] == "ok"
    ran = executed(tmp_path)
    after = store.approvals.get(record.id)
    assert after is not None
    if ended[0] == 0:
        assert (after.state, ran, result["value"]) == ("consumed", [("put", 2), ("look", 1)], [20, 2])
    else:
        assert (after.state, ran) == ("rejected", [("look", 1)])
    store.close()


async def test_a_host_whose_lease_was_taken_while_its_tool_ran_starts_nothing_more(
    tmp_path: Path,
) -> None:
    await anyio.to_thread.run_sync(take_the_lease, tmp_path)
    await go_on(tmp_path, open_backend("process"))


def take_the_lease(tmp_path: Path) -> None:
    """Stop a host inside a tool, have another end its run, and let the first one wake up."""
    stopped = subprocess.Popen(
        [*HOST, str(tmp_path), "--stop", "done-put"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        pid, status = os.waitpid(stopped.pid, os.WUNTRACED)
        assert (pid, os.WIFSTOPPED(status)) == (stopped.pid, True)
        with sqlite3.connect(tmp_path / "runs.db") as connection:  # its lease runs out
            connection.execute("UPDATE runs SET lease_until = 0")
        connection.close()
        run_id = the_run(tmp_path)
        assert resume(tmp_path, run_id)["status"] == "suspended"  # what became of put, nobody knows
        store = SqliteStore(tmp_path / "runs.db")
        answer_truthfully(store, run_id, OutsideWorld(tmp_path / "world.log", Death("")))
        store.close()
        result = resume(tmp_path, run_id)
        assert (result["status"], result["value"]) == ("ok", [2, 20, [30, 40, 10], 60])
        before = executed(tmp_path)
        os.kill(stopped.pid, signal.SIGCONT)
        _, said = stopped.communicate(timeout=60)
    finally:
        stopped.kill()
        stopped.communicate()
    assert stopped.returncode == 1
    assert "LeaseLost" in said
    assert executed(tmp_path) == before


@pytest.mark.parametrize("room", [0, 40_000, 90_000])
async def test_a_store_that_cannot_be_written_starts_no_tool_and_the_run_goes_on_once_it_can(
    room: int, tmp_path: Path
) -> None:
    run_id = kill(tmp_path, "before-completed:1")  # a read ran, nothing else
    before = executed(tmp_path)
    done = host(tmp_path, "--resume", run_id, "--full", str(room))
    assert done.returncode == 1
    assert "StoreError: the store" in done.stderr
    assert [each for each in executed(tmp_path)[len(before) :] if each[0] != "look"] in (
        [],
        [("put", 2)],
        [("put", 2), ("pay", 3)],
        [("put", 2), ("store", 4)],
        [("put", 2), ("pay", 3), ("store", 4)],
    )
    await go_on(tmp_path, open_backend("process"))
