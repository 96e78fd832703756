"""A console elsewhere as commands see it: the same questions as to a store's file, asked over its API.

The token comes from the environment (``BASCULE_TOKEN``): on a command line everybody could read it. Only
https and this machine are spoken to, because a token goes along with each request.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast
from urllib.parse import quote, urlsplit

import requests
import typer

from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.journal import EventKind, JournalEntry
from bascule.bridge.result import Result
from bascule.bridge.runs import decode_result
from bascule.bridge.store import RunRecord
from bascule.cli.exits import Exit
from bascule.tools.imported.review import Review
from bascule.tools.options import Effects
from bascule.wire import BasculeError

TIMEOUT_S: Final = 30.0
PAGE: Final = 500
WAIT_S: Final = 20
QUIET_S: Final = 45.0
"""Without a sign of life (a console gives one every 15 s), after which a stream counts as lost."""

FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0


class RemoteError(BasculeError):
    """Raised when a console refuses a request or cannot be reached; the code is the console's own."""

    @property
    def exit_status(self) -> Exit:
        """With what the command ends."""
        if self.code in ("unreachable", "no_console"):
            return Exit.UNAVAILABLE
        return Exit.NO_PERMISSION if self.code in ("token_missing", "right_missing") else Exit.FAILED


@dataclass(frozen=True, slots=True)
class RemoteJournal:
    """A journal that was downloaded."""

    run_id: str
    entries: tuple[JournalEntry, ...]


