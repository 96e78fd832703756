"""Real MCP servers from the registries, started as a user would, called from scripts."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest

from bascule.bridge import Event, Executor, Result
from bascule.tools.mcp import McpSource, read_source
from tests.conformance.packages import NODE, fetch_npm

VERSION = "2026.8.31"
BIN = Path(sys.executable).parent
HTTP_SERVER = Path(__file__).parents[1] / "mcp_servers" / "weather.py"


def npm_program(name: str) -> str:
    folder = fetch_npm(f"@modelcontextprotocol/server-{name}@{VERSION}")
    return str(folder / "node_modules" / "@modelcontextprotocol" / f"server-{name}" / "dist" / "index.js")


def npm_server(name: str, *arguments: str, **extra: Any) -> dict[str, Any]:
    return {"command": str(NODE), "args": [npm_program(name), *arguments], **extra}


async def confirmed(config: Path) -> McpSource:
    """Confirm everything with the effects that the servers suggest, and return the source anew."""
    looking = read_source("mcp.json", config)
    await looking.open()
    for waiting in looking.waiting:
        assert waiting.definition is not None
        looking.confirm(waiting, by="test", effects=waiting.definition.suggested)
    await looking.close()
    return read_source("mcp.json", config)


def run(folder: Path, servers: dict[str, Any], script: str) -> tuple[Result, list[Event]]:
    """Run one script over some servers."""
    from bascule.bridge import approve_all

    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    events: list[Event] = []

    async def go() -> Result:
        source = await confirmed(config)
        async with Executor([source], approver=approve_all, isolation="process", warm=0) as executor:
            executor.subscribe(events.append)
            return await executor.run(script)

    result = asyncio.run(go())
    return result, events


def test_files_graph_and_everything_from_one_script(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "a.txt").write_text("hello\n")
    servers = {
        "filesystem": npm_server("filesystem", str(shared)),
        "memory": npm_server("memory", env={"MEMORY_FILE_PATH": str(tmp_path / "graph.jsonl")}),
        "everything": npm_server("everything"),
    }
    result, events = run(
        tmp_path,
        servers,
        f"""
text = filesystem.read_text_file(path={str(shared / "a.txt")!r})["content"]
filesystem.write_file(path={str(shared / "b.txt")!r}, content=text.upper())
try:
    filesystem.read_text_file(path="/etc/passwd")
    outside = "read"
except ToolError as error:
    outside = str(error)
memory.create_entities(entities=[{{"name": "Ada", "entityType": "person", "observations": [text]}}])
graph = memory.search_nodes(query="Ada")
image = everything.get_tiny_image()
everything.trigger_long_running_operation(duration=1, steps=4)
return {{
    "outside": outside,
    "names": [entity["name"] for entity in graph["entities"]],
    "sum": everything.get_sum(a=2, b=3),
    "weather": everything.get_structured_content(location="Chicago"),
    "image": [part.get("mime_type") for part in image],
    "links": len(everything.get_resource_links(count=3)),
}}
""",
    )
    assert result.status == "ok", result.error
    value: Any = result.value
    assert (shared / "b.txt").read_text() == "HELLO\n"
    assert "denied" in value["outside"].lower()
    assert value["names"] == ["Ada"]
    assert "5" in value["sum"]
    assert set(value["weather"]) == {"temperature", "conditions", "humidity"}
    assert "image/png" in value["image"]
    assert value["links"] >= 3
    assert "call.progress" in {event.name for event in events}


def test_time_and_git_from_one_script(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    for command in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", *command], cwd=repository, check=True)
    servers = {
        "time": {"command": str(BIN / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": str(BIN / "mcp-server-git"), "args": ["--repository", str(repository)]},
    }
    result, _ = run(
        tmp_path,
        servers,
        f"""
import time
log = git.git_log(repo_path={str(repository)!r})
there = time_tools.convert_time(source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo")
try:
    git.git_log(repo_path="/")
    other = "read"
except ToolError:
    other = "refused"
return ["first" in str(log), there["target"]["datetime"][11:16], other]
""",
    )
    assert result.status == "ok", result.error
    assert result.value == [True, "21:00", "refused"]


class HttpServer:
    """An MCP server over streamable HTTP in a process of its own, on a port that it keeps."""

    def __init__(self, *command: str, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        port = {"PORT": str(self.port)}
        self._command = [each.format(**port) for each in command]
        self._environment = {**os.environ, **port, **environment}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens."""
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, env=self._environment, stdout=quiet, stderr=quiet)
        for _ in range(600):
            with socket.socket() as probe:
                probe.settimeout(0.1)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None
            time.sleep(0.1)
        pytest.fail("the server does not listen")

    def kill(self) -> None:
        """End it without a word."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.kill()


def weather_server() -> HttpServer:
    """Return a server of the Python SDK: each request for itself."""
    return HttpServer(sys.executable, str(HTTP_SERVER), "{PORT}")


def everything_server() -> HttpServer:
    """Return a server of the TypeScript SDK, with sessions, which says 400 to one that it does not know."""
    return HttpServer(str(NODE), npm_program("everything"), "streamableHttp")


@pytest.mark.parametrize(
    ("make", "script"),
    [
        (weather_server, "s.forecast(city='Oslo')['result'][0]['city']"),
        (everything_server, "s.echo(message='Oslo').removeprefix('Echo: ')"),
    ],
)
def test_a_server_over_http_that_was_restarted_in_between_is_called_again(
    make: Callable[[], HttpServer], script: str, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"

    async def go(server: HttpServer) -> None:
        entry = {"url": server.url, "effects": {"*": "read"}}
        config.write_text(json.dumps({"mcpServers": {"s": entry}}))
        source = await confirmed(config)
        async with Executor([source], isolation="process", warm=0) as executor:
            before = await executor.run(script)
            server.kill()
            server.start()
            after = await executor.run(script)
        assert (before.value, after.value) == ("Oslo", "Oslo"), after.error

    with make() as server:
        asyncio.run(go(server))


def test_a_server_over_http_is_called_as_one_of_our_own_processes(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"

    async def call(executor: Executor, city: str) -> Result:
        return await executor.run(f"return weather.forecast(city={city!r}, days=2)")

    async def go(url: str) -> None:
        config.write_text(json.dumps({"mcpServers": {"weather": {"url": url, "effects": {"*": "read"}}}}))
        source = await confirmed(config)
        async with Executor([source], isolation="process", warm=0) as executor:
            found = await call(executor, "Oslo")
            assert found.status == "ok", found.error
            value: Any = found.value
            assert [day["city"] for day in value["result"]] == ["Oslo", "Oslo"]
            failed = await call(executor, "Atlantis")
            assert failed.error is not None
            assert "no such city" in failed.error.message

    with weather_server() as server:
        asyncio.run(go(server.url))


def test_an_address_where_nobody_answers_is_an_error_that_says_so(tmp_path: Path) -> None:
    from bascule.tools import ToolLoadError

    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"gone": {"url": "http://127.0.0.1:9/mcp"}}}))
    with pytest.raises(ToolLoadError, match="MCP server gone"):
        asyncio.run(read_source("mcp.json", config).open())
