"""Programmatic tool calling of the APIs' own, and signatures: what only an API understands comes back to it.

The servers remember what they gave and refuse a request in which it is missing or changed.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from bascule.models import Agent, AnthropicMessages
from tests.forks.backend import ForkBackend
from tests.models.apis import scripted
from tests.models.servers import WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

PROGRAM = {
    "id": "prg_1",
    "type": "program",
    "call_id": "p1",
    "code": "await add({a: 1})",
    "fingerprint": "f00d",
}
REASONING: dict[str, Any] = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "c2VjcmV0",
}
OUTPUT = {"id": "po_1", "type": "program_output", "call_id": "p1", "result": "3", "status": "completed"}


@pytest.mark.parametrize("stream", [False, True])
async def test_openai_programs_keep_fingerprint_and_caller(forks: ForkBackend, stream: bool) -> None:
    caller = {"caller": {"type": "program", "caller_id": "p1"}}
    turns = [
        WrittenTurn(
            items=(REASONING, PROGRAM),
            calls=(
                WrittenCall(id="c1", name="add", arguments='{"a": 1, "b": 2}', extra=caller),
                WrittenCall(id="c2", name="describe_tool", arguments='{"name": "add"}'),
                WrittenCall(
                    id="c3", name="crm-orders", arguments='{"customer": "Ann", "status": null}', extra=caller
                ),
                WrittenCall(id="c4", name="broken", arguments="{}", extra=caller),
            ),
            ending="calls",
        ),
        WrittenTurn(items=(OUTPUT,), text="3"),
    ]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted("responses", turns, stream=stream, programmatic=True) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
        await Agent(client, executor).resume(result.state.to_json(), say="again")
    assert result.status == "done"
    tools = {tool.get("name", tool["type"]): tool for tool in server.requests[0]["tools"]}
    assert tools["add"]["allowed_callers"] == ["direct", "programmatic"]
    assert tools["add"]["output_schema"] == {"type": "integer"}
    assert tools["run_script"]["allowed_callers"] == ["direct"]
    assert "programmatic_tool_calling" in tools
    answers = {
        item["call_id"]: item
        for item in server.requests[1]["input"]
        if item.get("type") == "function_call_output"
    }
    assert answers["c1"]["output"] == "3"
    assert "caller" not in answers["c2"]
    assert len(json.loads(answers["c3"]["output"])) == 40  # a program reads all of it
    assert "Sundays" in json.loads(answers["c4"]["output"])["error"]


@pytest.mark.parametrize("stream", [False, True])
async def test_anthropic_code_execution_keeps_its_container(forks: ForkBackend, stream: bool) -> None:
    script = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {"code": "x"}}
    caller: dict[str, Any] = {"caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig=="}
    turns = [
        WrittenTurn(
            items=(thinking, script),
            calls=(WrittenCall(id="toolu_1", name="add", arguments='{"a": 1}', extra=caller),),
            ending="calls",
            carry={"container": "container_7"},
        ),
        WrittenTurn(
            calls=(WrittenCall(id="toolu_2", name="add", arguments='{"a": 2}', extra=caller),), ending="calls"
        ),
        WrittenTurn(text="3"),
    ]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted("anthropic", turns, stream=stream, programmatic=True) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"
    assert [request.get("container") for request in server.requests] == [None, "container_7", "container_7"]
    tools = {tool["name"]: tool for tool in server.requests[0]["tools"]}
    assert tools["add"]["allowed_callers"] == ["direct", "code_execution_20260120"]
    assert "allowed_callers" not in tools["run_script"]
    assert tools["code_execution"]["type"] == "code_execution_20260120"
    history = server.requests[1]["messages"][1]["content"]
    assert history[2]["caller"] == caller["caller"]


@pytest.mark.parametrize("stream", [False, True])
async def test_gemini_thought_signatures_stay_with_their_calls(forks: ForkBackend, stream: bool) -> None:
    signed = {"thoughtSignature": "AAECAw_-"}
    turns = [
        WrittenTurn(
            items=({"text": "hm", "thought": True},),
            calls=(
                WrittenCall(id="c1", name="add", arguments='{"a": 1}', extra=signed),
                WrittenCall(id="c2", name="add", arguments='{"a": 2}'),
            ),
            ending="calls",
        ),
        WrittenTurn(text="3"),
    ]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted("gemini", turns, stream=stream) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
        saved = await Agent(client, executor).resume(result.state.to_json(), say="again")
    assert (result.text, saved.status) == ("3", "done")
    assert "automaticFunctionCalling" not in json.dumps(server.requests)


async def test_gemini_models_without_ids_are_answered_without_ids(forks: ForkBackend) -> None:
    from tests.models.gemini_server import GeminiProtocol

    turns = [WrittenTurn(calls=(WrittenCall(id="", name="add", arguments='{"a": 1}'),) * 2, ending="calls")]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted("gemini", turns, protocol=GeminiProtocol(ids=False)) as (client, _),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"


async def test_fields_of_other_makers_go_back_as_they_came(forks: ForkBackend) -> None:
    extra = {"extra_content": {"google": {"thought_signature": "abc"}}}
    turns = [
        WrittenTurn(
            items=({"reasoning_content": "hm"},),
            calls=(WrittenCall(id="c1", name="add", arguments='{"a": 1}', extra=extra),),
            ending="calls",
        )
    ]
    for stream in (False, True):
        async with (
            open_executor(forks, Shop()) as executor,
            scripted("chat", turns, stream=stream) as (client, server),
        ):
            await Agent(client, executor).run("go")
        message = server.requests[1]["messages"][2]
        assert message["reasoning_content"] == "hm"
        assert message["tool_calls"][0]["extra_content"] == extra["extra_content"]


async def test_anthropic_strict_tools_are_accepted_and_called(forks: ForkBackend) -> None:
    asked = WrittenCall(id="a1", name="crm-orders", arguments='{"customer": "Ann", "status": "open"}')
    turns = [WrittenTurn(calls=(asked,), ending="calls"), WrittenTurn(text="20")]
    async with (
        open_executor(forks, Shop()) as executor,
        scripted("anthropic", turns, strict=True) as (client, server),
    ):
        result = await Agent(client, executor).run("go")
    assert result.status == "done"
    strict = {each["name"]: each.get("strict") for each in server.requests[0]["tools"]}
    assert strict["run_script"] is strict["crm-orders"] is True
    with pytest.raises(ValueError, match="strict or programmatic"):
        AnthropicMessages("claude", api_key="key", strict=True, programmatic=True)
