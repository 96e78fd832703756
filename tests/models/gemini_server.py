"""The Gemini API, strictly: as many responses as calls, right after them, thought signatures unchanged."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from tests.models.servers import JsonObject, WrittenTurn, event, require, split_text

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
FINISH = {
    "end": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY", "pause": "STOP",
    "context_full": "MAX_TOKENS", "malformed": "MALFORMED_FUNCTION_CALL",
}  # fmt: skip


class GeminiProtocol:
    """See `tests.models.servers.ApiProtocol`. Remembers thought signatures, which must come back.

    Args:
        ids: whether calls have ids, as on newer models.
    """

    def __init__(self, *, ids: bool = True) -> None:
        self._ids = ids
        self._signatures: dict[str, str] = {}

    def check(self, path: str, headers: Mapping[str, str], body: JsonObject) -> None:
        require(
            re.search(r"/v1(beta)?/models/[\w.-]+:(generateContent|streamGenerateContent)", path),
            f"404 {path}",
        )
        require(headers.get("x-goog-api-key"), "API key not valid.")
        require(body.get("contents"), "GenerateContentRequest.contents: contents is not specified")
        names: set[str] = set()
        for tool in body.get("tools", []):
            for number, each in enumerate(tool.get("functionDeclarations", [])):
                name = each["name"]
                require(NAME.fullmatch(name), f"function_declarations[{number}].name: Invalid function name.")
                require(name not in names, f"Duplicate function declaration found: {name}")
                names.add(name)
                schema = each.get("parametersJsonSchema") or each["parameters_json_schema"]
                require(schema["type"] == "object", "schema must be an object")
        self._check_contents(body["contents"])

    def _check_contents(self, contents: list[JsonObject]) -> None:
        waiting: list[JsonObject] = []
        for number, content in enumerate(contents):
            require(content.get("role") in ("user", "model"), "Please use a valid role: user, model.")
            parts: list[JsonObject] = content.get("parts") or []
            require(parts, f"contents[{number}].parts must not be empty")
            responses = [part["functionResponse"] for part in parts if "functionResponse" in part]
            if waiting or responses:
                require(
                    len(responses) == len(waiting),
                    "Please ensure that the number of function response parts is equal to the number of"
                    " function call parts of the function call turn.",
                )
                for call, response in zip(waiting, responses, strict=True):
                    require(response["name"] == call["name"], f"name of the response to {call['name']}")
                    require(response.get("id") == call.get("id"), f"id of the response to {call['name']}")
                    require(isinstance(response.get("response"), dict), "response must be a Struct")
            waiting = [part["functionCall"] for part in parts if "functionCall" in part]
            for part in parts:
                require("text" not in part or part["text"] or set(part) > {"text"}, "empty text parameter")
                if "functionCall" in part:
                    self._check_call(part)
        require(not waiting, "function call turn comes immediately before a function response turn")

    def _check_call(self, part: JsonObject) -> None:
        call = part["functionCall"]
        require(NAME.fullmatch(call["name"]), "Invalid function name.")
        require(isinstance(call.get("args", {}), dict), "args must be a Struct")
        signature = self._signatures.get(str(call.get("id")))
        require(signature is None or part.get("thoughtSignature") == signature, "missing a thought_signature")

    def is_stream(self, path: str, body: JsonObject) -> bool:
        return "streamGenerateContent" in path

    def error(self, status: int, message: str) -> JsonObject:
        return {"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}

    def _parts(self, turn: WrittenTurn) -> list[JsonObject]:
        parts: list[JsonObject] = [*turn.items]
        if turn.text:
            parts.append({"text": turn.text})
        for call in turn.calls:
            made: JsonObject = {"name": call.name, "args": _struct(call.arguments)}
            if self._ids:
                made["id"] = call.id
            part: JsonObject = {"functionCall": made, **call.extra}
            if "thoughtSignature" in part:
                self._signatures[call.id] = part["thoughtSignature"]
            parts.append(part)
        return parts

    def _response(self, parts: list[JsonObject], turn: WrittenTurn, *, last: bool) -> JsonObject:
        candidate: JsonObject = {"content": {"role": "model", "parts": parts}, "index": 0}
        if not parts:
            del candidate["content"]
        if last:
            candidate["finishReason"] = FINISH[turn.ending]
        made: JsonObject = {"candidates": [candidate], "modelVersion": "scripted"}
        if last and turn.usage is not None:
            made["usageMetadata"] = {
                "promptTokenCount": turn.usage[0],
                "candidatesTokenCount": turn.usage[1],
                "totalTokenCount": sum(turn.usage),
            }
        return made

    def whole(self, turn: WrittenTurn) -> JsonObject:
        return self._response(self._parts(turn), turn, last=True)

    def streamed(self, turn: WrittenTurn, rng: random.Random) -> Iterable[str]:
        for part in self._parts(turn):
            if set(part) == {"text"}:
                for piece in split_text(part["text"], rng):
                    yield event(self._response([{"text": piece}], turn, last=False))
            else:
                yield event(self._response([part], turn, last=False))
        yield event(self._response([], turn, last=True))


def _struct(arguments: str) -> JsonObject:
    """Return arguments as the API sends them: always an object."""
    try:
        found: Any = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return cast("JsonObject", found) if isinstance(found, dict) else {}
