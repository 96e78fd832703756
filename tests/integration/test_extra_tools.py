"""The flags of ``bascule run`` that give scripts tools for finding tools and for keeping data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TOOLS = '''
from bascule.tools import tool

@tool(effects="read", name="shop.get_order")
def get_order(order_id: str) -> dict[str, str]:
    """Return one order of a customer.

    Args:
        order_id: like O-1.
    """
    return {"id": order_id}

@tool(name="shop.refund")
def refund(order_id: str) -> str:
    """Pay the money for an order back.

    Args:
        order_id: like O-1.
    """
    return order_id
'''
DEADLINE_S = 60


def bascule(folder: Path, *arguments: str, script: str = "") -> tuple[int, dict[str, Any]]:
    """Return the status of a command and the result that it printed as JSON."""
    (folder / "shop.py").write_text(TOOLS)
    flags = ["--tools", str(folder / "shop.py"), "--isolation", "process", "--json", "--quiet"]
    ran = subprocess.run(
        [sys.executable, "-m", "bascule.cli.main", *arguments, *flags],
        input=script,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=dict(os.environ),
        check=False,
    )
    return ran.returncode, json.loads(ran.stdout) if ran.stdout else {"error": ran.stderr}


def test_scripts_find_tools_by_words_and_only_when_asked_for(tmp_path: Path) -> None:
    script = """
found = search_tools(query="give the money back", limit=1)[0]["name"]
[found, describe_tool(name=found)]
"""
    status, result = bascule(tmp_path, "run", "-", "--search-tools", script=script)
    assert status == 0, result
    assert result["value"][0] == "shop.refund"
    assert "Pay the money for an order back." in result["value"][1]
    assert bascule(tmp_path, "run", "-", script=script)[0] != 0


def test_what_a_script_keeps_is_there_for_a_later_run_and_can_be_found(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    both = ("--scratch", "--search-tools", "--store", store, "--user", "ann")
    status, first = bascule(
        tmp_path, "run", "-", *both, script="store.put(value=[shop.get_order(order_id='O-1')] * 3)"
    )
    assert status == 0, first
    handle = first["value"]
    script = f"""
told = describe_tool(name="store.get")
[store.slice(handle={handle!r}, offset=2)["value"], "Return a value that was kept" in told]
"""
    status, second = bascule(tmp_path, "run", "-", *both, script=script)
    assert (status, second["value"]) == (0, [[{"id": "O-1"}], True]), second
    others = ("--scratch", "--store", store, "--user", "bob")
    assert bascule(tmp_path, "run", "-", *others, script=f"store.get(handle={handle!r})")[0] == 1


def test_a_run_that_was_suspended_is_resumed_with_the_same_flags(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    script = "kept = store.put(value=[1, 2])\nshop.refund(order_id='O-1')\nstore.get(handle=kept)"
    flags = ("--scratch", "--search-tools", "--store", store)
    status, suspended = bascule(
        tmp_path, "run", "-", *flags, "--approve", "console", "--no-wait", script=script
    )
    assert status == 5, suspended
    status, result = bascule(tmp_path, "runs", "resume", suspended["run_id"], *flags, "--approve", "all")
    assert (status, result["value"]) == (0, [1, 2]), result
