"""``bascule approvals`` and ``bascule runs`` against a real console: each does what it does on the file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from bascule.cli import approvals, runs
from bascule.cli.exits import Exit, exit_for_error
from bascule.cli.main import app
from bascule.wire import BasculeError
from tests.integration.console_server import Server, wait_until

MAIL = 'print(mail.send(to="ada@example.com", subject="Hello", body="one\\ntwo"))'


@pytest.fixture(scope="module")
def server(console: Server) -> Server:
    return console


class Person:
    """Somebody with a token, at a command line of this process."""

    def __init__(self, server: Server, name: str) -> None:
        self.server = server
        self.name = name

    def __call__(self, *words: str, place: str = "server") -> Result:
        """Run a command against the console, or on its file."""
        where = ("--server", self.server.url) if place == "server" else ("--store", str(self.server.store))
        env = {"BASCULE_TOKEN": self.server.tokens[self.name]}
        return CliRunner().invoke(app, [*words, *where], env=env)


def ask(server: Server, script: str = MAIL) -> tuple[str, dict[str, Any]]:
    run = server.submit(script)["id"]
    (approval,) = server.pending(1, run=run)
    return run, approval


def test_every_command_takes_a_server_but_the_one_that_drops_values() -> None:
    for group in (approvals.app, runs.app):
        for command in group.registered_commands:
            assert command.callback is not None
            if (
                command.callback is runs.prune_runs
            ):  # whoever owns the file does that; no token's scope covers it
                continue
            parameters = command.callback.__annotations__
            assert {"store", "server"} <= parameters.keys(), command.name


def test_what_is_shown_is_the_same_as_on_the_file(server: Server) -> None:
    done, first = ask(server)
    assert server.decide("olga", first, "approve").status_code == 200
    server.finished(done)
    run, approval = ask(server)
    vera = Person(server, "vera")
    commands = [
        ("approvals", "list"), ("approvals", "list", "--all"), ("approvals", "list", "--json"),
        ("approvals", "watch", "--once"),
        ("runs", "list"), ("runs", "list", "--json"),
        ("runs", "list", "--status", "finished", "--limit", "1"),
        ("runs", "show", done), ("runs", "show", done, "--json"), ("runs", "show", done, "--journal"),
        ("runs", "show", done, "--journal", "--json"), ("runs", "replay", done, "--isolation", "process"),
    ]  # fmt: skip
    for words in commands:
        # Runs of earlier tests may still be ending on the server between one look and the other.
        shown = wait_until(partial(_same, vera, words), within_s=60)
        assert shown.strip() or words[1] == "replay"
    for words in (("approvals", "show", approval["id"][:12]), ("runs", "show", run)):
        there, here = vera(*words), vera(*words, place="store")
        assert there.exit_code == 0, there.output
        ours, theirs = f"--store {server.store}", f"--server {server.url}"
        shown = _ageless(here.stdout.replace(ours, theirs))
        same = [line for line in shown.splitlines() if line in _ageless(there.stdout)]
        assert len(same) >= len(shown.splitlines()) - 1, there.stdout  # a console resumes by itself
    own = Person(server, "app")("runs", "show", run)  # whoever submits sees own runs, and no approvals
    assert own.exit_code == 0, own.output
    assert _code(Person(server, "app")("approvals", "list")) == "right_missing"
    server.tokens["nobody"] = "bsc_wrong"
    failed = Person(server, "nobody")("runs", "list").exception
    assert isinstance(failed, BasculeError)
    assert exit_for_error(failed) == Exit.NO_PERMISSION
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def _same(person: Person, words: Sequence[str]) -> str | None:
    """Return what a command prints when it prints the same on the server and on the file."""
    there, here = person(*words), person(*words, place="store")
    assert there.exit_code == here.exit_code == 0, (words, there.output)
    return there.stdout + " " if _ageless(there.stdout) == _ageless(here.stdout) else None


def _ageless(text: str) -> str:
    return re.sub(r" *\d+(\.\d+)? (s|min|h)\b( \d+ (min|s))?( ago)?", " T", text)


@pytest.mark.parametrize(
    ("words", "state", "output"),
    [
        (("approve", "--reason", "fine", "--grant", "tool_in_run", "--count", "2"), "approved", "sent\n"),
        (("reject", "--reason", "not today"), "rejected", None),
        (("edit", "--set", 'subject="CLI"', "--reason", "typo"), "approved", "sent\n"),
        (("respond", "--result", '"by hand"'), "responded", "by hand\n"),
        (("terminate", "--reason", "stop it"), "rejected", None),
    ],
)
def test_each_decision_is_written_there(
    server: Server, words: tuple[str, ...], state: str, output: str | None
) -> None:
    run, approval = ask(server)
    digest = ("--digest", approval["digest"][:16])
    stale = Person(server, "olga")("approvals", words[0], approval["id"], "--digest", "0" * 64, *words[1:])
    assert _code(stale) == "digest_mismatch"
    viewer = Person(server, "vera")("approvals", words[0], approval["id"], *digest, *words[1:])
    assert _code(viewer) == "right_missing"
    done = Person(server, "olga")("approvals", words[0], approval["id"], *digest, *words[1:])
    assert done.exit_code == 0, done.output
    assert done.stdout.split()[1] in (state, "consumed")
    result = server.finished(run)["result"]
    if output is not None:
        assert result["output"] == output
    if words[0] == "edit":
        assert "ada@example.com CLI" in (server.folder / "sent.txt").read_text("utf-8")
    decided = server.api("vera", "GET", f"/v1/approvals/{approval['id']}").json()["decisions"]
    assert [(each["by"], each["verdict"]) for each in decided] == [("olga", words[0])]
    if "--reason" in words:
        assert decided[0]["reason"] == words[words.index("--reason") + 1]
    again = Person(server, "otto")("approvals", words[0], approval["id"], *digest, *words[1:])
    assert again.exception is not None


def _code(result: Result) -> str:
    assert isinstance(result.exception, BasculeError), result.output
    return result.exception.code


def test_a_run_is_resumed_and_cancelled_there(server: Server) -> None:
    run, approval = ask(server)
    app_ = Person(server, "app")
    held = app_("runs", "resume", run, "--no-wait")
    assert held.exit_code == Exit.SUSPENDED, held.output
    waiting = _start(server, "app", "runs", "resume", run, "--json")
    assert server.decide("olga", approval, "approve").status_code == 200
    out, said = waiting.communicate(timeout=120)
    assert waiting.returncode == 0, said
    told = json.loads(out)
    assert (told["run_id"], told["status"], told["output"]) == (run, "ok", "sent\n")
    assert told["calls"][0]["approved_by"] == "olga"
    finished = app_("runs", "resume", run)
    assert (finished.exit_code, finished.stdout) == (0, "sent\n")
    refused = app_("runs", "resume", run, "--tools", "tools.py")
    assert refused.exit_code == Exit.USAGE
    assert "its own tools" in refused.stderr
    other, approval = ask(server)
    cancelled = app_("runs", "cancel", other)
    assert cancelled.exit_code == 0, cancelled.output
    assert f"approval {approval['id']} cancelled" in cancelled.stdout
    assert app_("runs", "resume", other).exit_code == Exit.CANCELLED
    for words in (
        ("runs", "cancel", "run-unknown"),
        ("runs", "resume", "run-unknown"),
        ("runs", "show", "x"),
    ):
        failed = app_(*words).exception
        assert isinstance(failed, BasculeError)
        assert exit_for_error(failed) == Exit.FAILED


def test_a_watch_is_told_at_once_and_goes_on_after_the_console_was_started_again(server: Server) -> None:
    watch = _start(server, "vera", "approvals", "watch")
    assert watch.stdout is not None
    try:
        run, approval = ask(server)
        assert _until(watch.stdout, approval["id"]).split()[1] == "waits"
        server.api("app", "POST", f"/v1/runs/{run}/cancel")
        assert "no longer waits" in _until(watch.stdout, approval["id"])
        server.stop()
        server.start()
        _, approval = ask(server)
        assert _until(watch.stdout, approval["id"]).split()[1] == "waits"
    finally:
        watch.terminate()
        watch.communicate(timeout=60)


def test_a_watch_ends_when_its_token_is_revoked(server: Server) -> None:
    server.add_token("gone", "view")
    watch = _start(server, "gone", "approvals", "watch")
    run, approval = ask(server)
    assert watch.stdout is not None
    _until(watch.stdout, approval["id"])
    revoked = CliRunner().invoke(app, ["tokens", "list", "--json", "--store", str(server.store)])
    (row,) = [row for row in map(json.loads, revoked.stdout.splitlines()) if row["name"] == "gone"]
    assert (
        CliRunner().invoke(app, ["tokens", "revoke", row["id"], "--store", str(server.store)]).exit_code == 0
    )
    _, said = watch.communicate(timeout=120)
    assert watch.returncode == Exit.NO_PERMISSION
    assert "does not take the token" in said
    server.api("app", "POST", f"/v1/runs/{run}/cancel")


def test_what_the_command_line_says_goes_before_the_environment(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BASCULE_SERVER", "https://console.invalid")
    monkeypatch.setenv("BASCULE_TOKEN", server.tokens["vera"])
    assert CliRunner().invoke(app, ["runs", "list", "--store", str(server.store)]).exit_code == 0
    both = ["runs", "list", "--store", str(server.store), "--server", server.url]
    assert CliRunner().invoke(app, both).exit_code == Exit.USAGE
    monkeypatch.setenv("BASCULE_SERVER", server.url)
    monkeypatch.setenv("BASCULE_STORE", str(tmp_path / "none.db"))
    assert CliRunner().invoke(app, ["runs", "list"]).exit_code == 0


def _start(server: Server, who: str, *words: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "bascule.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "BASCULE_SERVER": server.url, "BASCULE_TOKEN": server.tokens[who]},
    )
    timer = threading.Timer(180, process.kill)
    timer.daemon = True
    timer.start()
    return process


def _until(lines: Any, word: str) -> str:
    """Return the first line with a word; `_start` ends what never says it."""
    for line in lines:
        if word in line:
            return str(line)
    raise AssertionError(f"nothing said {word}")


def test_tokens_of_a_store_that_is_not_there_are_not_an_empty_list(tmp_path: Path) -> None:
    for words in (["list"], ["revoke", "tok-1"]):
        done = CliRunner().invoke(app, ["tokens", *words, "--store", str(tmp_path / "typo.db")])
        assert done.exit_code == Exit.CONFIGURATION
        assert "there is no store" in done.stderr
    assert not list(tmp_path.iterdir())
