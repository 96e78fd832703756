"""Puts a streamed chat completion together; nothing is a call before the stream has ended well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bascule.models.definitions import JsonObject
from bascule.models.gathering import Gathered
from bascule.models.reading import (
    MAX_ARGUMENT_CHARS,
    MAX_CALLS,
    MAX_TEXT_CHARS,
    object_of,
    objects_of,
    text_of,
)
from bascule.models.sdk_errors import invalid

MAX_CHUNKS: Final = 1_000_000
MAX_NAME_CHARS: Final = 1000


class ChatStream:
    """One turn on its way.

    Args:
        on_text: called with each piece of text.
    """

    def __init__(self, on_text: Callable[[str], None]) -> None:
        self._on_text = on_text
        self._texts: dict[str, Gathered] = {}
        self._calls: dict[int, _StreamedCall] = {}
        self._finish: str | None = None
        self._usage: JsonObject = {}
        self._chunks = 0

    def add(self, chunk: JsonObject) -> None:
        """Add one chunk. What comes after the end of the turn is not part of it.

        Raises:
            ModelError: there is no end to them.
        """
        self._chunks += 1
        if self._chunks > MAX_CHUNKS:
            raise invalid("openai.chat", f"the stream has more than {MAX_CHUNKS} chunks")
        self._usage = object_of(chunk.get("usage")) or self._usage
        for choice in objects_of(chunk.get("choices")):
            if choice.get("index") not in (0, None) or self._finish is not None:
                continue
            self._add_delta(object_of(choice.get("delta")))
            finish = choice.get("finish_reason")
            self._finish = finish if isinstance(finish, str) else None

    def _add_delta(self, delta: JsonObject) -> None:
        for key, value in delta.items():
            if key == "tool_calls":
                for position, piece in enumerate(objects_of(value)):
                    self._add_call(piece, position)
            elif isinstance(value, str) and key != "role" and (key in self._texts or len(self._texts) < 8):
                self._texts.setdefault(key, Gathered(MAX_TEXT_CHARS)).add(value)
                if key == "content" and value:
                    self._on_text(text_of(value))

    def _add_call(self, piece: JsonObject, position: int) -> None:
        index = piece.get("index")
        key = index if isinstance(index, int) else position
        if key in self._calls or len(self._calls) <= MAX_CALLS:
            self._calls.setdefault(key, _StreamedCall()).add(piece)

    def end(self, api: str) -> tuple[JsonObject, JsonObject]:
        """Return the choice as an unstreamed answer would hold it, and the usage.

        Raises:
            ModelError: the stream broke off.
        """
        if self._finish is None:
            raise invalid(api, "the stream ended before the turn was complete")
        message: JsonObject = {key: str(text) for key, text in self._texts.items()}
        message["tool_calls"] = [call.whole() for call in self._calls.values()]
        return {"message": message, "finish_reason": self._finish}, self._usage


class _StreamedCall:
    def __init__(self) -> None:
        self._fields: JsonObject = {}
        self._name = Gathered(MAX_NAME_CHARS)
        self._arguments = Gathered(MAX_ARGUMENT_CHARS)

    def add(self, piece: JsonObject) -> None:
        for key, value in piece.items():
            if key not in ("function", "index") and value not in (None, "") and len(self._fields) < 16:
                self._fields[key] = value
        function = object_of(piece.get("function"))
        for key, into in (("name", self._name), ("arguments", self._arguments)):
            text = function.get(key)
            if isinstance(text, str):
                into.add(text)

    def whole(self) -> JsonObject:
        return {**self._fields, "function": {"name": str(self._name), "arguments": str(self._arguments)}}
