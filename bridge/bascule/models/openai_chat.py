"""OpenAI Chat Completions, and every endpoint that speaks it (``base_url``).

Trusts the client it is given; the server's turns are data. The history holds the API's own messages: the
model's turn with ids, names and arguments that can be sent again, and fields of other makers (reasoning,
signatures) as they came.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from bascule.bridge.result import JsonValue
from bascule.models.chat_stream import ChatStream
from bascule.models.definitions import JsonObject
from bascule.models.errors import SdkMissing
from bascule.models.offer import Offer
from bascule.models.reading import (
    MAX_CALLS,
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
    from openai import AsyncOpenAI

_STOPS: Final[Mapping[str, Stop]] = {
    "length": "length",
    "content_filter": "refusal",
    "model_context_window_exceeded": "context_full",
}
_OURS: Final = frozenset(
    {"role", "content", "tool_calls", "refusal", "annotations", "audio", "function_call"}
)
"""Fields of an assistant message that are written anew or not sent back; all others are, as they came."""


class OpenAIChat:
    """Chat Completions of one model.

    Args:
        client: an `openai.AsyncOpenAI`; None makes one from ``base_url``, ``api_key`` and the environment.
        strict: offer schemas in strict mode where they can be; switch it off for endpoints that know none.
        stream: whether turns are streamed; what a turn says is the same.
        options: further fields of every request (``temperature``, ``reasoning_effort``, ``max_tokens`` …).

    Raises:
        SdkMissing: the ``openai`` extra is not installed.
    """

    api = "openai.chat"

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        strict: bool = True,
        stream: bool = False,
        options: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.model = model
        self._client = client or make_client(base_url, api_key)
        self._is_strict = strict
        self._streams = stream
        self._options: dict[str, Any] = dict(options or {})

    async def complete(self, request: Request) -> Turn:
        """See `ModelClient.complete`."""
        offer = Offer(request.tools, strict=self._is_strict)
        asked: dict[str, Any] = {
            "model": self.model,
            "messages": [*_system(request.system), *request.messages],
            **self._options,
        }
        if offer.tools:
            asked["tools"] = [
                _function(each.name, each.tool.description, each.parameters, each.strict)
                for each in offer.tools
            ]
        with translated(self.api):
            choice, usage = await self._send(asked, request.on_text)
        reader = CallReader(offer.names, ids_in(request.messages, "id", "tool_call_id"))
        return _read_turn(choice, usage, reader, offer)

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    def user_message(self, text: str) -> Message:
        """See `ModelClient.user_message`."""
        return {"role": "user", "content": text}

    def answer_messages(self, answers: Sequence[Answer]) -> list[Message]:
        """See `ModelClient.answer_messages`."""
        return [{"role": "tool", "tool_call_id": each.call.id, "content": each.text} for each in answers]

    async def _send(
        self, asked: dict[str, Any], on_text: Callable[[str], None]
    ) -> tuple[JsonObject, JsonObject]:
        """Return the first choice and the usage."""
        create = cast("Any", self._client.chat.completions.create)
        if not self._streams:
            completion = plain(await create(**asked))
            choices = objects_of(completion.get("choices"))
            if not choices:
                raise invalid(self.api, "it holds no choice")
            return choices[0], object_of(completion.get("usage"))
        stream = ChatStream(on_text)
        async with await create(**asked, stream=True, stream_options={"include_usage": True}) as chunks:
            async for chunk in chunks:
                stream.add(plain(chunk))
        return stream.end(self.api)


def make_client(base_url: str | None, api_key: str | None) -> AsyncOpenAI:
    """Return a client of the SDK.

    Raises:
        SdkMissing: the ``openai`` extra is not installed.
    """
    try:
        from openai import AsyncOpenAI
    except ModuleNotFoundError as error:
        raise SdkMissing("openai") from error
    return AsyncOpenAI(base_url=base_url, api_key=api_key)


def plain(model: object) -> JsonObject:
    """Return what an SDK object holds, as the server sent it."""
    to_dict = getattr(model, "to_dict", None)
    return object_of(to_dict(mode="json", warnings=False) if to_dict is not None else None)


def _system(text: str) -> list[Message]:
    return [{"role": "system", "content": text}] if text else []


def _function(name: str, description: str, parameters: JsonObject, strict: bool) -> JsonObject:
    function: JsonObject = {"name": name, "description": description, "parameters": parameters}
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _read_turn(choice: JsonObject, usage: JsonObject, reader: CallReader, offer: Offer) -> Turn:
    message = object_of(choice.get("message"))
    text = text_of(message.get("content"))
    refusal = text_of(message.get("refusal"))
    asked = objects_of(message.get("tool_calls"))
    calls: list[ModelCall] = []
    kept: list[JsonValue] = []
    for each in asked[:MAX_CALLS]:
        call, item = _read_call(each, reader, offer)
        calls.append(call)
        kept.append(item)
    finish = choice.get("finish_reason")
    stop: Stop = _STOPS.get(finish, "end") if isinstance(finish, str) else "end"
    if refusal and stop == "end":
        stop = "refusal"
    if calls and stop == "end":
        stop = "calls"
    return Turn(
        text=text or refusal,
        calls=tuple(calls),
        stop=stop,
        messages=_history(message, text or refusal, kept),
        usage=_usage(usage),
        dropped_calls=len(asked) - len(calls),
    )


def _read_call(item: JsonObject, reader: CallReader, offer: Offer) -> tuple[ModelCall, JsonObject]:
    """Return a call, and the item as it goes into the history."""
    function = object_of(item.get("function"))
    written = function.get("arguments")
    if item.get("type") == "custom":  # not offered by us; read as a call of something unknown
        function = object_of(item.get("custom"))
        written = {"input": clean(function.get("input"))}
    call = reader.read(item.get("id"), function.get("name"), written)
    sent = json.dumps(sent_arguments(call, written), ensure_ascii=False)
    others = {key: clean(value) for key, value in item.items() if key not in _CALL_FIELDS}
    kept: JsonObject = {
        **others,
        "id": call.id,
        "type": "function",
        "function": {"name": offer.names.to_wire(call.name), "arguments": sent},
    }
    return offer.restore(call), kept


_CALL_FIELDS: Final = frozenset({"id", "type", "function", "custom", "index"})


def _history(message: JsonObject, text: str, calls: list[JsonValue]) -> tuple[Message, ...]:
    others = {key: clean(value) for key, value in message.items() if key not in _OURS and value is not None}
    if not calls and not text:
        return ()
    kept: Message = {"role": "assistant", "content": text or None, **others}
    if calls:
        kept["tool_calls"] = calls
    return (kept,)


def _usage(said: JsonObject) -> TokenUsage | None:
    given, made = count_of(said.get("prompt_tokens")), count_of(said.get("completion_tokens"))
    if given is None or made is None:
        return None
    cached = count_of(object_of(said.get("prompt_tokens_details")).get("cached_tokens")) or 0
    return TokenUsage(input=given, output=made, cached=min(cached, given))
