"""Text of other people's definitions, made fit to be told to models and shown to people."""

from __future__ import annotations

import re

from bascule.tools.imported.bounds import MAX_DESCRIPTION_CHARS
from bascule.tools.safe_text import shorten

_MARKUP = re.compile(
    r"</?(?:a|b|br|code|div|em|h[1-6]|hr|i|img|li|ol|p|pre|span|strong|sub|sup|table|tbody|td|th|thead|tr|u|ul)\b"
    r"[^<>]{0,300}>",
    re.IGNORECASE,
)
"""Tags of HTML; ``<file>`` and other placeholders stay."""

_SPACE = re.compile(r"[ \t]{2,}")
_BLANK_LINES = re.compile(r"\n{3,}")


def clean_text(text: object, *, max_chars: int = MAX_DESCRIPTION_CHARS) -> str:
    """Return a text without markup, control, invisible or bidirectional characters; its lines stay.

    Anything that is not text gives the empty text.
    """
    if not isinstance(text, str):
        return ""
    if text.isprintable() and "<" not in text and "  " not in text:
        return shorten(text.strip(), max_chars)
    lines = _MARKUP.sub(" ", text[: 4 * max_chars]).replace("\r\n", "\n").split("\n")
    cleaned = [
        _SPACE.sub(" ", "".join(c if c.isprintable() else " " for c in line)).rstrip() for line in lines
    ]
    return shorten(_BLANK_LINES.sub("\n\n", "\n".join(cleaned)).strip(), max_chars)


def clean_phrase(text: object, *, max_chars: int) -> str:
    """Return a text as `clean_text` does, on one line."""
    return shorten(" ".join(clean_text(text).split()), max_chars)
