"""Anthropic Messages, with its own programmatic tool calling passed through.

The history keeps every block as it came: thinking with its signature, server tools, text; of tool_use blocks
only ids, names and inputs that could not be sent again are made anew. All answers of a turn go into one user
message and nothing else does. Trusts the client it is given; the server's blocks are data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from bascule.bridge.result import JsonValue
from bascule.models.anthropic_stream import MessageStream
from bascule.models.anthropic_strict import strict_schemas
from bascule.models.definitions import JsonObject
from bascule.models.errors import SdkMissing
from bascule.models.offer import Offer, OfferedTool
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
    from anthropic import AsyncAnthropic

MAX_TOKENS: Final = 16_000
"""Output of one turn, which this API wants to be told."""

CODE_EXECUTION: Final = "code_execution_20260120"
"""Version of Anthropic's code execution whose scripts may call tools."""

_STOPS: Final[Mapping[str, Stop]] = {
    "max_tokens": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "context_full",
}


class AnthropicMessages:
    """The Messages API of one model.

    Args:
        client: an `anthropic.AsyncAnthropic`; None makes one from ``base_url``, ``api_key`` and the
            environment.
        max_tokens: of one turn.
        stream: whether turns are streamed; what a turn says is the same.
        cache: mark tools and system prompt for the prompt cache; they are the same in every request.
        programmatic: whether the model may also call the direct tools from Anthropic's own code execution.
            Every such call takes our bridge like all others.
        strict: offer schemas in strict mode where they can be; for models that know it, and not together
            with ``programmatic``.
        options: further fields of every request (``thinking``, ``tool_choice``, ``service_tier`` …).

    Raises:
        SdkMissing: the ``anthropic`` extra is not installed.
        ValueError: ``strict`` and ``programmatic`` exclude each other.
    """

    api = "anthropic.messages"

    def __init__(
        self,
        model: str,
        *,
        client: AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        max_tokens: int = MAX_TOKENS,
        stream: bool = False,
        cache: bool = True,
        programmatic: bool = False,
        strict: bool = False,
        options: Mapping[str, JsonValue] | None = None,
    ) -> None:
        if strict and programmatic:
            raise ValueError("the API has no strict tools for its own code execution: strict or programmatic")
        self.model = model
        self._client = client or _make_client(base_url, api_key)
        self._streams = stream
        self._cache = cache
        self._programmatic = programmatic
        self._is_strict = strict
        self._options: dict[str, Any] = {"max_tokens": max_tokens, **(options or {})}

    async def complete(self, request: Request) -> Turn:
        """See `ModelClient.complete`."""
        offer = Offer(request.tools, strict=False)
        asked: dict[str, Any] = {"model": self.model, "messages": list(request.messages), **self._options}
        if request.system:
            asked["system"] = self._system(request.system)
        if offer.tools:
            asked["tools"] = self._tools(offer.tools)
        container = object_of(request.carry).get("container")
        if isinstance(container, str):
            asked["container"] = container
        with translated(self.api):
            message = await self._send(asked, request.on_text)
        return _read_turn(message, CallReader(offer.names, ids_in(request.messages, "id")), offer)

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    def user_message(self, text: str) -> Message:
        """See `ModelClient.user_message`."""
        return {"role": "user", "content": [{"type": "text", "text": text}]}

    def answer_messages(self, answers: Sequence[Answer]) -> list[Message]:
        """See `ModelClient.answer_messages`."""
        return [{"role": "user", "content": [_result(each) for each in answers]}] if answers else []

    def _system(self, text: str) -> list[JsonObject]:
        block: JsonObject = {"type": "text", "text": text}
        return [{**block, "cache_control": {"type": "ephemeral"}} if self._cache else block]

    def _tools(self, tools: Sequence[OfferedTool]) -> list[JsonObject]:
        made: list[JsonObject] = []
        strict = strict_schemas(tools) if self._is_strict else {}
        for each in tools:
            tool: JsonObject = {
                "name": each.name,
                "description": each.tool.description,
                "input_schema": strict.get(each.name, each.parameters),
            }
            if each.name in strict:
                tool["strict"] = True
            if self._programmatic and each.tool.tool is not None:
                tool["allowed_callers"] = ["direct", CODE_EXECUTION]
            made.append(tool)
        if self._programmatic:
            made.append({"type": CODE_EXECUTION, "name": "code_execution"})
        return made

    async def _send(self, asked: dict[str, Any], on_text: Callable[[str], None]) -> JsonObject:
        create = cast("Any", self._client.messages.create)
        if not self._streams:
            message = _plain(await create(**asked))
            if not isinstance(message.get("content"), list):
                raise invalid(self.api, "it holds no content")
            return message
        stream = MessageStream(on_text)
        async with await create(**asked, stream=True) as events:
            async for event in events:
                stream.add(_plain(event))
        return stream.end(self.api)


def _make_client(base_url: str | None, api_key: str | None) -> AsyncAnthropic:
    try:
        from anthropic import AsyncAnthropic
    except ModuleNotFoundError as error:
        raise SdkMissing("anthropic") from error
    return AsyncAnthropic(base_url=base_url, api_key=api_key)


def _plain(model: object) -> JsonObject:
    """Return what an SDK object holds, as the server sent it."""
    to_dict = getattr(model, "to_dict", None)
    return object_of(to_dict(mode="json", warnings=False) if to_dict is not None else None)


def _read_turn(message: JsonObject, reader: CallReader, offer: Offer) -> Turn:
    texts: list[str] = []
    calls: list[ModelCall] = []
    kept: list[JsonValue] = []
    dropped = 0
    for block in objects_of(message.get("content")):
        kind = block.get("type")
        if kind == "tool_use":
            if len(calls) >= MAX_CALLS:
                dropped += 1
                continue
            call = reader.read(block.get("id"), block.get("name"), block.get("input"), block.get("caller"))
            calls.append(offer.restore(call))
            kept.append(
                {
                    **object_of(clean(block)),
                    "id": call.id,
                    "name": offer.names.to_wire(call.name),
                    "input": sent_arguments(call, block.get("input")),
                }
            )
        elif kind == "text":
            text = text_of(block.get("text"))
            texts.append(text)
            if text.strip():  # the API takes no empty text back
                kept.append({**object_of(clean(block)), "text": text})
        elif isinstance(kind, str):
            kept.append(clean(block))
    reason = message.get("stop_reason")
    stop: Stop = _STOPS.get(reason, "end") if isinstance(reason, str) else "end"
    if calls and stop == "end":
        stop = "calls"
    container = object_of(message.get("container")).get("id")
    return Turn(
        text="".join(texts),
        calls=tuple(calls),
        stop=stop,
        messages=({"role": "assistant", "content": kept},) if kept else (),
        usage=_usage(object_of(message.get("usage"))),
        carry={"container": container} if isinstance(container, str) else {},
        dropped_calls=dropped,
    )


def _result(answer: Answer) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": answer.call.id, "content": answer.text}
    if answer.is_error:
        block["is_error"] = True
    return block


def _usage(said: JsonObject) -> TokenUsage | None:
    given, made = count_of(said.get("input_tokens")), count_of(said.get("output_tokens"))
    if given is None or made is None:
        return None
    read = count_of(said.get("cache_read_input_tokens")) or 0
    written = count_of(said.get("cache_creation_input_tokens")) or 0
    return TokenUsage(input=given + read + written, output=made, cached=read)
