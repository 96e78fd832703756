"""OpenAI Chat Completions, strictly."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.models.servers import JsonObject, WrittenTurn, event, require, split_text
from tests.models.strict_schema import check_strict

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
FINISH = {
    "end": "stop", "calls": "tool_calls", "length": "length", "refusal": "content_filter", "pause": "stop",
    "context_full": "length", "malformed": "stop",
}  # fmt: skip


class ChatProtocol:
    """See `tests.models.servers.ApiProtocol`."""

    def check(self, path: str, headers: Mapping[str, str], body: JsonObject) -> None:
        require(path.endswith("/chat/completions"), f"Unknown request URL: POST {path}")
        require(str(headers.get("authorization", "")).startswith("Bearer "), "You didn't provide an API key.")
        require(isinstance(body.get("model"), str), "you must provide a model parameter")
        require(body.get("messages"), "[] is too short - 'messages'")
        if "tools" in body:
            check_tools(body["tools"])
        check_messages(body["messages"])

    def is_stream(self, path: str, body: JsonObject) -> bool:
        return bool(body.get("stream"))

    def error(self, status: int, message: str) -> JsonObject:
        kind = "invalid_request_error" if status < 500 else "server_error"
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def whole(self, turn: WrittenTurn) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": turn.text or None, "refusal": None}
        for item in turn.items:
            message |= item
        if turn.calls:
            message["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                    **call.extra,
                }
                for call in turn.calls
            ]
        made: JsonObject = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "scripted",
            "choices": [
                {"index": 0, "message": message, "finish_reason": FINISH[turn.ending], "logprobs": None}
            ],
        }
        if turn.usage is not None:
            made["usage"] = usage(turn.usage)
        return made

    def streamed(self, turn: WrittenTurn, rng: random.Random) -> Iterable[str]:
        yield chunk({"role": "assistant", "content": ""})
        for item in turn.items:
            yield chunk(item)
        for piece in split_text(turn.text, rng):
            yield chunk({"content": piece})
        for index, call in enumerate(turn.calls):
            for delta in call_pieces(index, call, rng):
                yield chunk({"tool_calls": [delta]})
        yield chunk({}, finish=FINISH[turn.ending])
        if turn.usage is not None:
            yield event({**chunk_base(), "choices": [], "usage": usage(turn.usage)})
        yield "data: [DONE]\n\n"


def usage(tokens: tuple[int, int]) -> JsonObject:
    """Return a usage object."""
    return {"prompt_tokens": tokens[0], "completion_tokens": tokens[1], "total_tokens": sum(tokens)}


def chunk_base() -> JsonObject:
    """Return what every chunk has."""
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}


def chunk(delta: JsonObject, *, finish: str | None = None) -> str:
    """Return one chunk as an event."""
    return event({**chunk_base(), "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})


def call_pieces(index: int, call: Any, rng: random.Random) -> Iterable[JsonObject]:
    """Return a call as its stream of deltas."""
    yield {
        "index": index,
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": ""},
        **call.extra,
    }
    for piece in split_text(call.arguments, rng):
        yield {"index": index, "function": {"arguments": piece}}


def check_tools(tools: list[JsonObject]) -> None:
    """Refuse definitions that the API would refuse."""
    require(tools, "[] is too short - 'tools'")
    names: set[str] = set()
    for number, tool in enumerate(tools):
        function = tool["function"]
        name = function["name"]
        require(
            NAME.fullmatch(name), f"Invalid 'tools[{number}].function.name': string does not match pattern."
        )
        require(name not in names, f"duplicate function name {name}")
        names.add(name)
        require(function["parameters"]["type"] == "object", "schema must be of type object")
        if function.get("strict"):
            check_strict(name, function["parameters"])


def check_messages(messages: Any) -> None:
    """Refuse a history that the API would refuse."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        require(
            role in ("system", "developer", "user", "assistant", "tool"),
            f"Invalid role in messages[{number}]",
        )
        if role == "tool":
            require(isinstance(message.get("content"), str), f"Invalid type of messages[{number}].content")
            require(
                waiting,
                "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
            )
            require(
                message.get("tool_call_id") == waiting[0], f"wrong order or id: {message.get('tool_call_id')}"
            )
            waiting.pop(0)
            continue
        require(
            not waiting,
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
            f" 'tool_call_id'. These tool_call_ids did not have response messages: {', '.join(waiting)}",
        )
        if role == "assistant":
            waiting = check_assistant(number, message)
        else:
            require(
                isinstance(message.get("content"), str | list),
                f"Invalid type for 'messages[{number}].content'",
            )
    require(not waiting, f"tool_call_ids did not have response messages: {', '.join(waiting)}")
    require(messages[-1]["role"] != "assistant" or not messages[-1].get("tool_calls"), "unanswered calls")


def check_assistant(number: int, message: JsonObject) -> list[str]:
    """Return the ids of an assistant message's calls."""
    calls: list[JsonObject] | None = message.get("tool_calls")
    require(calls is None or calls, f"Invalid 'messages[{number}].tool_calls': empty array.")
    require(
        calls or isinstance(message.get("content"), str), f"Invalid value for 'content' in messages[{number}]"
    )
    ids: list[str] = []
    for call in calls or []:
        require(call.get("type") == "function", f"Invalid type in messages[{number}].tool_calls")
        require(isinstance(call.get("id"), str) and 0 < len(call["id"]) <= 64, "Invalid 'tool_calls.id'")
        require(call["id"] not in ids, f"Duplicate tool call id {call['id']}")
        ids.append(call["id"])
        function = call["function"]
        require(
            NAME.fullmatch(function["name"]), "Invalid 'tool_calls.function.name': does not match pattern."
        )
        try:
            decoded = json.loads(function["arguments"])
        except ValueError:
            decoded = None
        require(
            isinstance(decoded, dict), "function.arguments is no JSON object, which chat templates refuse"
        )
    return ids
