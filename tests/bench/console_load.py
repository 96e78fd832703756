"""Load on a console over loopback: open streams, pending approvals, decisions at a rate; nothing is lost.

``python -m tests.bench.console_load [STREAMS] [PENDING] [PER_SECOND] [SECONDS]``. The console is a process of
its own. Half of the decisions are sent twice at once, by two people: one of each pair must be written. After
`DEADLINE_S` it gives up, and says so.
"""

from __future__ import annotations

import http.client
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import requests

from bascule.bridge.audit_check import verify
from bascule.bridge.sqlite_store import SqliteStore
from tests.integration.console_server import Server, make_server, wait_until

CALLS_PER_RUN: Final = 250
DECIDERS: Final = 16
"""People who decide at once, each over a connection of an own."""

STILL_S: Final = 30.0
"""Without one more call that was executed, before the rest is taken for lost."""

DEADLINE_S: Final = 420
"""For all of ``main``: starting, asking, deciding, executing and checking."""

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
        cpu_s: of the console, from the first decision until the last call was executed.
    """

    decided: int
    written: int
    refused: int
    executed: int
    missed: int
    seconds: float
    p95_s: float
    memory_bytes: tuple[int, int]
    cpu_s: float
    problems: tuple[str, ...]

    @property
    def cpu_ms_per_decision(self) -> float:
        """What one decision costs the console in all: its requests, its call, what streams are told."""
        return self.cpu_s / self.decided * 1000


def measure(
    folder: Path,
    *,
    streams: int,
    pending: int,
    per_second: float,
    seconds: float,
    say: Callable[[str], None] = lambda _: None,
) -> Load:
    """Load a console, and hold what happened against the store; ``say`` is told what begins."""
    server = make_server(
        folder, "--requests-per-minute", "1000000", "--live-subscribers", str(streams + 10),
        "--calls", "100000", "--run-s", "86400", "--hold-warm-s", "3600",
        # On a busy machine a guest that is handed 250 results one by one runs for longer than 30 s.
        "--wall-s", "600", "--cpu-s", "600", policy=RULES,
    )  # fmt: skip
    try:
        return _measure(
            server,
            streams=streams,
            pending=pending,
            count=int(per_second * seconds),
            rate=per_second,
            say=say,
        )
    finally:
        server.stop()


def _measure(
    server: Server, *, streams: int, pending: int, count: int, rate: float, say: Callable[[str], None]
) -> Load:
    say(f"opening {streams} streams")
    watchers = _Watchers(server, streams)
    watchers.start()
    wait_until(lambda: None not in watchers.seen, within_s=180)
    say(f"asking {pending + count} times")
    left = pending + count
    runs: list[str] = []
    while left > 0:
        size = min(CALLS_PER_RUN, left)
        runs.append(server.submit(SCRIPT.replace("COUNT", str(size)))["id"])
        left -= size
    found = _all_pending(server, pending + count)
    say(f"deciding {count} times, {rate:g} a second")
    before = _memory(server)
    cpu_before_s = _cpu_s(server)
    highest = before
    began = time.monotonic()
    pool = ThreadPoolExecutor(DECIDERS)
    connections = _Connections(server)
    try:
        futures: list[Future[tuple[int, float]]] = []
        for number, approval in enumerate(found[:count]):
            time.sleep(max(0.0, began + number / rate - time.monotonic()))
            for who in ("olga", "otto") if number % 2 else ("olga",):
                futures.append(pool.submit(connections.decide, who, approval))
            if number % 50 == 0:
                highest = max(highest, _memory(server))
        answers = [future.result() for future in futures]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        connections.close()
    took = time.monotonic() - began
    highest = max(highest, _memory(server))
    say("waiting for the streams")
    wait_until(lambda: all(told in (pending, None) for told in watchers.seen), within_s=180)
    missed = sum(told != pending for told in watchers.seen)
    say("waiting for the calls")
    sent = server.folder / "sent.txt"
    executed = _executed(sent, count)
    cpu_s = _cpu_s(server) - cpu_before_s
    say("checking the audit chain")
    watchers.stop()
    statuses = Counter(status for status, _ in answers)
    store = SqliteStore(server.store)
    problems = tuple(verify(store.audit_entries(), (), store.key))
    store.close()
    times = sorted(seconds for _, seconds in answers)
    return Load(
        decided=count,
        written=statuses[200],
        refused=statuses[409],
        executed=executed,
        missed=missed,
        seconds=took,
        p95_s=times[int(len(times) * 0.95)],
        memory_bytes=(before, highest),
        cpu_s=cpu_s,
        problems=problems,
    )


class _Connections:
    """A connection for each thread that decides: the load is to be the console's, not that of making it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._own = threading.local()
        self._all: list[http.client.HTTPConnection] = []

    def decide(self, who: str, approval: dict[str, Any]) -> tuple[int, float]:
        """Approve, and return the status and the seconds it took."""
        began = time.monotonic()
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = http.client.HTTPConnection(urlsplit(self._server.url).netloc, timeout=120)
            self._own.connection = connection
            self._all.append(connection)
        connection.request(
            "POST",
            f"/v1/approvals/{approval['id']}/decision",
            json.dumps({"verdict": "approve", "digest": approval["digest"]}),
            {"authorization": f"Bearer {self._server.tokens[who]}", "content-type": "application/json"},
        )
        answer = connection.getresponse()
        answer.read()
        return answer.status, time.monotonic() - began

    def close(self) -> None:
        """Close all of them."""
        for connection in self._all:
            connection.close()


