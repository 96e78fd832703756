"""The command line over MCP servers and OpenAPI documents: list, confirm, run both at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.openapi_server import serve

BASCULE = Path(sys.executable).parent / "bascule"
SERVER = Path(__file__).parents[1] / "mcp_servers" / "hostile.py"
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "https://shop.example"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"key": []}],
    "paths": {
        "/pets/{id}": {
            "get": {
                "operationId": "getPet",
                "summary": "Find a pet",
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {
                    "200": {
                        "description": "ok",
                        "content": {
                            "application/json": {
                                "schema": {
                                    "type": "object",
                                    "properties": {"name": {"type": "string"}},
                                    "required": ["name"],
                                }
                            }
                        },
                    }
                },
            }
        }
    },
}


def bascule(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(BASCULE), *arguments],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_both_kinds_are_listed_confirmed_and_run_from_one_script(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    (tmp_path / "log.jsonl").touch()
    entry = {
        "command": sys.executable,
        "args": [str(SERVER)],
        "env": {"HOSTILE_STATE": str(state), "HOSTILE_LOG": str(tmp_path / "log.jsonl")},
        "allow": ["echo", "progress"],
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"bad": entry}}))
    (tmp_path / "shop.json").write_text(json.dumps(DOCUMENT))
    with serve(DOCUMENT) as service:
        lines = [f"servers: ['{service.base}']", "auth: {key: '${SHOP_KEY}'}", "effects: {'*': suggested}"]
        selection = "\n".join(["document: shop.json", *lines, ""])
        (tmp_path / "shop.tools.yaml").write_text(selection)
        both = ("--tools", "mcp.json", "--tools", "shop.json")
        listed = bascule("tools", "list", *both, folder=tmp_path, SHOP_KEY="shop-key-1")
        assert listed.returncode == 0, listed.stderr
        assert "bascule tools confirm --tools FILE bad:echo" in listed.stdout
        assert "bad.echo" in listed.stdout
        assert "waiting" in listed.stdout
        assert "shop.getPet" in listed.stdout

        pending = bascule("tools", "pending", "--tools", "mcp.json", folder=tmp_path)
        assert "bad:echo  new, bad.echo in scripts" in pending.stdout
        early = bascule("tools", "show", "bad.echo", "--tools", "mcp.json", folder=tmp_path)
        assert "bad.echo waits (new) for `bascule tools confirm --tools FILE bad:echo`" in early.stderr
        (tmp_path / "early.py").write_text("return bad.echo(text='x')")
        asked = ("run", "early.py", "--tools", "mcp.json", "--isolation", "process")
        too_early = bascule(*asked, folder=tmp_path)
        waits = "bascule: 2 tools of server bad wait for `bascule tools confirm --tools mcp.json --all`"
        assert waits in too_early.stderr.splitlines()
        assert too_early.stderr.index(waits) < too_early.stderr.index("NameError")
        asking = ("tools", "confirm", "--tools", "mcp.json", "bad:echo")
        unanswered = bascule(*asking, folder=tmp_path)
        assert "Confirm this tool?" in unanswered.stderr
        assert "write --yes to confirm what is shown" in unanswered.stderr
        assert unanswered.returncode == 2
        confirmed = bascule(
            "tools",
            "confirm",
            "--tools",
            "mcp.json",
            "bad:echo",
            "--effects",
            "read",
            "--yes",
            folder=tmp_path,
        )
        assert "confirmed bad:echo with effects read" in confirmed.stdout, confirmed.stderr
        # The file gives effects of its own, and these are in force, whatever is asked for.
        entry["effects"] = {"progress": "idempotent"}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"bad": entry}}))
        about = ("--tools", "mcp.json", "bad:progress", "--yes")
        refused = bascule("tools", "refuse", *about, "--reason", "later", folder=tmp_path)
        assert "refused bad:progress" in refused.stdout, refused.stderr
        row = bascule("tools", "list", "--tools", "mcp.json", folder=tmp_path).stdout.splitlines()[-1]
        assert row.split(maxsplit=2)[:2] == ["bad.progress", "refused"]
        assert row.endswith(": later")
        assert "with effects idempotent" in bascule("tools", "confirm", *about, folder=tmp_path).stdout

        script = (
            "pet = shop.getPet(id=3)\nsaid = bad.echo(text=pet['name'])\nprint(len(said) > 5)\nreturn pet"
        )
        (tmp_path / "script.py").write_text(script)
        ran = bascule(
            "run",
            "script.py",
            *both,
            "--isolation",
            "process",
            "--json",
            folder=tmp_path,
            SHOP_KEY="shop-key-1",
        )
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout)["value"] == {"name": "text"}
        assert service.requests[0]["headers"]["x-key"] == "shop-key-1"
        assert "shop-key-1" not in ran.stdout + ran.stderr

    state.write_text(json.dumps({"echo": "Says it back.\u202e And more."}))
    changed = bascule("tools", "pending", "--tools", "mcp.json", folder=tmp_path)
    assert "bad:echo  changed" in changed.stdout
    assert "\u202e" not in changed.stdout
    assert "\\u202e And more." in changed.stdout
    shown = bascule("tools", "list", "--tools", "mcp.json", folder=tmp_path)
    (line,) = [each for each in shown.stdout.splitlines() if each.startswith("bad.echo")]
    assert line.split(maxsplit=1)[1].startswith("waiting")


@pytest.mark.anyio
async def test_the_tools_of_a_document_are_served_to_mcp_hosts_too(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(DOCUMENT))
    with serve(DOCUMENT) as service:
        lines = [f"servers: ['{service.base}']", "auth: {key: '${SHOP_KEY}'}", "effects: {'*': suggested}"]
        (tmp_path / "shop.tools.yaml").write_text("\n".join(["document: shop.json", *lines, ""]))
        server = StdioServerParameters(
            command=str(BASCULE),
            args=["mcp", "--tools", "shop.json", "--isolation", "process"],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SHOP_KEY": "shop-key-1"},
        )
        async with Client(server) as client:
            names = [each.name for each in (await client.list_tools()).tools]
            done = await client.call_tool("run_script", {"code": "shop.getPet(id=3)['name']"})
    assert {"run_script", "shop-getPet"} <= set(names)
    assert done.structured_content is not None
    assert done.structured_content["value"] == "text"


def test_what_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(DOCUMENT))
    without = bascule("tools", "list", "--tools", "shop.json", folder=tmp_path)
    assert without.returncode != 0
    assert "write shop.tools.yaml beside it" in without.stderr
    (tmp_path / "mcp.json").write_text('{"mcpServers": {\n"a": {"command": "x", "url": "http://y"}}}')
    both = bascule("tools", "list", "--tools", "mcp.json", folder=tmp_path)
    assert "mcp.json:2: server 'a': give either command or url" in both.stderr
    (tmp_path / "other.json").write_text("{}")
    neither = bascule("tools", "list", "--tools", "other.json", folder=tmp_path)
    assert "it has neither mcpServers nor openapi" in neither.stderr
    (tmp_path / "cut.json").write_text('{\n"mcpServers": ')
    cut = bascule("tools", "list", "--tools", "cut.json", folder=tmp_path)
    assert cut.stderr == "bascule: cut.json:2: not valid JSON: Expecting value (column 15)\n"
    (tmp_path / "broken.py").write_text("x = 1\n1/0\n")
    broken = bascule("tools", "list", "--tools", "broken.py", folder=tmp_path)
    assert broken.stderr == "bascule: broken.py:2: ZeroDivisionError: division by zero\n"
    nothing = bascule("bench", "tokens", folder=tmp_path)
    assert "give FILE or --store FILE" in nothing.stderr
    assert nothing.returncode == 2