class RemoteStore:
    """What commands ask of a store, asked of a console.

    Args:
        url: of the console.
        token: to come with.

    Attributes:
        titles: of runs that were listed, by id; None where the script was dropped.

    Raises:
        typer.Exit: there is no token, or the address is neither https nor this machine.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        secret = os.environ.get("BASCULE_TOKEN", "") if token is None else token
        parts = urlsplit(self.url)
        local = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        if not local and parts.scheme != "https":
            print("bascule: --server takes an https address, or http on this machine", file=sys.stderr)
            raise typer.Exit(Exit.USAGE)
        if not secret:
            print("bascule: put a token of the console into BASCULE_TOKEN", file=sys.stderr)
            raise typer.Exit(Exit.USAGE)
        self._session = requests.Session()
        self._session.trust_env = False  # no netrc, no proxy that would be given the token
        self._session.headers["authorization"] = f"Bearer {secret}"
        self.approvals = self
        self.titles: dict[str, str | None] = {}

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None, **query: Any) -> Any:
        """Send one request and return what the console says.

        Raises:
            RemoteError: it refuses, or cannot be reached.
        """
        given = {name: value for name, value in query.items() if value is not None}
        try:
            answer = self._session.request(
                method, f"{self.url}{path}", json=body, params=given, timeout=TIMEOUT_S, allow_redirects=False
            )
            said: Any = answer.json()
        except requests.RequestException as error:
            raise _unreachable(self.url, error) from error
        except ValueError as error:
            raise RemoteError("no_console", f"{self.url} does not answer as a console does") from error
        self._check(answer)
        return said

    def _check(self, answer: requests.Response) -> None:
        """Raise what a console says when it refuses."""
        if answer.status_code == 401:
            raise RemoteError("token_missing", f"{self.url} does not take the token in BASCULE_TOKEN")
        if answer.status_code < 300:
            return
        try:
            said: Any = answer.json()
        except ValueError as error:
            raise RemoteError("no_console", f"{self.url} does not answer as a console does") from error
        if not isinstance(said, dict):
            raise RemoteError("no_console", f"{self.url} does not answer as a console does")
        problem = cast("dict[str, Any]", said)
        raise RemoteError(str(problem.get("code", "refused")), str(problem.get("detail", answer.status_code)))

    def follow(self, path: str) -> Generator[str | None]:
        """Give the names of a stream's events as they come, and None where nothing has happened for long.

        A stream that is lost, or ends because the console does, is opened again after the last event.

        Raises:
            RemoteError: it is refused, or cannot be reached at first.
        """
        last, pause_s, begun = "", FIRST_PAUSE_S, False
        while True:
            headers = {"last-event-id": last, "accept": "text/event-stream"}
            try:
                with self._session.get(
                    f"{self.url}{path}",
                    headers=headers if last else {"accept": "text/event-stream"},
                    stream=True,
                    timeout=(TIMEOUT_S, QUIET_S),
                    allow_redirects=False,
                ) as answer:
                    if answer.status_code != 503 or not begun:  # a console that is just starting again
                        self._check(answer)
                    begun = True
                    event = ""
                    for raw in answer.iter_lines():
                        line: str = raw.decode("utf-8", "replace")
                        name, _, value = line.partition(":")
                        value = value.removeprefix(" ")
                        if name == "id":
                            last, pause_s = value, FIRST_PAUSE_S
                        elif name == "event":
                            event = value
                        elif line == "" and event:
                            yield event
                            event = ""
                        elif line.startswith(":"):
                            yield None
            except requests.RequestException as error:
                if not begun:
                    raise _unreachable(self.url, error) from error
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)

    # ------------------------------------------------------------ approvals

    def get(self, approval_id: str) -> ApprovalRecord | None:
        """Return one approval."""
        try:
            return _record(self.ask("GET", f"/v1/approvals/{quote(approval_id, safe='')}"))
        except RemoteError as error:
            if error.code == "approval_not_found":
                return None
            raise

    def find(
        self, *, run_id: str | None = None, states: Collection[str] = (), limit: int = 1000
    ) -> list[ApprovalRecord]:
        """Return approvals: the pending ones, or with no states also the newest that are decided."""
        try:
            found = self._pages("pending", run_id, limit)
        except RemoteError as error:
            if error.code == "right_missing" and run_id is not None:
                return []  # a token that submits scripts sees its runs, and none of their approvals
            raise
        if not states:
            found += self._pages("decided", run_id, limit)
        return sorted(found, key=lambda record: (record.created_at, record.id))[:limit]

    def _pages(self, state: str, run_id: str | None, limit: int) -> list[ApprovalRecord]:
        found: list[ApprovalRecord] = []
        cursor: str | None = None
        while len(found) < limit:
            page = self.ask("GET", "/v1/approvals", state=state, run=run_id, limit=PAGE, cursor=cursor)
            found += [_record(each) for each in page["approvals"]]
            cursor = page["cursor"]
            if cursor is None:
                break
        return found

    def decide(self, record: ApprovalRecord, answer: Mapping[str, Any]) -> ApprovalRecord:
        """Decide about an approval as it was read."""
        path = f"/v1/approvals/{record.id}/decision"
        return _record(self.ask("POST", path, {**answer, "digest": record.digest}))

    # ------------------------------------------------------------ runs

    def run(self, run_id: str) -> RunRecord | None:
        """Return the row of a run."""
        try:
            return _row(self.ask("GET", f"/v1/runs/{quote(run_id, safe='')}"))
        except RemoteError as error:
            if error.code == "run_not_found":
                return None
            raise

    def runs(self, *, status: str | None = None, limit: int = 100) -> list[RunRecord]:
        """Return rows, the newest first."""
        found: list[RunRecord] = []
        cursor: str | None = None
        while len(found) < limit:
            wanted = min(PAGE, limit - len(found))
            page = self.ask("GET", "/v1/runs", status=status, limit=wanted, cursor=cursor)
            found += [_row(each) for each in page["runs"]]
            self.titles.update((each["id"], each.get("title")) for each in page["runs"])
            cursor = page["cursor"]
            if cursor is None:
                break
        return found

    def resume(self, run_id: str) -> bool:
        """Have a run go on now; False when it is being worked on, or finished."""
        return bool(self.ask("POST", f"/v1/runs/{quote(run_id, safe='')}/resume")["done"])

    def result(self, run_id: str, *, wait: bool) -> Result:
        """Return what became of a run; ``wait`` until it is finished, else where it stands once it holds."""
        path = f"/v1/runs/{quote(run_id, safe='')}"
        said = self.ask("GET", path, wait=WAIT_S)
        if said["result"] is None and wait:
            for event in self.follow(f"{path}/events"):
                if event == EventKind.FINISHED:
                    break
        while said["result"] is None and (wait or said["status"] == "running"):
            said = self.ask("GET", path, wait=WAIT_S)
        if said["result"] is None:
            return Result(run_id=run_id, status="suspended")
        return decode_result(json.dumps(said["result"]).encode())

    def resumable(self) -> list[str]:
        """Return nothing: a console takes up by itself what can go on."""
        return []

    def journal(self, run_id: str) -> RemoteJournal | None:
        """Download the journal of a run."""
        try:
            answer = self._session.get(
                f"{self.url}/v1/runs/{quote(run_id, safe='')}/journal",
                timeout=TIMEOUT_S,
                allow_redirects=False,
            )
        except requests.RequestException as error:
            raise _unreachable(self.url, error) from error
        if answer.status_code == 404:
            return None
        self._check(answer)
        return RemoteJournal(run_id, tuple(_entry(json.loads(line)) for line in answer.content.splitlines()))

    # ------------------------------------------------------------ definitions of tools

    @property
    def definitions(self) -> RemoteDefinitions:
        """Definitions that wait to be confirmed there."""
        return RemoteDefinitions(self)

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


class RemoteDefinitions:
    """Definitions of tools that a console's servers give and nobody has confirmed; see `Reviewed`."""

    def __init__(self, console: RemoteStore) -> None:
        self._console = console

    def review(self) -> list[Review]:
        """Return them."""
        found = self._console.ask("GET", "/v1/definitions")["definitions"]
        return [Review(**each) for each in found]

    def settle(
        self,
        server: str,
        tool: str,
        digest: str,
        *,
        confirm: bool,
        by: str,
        effects: Effects | None,
        reason: str,
    ) -> Effects | None:
        """Decide as whoever the token is of; ``by`` is not sent."""
        verdict = "confirm" if confirm else "refuse"
        body = {"server": server, "tool": tool, "digest": digest, "verdict": verdict, "reason": reason}
        after = self._console.ask("POST", "/v1/definitions/decision", {**body, "effects": effects})
        return Review(**after).effects


