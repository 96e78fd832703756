"""The README's code is run and must print what the README says it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bascule.sandbox import ensure_image

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.engine
def test_the_example_prints_what_the_readme_says() -> None:
    example = re.search(r"```python\n(.*?)```\n\nprints\n\n```text\n(.*?)```", README, re.DOTALL)
    assert example is not None
    code, printed = example.groups()
    ensure_image()
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == printed, done.stderr


def test_the_example_is_as_short_as_it_says() -> None:
    example = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert example is not None
    assert len([line for line in example.group(1).splitlines() if line.strip()]) <= 20


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_command_of_the_readme_exists() -> None:
    text = subprocess.run(
        ["make", "-C", str(ROOT), "help"], capture_output=True, text=True, check=True
    ).stdout
    offered = set(re.findall(r"^\s+make (\w+)", text, re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b", README)) <= offered


def test_every_flag_of_the_readme_exists() -> None:
    command = [str(Path(sys.executable).with_name("bascule"))]
    for line in re.findall(r"^bascule (.*)$", README, re.MULTILINE):
        words = line.split("#")[0].split()
        name = [word for word in words if re.fullmatch(r"[a-z]+", word)][: 2 if words[0] == "tools" else 1]
        shown = subprocess.run(
            [*command, *name, "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "200"}
        )
        assert [word for word in words if word.startswith("--") and word not in shown.stdout] == []


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "000-index.md").read_text(encoding="utf-8")
    pages = [page.name for page in folder.glob("*.md") if page.name != "000-index.md"]
    assert [page for page in pages if page not in index] == []


def test_every_security_critical_file_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text.split("## Security-critical files")[1], re.MULTILINE)
    missing: list[str] = []
    for row in rows:
        folder = ROOT
        for name in re.findall(r"`([^`]+)`", row):
            place = ROOT / name if "/" in name.rstrip("/") else folder / name
            folder = place.parent
            if not place.exists():
                missing.append(name)
    assert rows
    assert missing == []
