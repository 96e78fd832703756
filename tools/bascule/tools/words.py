"""Text as words that can be looked up: names taken apart, accents dropped, Chinese in pairs of characters.

Used alike on what is indexed and on what is asked, so both sides meet. Trusts nothing: any text gives some
list of words, bounded by its length.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_TEXT_CHARS: Final = 20_000
"""Characters of a text that are read."""

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_PIECES = re.compile(
    rf"[{_CJK}]+"  # scripts without spaces between words
    r"|[A-Z]+(?=[A-Z][a-z])"  # HTTP in HTTPServer
    r"|[A-Z]?[a-z]+|[A-Z]+|[0-9]+"
    rf"|[^\W\d_A-Za-z{_CJK}]+"  # letters of other scripts
)
_EMAIL = re.compile(r"\be-mail", re.IGNORECASE)
_IS_CJK = re.compile(rf"[{_CJK}]")

_SAYS_NOTHING: Final = """
    a about all an and any are as at be by can do does for from get give has have how i if in into is it its
    let make me my need of on one or our out please s should some t that the their them then there this to up
    us use using want was we what when where which who will with would you your
"""
STOP_WORDS: Final = frozenset(_SAYS_NOTHING.split())
"""Words that say nothing about what is wanted, unless nothing else is said."""


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    ``crm.findContact`` gives crm, find, contact; accents are dropped; runs of Chinese, Japanese or Korean
    give each pair of neighbours (a lone character itself).
    """
    spelled = _EMAIL.sub("email", unicodedata.normalize("NFKC", text[:MAX_TEXT_CHARS]))
    folded = unicodedata.normalize("NFKD", spelled)
    plain = unicodedata.normalize("NFC", "".join(each for each in folded if not unicodedata.combining(each)))
    words: list[str] = []
    for piece in _PIECES.findall(plain):
        if not _IS_CJK.match(piece):
            words.append(piece.lower())
        elif len(piece) == 1:
            words.append(piece)
        else:
            words += [piece[start : start + 2] for start in range(len(piece) - 1)]
    return words


def query_words(text: str) -> list[str]:
    """Return the words of a question once each, without `STOP_WORDS` where others are left."""
    words = list(dict.fromkeys(split_words(text)))
    return [word for word in words if word not in STOP_WORDS] or words
