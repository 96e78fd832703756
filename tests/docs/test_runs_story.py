"""The story that docs/runs.md tells: every command of it is run, and prints what stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from bascule.bridge.terminal import whoami

PAGE = (Path(__file__).parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")
STORY = PAGE[PAGE.index("## Suspended, approved, resumed") : PAGE.index("## Waiting")]
IDS = ("run-3f9c", "apr-77b1", "5a90")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", STORY, re.MULTILINE | re.DOTALL)


def steps() -> list[tuple[str, str]]:
    """Return every command of the story with what it prints."""
    told = "".join(blocks("console"))
    parts = re.split(r"^\$ (.*)\n", told, flags=re.MULTILINE)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def plain(text: str) -> str:
    """Return text without what differs from run to run, and without its layout."""
    lines = [" ".join(line.split()) for line in text.splitlines() if "is weaker than a container" not in line]
    said = "\n".join(line for line in lines if line)
    return re.sub(
        r"\b\d+ s\b", "0 s", said.replace(f" {whoami()}", " root").replace(" --isolation process", "")
    )


def test_every_command_prints_what_the_page_says(tmp_path: Path) -> None:
    tools, script = blocks("python")
    (tmp_path / "tools.py").write_text(tools, encoding="utf-8")
    (tmp_path / "script.py").write_text(script, encoding="utf-8")
    real: dict[str, str] = {}
    for command, printed in steps():
        for told, found in real.items():
            command = command.replace(told, found)
        words = shlex.split(command)
        if words[1:2] == ["run"] or words[1:3] == ["runs", "resume"]:
            words += ["--isolation", "process"]
        done = subprocess.run(
            [sys.executable, "-m", "bascule.cli.main", *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        said = done.stdout + done.stderr
        for told, pattern in zip(IDS, (r"run-\w{16}", r"apr-\w{20}", r"digest +(\w{16})"), strict=True):
            match = re.search(pattern, said)
            if match is not None and told not in real:
                real[told] = match.group(match.lastindex or 0)
        for told, found in real.items():
            said = said.replace(found, told)
        assert plain(said) == plain(printed), command
    assert set(real) == set(IDS)