def _unreachable(url: str, error: requests.RequestException) -> RemoteError:
    """Return what to say of a connection that failed: the innermost reason, which names the trouble."""
    reason: BaseException = error
    if isinstance(error, requests.Timeout):
        return RemoteError("unreachable", f"{url} cannot be reached: no answer within {TIMEOUT_S:g} s")
    while (inner := reason.__cause__ or reason.__context__) is not None:
        reason = inner
    return RemoteError("unreachable", f"{url} cannot be reached: {reason}")


def _record(said: Mapping[str, Any]) -> ApprovalRecord:
    return ApprovalRecord(
        id=said["id"],
        run_id=said["run_id"],
        seq=said["seq"],
        state=said["state"],
        digest=said["digest"],
        body=said["card"].encode(),
        version=said["version"],
        batch=said["batch"],
        created_at=said["created_at"],
        updated_at=said["updated_at"],
        expires_at=said["expires_at"],
    )


def _row(said: Mapping[str, Any]) -> RunRecord:
    return RunRecord(
        run_id=said["id"],
        status=said["status"],
        created_at=said["created_at"],
        updated_at=said["updated_at"],
        user=said["user"],
        image=said["image"],
        script_sha256=said["script_sha256"],
        outcome=said["outcome"],
        wake_at=said["wake_at"],
        reason=said["reason"],
        waits=tuple(said["waits"]),
        session=said["session"],
        cancel_requested=said["cancel_requested"],
    )


def _entry(said: Mapping[str, Any]) -> JournalEntry:
    payload = said["payload"]
    return JournalEntry(
        said["index"],
        EventKind(said["kind"]),
        said["at"],
        said["facts"],
        None if payload is None else payload.encode(),
    )
