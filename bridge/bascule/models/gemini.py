"""Gemini (google-genai), with the SDK's own automatic function calling switched off.

The history keeps every part as it came, thought signatures included; of function calls only what could not be
sent again is made anew. All answers of a turn go into one content, one part for each call. Trusts the client
it is given; the server's parts are data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from bascule.bridge.result import JsonValue
from bascule.models.definitions import JsonObject
from bascule.models.errors import SdkMissing
from bascule.models.gathering import Gathered
from bascule.models.offer import Offer
from bascule.models.reading import (
    MAX_CALLS,
    MAX_TEXT_CHARS,
    CallReader,
    clean,
    count_of,
    ids_in,
    object_of,
    objects_of,
    sent_arguments,
    text_of,
)
from bascule.models.sdk_errors import invalid, translated
from bascule.models.turn import Answer, Message, ModelCall, Request, Stop, TokenUsage, Turn

if TYPE_CHECKING:
    from google.genai import Client

_STOPS: Final[Mapping[str, Stop]] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "MALFORMED_FUNCTION_CALL": "malformed",
    "MALFORMED_RESPONSE": "malformed",
    "UNEXPECTED_TOOL_CALL": "malformed",
    "TOO_MANY_TOOL_CALLS": "malformed",
    "MISSING_THOUGHT_SIGNATURE": "malformed",
    "STOP": "end",
    "FUNCTION_CALL": "end",
}
"""All other reasons are filters. FUNCTION_CALL is what emulators of this API write."""

_MAX_CHUNKS: Final = 100_000
_MAX_PARTS: Final = 10_000

_ATTEMPTS: Final = 3
"""Times a request is made when the connection fails or the service is busy: as often as the other SDKs do."""


class Gemini:
    """The Gemini API of one model.

    Args:
        client: a `google.genai.Client`; None makes one from ``base_url``, ``api_key`` and the environment.
        stream: whether turns are streamed; what a turn says is the same.
        options: further fields of `google.genai.types.GenerateContentConfig`.

    Raises:
        SdkMissing: the ``google`` extra is not installed.
    """

    api = "gemini"

    def __init__(
        self,
        model: str,
        *,
        client: Client | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        stream: bool = False,
        options: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.model = model
        self._client = client or _make_client(base_url, api_key)
        self._streams = stream
        self._options: dict[str, Any] = dict(options or {})

    async def complete(self, request: Request) -> Turn:
        """See `ModelClient.complete`."""
        from google.genai import types

        offer = Offer(request.tools, strict=False)
        declarations = [
            types.FunctionDeclaration(
                name=each.name,
                description=each.tool.description,
                parameters_json_schema=each.parameters,
            )
            for each in offer.tools
        ]
        config = types.GenerateContentConfig(
            system_instruction=request.system or None,
            tools=[types.Tool(function_declarations=declarations)] if declarations else None,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            **self._options,
        )
        # Only from JSON are base64 texts read as the bytes they stand for.
        contents = [types.Content.model_validate_json(json.dumps(each)) for each in request.messages]
        with translated(self.api):
            response = await self._send(contents, config, request.on_text)
        return _read_turn(response, CallReader(offer.names, ids_in(request.messages, "id")), offer)

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.aio.aclose()
        self._client.close()

    def user_message(self, text: str) -> Message:
        """See `ModelClient.user_message`."""
        return {"role": "user", "parts": [{"text": text}]}

    def answer_messages(self, answers: Sequence[Answer]) -> list[Message]:
        """See `ModelClient.answer_messages`."""
        parts: list[JsonValue] = []
        for each in answers:
            made: JsonObject = {
                "name": each.call.caller["name"] if each.call.caller else each.call.name,
                "response": {"error" if each.is_error else "output": each.text},
            }
            if each.call.caller and each.call.caller.get("has_id"):
                made["id"] = each.call.id
            parts.append({"function_response": made})
        return [{"role": "user", "parts": parts}] if parts else []

    async def _send(self, contents: Any, config: Any, on_text: Callable[[str], None]) -> JsonObject:
        models = cast("Any", self._client.aio.models)
        if not self._streams:
            response = await models.generate_content(model=self.model, contents=contents, config=config)
            return _plain(response)
        gathered = _Stream(on_text)
        chunks = await models.generate_content_stream(model=self.model, contents=contents, config=config)
        async for chunk in chunks:
            gathered.add(_plain(chunk))
        return gathered.end(self.api)


class _Stream:
    """Puts a streamed turn together; nothing is a call before the stream has said how it ended."""

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._parts: list[JsonObject] = []
        self._texts: dict[int, Gathered] = {}
        self._last: JsonObject = {}
        self._usage: JsonObject = {}
        self._chunks = 0

    def add(self, chunk: JsonObject) -> None:
        self._chunks += 1
        if self._chunks > _MAX_CHUNKS:
            raise invalid("gemini", f"the stream has more than {_MAX_CHUNKS} chunks")
        self._usage = object_of(chunk.get("usage_metadata")) or self._usage
        if self._last.get("prompt_feedback") or self._last.get("candidates"):
            return
        if chunk.get("prompt_feedback"):
            self._last = chunk
        for candidate in objects_of(chunk.get("candidates"))[:1]:
            for part in objects_of(object_of(candidate.get("content")).get("parts")):
                self._add_part(part)
            if candidate.get("finish_reason"):
                self._last = chunk

    def _add_part(self, part: JsonObject) -> None:
        text = part.get("text")
        if isinstance(text, str) and text and not part.get("thought"):
            self._on_text(text_of(text))
        last = len(self._parts) - 1
        plain_text = isinstance(text, str) and set(part) <= {"text", "thought"}
        if plain_text and last in self._texts and _thought(self._parts[last]) == _thought(part):
            self._texts[last].add(text_of(text))
        elif len(self._parts) < _MAX_PARTS:
            self._parts.append(part)
            if plain_text:
                self._texts[last + 1] = Gathered(MAX_TEXT_CHARS)
                self._texts[last + 1].add(text_of(text))

    def end(self, api: str) -> JsonObject:
        """Return the response as an unstreamed answer would hold it.

        Raises:
            ModelError: the stream broke off.
        """
        if not self._last:
            raise invalid(api, "the stream ended before the turn was complete")
        for position, text in self._texts.items():
            self._parts[position] = {**self._parts[position], "text": str(text)}
        content: JsonObject = {"role": "model", "parts": [*self._parts]}
        candidates: list[JsonValue] = [
            {**each, "content": content} for each in objects_of(self._last.get("candidates"))[:1]
        ]
        return {**self._last, "candidates": candidates, "usage_metadata": self._usage}


def _thought(part: JsonObject) -> bool:
    return bool(part.get("thought"))


def _make_client(base_url: str | None, api_key: str | None) -> Client:
    try:
        from google.genai import Client, types
    except ModuleNotFoundError as error:
        raise SdkMissing("google") from error
    # By itself this SDK tries nothing again, not even when a kept connection has died; the other SDKs do.
    retries = types.HttpRetryOptions(attempts=_ATTEMPTS, initial_delay=0.2, http_status_codes=[429, 503])
    return Client(api_key=api_key, http_options=types.HttpOptions(base_url=base_url, retry_options=retries))


def _plain(model: object) -> JsonObject:
    """Return what an SDK object holds; bytes are base64."""
    dump = cast("Any", model).model_dump_json(exclude_none=True, exclude={"sdk_http_response", "parsed"})
    return object_of(json.loads(dump))


def _read_turn(response: JsonObject, reader: CallReader, offer: Offer) -> Turn:
    blocked = object_of(response.get("prompt_feedback")).get("block_reason")
    candidates = objects_of(response.get("candidates"))
    candidate = candidates[0] if candidates else {}
    if not candidates and not blocked:
        raise invalid("gemini", "it holds no candidate")
    texts: list[str] = []
    calls: list[ModelCall] = []
    kept: list[JsonValue] = []
    dropped = 0
    for part in objects_of(object_of(candidate.get("content")).get("parts")):
        if "function_call" in part:
            if len(calls) >= MAX_CALLS:
                dropped += 1
                continue
            call, item = _read_call(part, reader, offer)
            calls.append(call)
            kept.append(item)
            continue
        text = text_of(part.get("text"))
        if not part.get("thought"):
            texts.append(text)
        if text or set(part) - {"text", "thought"}:
            kept.append(clean(part))
    reason = candidate.get("finish_reason")
    stop: Stop = "end" if reason is None else _STOPS.get(str(reason), "refusal")
    if blocked:
        stop = "refusal"
    if calls and stop == "end":
        stop = "calls"
    return Turn(
        text="".join(texts),
        calls=tuple(calls),
        stop=stop,
        messages=({"role": "model", "parts": kept},) if kept else (),
        usage=_usage(object_of(response.get("usage_metadata"))),
        dropped_calls=dropped,
    )


def _read_call(part: JsonObject, reader: CallReader, offer: Offer) -> tuple[ModelCall, JsonObject]:
    asked = object_of(part["function_call"])
    wire = offer.names.to_wire(offer.names.from_wire(text_of(asked.get("name"))[:1000]))
    caller: JsonObject = {"name": wire, "has_id": bool(asked.get("id"))}
    call = reader.read(asked.get("id"), asked.get("name"), asked.get("args"), caller)
    made: JsonObject = {"name": wire, "args": sent_arguments(call, asked.get("args"))}
    if asked.get("id"):
        made["id"] = call.id
    return offer.restore(call), {**object_of(clean(part)), "function_call": made}


def _usage(said: JsonObject) -> TokenUsage | None:
    given = count_of(said.get("prompt_token_count"))
    if given is None:
        return None
    made = (count_of(said.get("candidates_token_count")) or 0) + (
        count_of(said.get("thoughts_token_count")) or 0
    )
    cached = count_of(said.get("cached_content_token_count")) or 0
    return TokenUsage(input=given, output=made, cached=min(cached, given))
