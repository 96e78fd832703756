"""Servers that break every promise of their API: the loop says so to the operator, and loses nothing."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from bascule.bridge import approve_all
from bascule.models import Agent, Budget, ModelError
from tests.forks.backend import ForkBackend
from tests.models.apis import APIS, scripted
from tests.models.servers import Raw, WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

JSON = "application/json"
SSE = "text/event-stream"

WHOLE: dict[str, Any] = {
    "chat": {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
             "choices": [{"index": 0, "finish_reason": "stop",
                          "message": {"role": "assistant", "content": "hi"}}]},
    "responses": {"id": "x", "object": "response", "created_at": 1, "model": "m", "status": "completed",
                  "output": [{"id": "m", "type": "message", "role": "assistant", "status": "completed",
                              "content": [{"type": "output_text", "text": "hi", "annotations": []}]}]},
    "anthropic": {"id": "x", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                  "stop_sequence": None, "content": [{"type": "text", "text": "hi"}],
                  "usage": {"input_tokens": 1, "output_tokens": 1}},
    "gemini": {"candidates": [{"index": 0, "finishReason": "STOP",
                               "content": {"role": "model", "parts": [{"text": "hi"}]}}]},
}  # fmt: skip
"""A good answer of each API, to be broken."""


def mutations(value: object) -> list[Any]:
    """Return copies of a JSON value, each with one part of it replaced by something else."""
    odd: list[Any] = [None, [], {}, "x", -1, True, [None], {"type": "x"}]
    found = [each for each in odd if type(each) is not type(value)]
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        for key, inner in members.items():
            found += [{**members, key: each} for each in mutations(inner)]
            found.append({other: members[other] for other in members if other != key})
    if isinstance(value, list):
        items = cast("list[object]", value)
        for place, inner in enumerate(items):
            found += [[*items[:place], each, *items[place + 1 :]] for each in mutations(inner)]
    return found


BROKEN: dict[str, Raw] = {
    "no JSON": (200, JSON, b"<html>"),
    "no JSON, and another type": (200, "text/html", b"<html>hello</html>"),
    "nothing": (200, JSON, b""),
    "a list": (200, JSON, b"[]"),
    "a number": (200, JSON, b"7"),
    "invalid UTF-8": (200, JSON, b'{"choices":[{"message":{"content":"\xff\xfe"}}]}'),
    "deep nesting": (200, JSON, b"[" * 100_000),
    "an empty object": (200, JSON, b"{}"),
    "an error as success": (200, JSON, b'{"error":{"message":"no"}}'),
    "a redirect": (302, JSON, b"{}"),
    "a client error without a body": (422, JSON, b""),
    "a client error with an odd body": (400, JSON, b'{"error":7}'),
}
BROKEN_STREAMS: dict[str, Raw] = {
    "nothing": (200, SSE, b""),
    "no events": (200, SSE, b"hello\n\n"),
    "no JSON": (200, SSE, b"data: {\n\n"),
    "invalid UTF-8": (200, SSE, b'data: {"x":"\xff"}\n\n'),
    "only the end": (200, SSE, b"data: [DONE]\n\n"),
    "odd events": (200, SSE, b"event: x\ndata: 7\n\nevent: message_stop\ndata: []\n\ndata: null\n\n"),
    "an error event": (
        200,
        SSE,
        b'event: error\ndata: {"type":"error","error":{"message":"overloaded"}}\n\n',
    ),
    "JSON instead of a stream": (200, JSON, b"{}"),
    "half an event": (200, SSE, b'data: {"choices":[{"index":0,"delta":{"content":"hal'),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
async def test_a_broken_answer_is_the_servers_error(forks: ForkBackend, api: str, stream: bool) -> None:
    broken = BROKEN_STREAMS if stream else BROKEN
    turns = [each for raw in broken.values() for each in (raw, WrittenTurn(text="better"))]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted(api, turns, stream=stream) as (client, server),
    ):
        conversation = Agent(client, executor).start("go")
        for number, name in enumerate(broken, start=1):
            said = ""
            try:
                await conversation.run()
            except ModelError as error:
                said = str(error)
            assert len(said) < 1000, name
            if len(server.requests) < 2 * number:  # the answer of this API was not good; ask again
                conversation.say("again")
                result = await conversation.run()
                assert (result.status, result.text) == ("done", "better"), name
            assert len(server.requests) == 2 * number, name


@pytest.mark.parametrize("api", APIS)
async def test_any_field_may_be_missing_or_of_another_type(forks: ForkBackend, api: str) -> None:
    found = mutations(WHOLE[api])
    turns = [(200, JSON, json.dumps(each).encode()) for each in found]
    async with open_executor(forks, Shop()) as executor, scripted(api, turns) as (client, server):
        agent = Agent(client, executor, budget=Budget(max_rounds=1))
        while len(server.requests) < len(turns):
            try:
                await agent.run("go")
            except ModelError:
                pass
    assert len(found) > 50


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
async def test_ten_megabytes_of_arguments_are_not_kept(forks: ForkBackend, api: str, stream: bool) -> None:
    huge = WrittenCall(id="a", name="run_script", arguments=json.dumps({"code": "x" * 10_000_000}))
    turns = [WrittenTurn(calls=(huge,), ending="calls")]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted(api, turns, stream=stream) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"
    assert len(json.dumps(server.requests[1])) < 40_000


@pytest.mark.parametrize("api", APIS)
async def test_a_thousand_calls_in_one_turn_are_not_made(forks: ForkBackend, api: str) -> None:
    many = tuple(
        WrittenCall(id=f"a{n}", name="describe_tool", arguments=f'{{"name": "x{n}"}}') for n in range(1000)
    )
    async with (
        open_executor(forks, Shop()) as executor,
        scripted(api, [WrittenTurn(calls=many, ending="calls")]) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"
    assert "936 further calls" in json.dumps(server.requests[1])


@pytest.mark.parametrize("api", APIS)
async def test_endless_calls_end_at_the_rounds(forks: ForkBackend, api: str) -> None:
    turns = [
        WrittenTurn(
            calls=(WrittenCall(id="same", name="add", arguments=json.dumps({"a": n})),), ending="calls"
        )
        for n in range(1000)
    ]
    async with open_executor(forks, Shop()) as executor, scripted(api, turns) as (client, server):
        result = await Agent(client, executor, budget=Budget(max_rounds=8)).run("go")
    assert (result.status, len(server.requests)) == ("rounds", 8)


async def test_calls_after_the_end_of_a_stream_are_not_made(forks: ForkBackend) -> None:
    late = {"index": 0, "id": "a", "type": "function",
            "function": {"name": "mail-send", "arguments": '{"to":"x","text":"y"}'}}  # fmt: skip
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": "bye"}, "finish_reason": "stop"}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [late]}, "finish_reason": "tool_calls"}]},
    ]
    body = "".join(
        f"data: {json.dumps({'id': 'x', 'object': 'chat.completion.chunk', **each})}\n\n" for each in chunks
    )
    shop = Shop()
    async with (
        open_executor(forks, shop, approver=approve_all) as executor,
        scripted("chat", [(200, SSE, body.encode())], stream=True) as (client, _),
    ):
        result = await Agent(client, executor).run("go")
    assert (result.status, result.text, shop.sent) == ("done", "bye", [])


@pytest.mark.parametrize("api", APIS)
async def test_a_stream_that_breaks_off_calls_nothing(forks: ForkBackend, api: str) -> None:
    import random

    from tests.models.apis import PROTOCOLS

    turn = WrittenTurn(
        calls=(WrittenCall(id="a", name="mail-send", arguments='{"to":"x","text":"y"}'),), ending="calls"
    )
    events = list(PROTOCOLS[api]().streamed(turn, random.Random(1)))
    kept = events[: -3 if api == "chat" else -1]  # the arguments are whole, the end is not there
    shop = Shop()
    async with (
        open_executor(forks, shop, approver=approve_all) as executor,
        scripted(api, [(200, SSE, "".join(kept).encode())], stream=True) as (client, _),
    ):
        with pytest.raises(ModelError, match="ended before the turn was complete"):
            await Agent(client, executor).run("go")
    assert shop.sent == []


async def test_a_response_that_is_not_finished_is_no_turn(forks: ForkBackend) -> None:
    body = json.dumps({**WHOLE["responses"], "status": "queued", "output": []}).encode()
    answer: Raw = (200, JSON, body)
    async with open_executor(forks, Shop()) as executor, scripted("responses", [answer]) as (client, _):
        with pytest.raises(ModelError, match="the response is queued"):
            await Agent(client, executor).run("go")


async def test_a_turn_of_gemini_that_would_be_continued_was_cut_off(forks: ForkBackend) -> None:
    whole = {"candidates": [{**WHOLE["gemini"]["candidates"][0], "finishReason": "CONTINUATION"}]}
    answer: Raw = (200, JSON, json.dumps(whole).encode())
    async with open_executor(forks, Shop()) as executor, scripted("gemini", [answer]) as (client, _):
        result = await Agent(client, executor).run("go")
    assert (result.status, result.text) == ("length", "hi")
