"""`bascule mcp` as hosts start it, with real containers: the SDK's clients in Python and in TypeScript."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult, TextContent

from tests.conformance.packages import NODE, fetch_npm
from tests.integration.test_cli_run import containers_of_process

pytestmark = [pytest.mark.anyio, pytest.mark.engine]

TOOLS = '''
import asyncio, os, subprocess
from bascule.tools import tool

print("tools print while they are loaded")

@tool(effects="read")
def add(a: int, b: int = 0) -> int:
    """Add two numbers."""
    print("tools print when they run")
    subprocess.run(["echo", "and so do programs they start"])
    return a + b

@tool(effects="read")
async def hold() -> int:
    """Wait."""
    open(os.environ["HELD"], "w").close()
    await asyncio.Event().wait()
    return 1

@tool
def send(to: str) -> str:
    """Send a mail."""
    with open(os.environ["SENT"], "a") as file:
        file.write(to + "\\n")
    return f"sent to {to}"
'''

FINDS_AND_KEEPS = """
found = search_tools(query='two numbers')
handle = store.put(value=[1, 2])
[found[0]['name'], store.get(handle=handle)]
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the command, with tools and a store of its own."""
    (tmp_path / "tools.py").write_text(TOOLS, encoding="utf-8")
    return [
        *(sys.executable, "-m", "bascule.cli.main", "mcp", "--tools", str(tmp_path / "tools.py")),
        *("--store", str(tmp_path / "runs.db"), "--console-url", "https://console.example", "--user", "kim"),
    ]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of the command."""
    return {**os.environ, "HELD": str(tmp_path / "held"), "SENT": str(tmp_path / "sent")}


def text_of(result: Any) -> str:
    """Return the text of an answer."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


def bascule(*arguments: str) -> str:
    """Run another command of ours, return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bascule.cli.main", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


def rows_of(printed: str) -> list[dict[str, Any]]:
    """Return what a command printed as JSON, a row a line."""
    return [json.loads(line) for line in printed.splitlines()]


async def until(true: Callable[[], bool]) -> None:
    """Wait for something another process does."""
    for _ in range(1200):
        if true():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it never came about")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_runs_scripts_and_what_tools_print_never_meets_the_protocol(
    command: list[str], environment: dict[str, str], mode: Any
) -> None:
    told: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    extra = ["--search-tools", "--scratch"]
    server = StdioServerParameters(command=command[0], args=[*command[1:], *extra], env=environment)
    async with Client(server, mode=mode) as client:
        offered = {each.name for each in (await client.list_tools()).tools}
        kept = await client.call_tool("run_script", {"code": FINDS_AND_KEEPS})
        done = await client.call_tool(
            "run_script", {"code": "print(sum(add(a=n, b=1) for n in range(10)))"}, progress_callback=note
        )
        direct = await client.call_tool("add", {"a": 20, "b": 22})
    assert {"add", "search_tools", "read_output", "store-put"} <= offered
    assert not any(name.startswith("tool-") for name in offered)  # the model has those over its own runs
    assert text_of(kept) == '["add",[1,2]]'
    assert text_of(done) == "55"
    assert done.structured_content["calls_made"] == 10
    assert text_of(direct) == "42"
    assert told


async def test_people_decide_in_the_store_and_the_host_resumes_even_after_it_restarted_the_server(
    command: list[str], environment: dict[str, str], tmp_path: Path
) -> None:
    async def accept(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        return ElicitResult(action="accept", content={"approve": True})

    server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    store = str(tmp_path / "runs.db")
    async with Client(server, elicitation_callback=accept) as client:
        waiting = await client.call_tool("run_script", {"code": "a = add(a=1)\nsend(to=f'ann{a}')"})
        run_id = waiting.structured_content["run_id"]
        assert waiting.structured_content["status"] == "pending_approval"
        assert f"https://console.example/runs/{run_id}" in text_of(waiting)
        assert (await client.call_tool("resume_run", {"run_id": run_id})).structured_content[
            "status"
        ] == "pending_approval"
    assert not (tmp_path / "sent").exists()
    (approval,) = rows_of(bascule("approvals", "list", "--store", store, "--json"))
    bascule("approvals", "approve", approval["id"], "--store", store, "--digest", approval["digest"])
    async with Client(server) as client:
        resumed = [await client.call_tool("resume_run", {"run_id": run_id}) for _ in range(2)]
    assert [text_of(each) for each in resumed] == ['"sent to ann1"'] * 2
    assert (tmp_path / "sent").read_text() == "ann1\n"


@pytest.mark.parametrize(("ending", "status"), [("close", 0), ("SIGTERM", 143)])
async def test_however_it_ends_no_container_and_no_running_run_is_left(
    command: list[str], environment: dict[str, str], tmp_path: Path, ending: str, status: int
) -> None:
    process = subprocess.Popen(  # noqa: ASYNC220  # waited for on a thread
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
    try:
        assert process.stdin is not None
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "x", "version": "1"},
        }
        held = {"name": "run_script", "arguments": {"code": "hold()"}}
        for message in (
            {"id": 1, "method": "initialize", "params": hello},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": held},
        ):
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()
        await until((tmp_path / "held").exists)
        assert containers_of_process(process.pid) != []
        if ending == "SIGTERM":
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        written, told = await asyncio.to_thread(process.communicate, timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status, told
    assert b"Traceback" not in told
    assert [json.loads(line)["jsonrpc"] for line in written.splitlines()]
    assert containers_of_process(process.pid) == []
    (run,) = rows_of(bascule("runs", "list", "--store", str(tmp_path / "runs.db"), "--json"))
    assert run["status"] != "running"


OTHER_CLIENT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [command, ...args] = JSON.parse(process.env.COMMAND);
const client = new Client({ name: "other", version: "1" }, { capabilities: {} });
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
const listed = await client.listTools();
const told = [];
const done = await client.callTool(
  { name: "run_script", arguments: { code: "print(add(a=40, b=2))" } }, undefined,
  { onprogress: (step) => told.push(step.message) });
const waiting = await client.callTool({ name: "send", arguments: { to: "ann" } });
await client.close();
console.log(JSON.stringify({ names: listed.tools.map((tool) => tool.name), done, waiting, told }));
"""


async def test_the_typescript_client_is_served_likewise(
    command: list[str], environment: dict[str, str]
) -> None:
    folder = fetch_npm("@modelcontextprotocol/sdk@1")
    script = folder / "client.mjs"
    script.write_text(OTHER_CLIENT, encoding="utf-8")
    ran = await asyncio.to_thread(
        subprocess.run,
        [NODE, script],
        env={**environment, "COMMAND": json.dumps(command)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    given = json.loads(ran.stdout)
    assert {"run_script", "get_run", "resume_run", "send"} <= set(given["names"])
    assert given["done"]["content"] == [{"type": "text", "text": "42"}]
    assert given["done"]["structuredContent"]["status"] == "ok"
    assert given["waiting"]["structuredContent"]["status"] == "pending_approval"
    assert given["told"]
