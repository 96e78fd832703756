"""Scripts as models write them give what plain Python gives: the same output, run in both.

The scripts are in `plain/*.txt`, each under a heading `## name`, as they are read best; their tools are in
`plain/tools.py`. They are trusted, and plain Python runs them in this process.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import sys
import types
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.unit.guest.harness import run
from tests.unit.guest.plain.tools import TOOLS


def load() -> dict[str, str]:
    """Return every script by its name."""
    scripts: dict[str, str] = {}
    for path in sorted(Path(__file__).with_name("plain").glob("*.txt")):
        for block in path.read_text(encoding="utf-8").removeprefix("## ").split("\n## "):
            name, _, text = block.partition("\n")
            assert name not in scripts
            scripts[name] = text.strip("\n") + "\n"
    return scripts


SCRIPTS = load()


def made_async(tool: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a tool as scripts with ``await`` call it."""

    async def call(*args: Any, **named: Any) -> Any:
        return tool(*args, **named)

    return call


def run_plainly(script: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a script by CPython and return what it printed."""
    code = compile(script, "<script>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    main = types.ModuleType("__main__")
    is_async = any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in ast.walk(ast.parse(script)))
    vars(main).update({name: made_async(tool) if is_async else tool for name, tool in TOOLS.items()})
    monkeypatch.setitem(sys.modules, "__main__", main)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        made = eval(code, vars(main))
        if inspect.isawaitable(made):

            async def drive() -> None:
                await made

            asyncio.run(drive())
    return printed.getvalue()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_of_a_model_prints_what_plain_python_prints(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = run_plainly(SCRIPTS[name], monkeypatch)
    outcome = run(SCRIPTS[name], TOOLS)
    assert outcome.errors == ()
    assert outcome.output == expected
