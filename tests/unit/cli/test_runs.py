"""The commands around runs that outlive their process, from the first run to the audit."""

from __future__ import annotations

import json
import re
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from bascule.bridge.history import CommandLine
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.terminal import whoami
from bascule.cli.exits import Exit, exit_for_error
from bascule.cli.main import app
from bascule.cli.next_steps import NextSteps
from bascule.wire import BasculeError

TOOLS = '''
from bascule.tools import tool

@tool(effects="read")
def look(n: int) -> int:
    """Look."""
    return n * 2

@tool(effects="once")
def put(n: int) -> int:
    """Put."""
    return n * 10
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "script.py").write_text("print('begin')\n[look(1), put(2)]\n")
    return tmp_path


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def suspend(folder: Path) -> tuple[Path, str]:
    store = folder / "runs.db"
    done = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "--quiet"),
        *("--store", store, "--approve", "console", "--no-wait"),
    )
    assert done.exit_code == Exit.SUSPENDED, done.output
    listed = call("runs", "list", "--store", store, "--status", "suspended", "--json")
    return store, str(json.loads(listed.stdout)["run_id"])


def test_a_run_is_suspended_decided_resumed_shown_replayed_and_audited(folder: Path) -> None:
    store, run_id = suspend(folder)
    (approval,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    decided = call("approvals", "approve", approval["id"], "--digest", approval["digest"], "--store", store)
    assert decided.exit_code == 0, decided.output
    resumed = call(
        *("runs", "resume", run_id, "--store", store, "--tools", folder / "tools.py"),
        *("--isolation", "process", "--approve", "deny", "--json"),
    )
    assert resumed.exit_code == 0, resumed.output
    result = json.loads(resumed.stdout)
    assert (result["value"], result["output"]) == ([2, 20], "begin\n")
    assert run_id in call("runs", "list", "--store", store).stdout
    raw = call("runs", "show", run_id, "--store", store, "--journal").stdout
    assert "suspended" in raw
    assert "finished" in raw
    kinds = [
        json.loads(line)["kind"]
        for line in call("runs", "show", run_id, "--store", store, "--journal", "--json").stdout.splitlines()
    ]
    assert kinds[0] == "run_started"
    replayed = call("runs", "replay", run_id, "--store", store, "--isolation", "process")
    assert replayed.exit_code == 0, replayed.output
    assert call("audit", "verify", "--store", store).exit_code == 0
    checkpoints = folder / "checkpoints"
    assert call("audit", "checkpoint", "--store", store, "--checkpoints", checkpoints).exit_code == 0
    assert call("audit", "verify", "--store", store, "--checkpoints", checkpoints).exit_code == 0
    exported = call("audit", "export", "--store", store).stdout.splitlines()
    assert json.loads(exported[0])["action"] == "run.started"
    stats = call(
        "tools", "stats", "--store", store, "--tools", folder / "tools.py", "--json"
    ).stdout.splitlines()
    assert {json.loads(line)["tool"] for line in stats} == {"look", "put"}
    again = call("runs", "cancel", run_id, "--store", store)
    assert again.exit_code == Exit.FAILED


def test_a_suspended_run_has_a_page_that_says_what_comes_next(folder: Path) -> None:
    store, run_id = suspend(folder)
    (approval,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    page = call("runs", "show", run_id, "--store", store).stdout
    for expected in (
        "status     suspended\n",
        "waits      call 2 put waits for a decision\n",
        "1  print('begin')\n",
        "output (6 bytes)\n  begin\n",
        f"{approval['id']}  call 2: put ",
        f"  bascule approvals show {approval['id']} --store {store}\n",
        f"  bascule runs resume {run_id} --store {store} --tools {folder / 'tools.py'}"
        " --approve console --isolation process\n",
    ):
        assert expected in page
    assert re.search(r"1 │ look +│ read +│ .* │ done", page)
    assert re.search(r"2 │ put +│ once +│ .* │ waits for approval", page)
    told = json.loads(call("runs", "show", run_id, "--store", store, "--json").stdout)
    assert (told["status"], told["output"], told["result"]) == ("suspended", "begin\n", None)
    assert [each["id"] for each in told["approvals"]] == [approval["id"]]
    assert [(each["tool"], each["state"]) for each in told["calls"]] == [
        ("look", "done"),
        ("put", "not_started"),
    ]
    listed = call("runs", "list", "--store", store).stdout
    assert "print('begin')" in listed
    assert "(call 2 put waits for a decision)" in listed


def test_a_finished_run_has_a_page_also_after_retention(folder: Path) -> None:
    store = folder / "runs.db"
    done = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "--quiet"),
        *("--store", store, "--approve", "deny"),
    )
    assert done.exit_code == Exit.FAILED
    listed = json.loads(call("runs", "list", "--store", store, "--json").stdout)
    page = call("runs", "show", listed["run_id"], "--store", store).stdout
    assert "ToolDenied (line 2)" in page
    assert "2 calls, 1 bytes of results stayed" in page
    assert "next" not in page
    opened = SqliteStore(store)
    assert opened.prune(before=float("inf")) == 1
    opened.close()
    pruned = call("runs", "show", listed["run_id"], "--store", store)
    assert pruned.exit_code == 0, pruned.output
    assert pruned.stdout.count("dropped by retention") == 3
    assert "(script dropped by retention)" in call("runs", "list", "--store", store).stdout


def test_what_a_script_writes_cannot_disguise_a_page(folder: Path) -> None:
    (folder / "script.py").write_text("# \x1b[2Jfine \u202e\nprint('\\x1b[2J\\rx')\nput(2)\n")
    store, run_id = suspend(folder)
    for page in (
        call("runs", "show", run_id, "--store", store).stdout,
        call("runs", "list", "--store", store).stdout,
    ):
        assert not {"\x1b", "\u202e", "\r"} & set(page)
        assert "\\u001b" in page


def test_a_run_that_is_not_waited_for_needs_a_store(folder: Path) -> None:
    done = call("run", folder / "script.py", "--tools", folder / "tools.py", "--no-wait")
    assert done.exit_code == Exit.USAGE
    assert "--no-wait needs --store FILE, which keeps the run" in done.stderr


def test_a_rehearsal_lists_what_is_wanted_and_ends_well_where_it_cannot_go_on(folder: Path) -> None:
    (folder / "script.py").write_text("x = put(2)\nprint(x + 1)\n")
    command = ("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "-q")
    done = call(*command, "--rehearse")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("The script wants 1 call with effects; none was made.\n")
    assert "There may be more: the rehearsal ends here" in done.stdout
    (folder / "script.py").write_text("put(2)\nraise ValueError('no')\n")
    assert call(*command, "--rehearse").exit_code == Exit.FAILED


def test_a_rehearsal_as_json_has_what_is_wanted_and_the_result(folder: Path) -> None:
    command = ("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "-q")
    (folder / "script.py").write_text("put(2)\n")
    done = call(*command, "--rehearse", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["complete"]
    assert told["wanted"] == [
        {
            "seq": 1, "tool": "put", "effects": "once", "arguments": {"n": 2}, "line": 1,
            "verdict": "ask", "rules": ["default:effect"],
        }
    ]  # fmt: skip
    assert told["result"]["status"] == "ok"


def test_a_rehearsal_of_a_script_with_a_mistake_shows_where_it_is(folder: Path) -> None:
    command = ("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "-q")
    (folder / "script.py").write_text("putt(2)\n")
    done = call(*command, "--rehearse")
    assert done.exit_code == Exit.REFUSED
    assert "The script did not come to its end (refused):\nNameError (line 1)" in done.stdout
    assert "hint: did you mean" in done.stdout


def test_a_refused_script_brought_nothing_back(folder: Path) -> None:
    (folder / "script.py").write_text("putt(2)\n")
    done = call("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process")
    assert done.exit_code == Exit.REFUSED
    assert "0 calls, 0 bytes of results stayed in the script, 0 bytes came back" in done.stderr


def test_a_recording_replays_and_a_changed_one_does_not(folder: Path) -> None:
    recording = folder / "run.jsonl"
    done = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "--quiet"),
        *("--approve", "all", "--record", recording),
    )
    assert done.exit_code == 0, done.output
    assert call("runs", "replay", recording, "--isolation", "process").exit_code == 0
    recording.write_text(recording.read_text().replace("look(1)", "look(7)"))
    changed = call("runs", "replay", recording, "--isolation", "process")
    assert changed.exit_code == Exit.DIVERGED
    assert call("runs", "replay", folder / "none.jsonl").exit_code == Exit.NO_INPUT
    assert "a run of a store needs --store FILE" in call("runs", "replay", "run-0123456789").stderr


def test_a_recording_with_nowhere_to_go_is_told_before_anything_runs(folder: Path) -> None:
    command = ("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process")
    done = call(*command, "--approve", "all", "--record", folder / "none" / "run.jsonl")
    assert done.exit_code == Exit.USAGE, done.output
    assert "there is no folder" in done.stderr
    assert "put" not in done.stderr
    rehearsed = call(*command, "--rehearse", "--record", folder / "run.jsonl")
    assert "a rehearsal is not recorded" in rehearsed.stderr


def test_a_recording_that_cannot_be_written_at_the_end_does_not_cost_the_result(folder: Path) -> None:
    recording = folder / "recordings" / "run.jsonl"
    recording.parent.mkdir()
    # The tool takes the folder away while the run goes on.
    (folder / "tools.py").write_text(
        TOOLS.replace("return n * 10", f"__import__('os').rmdir({str(recording.parent)!r}); return n * 10")
    )
    done = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "--json"),
        *("--approve", "all", "--record", recording),
    )
    assert done.exit_code == Exit.INTERNAL, done.output
    assert json.loads(done.stdout)["value"] == [2, 20]
    assert "the recording cannot be written" in done.stderr


def test_a_suspended_run_is_cancelled(folder: Path) -> None:
    store, run_id = suspend(folder)
    (approval,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    cancelled = call("runs", "cancel", run_id, "--store", store)
    assert cancelled.exit_code == 0
    assert cancelled.stdout == f"{run_id} cancelled\napproval {approval['id']} cancelled\n"
    assert call("approvals", "list", "--store", store).stdout == ""
    late = call("approvals", "approve", approval["id"], "--digest", approval["digest"], "--store", store)
    assert late.exit_code != 0
    assert "cancelled" in str(late.exception)
    listed = call("runs", "list", "--store", store, "--json")
    assert json.loads(listed.stdout)["outcome"] == "cancelled"
    replayed = call("runs", "replay", run_id, "--store", store, "--isolation", "process")
    assert "was cancelled; only scripts that came to an end" in str(replayed.exception)


def test_a_run_without_a_terminal_waits_in_its_store_and_the_printed_commands_carry_it_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    begun = call(
        *("run", "script.py", "--tools", "tools.py", "--isolation", "process"),
        *("--store", "runs.db", "--output-bytes", "2048"),
    )
    assert begun.exit_code == Exit.SUSPENDED, begun.output
    assert begun.stdout == "begin\n"
    assert "no terminal to ask on: people decide with `bascule approvals`" in begun.stderr
    # Somebody else looks from another folder, and copies what is printed.
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    store = folder / "runs.db"
    run_id = json.loads(call("runs", "list", "--store", store, "--json").stdout)["run_id"]
    assert f"{run_id} is suspended: call 2 put waits for a decision" in begun.stderr
    *_, show_card, resume = call("runs", "show", run_id, "--store", store).stdout.splitlines()
    card = call(*shlex.split(show_card)[1:]).stdout
    (approve,) = [line for line in card.splitlines() if line.startswith("  bascule approvals approve")]
    decided = call(*shlex.split(approve)[1:])
    assert decided.stderr.removeprefix("next: ").strip() == resume.strip()
    change, there, command = resume.strip().split(" ", 2)[0], folder, resume.partition(" && ")[2]
    assert change == "cd"
    assert resume.startswith(f"  cd {there} && ")
    monkeypatch.chdir(there)
    done = call(*shlex.split(command)[1:], "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["value"] == [2, 20]
    assert "--output-bytes 2048" in command
    assert (folder / "runs.db").read_bytes().count(b"SPEC") == 0


def test_a_run_that_a_program_began_is_resumed_with_tools_only_its_operator_knows() -> None:
    steps = NextSteps(store=Path("runs.db"))
    assert steps.resume("run-1") == "bascule runs resume run-1 --store runs.db --tools SPEC"
    hidden = CommandLine(flags=("--tools", "a\x1b[2J"), folder="/")
    assert steps.resume("run-1", hidden) == "bascule runs resume run-1 --store runs.db --tools SPEC"
    assert NextSteps(store=None, server="http://x").resume("run-1") == ""


def test_a_run_without_a_terminal_waits_for_timers_and_needs_nobody_for_reads(folder: Path) -> None:
    (folder / "script.py").write_text("import asyncio\nawait asyncio.sleep(1.2)\nawait look(1)\n")
    done = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "--json"),
        *("--store", folder / "runs.db", "--hold-warm-s", "0"),
    )
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["value"] == 2
    assert "no terminal" not in done.stderr


def test_secrets_of_a_run_are_kept_out_of_what_people_type_about_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "sk-live-4f9a81c2")
    (folder / "rules.yaml").write_text(
        "version: 1\nrules:\n  - {id: r, effect: ask, match: {tool: put},\n"
        "     approval: {may: [edit, respond], editable: [n], self_approval: true}}\n"
    )
    store = folder / "runs.db"
    begun = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "-q"),
        *("--store", store, "--policy", folder / "rules.yaml", "--secret", "SHOP_KEY"),
    )
    assert begun.exit_code == Exit.SUSPENDED, begun.output
    (approval,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    about = (approval["id"], "--digest", approval["digest"], "--store", store)
    edited = call("approvals", "edit", *about, "--set", 'n="sk-live-4f9a81c2"')
    assert "hold a secret of the host" in str(edited.exception)
    assert call("approvals", "respond", *about, "--result", '"sk-live-4f9a81c2"').exit_code == 0
    command = begun.stderr.splitlines()[-1]
    assert "--secret SHOP_KEY" in command
    done = call(*shlex.split(command)[1:], "-q", "--json")
    assert done.exit_code == Exit.SUSPENDED  # put returns a number, so people are asked again
    assert all(b"4f9a81c2" not in each.read_bytes() for each in folder.glob("runs.db*"))


def test_a_resume_without_a_terminal_decides_nothing(folder: Path) -> None:
    store, run_id = suspend(folder)
    resume = (
        *("runs", "resume", run_id, "--store", store, "--tools", folder / "tools.py"),
        *("--isolation", "process"),
    )
    left = call(*resume)
    assert left.exit_code == Exit.SUSPENDED, left.output
    assert "no terminal" in left.stderr
    (approval,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    not_json = call(
        *("approvals", "edit", approval["id"], "--digest", approval["digest"], "--store", store),
        *("--set", "n=hello"),
    )
    assert not_json.exit_code == Exit.USAGE
    assert 'hello is not JSON; text needs quotation marks: n="hello"' in not_json.stderr
    decided = call(
        *("approvals", "approve", approval["id"], "--digest", approval["digest"], "--store", store),
        *("--grant", "tool_in_run"),
    )
    assert decided.exit_code == 0, decided.output
    done = call(*resume, "--json")
    assert done.exit_code == 0, done.output
    (put,) = [each for each in json.loads(done.stdout)["calls"] if each["tool"] == "put"]
    assert put["approved_by"] == whoami()  # directly, not by the grant that came with it


def test_approvers_of_a_group_of_the_rules_decide_without_naming_the_rules_again(folder: Path) -> None:
    (folder / "rules.yaml").write_text(
        f"version: 1\ngroups: {{ops: [{json.dumps(whoami())}]}}\n"
        "rules:\n  - {id: r, effect: ask, match: {tool: put},\n"
        "     approval: {approvers: {groups: [ops]}, self_approval: true}}\n"
        "  - {id: s, effect: ask, match: {tool: put}, approval: {quorum: 2}}\n"
    )
    store = folder / "runs.db"
    begun = call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "-q"),
        *("--store", store, "--policy", folder / "rules.yaml", "--user", "ann"),
    )
    assert begun.exit_code == Exit.SUSPENDED, begun.output
    (approval,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    about = (approval["id"], "--digest", approval["digest"], "--store", store)
    decided = call("approvals", "approve", *about)
    assert decided.exit_code == 0, decided.output
    assert decided.stdout == f"{approval['id']} pending\n"
    # The group of the rule file counted; what is still missing is said.
    assert "counted; also needed: rule s: anybody, 2 people, not the one the run is for" in decided.stderr
    other = call(
        *("runs", "resume", approval["run_id"], "--store", store, "--tools", folder / "tools.py"),
        *("--isolation", "process", "-q"),
    )
    assert "begun with --policy" in other.stderr
    assert f"{folder / 'rules.yaml'}, and goes on without" in other.stderr
    (folder / "rules.yaml").unlink()
    (again,) = [
        json.loads(line) for line in call("approvals", "list", "--store", store, "--json").stdout.splitlines()
    ]
    late = call(
        "approvals", "approve", again["id"], "--digest", again["digest"], "--store", store, "--grant", "once"
    )
    assert "rules the run was begun with do not count" in late.stderr


def test_an_unknown_outcome_is_asked_about_and_not_waited_for_without_a_terminal(folder: Path) -> None:
    (folder / "tools.py").write_text(
        TOOLS.replace("return n * 10", "__import__('os').kill(__import__('os').getpid(), 9)")
    )
    store = folder / "runs.db"
    flags = (
        "--tools",
        str(folder / "tools.py"),
        "--isolation",
        "process",
        "-q",
        "--store",
        str(store),
        "--hold-warm-s",
        "0",
    )
    bascule = (sys.executable, "-m", "bascule.cli.main")
    killed = subprocess.run(
        [*bascule, "run", str(folder / "script.py"), *flags, "--approve", "all"],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    with closing(sqlite3.connect(store)) as connection, connection:
        ((run_id,),) = connection.execute("SELECT run_id FROM runs").fetchall()
        connection.execute("UPDATE runs SET lease_until = 0")  # as if the time of its host were over
    resumed = call("runs", "resume", run_id, *flags, "--approve", "all")
    assert resumed.exit_code == Exit.SUSPENDED, resumed.output
    assert f"bascule runs resolve {run_id} 2" in resumed.stderr
    # Who says that people are elsewhere waits for them, and is told what they have to do.
    with subprocess.Popen(
        [*bascule, "runs", "resume", run_id, *flags, "--approve", "console"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as waiting:  # fmt: skip
        assert waiting.stderr is not None
        assert "isolation" in waiting.stderr.readline()
        assert f"bascule: {run_id} waits: " in waiting.stderr.readline()
        assert f"bascule runs resolve {run_id} 2" in waiting.stderr.readline()
        assert call("runs", "resolve", run_id, "2", "--store", store, "--happened", "20").exit_code == 0
        answer = waiting.communicate(timeout=60)[0]
    assert answer == "begin\n[\n  2,\n  20\n]\n"
    assert waiting.returncode == 0


def test_a_console_that_does_not_answer_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASCULE_TOKEN", "x")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        failed = call("runs", "list", "--server", f"http://127.0.0.1:{free.getsockname()[1]}").exception
    assert isinstance(failed, BasculeError)
    assert "Connection refused" in str(failed)
    assert exit_for_error(failed) == Exit.UNAVAILABLE


def test_a_script_or_a_store_that_cannot_be_used_is_named_in_words(folder: Path) -> None:
    tools = ("--tools", folder / "tools.py", "--isolation", "process")
    (folder / "latin.py").write_bytes(b"# caf\xe9\n")
    for script, why in (("none.py", "No such file or directory"), ("latin.py", "is not UTF-8 text (byte 6)")):
        done = call("run", folder / script, *tools)
        assert done.exit_code == Exit.NO_INPUT
        assert done.stderr.strip().endswith(why)
        assert "Errno" not in done.stderr
    nowhere = call("run", folder / "script.py", *tools, "--store", folder / "none" / "runs.db")
    assert nowhere.exit_code == Exit.CONFIGURATION
    assert "there is no folder" in nowhere.stderr


def test_mistakes_of_the_operator_are_named(folder: Path) -> None:
    assert call("runs", "list", "--store", folder / "none.db").exit_code == Exit.CONFIGURATION
    store, run_id = suspend(folder)
    assert call("runs", "resolve", run_id, "1", "--store", store).exit_code == Exit.USAGE
    not_json = call("runs", "resolve", run_id, "1", "--store", store, "--happened", "{")
    assert not_json.exit_code == Exit.USAGE
    known = call("runs", "resolve", run_id, "1", "--store", store, "--tell-script")
    assert isinstance(known.exception, BasculeError)
    assert exit_for_error(known.exception) == Exit.FAILED


def test_values_of_old_runs_are_dropped_by_a_command(folder: Path) -> None:
    store = folder / "runs.db"
    call(
        *("run", folder / "script.py", "--tools", folder / "tools.py", "--isolation", "process", "--quiet"),
        *("--store", store, "--approve", "deny"),
    )
    young = call("runs", "prune", "--older-than", "1h", "--store", store)
    assert (young.exit_code, young.stdout) == (0, "the values of 0 runs were dropped\n")
    wrong = call("runs", "prune", "--older-than", "soon", "--store", store)
    assert (wrong.exit_code, "for example 24h" in wrong.stderr) == (Exit.USAGE, True)
