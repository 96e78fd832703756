"""OpenAI Responses: plain function tools, and OpenAI's own programmatic tool calling passed through.

The history is a list of items, sent whole with every request (``store`` false): reasoning stays encrypted in
it, a ``program`` keeps its fingerprint, and the answer to a call echoes the call's ``caller``. Trusts the
client it is given; the server's items are data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from bascule.bridge.result import JsonValue
from bascule.models.definitions import JsonObject
from bascule.models.offer import Offer, OfferedTool
from bascule.models.openai_chat import make_client, plain
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

_FINAL: Final = ("response.completed", "response.incomplete", "response.failed")
_MAX_EVENTS: Final = 1_000_000
_UNFINISHED: Final = ("cancelled", "in_progress", "queued")


class OpenAIResponses:
    """The Responses API of one model.

    Args:
        client, base_url, api_key, strict, stream, options: see `OpenAIChat`.
        programmatic: whether the model may also call the direct tools from OpenAI's own JavaScript programs.
            Every such call takes our bridge like all others.

    Raises:
        SdkMissing: the ``openai`` extra is not installed.
    """

    api = "openai.responses"

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        strict: bool = True,
        stream: bool = False,
        programmatic: bool = False,
        options: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.model = model
        self._client = client or make_client(base_url, api_key)
        self._is_strict = strict
        self._streams = stream
        self._programmatic = programmatic
        self._options: dict[str, Any] = {
            "store": False,
            "include": ["reasoning.encrypted_content"],
            **(options or {}),
        }

    async def complete(self, request: Request) -> Turn:
        """See `ModelClient.complete`."""
        offer = Offer(request.tools, strict=self._is_strict)
        asked: dict[str, Any] = {"model": self.model, "input": list(request.messages), **self._options}
        if request.system:
            asked["instructions"] = request.system
        if offer.tools:
            asked["tools"] = [self._function(each) for each in offer.tools]
            if self._programmatic:
                asked["tools"].append({"type": "programmatic_tool_calling"})
        with translated(self.api):
            response = await self._send(asked, request.on_text)
        return _read_turn(response, CallReader(offer.names, ids_in(request.messages, "call_id")), offer)

    async def close(self) -> None:
        """Close the SDK's client."""
        await self._client.close()

    def user_message(self, text: str) -> Message:
        """See `ModelClient.user_message`."""
        return {"role": "user", "content": text}

    def answer_messages(self, answers: Sequence[Answer]) -> list[Message]:
        """See `ModelClient.answer_messages`."""
        return [_output(each) for each in answers]

    def _function(self, offered: OfferedTool) -> JsonObject:
        made: JsonObject = {
            "type": "function",
            "name": offered.name,
            "description": offered.tool.description,
            "parameters": offered.parameters,
            "strict": offered.strict,
        }
        if self._programmatic:
            direct = offered.tool.tool is not None
            made["allowed_callers"] = ["direct", "programmatic"] if direct else ["direct"]
            if direct and offered.tool.returns is not None:
                made["output_schema"] = offered.tool.returns
        return made

    async def _send(self, asked: dict[str, Any], on_text: Callable[[str], None]) -> JsonObject:
        create = cast("Any", self._client.responses.create)
        if not self._streams:
            response = plain(await create(**asked))
            if not isinstance(response.get("output"), list):
                raise invalid(self.api, "it holds no output")
            return response
        async with await create(**asked, stream=True) as events:
            count = 0
            async for event in events:
                count += 1
                if count > _MAX_EVENTS:
                    raise invalid(self.api, f"the stream has more than {_MAX_EVENTS} events")
                kind = getattr(event, "type", None)
                if kind == "response.output_text.delta":
                    on_text(text_of(getattr(event, "delta", None)))
                elif kind in _FINAL:
                    return object_of(plain(event).get("response"))
        raise invalid(self.api, "the stream ended before the turn was complete")


def _read_turn(response: JsonObject, reader: CallReader, offer: Offer) -> Turn:
    texts: list[str] = []
    refusals: list[str] = []
    calls: list[ModelCall] = []
    kept: list[Message] = []
    dropped = 0
    for item in objects_of(response.get("output")):
        if item.get("type") != "function_call":
            kept.append(object_of(clean(item)))
            for part in objects_of(item.get("content")) if item.get("type") == "message" else ():
                texts.append(text_of(part.get("text")))
                refusals.append(text_of(part.get("refusal")))
        elif len(calls) < MAX_CALLS:
            call = reader.read(
                item.get("call_id"), item.get("name"), item.get("arguments"), item.get("caller")
            )
            calls.append(offer.restore(call))
            arguments = json.dumps(sent_arguments(call, item.get("arguments")), ensure_ascii=False)
            kept.append(
                {
                    **object_of(clean(item)),
                    "call_id": call.id,
                    "name": offer.names.to_wire(call.name),
                    "arguments": arguments,
                }
            )
        else:
            dropped += 1
    stop = _stop(response, has_calls=bool(calls), refused=any(refusals))
    return Turn(
        text="".join(texts) or "".join(refusals),
        calls=tuple(calls),
        stop=stop,
        messages=tuple(kept),
        usage=_usage(object_of(response.get("usage"))),
        dropped_calls=dropped,
    )


def _stop(response: JsonObject, *, has_calls: bool, refused: bool) -> Stop:
    status = response.get("status")
    if status == "incomplete":
        reason = object_of(response.get("incomplete_details")).get("reason")
        return "refusal" if reason == "content_filter" else "length"
    if status == "failed":
        error = object_of(response.get("error"))
        raise invalid("openai.responses", f"the response failed: {text_of(error.get('message'))[:300]}")
    if status in _UNFINISHED:  # of a background request, which this adapter does not follow
        raise invalid("openai.responses", f"the response is {status}")
    if has_calls:
        return "calls"
    return "refusal" if refused else "end"


def _output(answer: Answer) -> Message:
    made: Message = {
        "type": "function_call_output",
        "call_id": answer.call.id,
        "output": _for_program(answer) if _is_program(answer) else answer.text,
    }
    if answer.call.caller is not None:
        made["caller"] = answer.call.caller
    return made


def _is_program(answer: Answer) -> bool:
    return answer.call.caller is not None and answer.call.caller.get("type") == "program"


def _for_program(answer: Answer) -> str:
    """Return the whole result as JSON, which is what a program reads; it does not reach the model."""
    return json.dumps({"error": answer.text}, ensure_ascii=False) if answer.value is None else answer.value


def _usage(said: JsonObject) -> TokenUsage | None:
    given, made = count_of(said.get("input_tokens")), count_of(said.get("output_tokens"))
    if given is None or made is None:
        return None
    cached = count_of(object_of(said.get("input_tokens_details")).get("cached_tokens")) or 0
    return TokenUsage(input=given, output=made, cached=min(cached, given))
