"""The command in broken surroundings: closed streams, other encodings, tools that print, broken modules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = '''
import os
from bascule.tools import tool
print("loading")
os.system("echo from a program")

@tool(effects="read")
def size(a: int) -> int:
    """Größe."""
    return a
'''


def command(
    *arguments: str, cwd: Path, shell: str = "", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    line = [sys.executable, "-m", "bascule.cli.main", *arguments]
    if shell:
        line = ["bash", "-c", f'"$@" {shell}', "bash", *line]
    return subprocess.run(
        line, cwd=cwd, env={**os.environ, **environment}, capture_output=True, check=False, timeout=60
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(TOOLS, "utf-8")
    return tmp_path


def test_what_tools_print_does_not_get_into_the_result(folder: Path) -> None:
    done = command("tools", "list", "--tools", "mine.py", cwd=folder)
    assert done.stdout == "size  read        Größe.\n".encode()
    assert b"loading" in done.stderr
    assert b"from a program" in done.stderr


@pytest.mark.parametrize("shell", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_breaks_nothing(folder: Path, shell: str) -> None:
    done = command("tools", "list", "--tools", "mine.py", cwd=folder, shell=shell)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_terminal_that_cannot_show_a_letter_gets_its_number(folder: Path) -> None:
    done = command("tools", "list", "--tools", "mine.py", cwd=folder, PYTHONIOENCODING="ascii")
    assert done.stdout == b"size  read        Gr\\xf6\\xdfe.\n"


@pytest.mark.parametrize(
    "text",
    [
        'raise ValueError("\\x1b[2J")',
        'class Own(BaseException): pass\nraise Own("x")',
        "def __getattr__(name): raise RuntimeError(name)",
        "TOOLS = []\nTOOLS.append(TOOLS)",
    ],
)
def test_a_module_that_cannot_be_used_is_an_error_in_plain_text(folder: Path, text: str) -> None:
    (folder / "broken.py").write_text(text, "utf-8")
    done = command("tools", "list", "--tools", "broken.py", cwd=folder)
    assert done.returncode == 78
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stderr
    assert not done.stdout


def test_a_name_too_long_for_a_file_is_an_error_in_plain_text(folder: Path) -> None:
    done = command("tools", "list", "--tools", f"{'a' * 300}.py", cwd=folder)
    assert done.returncode == 78
    assert b"Traceback" not in done.stderr
