"""Names that scripts can write, made of any text, each its own whatever else is there.

A name depends on its own text and on which others collide with it, never on the order of a list, so that a
service which adds an operation does not silently give a known name to another one.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from bascule.tools.naming import MAX_NAME_CHARS, RESERVED_NAMES

_NOT_WORD = re.compile(r"[^A-Za-z0-9]+")
_HASH_CHARS: Final = 8
MAX_SOURCE_CHARS: Final = 1000

IMPORTABLE: Final = frozenset(
    {
        "asyncio", "base64", "bisect", "calendar", "collections", "copy", "csv", "dataclasses", "datetime",
        "decimal", "enum", "fractions", "functools", "hashlib", "heapq", "html", "io", "itertools", "json",
        "math", "operator", "pprint", "random", "re", "secrets", "statistics", "string", "textwrap", "time",
        "typing", "unicodedata", "urllib", "uuid", "zoneinfo",
    }
)  # fmt: skip
"""Modules that scripts import: ``import time`` would hide a namespace of that name."""


def repair_word(text: str, *, fallback: str) -> str:
    """Return a text as an ASCII identifier that begins with a letter; the same text always gives the same.

    Args:
        text: untrusted, of any length.
        fallback: what the name begins with when the text has no letters that could stay.
    """
    plain = unicodedata.normalize("NFKD", text[:MAX_SOURCE_CHARS])
    ascii_text = plain.encode("ascii", "ignore").decode()
    words = [word for word in _NOT_WORD.split(ascii_text) if word]
    name = text if _is_fine(text) else "_".join(words)
    lost = sum(character.isalnum() for character in text[:MAX_SOURCE_CHARS]) - len("".join(words))
    if not name or lost > len("".join(words)):  # mostly of another alphabet: what is left would say nothing
        return f"{fallback}_{_digest(text)}"
    if name[0].isdigit():
        name = f"{fallback}_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def _is_fine(text: str) -> bool:
    return text.isascii() and text.isidentifier() and not text.startswith("_")


def choose_namespace(text: str, *, taken: Collection[str] = ()) -> str:
    """Return a namespace for a service of some name, that hides nothing a script needs."""
    name = repair_word(text, fallback="tools")[: MAX_NAME_CHARS // 2].rstrip("_") or "tools"
    if name in IMPORTABLE or name in RESERVED_NAMES or keyword.iskeyword(name):
        name = f"{name}_tools"
    return name if name not in taken else f"{name}_{_digest(text)}"


def choose_names(texts: Sequence[str], *, namespace: str, fallback: str = "tool") -> Mapping[str, str]:
    """Return the full name for each of some different texts, all different, none longer than a name may be.

    A text that is a name already keeps it; others that would get the same one are told apart by a hash.

    Args:
        namespace: what stands before the dot, empty for none.
    """
    room = MAX_NAME_CHARS - (len(namespace) + 1 if namespace else 0)
    repaired = {text: _fit(text, repair_word(text, fallback=fallback), room, namespace) for text in texts}
    shared = Counter(name.lower() for name in repaired.values())
    names: dict[str, str] = {}
    for text, name in repaired.items():
        if shared[name.lower()] > 1 and name != text:
            name = _with_hash(text, name, room)
        names[text] = f"{namespace}.{name}" if namespace else name
    return names


def _fit(text: str, name: str, room: int, namespace: str) -> str:
    if not namespace and name in RESERVED_NAMES:
        name = f"{name}_"
    return name if len(name) <= room else _with_hash(text, name, room)


def _with_hash(text: str, name: str, room: int) -> str:
    return f"{name[: room - _HASH_CHARS - 1].rstrip('_')}_{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
