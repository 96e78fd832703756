"""Puts a streamed Messages turn together; nothing is a call before ``message_stop``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bascule.bridge.result import JsonValue
from bascule.models.definitions import JsonObject
from bascule.models.gathering import Gathered
from bascule.models.reading import (
    MAX_ARGUMENT_CHARS,
    MAX_CALLS,
    MAX_TEXT_CHARS,
    object_of,
    read_arguments,
    text_of,
)
from bascule.models.sdk_errors import invalid

MAX_EVENTS: Final = 1_000_000
MAX_BLOCKS: Final = 4 * MAX_CALLS

_DELTAS: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


class MessageStream:
    """One turn on its way.

    Args:
        on_text: called with each piece of text.
    """

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._message: JsonObject = {}
        self._blocks: dict[int, _Block] = {}
        self._stopped = False
        self._events = 0

    def add(self, event: JsonObject) -> None:
        """Add one event. What comes after the end of the turn is not part of it.

        Raises:
            ModelError: there is no end to them.
        """
        self._events += 1
        if self._events > MAX_EVENTS:
            raise invalid("anthropic.messages", f"the stream has more than {MAX_EVENTS} events")
        kind = event.get("type")
        index = event.get("index")
        if self._stopped:
            return
        if kind == "message_start":
            self._message = object_of(event.get("message"))
        elif kind == "message_delta":
            self._message |= object_of(event.get("delta"))
            usage = {key: each for key, each in object_of(event.get("usage")).items() if each is not None}
            self._message["usage"] = {**object_of(self._message.get("usage")), **usage}
        elif kind == "message_stop":
            self._stopped = True
        elif kind == "content_block_start" and isinstance(index, int) and len(self._blocks) < MAX_BLOCKS:
            self._blocks.setdefault(index, _Block(object_of(event.get("content_block"))))
        elif kind == "content_block_delta" and isinstance(index, int) and index in self._blocks:
            text = self._blocks[index].add(object_of(event.get("delta")))
            if text:
                self._on_text(text)

    def end(self, api: str) -> JsonObject:
        """Return the message as an unstreamed answer would hold it.

        Raises:
            ModelError: the stream broke off.
        """
        if not self._stopped:
            raise invalid(api, "the stream ended before the turn was complete")
        return {**self._message, "content": [self._blocks[index].whole() for index in sorted(self._blocks)]}


class _Block:
    def __init__(self, start: JsonObject) -> None:
        self._start = start
        self._texts: dict[str, Gathered] = {}
        self._input = Gathered(MAX_ARGUMENT_CHARS)

    def add(self, delta: JsonObject) -> str:
        """Add a piece; return what of it is text for the user."""
        kind = delta.get("type")
        if kind == "input_json_delta":
            self._input.add(text_of(delta.get("partial_json")))
            return ""
        key = _DELTAS.get(kind) if isinstance(kind, str) else None
        if key is None:
            if kind == "citations_delta":
                self._start["citations"] = [*_items(self._start.get("citations")), delta.get("citation")][
                    :MAX_BLOCKS
                ]
            return ""
        piece = text_of(delta.get(key))
        self._texts.setdefault(key, Gathered(MAX_TEXT_CHARS)).add(piece)
        return piece if key == "text" else ""

    def whole(self) -> JsonObject:
        """Return the block; the input of a call of ours stays JSON text, as it was written."""
        texts = {key: f"{text_of(self._start.get(key))}{text}" for key, text in self._texts.items()}
        made = {**self._start, **texts}
        written = str(self._input)
        if written and made.get("type") == "tool_use":
            made["input"] = written
        elif written:
            made["input"] = read_arguments(written)[0] or {}
        return made


def _items(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