def _all_pending(server: Server, count: int) -> list[dict[str, Any]]:
    def look() -> bool:
        time.sleep(0.5)  # only the console's own work is to be measured
        told: int = server.api("olga", "GET", "/v1/approvals?limit=1").json()["pending"]
        return told >= count

    wait_until(look, within_s=180)
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = server.api("olga", "GET", f"/v1/approvals?limit=500{cursor}").json()
        found += page["approvals"]
        if page["cursor"] is None:
            return found
        cursor = f"&cursor={page['cursor']}"


def _executed(sent: Path, count: int) -> int:
    """Return how many calls were executed, once it is enough or nothing comes any more."""
    executed, since = -1, time.monotonic()
    while executed < count and time.monotonic() - since < STILL_S:
        found = len(sent.read_text("utf-8").splitlines()) if sent.exists() else 0
        if found != executed:
            executed, since = found, time.monotonic()
        time.sleep(0.05)
    return executed


def _memory(server: Server) -> int:
    assert server.process is not None
    text = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    (line,) = [each for each in text.splitlines() if each.startswith("VmRSS")]
    return int(line.split()[1]) << 10


def _cpu_s(server: Server) -> float:
    assert server.process is not None
    fields = Path(f"/proc/{server.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Watchers(threading.Thread):
    """Pages that look on, all read by one thread: notes how many each was told last are pending.

    Attributes:
        seen: one number for each; None before the first, and again for one whose stream has ended.
    """

    def __init__(self, server: Server, count: int) -> None:
        super().__init__(daemon=True)
        login = requests.post(
            f"{server.url}/login", data={"token": server.tokens["vera"]}, headers={"origin": server.url},
            allow_redirects=False, timeout=120,
        )  # fmt: skip
        cookie = login.headers["set-cookie"].split(";")[0]
        host = urlsplit(server.url).netloc
        self._request = f"GET /live/inbox HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n".encode()
        self._address = ("127.0.0.1", int(host.rpartition(":")[2]))
        self._ended = False
        self.seen: list[int | None] = [None] * count

    def run(self) -> None:
        """Read until told to stop."""
        selector = selectors.DefaultSelector()
        for number in range(len(self.seen)):
            made = socket.create_connection(self._address, timeout=120)
            made.sendall(self._request)
            selector.register(made, selectors.EVENT_READ, (number, bytearray()))
        while not self._ended:
            for key, _ in selector.select(0.5):
                stream, (number, held) = key.fileobj, key.data
                assert isinstance(stream, socket.socket)
                part = stream.recv(1 << 16)
                if not part:
                    selector.unregister(stream)
                    stream.close()
                    self.seen[number] = None
                held += part
                *lines, rest = bytes(held).split(b"\n")
                held[:] = rest
                told = [line for line in lines if line.startswith(b"data: ")]
                if told:
                    self.seen[number] = json.loads(told[-1][6:])["pending"]
        for key in list(selector.get_map().values()):
            open_still = key.fileobj
            assert isinstance(open_still, socket.socket)
            open_still.close()
        selector.close()

    def stop(self) -> None:
        """Close all of them."""
        self._ended = True
        self.join()


def main() -> None:
    """Measure and print."""
    began = time.monotonic()

    def say(step: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {step}", file=sys.stderr, flush=True)

    def give_up(number: int, frame: object) -> None:
        raise TimeoutError(f"the load was not through within {DEADLINE_S} s: the step above did not end")

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(DEADLINE_S)
    given = [float(each) for each in sys.argv[1:]] + [200, 1000, 50, 60][len(sys.argv) - 1 :]
    with tempfile.TemporaryDirectory() as folder:
        load = measure(
            Path(folder), streams=int(given[0]), pending=int(given[1]), per_second=given[2], seconds=given[3],
            say=say,
        )  # fmt: skip
    signal.alarm(0)
    print(load)
    print(f"{load.cpu_ms_per_decision:.1f} ms of the console's processor time for each decision")
    lost = load.written != load.decided or load.executed != load.decided or load.missed or load.problems
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
