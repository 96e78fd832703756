"""``bascule approvals`` and ``bascule policy``: against a store file and rule files, as people use them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bascule.bridge.approval_card import ApprovalState, read_card
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.errors import DecisionRefused, PolicyError
from bascule.bridge.requirement import Demand
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.terminal import whoami
from bascule.cli.exits import Exit, exit_for_error
from bascule.cli.main import app
from tests.unit.bridge.cards import make_record

TOOLS = '''
from bascule.tools import tool

@tool(effects="once", name="mail.send", labels={"external"})
def send(to: str, body: str = "") -> None:
    """Send."""
'''
RULES = """
version: 1
rules:
  - {id: inside, effect: allow, match: {tool: mail.send, args: {to: {glob: "*@example.com"}}}}
  - {id: leak, effect: deny, match: {label: external, run_labels: {none: [external]}, user: {group: interns}}}
"""


@pytest.fixture
def record() -> ApprovalRecord:
    return make_record(
        Demand(rule="mail"),
        arguments={"body": "hi\u202e", "to": "x@example.com"},
        may=("approve", "edit", "reject", "respond", "terminate"),
        editable=("body",),
        grantable=("args_in_run",),
    )


@pytest.fixture
def store(tmp_path: Path, record: ApprovalRecord) -> Path:
    path = tmp_path / "runs.db"
    opened = SqliteStore(path)
    opened.approvals.insert(record)
    opened.close()
    return path


def run(*args: str | Path) -> Result:
    return CliRunner().invoke(app, [str(arg) for arg in args])


def after(store: Path, record: ApprovalRecord) -> ApprovalRecord:
    opened = SqliteStore(store)
    found = opened.approvals.get(record.id)
    opened.close()
    assert found is not None
    return found


def test_what_waits_is_listed_and_shown_made_safe(store: Path, record: ApprovalRecord) -> None:
    listed = run("approvals", "list", "--store", store)
    assert listed.exit_code == 0
    assert record.id in listed.stdout
    assert "\u202e" not in listed.stdout
    shown = run("approvals", "show", record.id[:12], "--store", store)
    assert re.search(r"digest +" + record.digest[:16], shown.stdout)
    assert "editable   body" in shown.stdout
    assert "\u202e" not in shown.stdout
    lines = run("approvals", "list", "--store", store, "--json").stdout.splitlines()
    assert json.loads(lines[0])["arguments"] == {"body": "hi\u202e", "to": "x@example.com"}
    assert run("approvals", "show", record.id, "--store", store, "--json").stdout == f"{lines[0]}\n"


def test_approving_needs_the_digest_that_was_shown(store: Path, record: ApprovalRecord) -> None:
    short = run("approvals", "approve", record.id, "--store", store, "--digest", record.digest[:8])
    assert short.exit_code == Exit.USAGE
    wrong = run("approvals", "approve", record.id, "--store", store, "--digest", "0" * 16)
    assert isinstance(wrong.exception, DecisionRefused)
    assert exit_for_error(wrong.exception) == Exit.FAILED
    right = run(
        "approvals", "approve", record.id, "--store", store, "--digest", record.digest[:16],
        "--reason", "fine", "--grant", "args_in_run", "--count", "2",
    )  # fmt: skip
    assert right.stdout == f"{record.id} approved\n"
    card = read_card(after(store, record))
    assert card.voices[0].by == whoami()
    assert card.voices[0].channel == "command line"
    assert card.grant is not None
    assert card.grant.count == 2


@pytest.mark.parametrize(
    ("command", "more", "state"),
    [
        ("reject", ["--reason", "no"], ApprovalState.REJECTED),
        ("terminate", [], ApprovalState.REJECTED),
        ("edit", ["--set", 'body="better"'], ApprovalState.APPROVED),
        ("respond", ["--result", "null"], ApprovalState.RESPONDED),
    ],
)
def test_every_decision_has_a_command(
    store: Path, record: ApprovalRecord, command: str, more: list[str], state: ApprovalState
) -> None:
    done = run("approvals", command, record.id, "--store", store, "--digest", record.digest, *more)
    assert done.exit_code == 0, done.output
    assert after(store, record).state == state


def test_what_is_decided_is_listed_only_when_asked_for(store: Path, record: ApprovalRecord) -> None:
    run("approvals", "reject", record.id, "--store", store, "--digest", record.digest)
    assert run("approvals", "list", "--store", store).stdout == ""
    assert "rejected" in run("approvals", "list", "--store", store, "--all").stdout


def test_a_store_or_an_approval_that_is_not_there_is_told(store: Path, tmp_path: Path) -> None:
    assert run("approvals", "list", "--store", tmp_path / "none.db").exit_code == Exit.CONFIGURATION
    missing = run("approvals", "show", "apr-0000000000", "--store", store)
    assert missing.exit_code == Exit.FAILED


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    return ["--tools", str(tmp_path / "tools.py"), "--policy", str(tmp_path / "rules.yaml")]


def test_lint_counts_rules_or_names_every_fault(files: list[str], tmp_path: Path) -> None:
    assert run("policy", "lint", *files).stdout.startswith("2 rules, no faults")
    (tmp_path / "rules.yaml").write_text(RULES.replace("mail.send", "mail.sent"), encoding="utf-8")
    faulty = run("policy", "lint", *files)
    assert isinstance(faulty.exception, PolicyError)
    assert "did you mean 'mail.send'" in str(faulty.exception)


def test_explain_tells_what_comes_of_a_call(files: list[str]) -> None:
    said = run("policy", "explain", "mail.send", '{"to": "a@example.com"}', *files).stdout
    assert "matches  allow  inside: to {'glob': '*@example.com'}: holds" in said
    assert "matches  deny   leak" in said  # for whom is not known
    assert said.rstrip().endswith("=> deny (leak)")
    known = run("policy", "explain", "mail.send", '{"to": "a@example.com"}', *files, "--user", "ada")
    assert known.stdout.rstrip().endswith("=> allow (inside)")
    labelled = run(
        "policy", "explain", "mail.send", '{"to": "b"}', *files, "--user", "ada", "--run-label", "external"
    )
    assert "=> ask (default:effect)" in labelled.stdout


def test_explain_without_rules_explains_the_defaults(files: list[str]) -> None:
    said = run("policy", "explain", "mail.send", '{"to": "b"}', *files[:2])
    assert said.exit_code == 0, said.output
    assert "matches  ask    default:effect: the tool's effects are 'once'" in said.stdout


@pytest.mark.parametrize("args", [["mail.sent"], ["mail.send", "{}"], ["mail.send", "[1]"]])
def test_explain_says_what_never_reaches_policy(files: list[str], args: list[str]) -> None:
    assert run("policy", "explain", *args, *files).exit_code == Exit.FAILED
    said = run("policy", "explain", "mail.send", "no json", *files)
    assert said.exit_code == Exit.USAGE
    assert "ARGS is no JSON object" in said.stderr
