"""The MCP server: what the SDK's own client is given, over every transport, and what attackers are not."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, ElicitResult, TextContent
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from bascule.bridge import Decision, Executor, User
from bascule.bridge.memory_store import MemoryStore
from bascule.models import ToolSurface
from bascule.models.mcp_schemas import RUN_STATUSES
from bascule.models.mcp_server import CALLS_AT_ONCE, build_app, make_server, serve_descriptors
from bascule.models.mcp_stdio import MAX_IN_FLIGHT, MAX_LINE_BYTES, LineSplitter
from bascule.tools import tool
from tests.forks.backend import ForkBackend
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

URL = "https://console.example"


def surface_only(executor: Executor) -> Callable[[Any], ToolSurface]:
    """Serve everybody the same surface."""
    surface = ToolSurface(executor)
    return lambda request: surface


def text_of(result: CallToolResult) -> str:
    """Return the text of an answer."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


@asynccontextmanager
async def open_client(executor: Executor, *, mode: Any = "auto", **options: Any) -> AsyncGenerator[Client]:
    """Connect the SDK's client in the same process."""
    async with Client(make_server(surface_only(executor), console_url=f"{URL}/"), mode=mode, **options) as it:
        yield it


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_of_either_era_is_given_the_surface(forks: ForkBackend, mode: str) -> None:
    async with open_executor(forks, Shop()) as executor, open_client(executor, mode=mode) as client:
        listed = (await client.list_tools()).tools
        done = await client.call_tool("run_script", {"code": "len(crm.orders(customer='Ann'))"})
    assert [each.name for each in listed][:3] == ["run_script", "search_tools", "describe_tool"]
    assert all(each.output_schema for each in listed)
    assert "crm.orders" in (listed[0].description or "")
    assert text_of(done) == "40"
    assert not done.is_error
    assert done.structured_content["value"] == 40
    assert done.structured_content["calls"] == [{"seq": 1, "tool": "crm.orders", "state": "done"}]
    assert "tokens" not in done.structured_content  # hosts give it to the model, who would pay for it
    assert done.meta is not None
    assert done.meta["bascule/tokens"]["kept_out"] > 500


async def test_the_instructions_are_the_prompt_for_scripts(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor, open_client(executor) as client:
        assert "run_script(code)" in (client.instructions or "")
        assert "def " in (client.instructions or "")


async def test_every_answer_matches_the_schema_it_was_announced_with(forks: ForkBackend) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run_script", {"code": "print('x' * 40000)\nreturn {'a': [1, None, 2.5]}"}),
        ("run_script", {"code": "def ("}),
        ("run_script", {"code": "broken()"}),
        ("run_script", {"code": "mail.send(to='a@b', text='x')"}),
        ("search_tools", {"query": "orders"}),
        ("search_tools", {"query": "zzzz"}),
        ("describe_tool", {"name": "add"}),
        ("add", {"a": 1, "b": 2}),
        ("crm.orders", {"customer": "Ann"}),
        ("refund", {"order": 1, "amount": 2.0}),
        ("get_run", {"run_id": "run-0000000000000000"}),
    ]
    async with open_executor(forks, Shop()) as executor, open_client(executor) as client:
        await client.list_tools()  # with the schemas, the client checks every answer that is no error
        for name, arguments in calls:
            answer = await client.call_tool(name, arguments)
            data: dict[str, Any] = answer.structured_content
            assert len(json.dumps(data)) < 100_000
            assert not answer.is_error or "error" in data or data["status"] in RUN_STATUSES


async def test_progress_names_tools_and_counts_and_never_shows_what_passes(forks: ForkBackend) -> None:
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with open_executor(forks, Shop()) as executor, open_client(executor) as client:
        await client.call_tool(
            "run_script",
            {"code": "import time\nadd(a=41421)\nprint('31337')\ntime.sleep(0.6)\nadd(a=1)\ntime.sleep(0.6)"},
            progress_callback=note,
        )
    numbers = [number for number, _ in told]
    assert numbers == sorted(set(numbers))
    assert any("add done" in (message or "") for _, message in told), told
    assert "41421" not in str(told)
    assert "31337" not in str(told)


