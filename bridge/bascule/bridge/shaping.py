"""Large values and texts cut to what a model should read, in their own shape, and what was left out.

Decides what a reader loses, never what the script had: the whole stays where its handle says. What is cut is
untrusted text; it comes out as JSON or as text and nothing is interpreted. What is returned never exceeds the
bound, whatever goes in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import msgspec

from bascule.bridge.artifacts import ArtifactRefused
from bascule.bridge.outputs import keep, read_output
from bascule.bridge.result import JsonValue
from bascule.bridge.store import Store

__all__ = ["MIN_BYTES", "Shaped", "read_output", "shape", "shape_and_keep"]

MIN_BYTES: Final = 256
"""Below this nothing useful can be said about what was left out."""

MAX_NOTED: Final = 5
"""Places that a note lists where there is room; the rest is counted."""

_MAX_PATH_CHARS: Final = 120

_ENCODED: Final = re.compile(r"(?=\D*\d)[A-Za-z0-9+/_-]{512}")
"""How a text begins that nobody reads: bytes of a picture or a file, in base64 or the like."""

_ENCODED_CHARS: Final = 32

# Items of a list, members of an object, characters of a text, levels of nesting: the richest fit is taken.
_STEPS: Final = (
    (400, 400, 4000, 32),
    (200, 200, 2000, 32),
    (100, 200, 1000, 16),
    (50, 100, 500, 16),
    (30, 100, 400, 12),
    (20, 100, 300, 12),
    (14, 80, 250, 10),
    (10, 60, 200, 10),
    (7, 50, 150, 8),
    (5, 40, 120, 8),
    (4, 35, 100, 7),
    (3, 30, 80, 6),
    (2, 20, 50, 5),
    (1, 12, 30, 4),
    (1, 8, 20, 3),
    (1, 5, 12, 2),
    (0, 3, 8, 1),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """What a reader gets of a value or text.

    Attributes:
        text: JSON or text, then, if anything was left out, a note in brackets that says what, how much, and
            how to get it. At most as many bytes of UTF-8 as was asked for.
        omitted_bytes: bytes of the whole that are not in the text; 0 when it is whole.
        omitted: what was left out, one line each, for example ``rows: items 20 to 999 of 1000``.
        handle: where the whole is kept, or None.
    """

    text: str
    omitted_bytes: int = 0
    omitted: tuple[str, ...] = ()
    handle: str | None = None


def shape(value: JsonValue, *, max_bytes: int, handle: str | None = None, path: str = "") -> Shaped:
    """Return a value as bounded JSON, or a plain text (a ``str``) as bounded text.

    JSON keeps its structure: the first items of lists, the first members of objects, the beginnings of texts;
    a marker stands where something is missing, so that the result is still JSON. A text keeps its
    beginning and its end, in whole lines where it has lines.

    Args:
        max_bytes: of the returned text, at least `MIN_BYTES`.
        handle: under which the whole can be read; named in the note.
        path: where the value stands in what the handle names; the note's places begin with it.

    Raises:
        ValueError: ``max_bytes`` is below `MIN_BYTES`.
    """
    if max_bytes < MIN_BYTES:
        raise ValueError(f"max_bytes must be at least {MIN_BYTES}, got {max_bytes}")
    whole = value.encode("utf-8", "replace") if isinstance(value, str) else _encode(value)
    if len(whole) <= max_bytes:
        return Shaped(text=whole.decode())
    if isinstance(value, str):
        return _shape_text(whole, max_bytes, handle, path)
    for items, members, characters, levels in _STEPS:
        cutter = _Cutter(items, members, characters, levels, max_bytes)
        try:
            encoded = _encode(cutter.cut(value, path, 0))
        except _TooMuchError:
            continue
        for noted in (MAX_NOTED, 1):
            text = _annotated(encoded, whole, cutter.omitted, _where(handle), noted)
            if len(text.encode()) <= max_bytes:
                return _shaped(text, whole, encoded, cutter.omitted, handle)
    size = len(value) if isinstance(value, dict | list) else 1
    kind = f"an object of {size} members" if isinstance(value, dict) else f"a list of {size} items"
    omitted = [f"{path[:_MAX_PATH_CHARS] or 'the whole value'}: {kind}"]
    return _shaped(_annotated(b"", whole, omitted, _where(handle)), whole, b"", omitted, handle)


def shape_and_keep(
    store: Store, value: JsonValue, *, max_bytes: int, owner: str = "", run_id: str = ""
) -> Shaped:
    """Return a value as `shape` does; if that leaves anything out, the whole is kept and the note says where.

    Raises:
        StoreError: the store cannot be written. A value beyond the quotas is only cut.
    """
    first = shape(value, max_bytes=max_bytes)
    if not first.omitted_bytes:
        return first
    try:
        handle = keep(store, value, owner=owner, run_id=run_id)
    except ArtifactRefused:
        return first
    return shape(value, max_bytes=max_bytes, handle=handle)


class _TooMuchError(Exception):
    """More would be kept than there is room for."""


class _Cutter:
    """Cuts one value to given counts, and notes what it left out; gives up early when that cannot fit.

    Raises:
        _TooMuchError: by `cut`.
    """

    def __init__(self, items: int, members: int, characters: int, levels: int, room: int) -> None:
        self.items, self.members, self.characters, self.levels = items, members, characters, levels
        self.room = room
        self.omitted: list[str] = []

    def cut(self, value: JsonValue, path: str, depth: int) -> JsonValue:
        self.room -= 2  # the shortest a value and its comma can be
        if self.room < 0:
            raise _TooMuchError
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, list):
            return self._list(value, path, depth)
        if isinstance(value, dict):
            return self._object(value, path, depth)
        if isinstance(value, int) and not -(10**400) < value < 10**400:
            return "… an integer of many digits"
        return value

    def _text(self, value: str, path: str) -> str:
        characters = self.characters
        if len(value) > characters and _ENCODED.match(value):
            characters = min(characters, _ENCODED_CHARS)
        self.room -= min(len(value), characters)
        if len(value) <= characters:
            return value
        left = len(value) - characters
        self._note(path, f"{left} of {len(value)} characters")
        return f"{value[:characters]}… {left} more characters"

    def _list(self, value: list[JsonValue], path: str, depth: int) -> JsonValue:
        if depth >= self.levels and value:
            self._note(path, f"all {len(value)} items")
            return f"… a list of {len(value)} items"
        kept: list[JsonValue] = [
            self.cut(item, f"{path}[{number}]", depth + 1) for number, item in enumerate(value[: self.items])
        ]
        if len(value) > self.items:
            self._note(path, f"items {self.items} to {len(value) - 1} of {len(value)}")
            kept.append(f"… {len(value) - self.items} more of {len(value)} items")
        return kept

    def _object(self, value: dict[str, JsonValue], path: str, depth: int) -> JsonValue:
        if depth >= self.levels and value:
            self._note(path, f"all {len(value)} members")
            return f"… an object of {len(value)} members"
        kept: dict[str, JsonValue] = {}
        for name in list(value)[: self.members]:
            below = f"{path}.{name}" if path else name
            kept[self._text(name, below)] = self.cut(value[name], below[:_MAX_PATH_CHARS], depth + 1)
        if len(value) > self.members:
            left = len(value) - self.members
            self._note(path, f"{left} of {len(value)} members")
            kept["…"] = f"{left} more of {len(value)} members"
        return kept

    def _note(self, path: str, what: str) -> None:
        self.omitted.append(f"{path[:_MAX_PATH_CHARS] or 'the value'}: {what}")


def _shape_text(whole: bytes, max_bytes: int, handle: str | None, path: str) -> Shaped:
    """Keep two thirds of the room for the beginning and one for the end."""
    lines = whole.count(b"\n")
    longest = [_left_of_text(len(whole), len(whole), lines, path)]
    note = _annotated(b"", whole, longest, _where(handle, path, len(whole)))
    room = max(max_bytes - len(note.encode()) - 48, 0)  # for the line in the middle
    head = _whole_lines(whole[: room * 2 // 3], at_end=True)
    tail = _whole_lines(whole[len(whole) - room // 3 :], at_end=False) if room // 3 else b""
    left = len(whole) - len(head) - len(tail)
    missing = whole[len(head) : len(whole) - len(tail)].count(b"\n")
    omitted = [_left_of_text(left, len(whole), missing, path)]
    middle = f"\n[… {left} bytes left out …]\n".encode()
    kept = head.removesuffix(b"\n") + middle + tail
    where = _where(handle, path, len(head.decode()))
    return _shaped(_annotated(kept, whole, omitted, where), whole, b"", omitted, handle, left=left)


def _left_of_text(left: int, total: int, lines: int, path: str) -> str:
    return f"{path[:_MAX_PATH_CHARS] or 'the text'}: {left} of {total} bytes ({lines} lines) in its middle"


def _where(handle: str | None, path: str = "", offset: int | None = None) -> str:
    """Say how to read the rest: from a known place in a text, or at one of the places listed."""
    if handle is None:
        return ""
    if offset is None:
        return f' Read the rest: read_output(handle="{handle}", path=..., offset=...).'
    at = f', path="{path}"' if path else ""
    return f' Read the rest: read_output(handle="{handle}"{at}, offset={offset}).'


def _whole_lines(part: bytes, *, at_end: bool) -> bytes:
    """Cut a part of UTF-8 at a line end if there is one in its outer half, else between characters."""
    if at_end:
        end = part.rfind(b"\n")
        return part[: end + 1] if end >= len(part) // 2 else part.decode("utf-8", "ignore").encode()
    start = part.find(b"\n")
    return part[start + 1 :] if 0 <= start < len(part) // 2 else part.decode("utf-8", "ignore").encode()


def _annotated(kept: bytes, whole: bytes, omitted: list[str], where: str, noted: int = MAX_NOTED) -> str:
    listed = "; ".join(omitted[:noted])
    if len(omitted) > noted:
        listed += f"; and {len(omitted) - noted} more places"
    note = f"[cut from {len(whole)} bytes; left out: {listed}.{where}]"
    if not kept:
        return note
    text = kept.decode().removesuffix("\n")
    return f"{text}\n{note}"


def _shaped(
    text: str, whole: bytes, kept: bytes, omitted: list[str], handle: str | None, *, left: int | None = None
) -> Shaped:
    omitted_bytes = max(len(whole) - len(kept), 1) if left is None else left
    return Shaped(text=text, omitted_bytes=omitted_bytes, omitted=tuple(omitted), handle=handle)


def _encode(value: JsonValue) -> bytes:
    return msgspec.json.encode(value)
