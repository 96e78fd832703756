"""OpenAI Responses, strictly: flat tools, paired items, callers and fingerprints unchanged."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.models.servers import JsonObject, WrittenTurn, event, require, split_text
from tests.models.strict_schema import check_strict

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


class ResponsesProtocol:
    """See `tests.models.servers.ApiProtocol`. Remembers the items it gave, which must come back unchanged."""

    def __init__(self) -> None:
        self._given: dict[str, JsonObject] = {}

    def check(self, path: str, headers: Mapping[str, str], body: JsonObject) -> None:
        require(path.endswith("/responses"), f"Unknown request URL: POST {path}")
        require(str(headers.get("authorization", "")).startswith("Bearer "), "You didn't provide an API key.")
        require(isinstance(body.get("model"), str), "Missing required parameter: 'model'.")
        require(body.get("input"), "Missing required parameter: 'input'.")
        for number, tool in enumerate(body.get("tools", [])):
            self._check_tool(number, tool)
        self._check_items(body["input"])

    def _check_tool(self, number: int, tool: JsonObject) -> None:
        if tool.get("type") == "programmatic_tool_calling":
            return
        require(tool.get("type") == "function", f"Invalid value: 'tools[{number}].type'")
        require("function" not in tool, f"Unknown parameter: 'tools[{number}].function'.")
        require(
            NAME.fullmatch(tool.get("name", "")), f"Invalid 'tools[{number}].name': does not match pattern."
        )
        require("strict" in tool, f"Missing required parameter: 'tools[{number}].strict'.")
        if tool["strict"]:
            check_strict(tool["name"], tool["parameters"])

    def _check_items(self, items: list[JsonObject]) -> None:
        calls: dict[str, JsonObject] = {}
        answered: set[str] = set()
        for number, item in enumerate(items):
            kind = item.get("type", "message")
            if kind == "function_call":
                require(item["call_id"] not in calls, f"Duplicate call_id {item['call_id']}")
                require(
                    NAME.fullmatch(item["name"]), f"Invalid 'input[{number}].name': does not match pattern."
                )
                require(isinstance(item["arguments"], str), f"Invalid type for 'input[{number}].arguments'")
                calls[item["call_id"]] = item
            elif kind == "function_call_output":
                call_id = item["call_id"]
                require(
                    call_id in calls, f"No tool call found for function call output with call_id {call_id}."
                )
                require(call_id not in answered, f"Duplicate output for {call_id}")
                require(isinstance(item.get("output"), str), f"Invalid type for 'input[{number}].output'")
                require(
                    item.get("caller") == calls[call_id].get("caller"), f"caller of {call_id} does not match"
                )
                open_ids = [each for each in calls if each not in answered]
                require(call_id == open_ids[0], f"wrong order: {call_id}")
                answered.add(call_id)
            elif kind in ("reasoning", "program", "program_output"):
                require(item == self._given.get(item["id"]), f"item {item['id']} was changed")
            else:
                require(item.get("role") in ("user", "assistant", "system", "developer"), "Invalid role")
                require(item.get("content"), f"input[{number}].content is empty")
        missing = [each for each in calls if each not in answered]
        require(not missing, f"No tool output found for function call {', '.join(missing)}.")

    def is_stream(self, path: str, body: JsonObject) -> bool:
        return bool(body.get("stream"))

    def error(self, status: int, message: str) -> JsonObject:
        return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}

    def whole(self, turn: WrittenTurn) -> JsonObject:
        output: list[JsonObject] = [*turn.items]
        self._given |= {item["id"]: item for item in turn.items}
        if turn.text or turn.ending == "refusal":
            part: JsonObject = {"type": "output_text", "text": turn.text, "annotations": []}
            if turn.ending == "refusal":
                part = {"type": "refusal", "refusal": turn.text or "I can't help with that."}
            output.append(
                {
                    "id": "msg_1",
                    "type": "message",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        for call in turn.calls:
            output.append(
                {
                    "id": f"fc_{call.id}",
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                    "status": "completed",
                    **call.extra,
                }
            )
        cut = turn.ending in ("length", "context_full")
        made: JsonObject = {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "model": "scripted",
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        if turn.usage is not None:
            made["usage"] = {
                "input_tokens": turn.usage[0],
                "input_tokens_details": {"cached_tokens": 10},
                "output_tokens": turn.usage[1],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": sum(turn.usage),
            }
        return made

    def streamed(self, turn: WrittenTurn, rng: random.Random) -> Iterable[str]:
        whole = self.whole(turn)
        number = 0

        def say(kind: str, **fields: Any) -> str:
            nonlocal number
            number += 1
            return event({"type": kind, "sequence_number": number, **fields}, name=kind)

        yield say("response.created", response={**whole, "output": [], "status": "in_progress"})
        for index, item in enumerate(whole["output"]):
            yield say("response.output_item.added", output_index=index, item=item)
            if item["type"] == "message":
                for piece in split_text(turn.text, rng):
                    yield say(
                        "response.output_text.delta",
                        output_index=index, content_index=0, item_id=item["id"], delta=piece, logprobs=[],
                    )  # fmt: skip
            if item["type"] == "function_call":
                for piece in split_text(item["arguments"], rng):
                    yield say(
                        "response.function_call_arguments.delta",
                        output_index=index, item_id=item["id"], delta=piece,
                    )  # fmt: skip
            yield say("response.output_item.done", output_index=index, item=item)
        yield say(
            "response.incomplete" if whole["status"] == "incomplete" else "response.completed", response=whole
        )