async def test_a_call_that_waits_gives_a_handle_and_only_a_person_lets_it_run(forks: ForkBackend) -> None:
    shop = Shop()
    asked: list[object] = []

    async def elicit(*given: object) -> ElicitResult:
        asked.append(given)
        return ElicitResult(action="accept", content={"approve": True})

    async with (
        open_executor(forks, shop, user="kim") as executor,
        open_client(executor, elicitation_callback=elicit) as client,
    ):
        waiting = await client.call_tool("mail.send", {"to": "ann@example.com", "text": "hi"})
        data = waiting.structured_content
        assert data["status"] == "pending_approval"
        assert [each["tool"] for each in data["approvals"]] == ["mail.send"]
        assert data["url"] == f"{URL}/runs/{data['run_id']}"
        assert data["url"] in text_of(waiting)
        handle = {"run_id": data["run_id"]}
        still = await client.call_tool(
            "resume_run",
            handle,
            input_responses={"approve": ElicitResult(action="accept", content={"approve": True})},
        )
        assert still.structured_content["status"] == "pending_approval"
        assert shop.sent == []
        (record,) = executor.store.approvals.find(states=["pending"])
        executor.decide(record.id, Decision(verdict="approve", by="olga"), digest=record.digest)
        ready = await client.call_tool("get_run", handle)
        assert ready.structured_content["status"] == "ready"
        answers = [await client.call_tool("resume_run", handle) for _ in range(2)]
        assert [text_of(answer) for answer in answers] == ["sent to ann@example.com"] * 2
        assert (await client.call_tool("get_run", handle)).structured_content["status"] == "ok"
    assert shop.sent == ["ann@example.com: hi"]
    assert asked == []


async def test_resuming_many_times_at_once_runs_the_call_once(forks: ForkBackend) -> None:
    shop = Shop()
    async with open_executor(forks, shop) as executor, open_client(executor) as client:
        waiting = await client.call_tool("mail.send", {"to": "a", "text": "b"})
        (record,) = executor.store.approvals.find(states=["pending"])
        executor.decide(record.id, Decision(verdict="approve", by="olga"), digest=record.digest)
        handle = {"run_id": waiting.structured_content["run_id"]}
        answers = await asyncio.gather(*(client.call_tool("resume_run", handle) for _ in range(8)))
        last = await client.call_tool("resume_run", handle)
    assert {answer.structured_content["status"] for answer in answers} <= {"ok", "running"}
    assert last.structured_content["status"] == "ok"
    assert shop.sent == ["a: b"]


async def test_runs_of_others_do_not_exist(forks: ForkBackend) -> None:
    store = MemoryStore(keep_values=True)
    async with (
        open_executor(forks, Shop(), store=store, user=User(name="ann")) as hers,
        open_executor(forks, Shop(), store=store, user=User(name="bob")) as his,
        open_client(hers) as ann,
        open_client(his) as bob,
    ):
        done = await ann.call_tool("run_script", {"code": "print('secret of ann')"})
        waiting = await ann.call_tool("mail.send", {"to": "a", "text": "b"})
        for run_id in (done.structured_content["run_id"], waiting.structured_content["run_id"]):
            for name, key in (("get_run", "run_id"), ("resume_run", "run_id"), ("read_output", "handle")):
                answer = await bob.call_tool(name, {key: run_id})
                assert answer.is_error
                assert "secret" not in str(answer)
                unknown = await bob.call_tool(name, {key: f"{run_id}0"})
                assert text_of(unknown).replace(f"{run_id}0", "") == text_of(answer).replace(run_id, "")


@pytest.mark.parametrize(
    "handle", ["", "run-", "../../etc/passwd", "run-%00", "x" * 100_000, "run-0000000000000000", "💥", "\0"]
)
async def test_wrong_handles_are_unknown_and_nothing_worse(forks: ForkBackend, handle: str) -> None:
    async with open_executor(forks, Shop()) as executor, open_client(executor) as client:
        for name, key in (("get_run", "run_id"), ("resume_run", "run_id"), ("read_output", "handle")):
            answer = await client.call_tool(name, {key: handle})
            assert answer.is_error
            assert len(text_of(answer)) < 500


