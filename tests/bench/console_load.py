"""Load on a console over loopback: open streams, pending approvals, decisions at a rate; nothing is lost.

``python -m tests.bench.console_load [STREAMS] [PENDING] [PER_SECOND] [SECONDS]``. The console is a process of
its own. Half of the decisions are sent twice at once, by two people: one of each pair must be written.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import requests

from bascule.bridge.audit_check import verify
from bascule.bridge.sqlite_store import SqliteStore
from tests.integration.console_server import Server, make_server, wait_until

CALLS_PER_RUN: Final = 250
RULES: Final = """
version: 1
rules:
  - {id: mail, effect: ask, match: {tool: mail.send}, approval: {self_approval: true, expires_in: null}}
"""
SCRIPT: Final = """
import asyncio
results = await asyncio.gather(*[mail.send(to="a@b.de", subject=str(n)) for n in range(COUNT)])
print(len(results))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What was measured.

    Attributes:
        decided: pairs or single decisions that were sent.
        written: how many of them the console took.
        refused: answers to the second of two at once.
        missed: streams that did not see the last state.
        seconds: from the first decision to the last answer.
        p95_s: of one decision, on its way and back.
        memory_bytes: resident memory of the console before and at its highest while deciding.
    """

    decided: int
    written: int
    refused: int
    executed: int
    missed: int
    seconds: float
    p95_s: float
    memory_bytes: tuple[int, int]
    problems: tuple[str, ...]


def measure(folder: Path, *, streams: int, pending: int, per_second: float, seconds: float) -> Load:
    """Load a console, and hold what happened against the store."""
    server = make_server(
        folder, "--requests-per-minute", "1000000", "--live-subscribers", str(streams + 10),
        "--calls", "100000", "--run-s", "86400", "--hold-warm-s", "3600", policy=RULES,
    )  # fmt: skip
    try:
        return _measure(
            server, streams=streams, pending=pending, count=int(per_second * seconds), rate=per_second
        )
    finally:
        server.stop()


def _measure(server: Server, *, streams: int, pending: int, count: int, rate: float) -> Load:
    watchers = [_Watcher(server) for _ in range(streams)]
    for watcher in watchers:
        watcher.start()
    wait_until(lambda: all(watcher.seen for watcher in watchers), within_s=180)
    left = pending + count
    runs: list[str] = []
    while left > 0:
        size = min(CALLS_PER_RUN, left)
        runs.append(server.submit(SCRIPT.replace("COUNT", str(size)))["id"])
        left -= size
    found = _all_pending(server, pending + count)
    before = _memory(server)
    highest = before
    began = time.monotonic()
    with ThreadPoolExecutor(32) as pool:
        futures: list[Future[tuple[int, float]]] = []
        for number, approval in enumerate(found[:count]):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            for who in ("olga", "otto") if number % 2 else ("olga",):
                futures.append(pool.submit(_decide, server, who, approval))
            if number % 50 == 0:
                highest = max(highest, _memory(server))
        answers = [future.result() for future in futures]
    took = time.monotonic() - began
    highest = max(highest, _memory(server))
    wait_until(
        lambda: all(watcher.seen[-1] == pending for watcher in watchers if watcher.alive), within_s=180
    )
    missed = sum(not watcher.alive or watcher.seen[-1] != pending for watcher in watchers)
    sent = server.folder / "sent.txt"
    wait_until(lambda: sent.exists() and len(sent.read_text("utf-8").splitlines()) >= count, within_s=180)
    for watcher in watchers:
        watcher.stop()
    statuses = Counter(status for status, _ in answers)
    store = SqliteStore(server.store)
    problems = tuple(verify(store.audit_entries(), (), store.key))
    store.close()
    times = sorted(seconds for _, seconds in answers)
    return Load(
        decided=count,
        written=statuses[200],
        refused=statuses[409],
        executed=len(sent.read_text("utf-8").splitlines()),
        missed=missed,
        seconds=took,
        p95_s=times[int(len(times) * 0.95)],
        memory_bytes=(before, highest),
        problems=problems,
    )


def _decide(server: Server, who: str, approval: dict[str, Any]) -> tuple[int, float]:
    began = time.monotonic()
    answer = server.decide(who, approval, "approve")
    return answer.status_code, time.monotonic() - began


def _all_pending(server: Server, count: int) -> list[dict[str, Any]]:
    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = server.api("olga", "GET", f"/v1/approvals?limit=500{cursor}").json()
            found += page["approvals"]
            if page["cursor"] is None:
                return found if len(found) >= count else None
            cursor = f"&cursor={page['cursor']}"

    return wait_until(look, within_s=300)


def _memory(server: Server) -> int:
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    (line,) = [each for each in text.splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) << 10


class _Watcher(threading.Thread):
    """One page that looks on: reads the inbox's stream and notes how many it is told are pending."""

    def __init__(self, server: Server) -> None:
        super().__init__(daemon=True)
        self._url = server.url
        self._session = requests.Session()
        login = requests.post(
            f"{server.url}/login", data={"token": server.tokens["vera"]}, headers={"origin": server.url},
            allow_redirects=False, timeout=120,
        )  # fmt: skip
        self._cookie = login.headers["set-cookie"].split(";")[0]
        self._ended = False
        self.seen: list[int] = []
        self.alive = True

    def run(self) -> None:
        """Read until told to stop."""
        try:
            with self._session.get(
                f"{self._url}/live/inbox", headers={"cookie": self._cookie}, stream=True, timeout=120
            ) as answer:
                for line in answer.iter_lines(chunk_size=1):
                    if self._ended:
                        return
                    if line.startswith(b"data: "):
                        self.seen.append(json.loads(line[6:])["pending"])
        except requests.RequestException:
            pass
        self.alive = self._ended

    def stop(self) -> None:
        """End at the next line."""
        self._ended = True


def main() -> None:
    """Measure and print."""
    given = [float(each) for each in sys.argv[1:]] + [200, 1000, 50, 60][len(sys.argv) - 1 :]
    with tempfile.TemporaryDirectory() as folder:
        load = measure(
            Path(folder), streams=int(given[0]), pending=int(given[1]), per_second=given[2], seconds=given[3]
        )
    print(load)
    lost = load.written != load.decided or load.executed != load.decided or load.missed or load.problems
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
