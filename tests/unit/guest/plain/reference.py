"""Runs scripts with plain CPython, one forked child each, so that nothing of one meets the next.

Standalone: reads a JSON list of scripts from stdin, writes what each printed. Trusted scripts only.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import io
import json
import os
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[4]))
from tests.unit.guest.plain.tools import TOOLS
from tests.unit.guest.virtual_loop import VirtualLoop

# `asyncio.run` asks the one, scripts the other.
asyncio.events.new_event_loop = asyncio.new_event_loop = VirtualLoop

LIMIT_BYTES = 1 << 20


def made_async(tool: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return a tool as scripts with ``await`` call it."""

    async def call(*args: Any, **named: Any) -> Any:
        return tool(*args, **named)

    return call


def printed(script: str) -> str:
    """Run one script here and return what it printed, and what left it, if anything."""
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr = out = io.StringIO()
    main = types.ModuleType("__main__")
    is_async = any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in ast.walk(ast.parse(script)))
    vars(main).update({name: made_async(tool) if is_async else tool for name, tool in TOOLS.items()})
    sys.modules["__main__"] = main
    try:
        code = compile(script, "<script>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        made = eval(code, vars(main))
        if inspect.isawaitable(made):

            async def drive() -> None:
                await made

            asyncio.run(drive())
    except Exception:  # a script of the corpus that is wrong by itself: the comparison shows it
        traceback.print_exc(file=out)
    return out.getvalue()


def printed_in_child(script: str) -> str:
    """Run one script in a forked child."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        with os.fdopen(writing, "w", encoding="utf-8") as stream:
            stream.write(printed(script))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as stream:
        text = stream.read(LIMIT_BYTES)
    os.wait()
    return text


if __name__ == "__main__":
    json.dump([printed_in_child(script) for script in json.load(sys.stdin)], sys.stdout)
