"""The commands that show, find and judge tools, run in this process."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from bascule.bridge import Executor
from bascule.bridge.sqlite_store import SqliteStore
from bascule.cli.exits import Exit
from bascule.cli.main import app
from bascule.cli.run import read_secrets
from bascule.tools import load_tools
from tests.unit.bridge.guests import GuestBackend, calls

TOOLS = '''
from bascule.tools import tool

@tool(effects="read", name="crm.find_contact")
def find_contact(name: str) -> list[dict[str, str]]:
    """Find people at our customers by name."""
    return [{"name": name}]

@tool(name="crm.refund_order", examples=[{"order_id": "O-1"}])
def refund_order(order_id: str) -> str:
    """Pay the money for an order back to the customer.

    Args:
        order_id: like O-1001.
    """
    return order_id

@tool(effects="read", name="ping")
def ping() -> str:
    """Tell whether the service answers at all."""
    return "pong"
'''
BAD = """
from typing import Any
from bascule.tools import tool

@tool
def run(data: Any, fast: bool = False, safe: bool = True):
    pass
"""


@pytest.fixture(autouse=True)
def _restore_imports() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("bascule_tools_"):
            del sys.modules[name]


@pytest.fixture
def good(tmp_path: Path) -> str:
    (tmp_path / "good.py").write_text(TOOLS)
    return str(tmp_path / "good.py")


@pytest.fixture
def bad(tmp_path: Path) -> str:
    (tmp_path / "bad.py").write_text(BAD)
    return str(tmp_path / "bad.py")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["tools", *arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def test_a_list_counts_namespaces(good: str) -> None:
    code, out, _ = run("list", "--tools", good)
    assert code == 0
    assert out.splitlines()[-1] == "3 tools: crm 2, without namespace 1"
    assert run("list", "--tools", good, "--namespaces")[1] == "crm  2\n-    1\n"


def test_a_tool_is_shown_in_three_levels_of_detail(good: str) -> None:
    assert run("show", "crm.refund_order", "--tools", good, "--detail", "names")[1].startswith(
        "crm.refund_order  # Pay the money"
    )
    assert "like O-1001" not in run("show", "crm.refund_order", "--tools", good, "--detail", "signatures")[1]
    assert 'crm.refund_order(order_id="O-1")' in run("show", "crm.refund_order", "--tools", good)[1]


def test_a_search_prints_signatures_best_first(good: str) -> None:
    code, out, _ = run("search", "give money back", "--tools", good)
    assert code == 0
    assert out.splitlines()[:2] == [
        "crm.refund_order(order_id: str) -> str  # effect: once",
        "    Pay the money for an order back to the customer.",
    ]
    assert (
        json.loads(run("search", "退款", "--tools", good, "--json", "--limit", "1")[1])["name"]
        == "crm.refund_order"
    )
    code, out, err = run("search", "xyzzy", "--tools", good)
    assert (code, out) == (1, "")
    assert "no tool matches" in err


def test_good_tools_pass_and_bad_ones_are_told_what_to_do(good: str, bad: str) -> None:
    assert run("lint", "--tools", good) == (0, "", "")
    code, out, _ = run("lint", "--tools", bad)
    assert code == 1
    assert "run: the name run does not say what it does (bad.py:5). Name verb and thing" in out
    rules = [json.loads(line)["rule"] for line in run("lint", "--tools", bad, "--json")[1].splitlines()]
    assert rules == [
        "vague-name",
        "no-description",
        "no-return-type",
        "two-booleans",
        "vague-parameter",
        "untyped-parameter",
    ]


def test_what_was_repaired_or_left_out_of_a_document_is_told_and_is_no_failure(tmp_path: Path) -> None:
    document: dict[str, Any] = {
        "openapi": "3.0.0",
        "servers": [{"url": "https://first.example"}],
        "paths": {
            "/orders": {
                "get": {
                    "operationId": "list orders",
                    "summary": "List the open orders of a customer.",
                    "responses": {"200": {"content": {"application/json": {"schema": {"type": "string"}}}}},
                }
            },
            "/there": {
                "get": {
                    "operationId": "look_there",
                    "servers": [{"url": "https://elsewhere.example"}],
                    "responses": {},
                }
            },
        },
    }
    (tmp_path / "shop.json").write_text(json.dumps(document))
    (tmp_path / "shop.tools.yaml").write_text(
        "document: shop.json\nservers: ['https://first.example']\nauth: none\n"
    )
    spec = str(tmp_path / "shop.tools.yaml")
    code, out, _ = run("lint", "--tools", spec, "--json")
    told = [json.loads(line) for line in out.splitlines()]
    notes = [each["message"] for each in told if each["rule"] == "import-note"]
    assert any("look_there: left out: none of its own servers" in note for note in notes)
    assert code == (1 if len(told) > len(notes) else 0) == 0
    assert "[import-note]" in run("lint", "--tools", spec)[1]


def test_a_broken_file_names_its_line(tmp_path: Path) -> None:
    from bascule.tools import ToolLoadError

    (tmp_path / "broken.py").write_text("x = 1\nraise RuntimeError('no')\n")
    with pytest.raises(ToolLoadError, match=r"broken\.py:2: RuntimeError: no"):
        run("lint", "--tools", str(tmp_path / "broken.py"))


def test_secrets_of_a_run_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CRM_TOKEN", "s3cret-token")
    assert read_secrets(["CRM_TOKEN"]) == {"CRM_TOKEN": "s3cret-token"}
    with pytest.raises(typer.Exit):
        read_secrets(["CRM_TOKEN", "NOT_SET"])
    assert capsys.readouterr().err == "bascule: not set in the environment: NOT_SET\n"


def test_stubs_show_the_shapes_that_a_store_has_seen(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(
        "from bascule.tools import tool\n\n@tool(effects='read')\ndef look():\n    return {'hits': 3}\n"
    )
    spec, store = str(tmp_path / "plain.py"), SqliteStore(tmp_path / "runs.db")

    async def record() -> None:
        backend = GuestBackend(calls(("look", {})))
        async with Executor(load_tools(spec), store=store, backend=backend) as executor:
            await executor.run("")

    asyncio.run(record())
    store.close()
    shown = run("list", "--tools", spec, "--stubs", "--observed", str(tmp_path / "runs.db"))[1]
    assert "class LookResult(TypedDict):\n    hits: int\n" in shown
    assert "# result as observed" in shown
    assert "LookResult" not in run("list", "--tools", spec, "--stubs")[1]
    assert run("list", "--tools", spec, "--observed", str(tmp_path / "runs.db"))[0] == Exit.USAGE