async def test_a_bug_is_masked_and_an_unusable_host_says_what_it_may(
    forks: ForkBackend, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_executor(forks, Shop()) as executor, open_client(executor) as client:

        async def fail(*given: object, **named: object) -> object:
            raise RuntimeError("/srv/secret/path")

        monkeypatch.setattr(executor, "run", fail)
        answer = await client.call_tool("run_script", {"code": "1"})
    assert answer.is_error
    assert text_of(answer) == "the server failed; its log says why"
    assert "/srv/secret/path" in caplog.text


async def test_more_calls_than_it_works_on_are_refused_in_words(forks: ForkBackend) -> None:
    started = asyncio.Event()
    release = asyncio.Event()

    @tool(effects="read")
    async def hold() -> int:
        """Wait."""
        started.set()
        await release.wait()
        return 1

    async with Executor([hold], backend=forks) as executor, open_client(executor) as client:
        first = asyncio.create_task(client.call_tool("hold", {}))
        await started.wait()
        others = [asyncio.create_task(client.call_tool("hold", {})) for _ in range(CALLS_AT_ONCE)]
        refused = (await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED))[0].pop().result()
        assert refused.structured_content["error"]["kind"] == "busy"
        release.set()
        assert text_of(await first) == "1"
        await asyncio.gather(*others)
        assert text_of(await client.call_tool("hold", {})) == "1"


# ------------------------------------------------------------ a message a line


