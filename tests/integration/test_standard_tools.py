"""Standard tools, discovery and scratch data in scripts that real guests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bascule.bridge import Executor, MemoryStore, approve_all
from bascule.bridge.artifact_tools import artifact_tools
from bascule.tools.discovery import SearchableTools
from bascule.tools.standard import calculator, files, tables

pytestmark = pytest.mark.anyio

FIRST = """
found = search_tools(query="work out a number", limit=1)
assert "Write" not in describe_tool(name=found[0]["name"])
rows = [{"id": n, "square": calculate(expression=f"{n} ** 2")} for n in range(20)]
files.write(path="b.txt", text=files.read(path="a.txt")["text"].upper())
store.put(value=rows)
"""

SECOND = """
part = store.slice(handle=HANDLE, offset=18)
profile = tables.profile(rows=store.get(handle=HANDLE))
refused = []
for attempt in (
    lambda: files.read(path="../outside"),
    lambda: calculate(expression="9 ** 9 ** 9 ** 9"),
    lambda: describe_tool(name="calculat"),
    lambda: store.get(handle="art-" + "0" * 32),
):
    try:
        attempt()
    except (PermissionError, ValueError, LookupError) as error:
        refused.append(type(error).__name__)
[part["value"], profile["rows"], refused]
"""


async def test_scripts_find_tools_use_them_and_leave_data_to_later_scripts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    store = MemoryStore()
    tools = [
        calculator.calculate,
        *files.tools(tmp_path, writable=True),
        *tables.TOOLS,
        *artifact_tools(store),
    ]
    async with Executor(
        [SearchableTools(tools)], store=store, user="ann", approver=approve_all, isolation="process"
    ) as executor:
        first = await executor.run(FIRST)
        assert first.error is None
        second = await executor.run(SECOND.replace("HANDLE", repr(first.value)))
    assert second.error is None
    assert second.value == [
        [{"id": 18, "square": 324}, {"id": 19, "square": 361}],
        20,
        ["PermissionError", "ValueError", "LookupError", "LookupError"],
    ]
    assert (tmp_path / "b.txt").read_text() == "ALPHA"
