"""The command with real containers: streams, prompts on a real terminal, interrupts, and the demo."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bascule.sandbox import GuestImage
from bascule.sandbox.engine import Engine
from bascule.sandbox.hardening import OWNER_LABEL

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("guest_image")]

ROOT = Path(__file__).parents[2]
TOOLS = str(Path(__file__).with_name("given_tools.py"))
COMMAND = [sys.executable, "-m", "bascule.cli.main"]
DEADLINE_S = 60


def bascule(*arguments: str, script: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        input=script,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env={**os.environ, **environment},
        cwd=ROOT,
        check=False,
    )


def end(process: subprocess.Popen[Any]) -> None:
    """End a process that a failed assertion left behind, and close its pipes."""
    process.kill()
    process.communicate()


def containers_of_process(pid: int) -> list[dict[str, Any]]:
    engine = Engine()
    try:
        found = engine.call_now(engine.api.containers, all=True, filters={"label": OWNER_LABEL})
    finally:
        engine.close()
    return [each for each in found if f":{pid}:" in each["Labels"][OWNER_LABEL]]


def test_a_script_from_stdin_puts_its_result_on_stdout_and_all_else_on_stderr() -> None:
    ran = bascule("run", "-", "--tools", TOOLS, script="print('hello')\n{'sum': add(1, 2)}")
    assert (ran.returncode, ran.stdout) == (0, 'hello\n{\n  "sum": 3\n}\n')
    assert "1 add done in" in ran.stderr
    assert "1 call, 1 bytes of results stayed in the script" in ran.stderr


def test_json_is_one_object_with_receipts_and_quiet_leaves_stderr_empty() -> None:
    ran = bascule("run", "-", "--tools", TOOLS, "--json", "--quiet", "--seed", "1", script="add(1)")
    result: dict[str, Any] = json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert result["value"] == 2
    call = result["calls"][0]
    assert (call["tool"], call["state"], call["arguments"]) == ("add", "done", {"left": 1, "right": 1})
    assert result["usage"]["calls"] == 1
    tokens = result["tokens"]
    assert tokens["kept_out"] == tokens["results"] - tokens["returned"] == 0
    assert tokens["definitions"] > tokens["direct_definitions"] > 0


def test_the_seed_decides_what_is_random() -> None:
    script = "import random\nrandom.random()"
    first, second = (
        bascule("run", "-", "--tools", TOOLS, "--seed", "7", "--quiet", script=script) for _ in range(2)
    )
    assert first.returncode == 0
    assert first.stdout == second.stdout


def test_without_a_terminal_an_effect_is_denied_and_said_so() -> None:
    ran = bascule("run", "-", "--tools", TOOLS, script="send('x')")
    assert ran.returncode == 1
    assert "no terminal to ask about send; denied" in ran.stderr
    assert "ToolDenied" in ran.stderr


def test_limits_come_from_the_environment_too() -> None:
    ran = bascule("run", "-", "--tools", TOOLS, script="add(1)\nadd(2)", BASCULE_CALLS="1")
    assert ran.returncode == 4
    assert "call_limit (line 2)" in ran.stderr


def test_the_weaker_isolation_says_what_is_weaker() -> None:
    ran = bascule("run", "-", "--tools", TOOLS, "--isolation", "process", script="add(1)")
    assert (ran.returncode, ran.stdout) == (0, "2\n")
    assert 'isolation "process" is weaker than a container' in ran.stderr


@pytest.mark.parametrize(("typed", "status"), [(b"y\n", 0), (b"n not now\n", 1)])
def test_an_effect_is_asked_about_on_the_terminal(tmp_path: Path, typed: bytes, status: int) -> None:
    script = tmp_path / "script.py"
    script.write_text("send('Dear \u202eAnna')")
    master, slave = os.openpty()
    process = subprocess.Popen(
        [*COMMAND, "run", str(script), "--tools", TOOLS],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        shown = b""
        while b"Approve this call?" not in shown:
            part = os.read(process.stderr.fileno(), 4096)
            assert part, shown
            shown += part
        os.write(master, typed)
        out, rest = process.communicate(timeout=DEADLINE_S)
    finally:
        end(process)
        os.close(master)
        os.close(slave)
    assert process.returncode == status
    assert b'{"text":"Dear \\u202eAnna"}' in shown
    assert "\u202e".encode() not in shown
    if status == 0:
        assert out == b"10\n"
    else:
        assert b"not now" in rest


def test_an_interrupt_ends_the_run_and_leaves_no_container(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.py"
    script.write_text("print('begun')\nadd(1)\nwhile True:\n    pass")
    process = subprocess.Popen(
        [*COMMAND, "run", str(script), "--tools", TOOLS],
        stderr=subprocess.PIPE,
        text=True,
        # Tests that a shell started in the background inherit that interrupts are ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert process.stderr is not None
        assert "1 add done" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=DEADLINE_S)
    finally:
        end(process)
    assert process.returncode == 130
    assert rest.endswith("bascule: interrupted\n")
    assert "Traceback" not in rest
    assert containers_of_process(process.pid) == []


def test_the_demo_reads_this_environment_and_accounts_for_it(tmp_path: Path) -> None:
    demo = ROOT / "examples" / "licence_audit"
    ran = bascule(
        "run",
        str(demo / "script.py"),
        "--tools",
        str(demo / "tools.py"),
        "--policy",
        str(demo / "policy.yaml"),
        "--approve",
        "all",
        "--receipts",
        BASCULE_DEMO_FOLDER=str(tmp_path),
    )
    assert ran.returncode == 0, ran.stderr
    assert "every call that policy asks about is approved" in ran.stderr
    assert "approved by approve_all" in ran.stderr
    first, _, rest = ran.stdout.partition("\n")
    assert "distributions under" in first
    answer: dict[str, Any] = json.loads(rest)
    assert answer["files"] > 100
    report = (tmp_path / "licence-audit.md").read_text()
    assert "| bascule |" in report
    assert "| msgspec |" in report


def test_tools_are_listed_and_shown(tmp_path: Path) -> None:
    listed = bascule("tools", "list", "--tools", TOOLS)
    assert listed.returncode == 0
    assert [line.split()[:2] for line in listed.stdout.splitlines()] == [
        ["add", "read"],
        ["add_async", "read"],
        ["fail", "read"],
        ["hang", "read"],
        ["send", "once"],
    ]
    stubs = bascule("tools", "list", "--tools", TOOLS, "--stubs")
    assert "def add(left: int, right: int = 1) -> int:" in stubs.stdout
    shown = bascule("tools", "show", "send", "--tools", TOOLS)
    assert "effects    once" in shown.stdout
    missing = bascule("tools", "show", "sent", "--tools", TOOLS)
    assert missing.returncode == 78
    assert "did you mean send?" in missing.stderr


def test_the_doctor_tries_every_wall_and_the_image_can_be_checked(guest_image: GuestImage) -> None:
    doctor = bascule("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "BROKEN" not in doctor.stdout
    assert doctor.stdout.count("holds") > 5
    named = bascule("doctor", "--runtime", "none-of-that-name")
    assert named.returncode == 1, named.stdout + named.stderr
    assert "unusable   the engine at" in named.stdout
    built = bascule("image", "build")
    assert (built.returncode, built.stdout.strip()) == (0, guest_image.tag)
    checked = bascule("image", "check")
    assert "/dockerenv" not in checked.stdout
    assert checked.returncode == 0, checked.stdout
    assert "setuid files: none" in checked.stdout


def test_there_is_no_engine_for_the_doctor_either() -> None:
    ran = bascule("doctor", "--docker-host", "unix:///nowhere/docker.sock")
    assert ran.returncode == 69
    assert "no container engine answers" in ran.stderr
