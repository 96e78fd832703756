"""The promises of the set-up: one lock, one test command, a help line for each target."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
TARGETS = ("demo", "test", "check", "escape", "conformance", "bench", "image", "clean")


def normal(name: str) -> str:
    """Return a distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_pins_every_declared_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    names = {normal(match.group()) for text in declared if (match := re.match(r"[A-Za-z0-9._-]+", text))}
    pinned = {normal(name) for name in re.findall(r"^([A-Za-z0-9._-]+)==", LOCK, re.MULTILINE)}
    assert names - pinned == set()


def test_every_pin_has_a_hash_and_no_host() -> None:
    pins = re.split(r"\n(?=[a-zA-Z])", LOCK.strip())
    assert [pin for pin in pins if "--hash=sha256:" not in pin] == []
    assert "://" not in LOCK
    assert not re.search(r"^\s*-", LOCK.replace("    --hash", ""), re.MULTILINE)


def test_every_target_has_a_help_line() -> None:
    text = subprocess.run(
        ["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True
    ).stdout
    assert [
        target for target in TARGETS if not re.search(rf"^\s+make {target}\s+\S", text, re.MULTILINE)
    ] == []


def test_continuous_integration_runs_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^(make test)\b.*$", readme, re.MULTILINE)
    assert re.search(rf"^step {command}$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.MULTILINE)
