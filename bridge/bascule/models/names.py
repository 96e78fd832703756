"""Names of tools as APIs accept them, and back: dots become hyphens, which no tool's own name can hold.

So the mapping loses nothing; only names beyond the length an API takes are cut, with a hash in place of the
rest. What a model writes is untrusted: names it made up stay what they are, made fit for the history.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

MAX_WIRE_CHARS: Final = 64
"""The shortest limit among the APIs (OpenAI, Gemini: 64; Anthropic: 128)."""

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
_HASH_CHARS: Final = 8


class NameMap:
    """The names of one surface, both ways."""

    def __init__(self, names: Iterable[str]) -> None:
        self._wire = {name: wire_name(name) for name in names}
        self._names = {wire: name for name, wire in self._wire.items()}
        assert len(self._names) == len(self._wire)

    def to_wire(self, name: str) -> str:
        """Return the name of a tool, or of what a model invented, as the API accepts it."""
        return self._wire.get(name) or wire_name(name)

    def from_wire(self, written: str) -> str:
        """Return the tool a model means; what it wrote when there is none.

        Models also write the name from the prompt, dots and all.
        """
        return self._names.get(written, written)


def wire_name(name: str) -> str:
    """Return a name within ``[A-Za-z0-9_-]{1,64}``, different for different names of tools."""
    if name and len(name) <= MAX_WIRE_CHARS and not _UNFIT.search(name.replace(".", "-")):
        return name.replace(".", "-")
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]
    kept = _UNFIT.sub("_", name[:MAX_WIRE_CHARS].replace(".", "-"))[: MAX_WIRE_CHARS - _HASH_CHARS - 1]
    return f"{kept}-{digest}" if kept else f"tool-{digest}"
