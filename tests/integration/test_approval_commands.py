"""A run in one process that is decided about from another, through the store, as operators do it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.approvals_table import ApprovalRecord
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.terminal import whoami

TOOLS = '''
from pathlib import Path
from bascule.tools import tool

@tool(effects="once")
def append(path: str, text: str) -> int:
    """Append a line."""
    with Path(path).open("a") as file:
        file.write(text + "\\n")
    return len(text)
'''
SCRIPT = """
import asyncio
results = await asyncio.gather(*[append(path=PATH, text=t) for t in ("a", "b", "c")], return_exceptions=True)
print([r if isinstance(r, int) else type(r).__name__ for r in results])
"""
RULES = """
version: 1
rules:
  - {id: careful, effect: ask, match: {tool: append},
     approval: {self_approval: true, may: [approve, edit, reject], editable: [text]}}
"""


def bascule(*args: str | Path) -> list[str]:
    return [sys.executable, "-m", "bascule.cli.main", *map(str, args)]


async def wait_for(store: SqliteStore, count: int) -> list[ApprovalRecord]:
    while len(found := store.approvals.find(states=(ApprovalState.PENDING,))) < count:
        await store.changed(0.2)
    return sorted(found, key=lambda record: record.seq)


def test_a_batch_is_approved_edited_and_rejected_from_another_process(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    (tmp_path / "script.py").write_text(SCRIPT.replace("PATH", repr(str(out))), encoding="utf-8")
    path = tmp_path / "runs.db"
    store = SqliteStore(path)
    command = bascule(
        "run", tmp_path / "script.py", "--tools", tmp_path / "tools.py", "--policy", tmp_path / "rules.yaml",
        "--approve", "console", "--store", path, "--isolation", "process", "--json", "-q",
    )  # fmt: skip
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
    try:
        first, second, third = asyncio.run(asyncio.wait_for(wait_for(store, 3), 60))
        assert len({first.batch, second.batch, third.batch}) == 1
        assert not out.exists()
        for record, more in (
            (third, ["reject", "--reason", "not c"]),
            (second, ["edit", "--set", 'text="B"']),
            (first, ["approve"]),
        ):
            decide = bascule(
                "approvals", more[0], record.id, "--store", path, "--digest", record.digest, *more[1:]
            )
            subprocess.run(decide, check=True, capture_output=True, timeout=60)
        stdout, stderr = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert running.returncode == 0, stderr.decode()
    result = json.loads(stdout)
    assert result["output"] == "[1, 1, 'ToolDenied']\n"
    assert out.read_text(encoding="utf-8") == "a\nB\n"
    assert [call["state"] for call in result["calls"]] == ["done", "done", "denied"]
    assert [call["edited_by"] for call in result["calls"]] == [None, whoami(), None]
    assert [note["code"] for note in result["notes"]] == ["call_edited"]
    states = [record.state for record in store.approvals.find()]
    assert states.count(ApprovalState.CONSUMED) == 2
    assert states.count(ApprovalState.REJECTED) == 1
    store.close()
