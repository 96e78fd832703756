"""The examples of docs/mcp-servers.md and docs/openapi.md: files are read, tables complete, stubs real."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from bascule.tools import Registry
from bascule.tools.mcp import read_config, read_source
from bascule.tools.mcp.config import ServerModel
from bascule.tools.openapi import Selection
from bascule.tools.openapi import read_source as read_openapi

DOCS = Path(__file__).parents[2] / "docs"
MCP = (DOCS / "mcp-servers.md").read_text(encoding="utf-8")
OPENAPI = (DOCS / "openapi.md").read_text(encoding="utf-8")
SECRETS = {"CRM_TOKEN": "crm-token", "SHOP_KEY": "shop-key"}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def keys_of_table(text: str) -> set[str]:
    """Return the keys in the first column of the first table."""
    table = text.split("|---|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return {key for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])}


def test_the_configuration_is_read_and_the_table_has_every_key() -> None:
    [text] = blocks(MCP, "json")
    clock, crm = read_config("mcp.json", text, secrets=SECRETS)
    assert clock.effects_of("get_current_time") == "read"
    assert crm.headers == {"Authorization": "Bearer crm-token"}
    assert [crm.offers(name) for name in ("find_one", "find_everything", "drop")] == [True, False, False]
    assert keys_of_table(MCP) == set(ServerModel.model_fields)


def test_the_server_of_the_example_is_confirmed_and_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = json.loads(blocks(MCP, "json")[0])["mcpServers"]
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"clock": servers["clock"]}}))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")

    async def use() -> Registry:
        source = read_source("mcp.json", config)
        await source.open()
        for waiting in source.waiting:
            source.confirm(waiting, by="test")
        await source.close()
        source = read_source("mcp.json", config)
        try:
            return Registry(await source.open())
        finally:
            await source.close()

    registry = asyncio.run(use())
    assert {tool.name: tool.effects for tool in registry} == {
        "clock.get_current_time": "read",
        "clock.convert_time": "read",
    }


def test_the_python_example_is_python() -> None:
    [text] = blocks(MCP, "python")
    compile(text, "docs/mcp-servers.md", "exec")


def test_the_document_and_its_selection_give_the_stub_that_is_shown(tmp_path: Path) -> None:
    selection, document = blocks(OPENAPI, "yaml")
    (tmp_path / "shop.yaml").write_text(document)
    (tmp_path / "shop.tools.yaml").write_text(selection)
    source = read_openapi("shop.yaml", tmp_path / "shop.yaml", secrets=SECRETS)
    assert Registry(source.make_tools()).render_stubs() == blocks(OPENAPI, "text")[0]
    assert keys_of_table(OPENAPI) == set(Selection.model_fields)