class Pipes:
    """The host's end of a server that runs over two pipes."""

    def __init__(self, send: int, reader: asyncio.StreamReader, serving: asyncio.Task[None]) -> None:
        self._send = send
        self.reader = reader
        self.serving = serving

    async def send(self, *lines: bytes | dict[str, Any]) -> None:
        """Send lines; dicts as JSON."""
        for line in lines:
            data = line if isinstance(line, bytes) else json.dumps(line).encode()
            await asyncio.to_thread(_write_all, self._send, data + b"\n")

    async def receive(self) -> dict[str, Any]:
        """Return the next message."""
        line = await asyncio.wait_for(self.reader.readline(), 30)
        assert line, "the server closed its side"
        return cast("dict[str, Any]", json.loads(line))

    async def answer_to(self, request: int) -> dict[str, Any]:
        """Return the answer to a request, leaving out everything before it."""
        while (message := await self.receive()).get("id") != request:
            pass
        return message

    def close(self) -> None:
        """Close the host's side."""
        if self._send >= 0:
            os.close(self._send)
            self._send = -1


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}, "sampling": {}, "roots": {}},
        "clientInfo": {"name": "raw", "version": "1"},
    },
}
READY: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(request: int, name: str, **arguments: Any) -> dict[str, Any]:
    """Return a request for a call."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request, "method": "tools/call", "params": params}


@asynccontextmanager
async def open_pipes(executor: Executor, *, greet: bool = True) -> AsyncGenerator[Pipes]:
    """Serve over two pipes."""
    to_server, send = os.pipe()
    receive, from_server = os.pipe()
    reader = asyncio.StreamReader(limit=8 << 20)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(receive, "rb")
    )
    server = make_server(surface_only(executor), console_url=URL)
    serving = asyncio.create_task(serve_descriptors(server, to_server, from_server))
    pipes = Pipes(send, reader, serving)
    try:
        if greet:
            await pipes.send(HELLO, READY)
            assert (await pipes.receive())["result"]["serverInfo"]["name"] == "bascule"
        yield pipes
    finally:
        pipes.close()
        await asyncio.wait_for(serving, 30)
        transport.close()
        os.close(to_server)
        os.close(from_server)


RUBBISH: list[tuple[bytes, int]] = [
    (b"not json", -32700),
    (b"{", -32700),
    (b"[]", -32700),
    (b"null", -32700),
    (b'"text"', -32700),
    (b"\xff\xfe\x00", -32700),
    (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32700),
    (b'{"jsonrpc":"2.0","id":1,"method":5}', -32700),
    (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700),
    (b"[" * 100_000, -32700),
    (b'{"jsonrpc":"2.0","id":9,"method":"ping","params":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001, -32700),
    (b"x" * (MAX_LINE_BYTES + 1), -32600),
]


async def test_lines_that_are_no_messages_are_answered_and_the_next_one_is_served(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor, open_pipes(executor) as pipes:
        for line, code in RUBBISH:
            await pipes.send(line)
            refused = await pipes.receive()
            assert (refused["error"]["code"], refused["id"]) == (code, None), line[:80]
        await pipes.send(b"", b"   ", call(1, "add", a=1, b=2))
        assert (await pipes.answer_to(1))["result"]["structuredContent"]["value"] == 3


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"name": 5},
        {"name": "add", "arguments": []},
        {"name": "add", "arguments": "a"},
        {"name": ["add"], "arguments": {}},
    ],
)
async def test_requests_with_wrong_parameters_are_errors_of_their_own(
    forks: ForkBackend, params: object
) -> None:
    async with open_executor(forks, Shop()) as executor, open_pipes(executor) as pipes:
        await pipes.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        assert "error" in await pipes.receive()
        await pipes.send({"jsonrpc": "2.0", "id": 2, "method": "no/such"}, call(3, "add", a=1))
        assert (await pipes.answer_to(2))["error"]["code"] == -32601
        assert (await pipes.answer_to(3))["result"]["structuredContent"]["value"] == 1


async def test_a_flood_is_refused_beyond_what_may_be_open_and_ends(forks: ForkBackend) -> None:
    asked = MAX_IN_FLIGHT * 4
    async with open_executor(forks, Shop()) as executor, open_pipes(executor) as pipes:
        flood = b"\n".join(
            json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/list"}).encode()
            for number in range(1, asked + 1)
        )
        sending = asyncio.create_task(pipes.send(flood))
        answers = [await pipes.receive() for _ in range(asked)]
        await sending
        assert sorted(answer["id"] for answer in answers) == list(range(1, asked + 1))
        assert {answer["error"]["code"] for answer in answers if "error" in answer} <= {-32000}
        await pipes.send(call(0, "add", a=5))
        assert (await pipes.answer_to(0))["result"]["structuredContent"]["value"] == 5


async def test_an_id_that_is_open_is_not_used_twice(forks: ForkBackend) -> None:
    release = asyncio.Event()

    @tool(effects="read")
    async def hold() -> int:
        """Wait."""
        await release.wait()
        return 1

    async with Executor([hold], backend=forks) as executor, open_pipes(executor) as pipes:
        await pipes.send(call(7, "hold"), call(7, "hold"))
        assert (await pipes.receive())["error"]["message"] == "a request with this id is open"
        release.set()
        assert (await pipes.receive())["result"]["structuredContent"]["value"] == 1


async def test_huge_scripts_and_arguments_are_refused_in_words(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor, open_pipes(executor) as pipes:
        await pipes.send(call(1, "run_script", code="x = 1\n" * 200_000))
        refused = (await pipes.answer_to(1))["result"]
        assert refused["structuredContent"]["error"]["kind"] == "script_too_long"
        await pipes.send(call(2, "crm.orders", customer="x" * 3_000_000))
        assert (await pipes.answer_to(2))["result"]["isError"]
        await pipes.send(call(3, "run_script", code="(" * 60_000))
        assert (await pipes.answer_to(3))["result"]["isError"]


async def test_a_cancelled_call_ends_its_run_and_is_never_answered(forks: ForkBackend) -> None:
    started = asyncio.Event()
    ended = asyncio.Event()

    @tool(effects="read")
    async def hold() -> int:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return 1

    async with Executor([hold], backend=forks) as executor, open_pipes(executor) as pipes:
        await pipes.send(call(1, "run_script", code="hold()"))
        await asyncio.wait_for(started.wait(), 30)
        await pipes.send(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 999}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        )
        await asyncio.wait_for(ended.wait(), 30)
        await pipes.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
        assert (await pipes.receive())["id"] == 2
        (row,) = executor.store.runs()
        assert (row.status, row.outcome) == ("finished", "cancelled")


async def test_when_the_host_closes_its_side_runs_end_and_so_does_the_server(forks: ForkBackend) -> None:
    started = asyncio.Event()

    @tool(effects="read")
    async def hold() -> int:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return 1

    async with Executor([hold], backend=forks) as executor:
        async with open_pipes(executor) as pipes:
            await pipes.send(call(1, "run_script", code="hold()"))
            await asyncio.wait_for(started.wait(), 30)
            pipes.close()
            await asyncio.wait_for(pipes.serving, 30)
        (row,) = executor.store.runs()
        assert (row.status, row.outcome) == ("finished", "cancelled")


async def test_the_server_asks_the_host_nothing_whatever_it_offers(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor, open_pipes(executor) as pipes:
        await pipes.send(call(1, "mail.send", to="a", text="b"))
        await pipes.send({"jsonrpc": "2.0", "id": 77, "result": {"action": "accept", "content": {}}})
        message = await pipes.receive()
        assert message["id"] == 1
        assert message["result"]["structuredContent"]["status"] == "pending_approval"


def test_lines_are_cut_wherever_their_bytes_are_split() -> None:
    data = b"one\n\ntwo\r\n" + b"y" * (MAX_LINE_BYTES + 5) + b"\nthree\n"
    for size in (1 << 16, 1 << 20, len(data)):
        splitter = LineSplitter()
        lines = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
        assert lines == [b"one", b"", b"two\r", None, b"three"]
    assert LineSplitter().feed(b"z" * MAX_LINE_BYTES + b"\n") == [b"z" * MAX_LINE_BYTES]


# ------------------------------------------------------------ HTTP


@asynccontextmanager
async def open_http(app: Starlette) -> AsyncGenerator[str]:
    """Serve an application on a port of this machine."""
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    serving = asyncio.create_task(server.serve([sock]))
    try:
        while not server.started:  # noqa: ASYNC110  # uvicorn has nothing to wait for
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        sock.close()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_same_server_answers_over_http(forks: ForkBackend, mode: Any) -> None:
    told: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with open_executor(forks, Shop()) as executor:
        app = build_app(surface_only(executor), console_url=URL)
        async with open_http(app) as url, Client(f"{url}/mcp", mode=mode) as client:
            done = await client.call_tool(
                "run_script",
                {"code": "import time\nprint(add(a=1, b=2))\ntime.sleep(0.5)"},
                progress_callback=note,
            )
            waiting = await client.call_tool("mail.send", {"to": "a", "text": "b"})
            handle = {"run_id": waiting.structured_content["run_id"]}
            (record,) = executor.store.approvals.find(states=["pending"])
            executor.decide(record.id, Decision(verdict="approve", by="olga"), digest=record.digest)
        again = build_app(surface_only(executor))
        async with open_http(again) as url, Client(f"{url}/mcp", mode=mode) as later:
            resumed = await later.call_tool("resume_run", handle)
    assert done.structured_content["output"] == "3\n"
    assert told
    assert waiting.structured_content["status"] == "pending_approval"
    assert text_of(resumed) == "sent to a"


async def test_mounted_each_user_gets_a_surface_of_their_own(forks: ForkBackend) -> None:
    store = MemoryStore(keep_values=True)
    async with (
        open_executor(forks, Shop(), store=store, user="ann") as hers,
        open_executor(forks, Shop(), store=store, user="bob") as his,
    ):
        surfaces = {"ann": ToolSurface(hers), "bob": ToolSurface(his)}

        def choose(request: Request | None) -> ToolSurface:
            if request is None:
                raise LookupError("nobody is served without a request")
            return surfaces[request.headers["x-user"]]

        inner = build_app(choose)
        outer = Starlette(routes=[Mount("/tools", inner)], lifespan=inner.router.lifespan_context)
        async with open_http(outer) as url:
            answers: dict[str, CallToolResult] = {}
            run_id = ""
            for name in ("ann", "bob"):
                async with (
                    httpx2.AsyncClient(headers={"x-user": name}) as http,
                    Client(streamable_http_client(f"{url}/tools/mcp", http_client=http)) as client,
                ):
                    if name == "ann":
                        done = await client.call_tool("run_script", {"code": "print('hers')"})
                        run_id = done.structured_content["run_id"]
                    answers[name] = await client.call_tool("get_run", {"run_id": run_id})
    assert answers["ann"].structured_content["output"] == "hers\n"
    assert answers["bob"].is_error


async def test_http_refuses_foreign_hosts_pages_and_bodies_without_end(forks: ForkBackend) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accepts = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with (
        open_executor(forks, Shop()) as executor,
        open_http(build_app(surface_only(executor))) as url,
        httpx2.AsyncClient(headers=accepts) as http,
    ):
        evil = await http.post(f"{url}/mcp", json=ping, headers={"host": "evil.example"})
        page = await http.post(f"{url}/mcp", json=ping, headers={"origin": "https://evil.example"})
        large = await http.post(f"{url}/mcp", content=b"x" * (5 << 20))
        broken = await http.post(f"{url}/mcp", content=b"{")
        fine = await http.post(f"{url}/mcp", json=ping)
    assert evil.status_code in (403, 421)
    assert page.status_code == 403
    assert large.status_code == 413
    assert broken.status_code == 400
    assert fine.status_code in (200, 400)


async def test_a_client_that_hangs_up_ends_its_run(forks: ForkBackend) -> None:
    started = asyncio.Event()

    @tool(effects="read")
    async def hold() -> int:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return 1

    async with Executor([hold], backend=forks) as executor:
        async with open_http(build_app(surface_only(executor))) as url:
            async with Client(f"{url}/mcp") as client:
                waiting = asyncio.create_task(client.call_tool("run_script", {"code": "hold()"}))
                await asyncio.wait_for(started.wait(), 30)
                waiting.cancel()
                await asyncio.wait({waiting})
            for _ in range(300):
                if executor.store.runs(status="finished"):
                    break
                await asyncio.sleep(0.05)
        assert [row.outcome for row in executor.store.runs()] == ["cancelled"]
