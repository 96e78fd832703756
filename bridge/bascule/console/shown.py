"""Untrusted text as pages show it: `bascule.bridge.display`, after registered secrets are taken out.

Templates escape HTML by themselves; what these functions return is text, already printable and unambiguous.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bascule.bridge.display import show, show_block, show_json

_SPACES: Final = re.compile(" {2,}")
INLINE_CHARS: Final = 4000
"""Characters shown at once; the rest stands behind an expander."""

EXPANDED_CHARS: Final = 200_000
"""Characters shown behind an expander; beyond it the middle is cut and length and hash are given."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument for people: its name, and its value in lines as they are shown.

    Attributes:
        kind: JSON type in words.
        odd: it holds characters that are not shown as they are: hidden, look-alike, or turning the direction.
    """

    name: str
    kind: str
    lines: tuple[str, ...]
    whole: tuple[str, ...] | None
    odd: bool = False


class Shower:
    """Makes texts safe to show.

    Args:
        redact: takes registered secrets out.
    """

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact

    def text(self, value: object, max_chars: int = 2000) -> str:
        """Return a text as one printable line."""
        return show(self._redact(str(value)), max_chars=max_chars)

    def indented(self, line: str) -> str:
        """Return a line of JSON whose layout is ours: leading spaces stay, the rest is as in `text`."""
        left = line.lstrip(" ")
        return " " * (len(line) - len(left)) + self.text(left, EXPANDED_CHARS)

    def block(self, value: object) -> str:
        """Return what a script printed, line by line."""
        text = self._redact(str(value))
        if len(text) <= EXPANDED_CHARS:
            return show_block(text)
        half = EXPANDED_CHARS // 2
        cut = show(text, max_chars=2)  # gives length and hash of the whole
        return f"{show_block(text[:half])}\n{cut}\n{show_block(text[-half:])}"

    def json(self, value: bytes | str, max_chars: int = INLINE_CHARS) -> str:
        """Return canonical JSON as one printable line that is the same JSON."""
        data = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return show_json(self._redact(data).encode("utf-8", "replace"), max_chars=max_chars)

    def arguments(self, canonical: str) -> list[Argument]:
        """Return arguments one by one; texts in lines, everything else as JSON."""
        read: Any = json.loads(canonical)
        if not isinstance(read, dict):
            return [Argument("", "JSON", (self.json(canonical),), None)]
        return [self._argument(str(name), value) for name, value in read.items()]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def _argument(self, name: str, value: Any) -> Argument:
        if isinstance(value, str):
            lines = self._lines(value, INLINE_CHARS)
            whole = self._lines(value, EXPANDED_CHARS) if len(value) > INLINE_CHARS else None
            return Argument(self.text(name, 200), "text", lines, whole, is_odd(value))
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        whole = (self.json(text, EXPANDED_CHARS),) if len(text) > INLINE_CHARS else None
        return Argument(self.text(name, 200), _kind(value), (self.json(text),), whole, is_odd(text))

    def _lines(self, value: str, max_chars: int) -> tuple[str, ...]:
        """Return a text cut after its line feeds, each of which stays visible as ``\\n``."""
        text = self._redact(value)
        if len(text) > max_chars:
            return (show(text, max_chars=max_chars),)
        *rest, last = text.split("\n")
        if rest and not last:
            return tuple(show(line, max_chars=max_chars) + "\\n" for line in rest)
        return tuple(
            [show(line, max_chars=max_chars) + "\\n" for line in rest] + [show(last, max_chars=max_chars)]
        )


def is_odd(text: str) -> bool:
    """Tell whether a text holds what hides, looks like something else, or turns the direction.

    Line feeds and runs of spaces are shown marked, and are in every letter: a warning that is always there is
    not read.
    """
    lines = (_SPACES.sub(" ", line).strip(" ") for line in text.split("\n"))
    return any(show(line, max_chars=len(line) or 1) != line.replace("\\", "\\\\") for line in lines)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "number"
    return "list" if isinstance(value, list) else "object"


def stamp(at: float | None) -> str:
    """Return a time for people, in UTC."""
    return "never" if at is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def iso(at: float | None) -> str:
    """Return a time for programs."""
    return "" if at is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def span(seconds: float) -> str:
    """Return a length of time in at most two units."""
    left = max(0, round(seconds))
    if left < 60:
        return f"{left} s"
    minutes, seconds_left = divmod(left, 60)
    if minutes < 60:
        return f"{minutes} min" if minutes >= 10 else f"{minutes} min {seconds_left} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h"


def size(count: float) -> str:
    """Return a number of bytes."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} GB"


def pretty(value: object) -> str:
    """Return JSON in lines, ASCII only, so that nothing in it can hide."""
    return json.dumps(value, indent=2, ensure_ascii=True)


def plain_json(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def facts_line(facts: Mapping[str, object]) -> str:
    """Return the facts of an event or audit entry as JSON, without hashes and what says nothing."""
    told = {
        name: value for name, value in facts.items() if value not in (None, "", [], {}) and not _is_hash(name)
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def seconds(value: float) -> str:
    """Return a time since the beginning."""
    return f"+{value:.3f} s" if abs(value) < 100 else f"+{span(value)}"


def text_of(data: bytes) -> str:
    """Return bytes of ours as text."""
    return data.decode("utf-8", "replace")


def numbered(lines: Sequence[str]) -> list[tuple[int, str]]:
    """Return lines with their numbers, from 1."""
    return list(enumerate(lines, 1))


def _is_hash(name: str) -> bool:
    return name in ("digest", "image", "key", "seed") or name.endswith(("sha256", "hmac"))
