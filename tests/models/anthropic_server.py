"""Anthropic Messages, strictly: results first and all of them, no empty blocks, signatures unchanged."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.models.servers import JsonObject, WrittenTurn, event, require, split_text
from tests.models.strict_schema import check_anthropic_strict

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]+")
STOP = {
    "end": "end_turn", "calls": "tool_use", "length": "max_tokens", "refusal": "refusal",
    "pause": "pause_turn", "context_full": "model_context_window_exceeded", "malformed": "end_turn",
}  # fmt: skip


class AnthropicProtocol:
    """See `tests.models.servers.ApiProtocol`. Remembers signatures and container, which must come back."""

    def __init__(self) -> None:
        self._signatures: set[str] = set()
        self._container: str | None = None

    def check(self, path: str, headers: Mapping[str, str], body: JsonObject) -> None:
        require(path.endswith("/v1/messages"), f"not found: {path}")
        require(headers.get("anthropic-version"), "anthropic-version: header is required")
        require(headers.get("authorization") or headers.get("x-api-key"), "x-api-key header is required")
        require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
        require(body.get("messages"), "messages: at least one message is required")
        names: set[str] = set()
        for number, tool in enumerate(body.get("tools", [])):
            require(NAME.fullmatch(tool["name"]), f"tools.{number}.name: String should match pattern")
            require(tool["name"] not in names, "tools: Tool names must be unique.")
            names.add(tool["name"])
            if "type" not in tool:
                require(
                    tool["input_schema"].get("type") == "object",
                    f"tools.{number}.input_schema.type: required",
                )
        check_anthropic_strict(body.get("tools", []))
        self._check_messages(body)

    def _check_messages(self, body: JsonObject) -> None:
        messages = body["messages"]
        require(messages[0]["role"] == "user", 'messages: first message must use the "user" role')
        seen: set[str] = set()
        waiting: list[JsonObject] = []
        for number, message in enumerate(messages):
            content = message["content"]
            require(message["role"] in ("user", "assistant"), f"messages.{number}.role: invalid")
            require(content, f"messages.{number}: all messages must have non-empty content")
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if waiting:
                self._check_results(number, message, blocks, waiting, body)
                waiting = []
            else:
                require(
                    all(block["type"] != "tool_result" for block in blocks),
                    f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks",
                )
            for block in blocks:
                self._check_block(number, block, seen)
            if message["role"] == "assistant":
                waiting = [block for block in blocks if block["type"] == "tool_use"]
        require(
            not waiting,
            "`tool_use` ids were found without `tool_result` blocks immediately after:"
            f" {', '.join(block['id'] for block in waiting)}",
        )

    def _check_block(self, number: int, block: JsonObject, seen: set[str]) -> None:
        if block["type"] == "text":
            require(block["text"].strip(), f"messages.{number}: text content blocks must be non-empty")
        if block["type"] == "tool_use":
            require(ID.fullmatch(block["id"]), f"messages.{number}: tool_use.id: String should match pattern")
            require(
                NAME.fullmatch(block["name"]),
                f"messages.{number}: tool_use.name: String should match pattern",
            )
            require(block["id"] not in seen, "messages: `tool_use` ids must be unique")
            require(isinstance(block["input"], dict), "tool_use.input: Input should be a valid dictionary")
            seen.add(block["id"])
        if block["type"] == "thinking":
            require(block.get("signature") in self._signatures, f"messages.{number}: Invalid `signature`")

    def _check_results(
        self,
        number: int,
        message: JsonObject,
        blocks: list[JsonObject],
        waiting: list[JsonObject],
        body: JsonObject,
    ) -> None:
        ids = [call["id"] for call in waiting]
        require(message["role"] == "user", f"messages.{number}: `tool_use` ids without `tool_result`: {ids}")
        results = [block for block in blocks[: len(ids)] if block["type"] == "tool_result"]
        require(
            [block["tool_use_id"] for block in results] == ids,
            f"messages.{number}: `tool_use` ids were found without `tool_result` blocks right after: {ids}",
        )
        rest = blocks[len(ids) :]
        require(
            all(block["type"] != "tool_result" for block in rest), "each tool_use must have a single result"
        )
        if any(call.get("caller", {}).get("type", "direct") != "direct" for call in waiting):
            require(not rest, "responses to programmatic calls must contain only tool_result blocks")
            require(
                body.get("container") == self._container,
                "container_id is required",
            )

    def is_stream(self, path: str, body: JsonObject) -> bool:
        return bool(body.get("stream"))

    def error(self, status: int, message: str) -> JsonObject:
        return {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": message},
            "request_id": "r",
        }

    def whole(self, turn: WrittenTurn) -> JsonObject:
        content: list[JsonObject] = []
        for item in turn.items:
            content.append(item)
            if "signature" in item:
                self._signatures.add(item["signature"])
        if turn.text:
            content.append({"type": "text", "text": turn.text, "citations": None})
        content += [
            {
                "type": "tool_use",
                "id": call.id,
                "name": call.name,
                "input": decoded(call.arguments),
                **call.extra,
            }
            for call in turn.calls
        ]
        made: JsonObject = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": content,
            "stop_reason": STOP[turn.ending],
            "stop_sequence": None,
        }
        if "container" in turn.carry:
            self._container = turn.carry["container"]
            made["container"] = {"id": self._container, "expires_at": "2030-01-01T00:00:00Z"}
        if turn.usage is not None:
            made["usage"] = {"input_tokens": turn.usage[0], "output_tokens": turn.usage[1]}
        return made

    def streamed(self, turn: WrittenTurn, rng: random.Random) -> Iterable[str]:
        whole = self.whole(turn)

        def say(kind: str, **fields: Any) -> str:
            return event({"type": kind, **fields}, name=kind)

        start: JsonObject = {**whole, "content": [], "stop_reason": None}
        if turn.usage is not None:
            start["usage"] = {"input_tokens": turn.usage[0], "output_tokens": 1}
        yield say("message_start", message=start)
        yield say("ping")
        written = iter(turn.calls)
        for index, block in enumerate(whole["content"]):
            kind = block["type"]
            if kind == "text":
                yield say("content_block_start", index=index, content_block={"type": "text", "text": ""})
                deltas = [{"type": "text_delta", "text": piece} for piece in split_text(block["text"], rng)]
            elif kind == "thinking":
                empty = {"type": "thinking", "thinking": "", "signature": ""}
                yield say("content_block_start", index=index, content_block=empty)
                deltas = [{"type": "thinking_delta", "thinking": block["thinking"]}]
                deltas.append({"type": "signature_delta", "signature": block["signature"]})
            elif kind == "tool_use":
                yield say("content_block_start", index=index, content_block={**block, "input": {}})
                arguments = next(written).arguments
                deltas = [{"type": "input_json_delta", "partial_json": ""}]
                deltas += [
                    {"type": "input_json_delta", "partial_json": each} for each in split_text(arguments, rng)
                ]
            else:
                yield say("content_block_start", index=index, content_block=block)
                deltas = []
            for delta in deltas:
                yield say("content_block_delta", index=index, delta=delta)
            yield say("content_block_stop", index=index)
        closing: JsonObject = {"delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None}}
        if turn.usage is not None:
            closing["usage"] = {"output_tokens": turn.usage[1]}
        yield say("message_delta", **closing)
        yield say("message_stop")


def decoded(arguments: str) -> Any:
    """Return what the API makes of arguments: an object, or what it could read of a call that was cut off."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
