"""Recordings: a script run again without tools does the same, or the difference is named. And the plugin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bascule.bridge.errors import ResumeError
from bascule.bridge.recording import read_recording
from bascule.bridge.testing import Bascule, assert_calls, calls_of
from bascule.tools import AnyTool, tool

SCRIPT = """
import random
print('begin')
a = look(1)
try:
    put(2)
except ValueError as e:
    print(e)
[a, random.random()]
"""


def make_tools(ran: list[int]) -> list[AnyTool]:
    @tool(effects="read")
    def look(n: int) -> int:
        """Look."""
        ran.append(n)
        return n * 2

    @tool(effects="once")
    def put(n: int) -> int:
        """Put."""
        ran.append(n)
        raise ValueError(f"no {n}")

    return [look, put]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "run.jsonl"
    result = Bascule().run(SCRIPT, make_tools([]), record=path)
    assert result.status == "ok"
    return path


def changed(recording: Path, into: Path, old: str, new: str) -> Path:
    text = recording.read_text()
    assert old in text
    path = into / "changed.jsonl"
    path.write_text(text.replace(old, new))
    return path


def test_a_recording_replays_without_tools(recording: Path) -> None:
    result = Bascule().replay(recording)
    assert (result.status, result.output) == ("ok", "begin\nno 2\n")
    assert_calls(result, [("look", {"n": 1}), ("put", {"n": 2})])
    assert [call.state for call in result.calls] == ["done", "failed"]
    assert calls_of(result, tool="put") == [("put", {"n": 2})]
    with pytest.raises(AssertionError, match="calls differ"):
        assert_calls(result, [("look", {"n": 1})])


def test_a_recording_is_for_its_owner_only(recording: Path) -> None:
    assert recording.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("look(1)", "look(9)", "recorded was call 1 look"),
        ("print('begin')", "print('BEGIN')", "the output"),
        ("[a, random", "[0, random", "value: recorded"),
        (r"print(e)", r"print(e); look(3)", "now came call 3 look"),
    ],
)
def test_a_script_that_does_something_else_is_told_so(
    recording: Path, tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(AssertionError, match="does not replay") as told:
        Bascule().replay(changed(recording, tmp_path, old, new))
    assert said in str(told.value)


def test_a_file_that_is_no_recording_says_where_it_breaks(recording: Path, tmp_path: Path) -> None:
    lines = recording.read_text().splitlines()
    for broken, said in (
        ("", "line 1"),
        ("{}", "version is None"),
        ("\n".join([lines[0], *lines[2:]]), "event 0 is missing"),
        ("\n".join([*lines[:4], "nonsense"]), "line 5"),
    ):
        path = tmp_path / "broken.jsonl"
        path.write_text(broken)
        with pytest.raises(ResumeError, match=said) as refused:
            read_recording(path)
        assert refused.value.code == "recording_invalid"
    path.write_text("\n".join(lines[:-1]))
    with pytest.raises(ResumeError, match="not finished"):
        read_recording(path)


def test_a_recording_names_its_version(recording: Path) -> None:
    head = json.loads(recording.read_text().splitlines()[0])
    assert head["bascule_recording"] == 1


def test_pytest_gives_the_fixture(recording: Path, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "from bascule.bridge.testing import assert_calls\n"
        "def double(n: int) -> int:\n    '''Double.'''\n    return n * 2\n"
        "def test_run(bascule):\n    result = bascule.run('double(2)', [double])\n"
        "    assert result.value == 4\n    assert_calls(result, [('double', {'n': 2})])\n"
        f"def test_replay(bascule):\n    bascule.replay({str(recording)!r})\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "bascule.bridge.testing", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
