"""The mistakes models make: each gets one message that says what the handed case asks for.

Writes the table `docs/errors.md` when BASCULE_WRITE_DOCS=1, and checks that it is up to date otherwise.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from bascule.bridge import Executor, Limits, Result, approve_all
from tests.conformance.tasks import CASES, Suite
from tests.forks.backend import ForkBackend

LIMITS = Limits(wall_s=10.0, cpu_s=10.0, calls=2000)
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
INTRODUCTION = """# What a model is told of its mistakes

Made from the broken scripts of `tests/conformance/cases/broken` by their test; do not edit. What can be seen
beforehand is found before anything runs, all of it in one message; `ok`: the script does what was meant.

| mistake | found | what is said |
|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a good message has: a line and words (regular expressions), or a script that works after all."""

    id: str
    words: tuple[str, ...]
    line: int | None
    works: bool


def load_expectations() -> list[Expectation]:
    """Return the expectations, one for each broken script."""
    rows = [json.loads(line) for line in Path(__file__).with_name("broken.jsonl").read_text().splitlines()]
    return [
        Expectation(
            id=row["id"], words=tuple(row["words"]), line=row.get("line"), works=row.get("works", False)
        )
        for row in rows
    ]


def load_case(identity: str) -> dict[str, Any]:
    """Return a broken script's case."""
    text = (CASES / "broken" / f"{identity.removeprefix('B')}.json").read_text(encoding="utf-8")
    return cast("dict[str, Any]", json.loads(text))


EXPECTATIONS = load_expectations()


@pytest.fixture(scope="module")
def results() -> dict[str, Result]:
    async def run() -> dict[str, Result]:
        found: dict[str, Result] = {}
        backend = ForkBackend()
        try:
            for expectation in EXPECTATIONS:
                case = load_case(expectation.id)
                suite = Suite(case["suite"])
                suite.reset()
                async with Executor(
                    suite.tools, approver=approve_all, limits=LIMITS, backend=backend
                ) as executor:
                    found[expectation.id] = await executor.run(case["script"], seed=1)
        finally:
            await backend.close()
        return found

    return asyncio.run(run())


def test_every_broken_script_has_an_expectation() -> None:
    names = {f"B{path.stem}" for path in (CASES / "broken").glob("*.json")}
    assert {expectation.id for expectation in EXPECTATIONS} == names


@pytest.mark.parametrize("expected", EXPECTATIONS, ids=lambda expected: expected.id)
def test_the_message_says_what_a_good_error_says(expected: Expectation, results: dict[str, Result]) -> None:
    result = results[expected.id]
    told = result.for_model()
    assert (result.status == "ok") == expected.works, told
    assert [word for word in expected.words if not re.search(word, told, re.IGNORECASE)] == [], told
    if expected.line is not None:
        assert result.error is not None
        assert result.error.line == expected.line
    assert len(told) < 4000
    assert not re.search(r"site-packages|bascule/|Traceback", told)


def page(results: dict[str, Result]) -> str:
    """Return the table as it should stand in the docs."""
    rows: list[str] = []
    for expectation in EXPECTATIONS:
        case, result = load_case(expectation.id), results[expectation.id]
        said = [
            f"{error.message} — {error.suggestion}" if error.suggestion else error.message
            for error in result.errors
        ]
        said += [note.message for note in result.notes]
        found = {"refused": "before it runs", "ok": "ok"}.get(result.status, "while it runs")
        text = " ".join(" ".join(said).split()).replace("|", "\\|")
        rows.append(f"| {case['mistake']} | {found} | {text} |")
    return INTRODUCTION + "\n".join(rows) + "\n"


def test_the_table_in_the_docs_is_up_to_date(results: dict[str, Result]) -> None:
    if os.environ.get("BASCULE_WRITE_DOCS") == "1":
        PAGE.write_text(page(results), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(results), "run BASCULE_WRITE_DOCS=1 make conformance"
