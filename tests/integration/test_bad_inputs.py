"""Twelve bad inputs through the command line and a real container: designed error, designed exit status."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bascule.cli.main import main
from bascule.sandbox import GuestImage

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("guest_image")]

TOOLS = str(Path(__file__).with_name("given_tools.py"))


@dataclass
class Outcome:
    """What the command left behind."""

    status: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.out)
        return loaded


Run = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Give a function that runs ``bascule run`` on a script with the given further arguments."""

    def run_command(script: str, *arguments: str) -> Outcome:
        file = tmp_path / "script.py"
        file.write_text(script)
        command = ["bascule", "run", str(file), "--tools", TOOLS, "--json", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Outcome(int(ended.value.code), out, err)

    return run_command


def test_no_engine_names_the_address_and_says_that_nothing_falls_back(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    outcome = run("1")
    assert outcome.status == 69
    assert outcome.out == ""
    assert "no container engine answers at unix:///nowhere/docker.sock" in outcome.err
    assert "never falls back" in outcome.err


def test_a_guest_from_another_image_is_refused(
    run: Run, monkeypatch: pytest.MonkeyPatch, guest_image: GuestImage
) -> None:
    other = replace(guest_image, hash="f" * 64)

    def find_other(base: str, *, docker_host: str | None, build: bool) -> GuestImage:
        return other

    monkeypatch.setattr("bascule.sandbox.backend.ensure_image", find_other)
    outcome = run("1")
    assert outcome.status == 69
    assert "bascule image build" in outcome.err


@dataclass(frozen=True)
class Bad:
    """One bad script."""

    script: str
    status: int
    kind: str
    says: str
    arguments: tuple[str, ...] = ()
    exception: str | None = None
    line: int | None = 1


BAD = {
    "unknown tool": Bad("ad(1)", 3, "unknown_tool", "ad"),
    "wrong argument": Bad("add(left=1, rigth=2)", 3, "invalid_arguments", "rigth"),
    "syntax error": Bad("x = 1\nif x\n  pass", 3, "syntax_error", "", line=2),
    "refused import": Bad("import subprocess", 3, "refused_import", "subprocess"),
    "endless loop": Bad(
        "x = 0\nwhile True:\n    x += 1", 4, "wall_limit", "line", ("--wall-s", "1"), line=None
    ),
    "endless loop in C": Bad(
        "import itertools\nsum(itertools.repeat(1))", 4, "wall_limit", "line 2", ("--wall-s", "1"), line=2
    ),
    "memory bomb": Bad(
        "x = []\nwhile True:\n    x.append('x' * 1000000)",
        4,
        "memory_limit",
        "",
        ("--memory-bytes", str(64 << 20)),
        line=None,
    ),
    "output flood": Bad(
        "while True:\n    print('x' * 1000)", 4, "output_limit", "", ("--output-bytes", "100000"), line=None
    ),
    "tool exception": Bad(
        "x = 1\nfail('no such quarter')",
        1,
        "tool_failed",
        "no such quarter",
        exception="ValueError",
        line=2,
    ),
    "tool timeout": Bad("hang()", 1, "tool_timeout", "did not end within 0.2 s", exception="ToolTimeout"),
    "denied approval": Bad(
        "add(1)\nsend('x')",
        1,
        "tool_denied",
        "nobody approved this call",
        ("--approve", "deny"),
        exception="ToolDenied",
        line=2,
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_script_gets_its_error_and_exit_status(run: Run, name: str) -> None:
    bad = BAD[name]
    outcome = run(bad.script, *bad.arguments)
    error = outcome.result["error"]
    assert (outcome.status, error["kind"]) == (bad.status, bad.kind)
    assert bad.says in error["message"]
    if bad.exception is not None:
        assert error["exception"] == bad.exception
    if bad.line is not None:
        assert error["line"] == bad.line
    assert len(error["message"]) < 2000


def test_a_script_that_cannot_be_read_and_tools_that_cannot_be_used_have_statuses_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text("1")
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nrules: [{id: a, effect: maybe, match: {tool: add}}]")
    for status, arguments in (
        (66, [str(tmp_path / "missing.py"), "--tools", TOOLS]),
        (78, [str(script), "--tools", "no_such_module_at_all"]),
        (78, [str(script), "--tools", TOOLS, "--policy", str(policy)]),
        (2, [str(script), "--tools", TOOLS, "--wall-s", "0"]),
        (2, [str(script)]),
    ):
        monkeypatch.setattr(sys, "argv", ["bascule", "run", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code, arguments) == (status, arguments)
    capfd.readouterr()
