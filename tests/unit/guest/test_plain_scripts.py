"""Scripts as models write them give what plain Python gives: the same output, run in both.

The scripts are in `plain/*.txt`, each under a heading `## name`, as they are read best; their tools are in
`plain/tools.py`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.guest.harness import run
from tests.unit.guest.plain.tools import TOOLS

FOLDER = Path(__file__).with_name("plain")
CALLABLE_TOOLS: dict[str, Callable[..., Any]] = TOOLS


def load() -> dict[str, str]:
    """Return every script by its name."""
    scripts: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.txt")):
        for block in path.read_text(encoding="utf-8").removeprefix("## ").split("\n## "):
            name, _, text = block.partition("\n")
            assert name not in scripts
            scripts[name] = text.strip("\n") + "\n"
    return scripts


SCRIPTS = load()


@pytest.fixture(scope="module")
def expected() -> dict[str, str]:
    """What plain Python prints, by the name of the script."""
    done = subprocess.run(
        [sys.executable, "-P", str(FOLDER / "reference.py")],
        input=json.dumps(list(SCRIPTS.values())),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    )
    return dict(zip(SCRIPTS, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_a_model_prints_what_plain_python_prints(name: str, expected: dict[str, str]) -> None:
    outcome = run(SCRIPTS[name], CALLABLE_TOOLS)
    assert outcome.errors == ()
    assert outcome.output == expected[name]
