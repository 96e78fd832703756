"""The one function that shows untrusted text to a person, on every channel.

It decides what a reader may be shown as is. It trusts nothing: text of scripts, arguments, results and tool
descriptions may try to move the cursor, reverse the reading direction, hide characters or look like
something else. What it gives is printable, on one line, and unambiguous: every backslash in plain text is
doubled, so an escape is never something the author wrote. Sources: Unicode 15 DerivedCoreProperties
(Default_Ignorable_Code_Point), UTS 39 (confusables), CVE-2021-42574 (Trojan Source).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

MAX_SHOWN_CHARS: Final = 2000
"""Characters shown of one text before its middle is cut."""

_PLAIN = re.compile(r"(?! )(?:[!-\[\]-~]| (?! ))*+(?<! )")
_ESCAPED_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SPACE_MARK: Final = "\u2423"
_IGNORABLE: Final = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x13441, 0x13442), (0x16FE4, 0x16FE4), (0x1BCA0, 0x1BCA3), (0x1D159, 0x1D159), (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Default-ignorable code points, and others drawn as nothing, as the empty Braille cell is."""

_SPACES = re.compile(r" {2,}|^ | $")
_AUTHORITY = re.compile(r"(?<=://)[^/?#\s\"<>\\]+")
"""Where the host of a URL stands: foreign letters in it are codes, also where all are of one alphabet."""
_WORD = re.compile(r"[^\W_](?:[\w.@-]*[^\W_])?")
_MARKS_PER_LETTER: Final = 2
_LOOKALIKE_LATIN: Final = frozenset("\u0131\u0138\u0149\u017f")
"""Letters of Latin Extended-A that pass for ASCII ones: dotless i, kra, n preceded by apostrophe, long s."""


_LOOKALIKES: Final = frozenset(
    # Cyrillic, Greek, Armenian
    "\u0430\u0441\u0501\u0435\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u051d\u0445\u0443\u04af"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423\u050c\u051a\u051c"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c5\u03f2\u03f3"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03f9\u037f"
    "\u0566\u0570\u0578\u057d\u0581\u0585\u054d\u054f\u053c\u0555"
)
"""Letters of other alphabets that are drawn like ASCII ones (UTS 39)."""

_LOOKALIKE_BLOCKS: Final = (
    (0x0250, 0x02AF), (0x13A0, 0x13FF), (0x1D00, 0x1D7F), (0x2C80, 0x2CFF), (0xA4D0, 0xA4FD),
    (0xAB70, 0xABBF), (0x10280, 0x1032F),
)  # fmt: skip
"""Phonetic letters, Cherokee, Coptic, Lisu and old Italic scripts: most of their letters are such."""

_LOOKALIKE_QUOTES: Final = frozenset(
    "\u02ba\u02dd\u02ee\u05f2\u05f4\u201c\u201d\u201f\u2033\u2036\u3003\uff02"
)
"""What passes for the quotation mark that ends a text in JSON."""


def show(text: str, *, max_chars: int = MAX_SHOWN_CHARS) -> str:
    """Return ``text`` as one printable line.

    At ``max_chars`` the middle is left out, and the length and the hash of the whole are given.
    """
    return _show(text, max_chars=max_chars, json=False)


def show_json(canonical: bytes, *, max_chars: int = MAX_SHOWN_CHARS) -> str:
    """Return JSON as one printable line that, marked spaces apart, still is the same JSON.

    Args:
        canonical: UTF-8 JSON without white space between tokens.
    """
    return _show(canonical.decode("utf-8", "backslashreplace"), max_chars=max_chars, json=True)


def show_block(text: str) -> str:
    """Return text of many lines, each made printable; line feeds, tabs and the spaces of its layout stay.

    For what a script printed. Not for what somebody has to decide about: there use `show`.
    """
    return "\n".join(_escape(line, json=False, layout=True) for line in text.split("\n"))


def _show(text: str, *, max_chars: int, json: bool) -> str:
    if len(text) <= max_chars:
        return _escape(text, json=json)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    half = max_chars // 2
    cut = f" [... {len(text) - 2 * half} of {len(text)} characters left out, sha256 {digest[:16]} ...] "
    return _escape(text[:half], json=json) + cut + _escape(text[-half:], json=json)


def _escape(text: str, *, json: bool, layout: bool = False) -> str:
    if _PLAIN.fullmatch(text):
        return text
    suspects = _confusable_positions(text)
    shown: list[str] = []
    marks = 0
    for index, char in enumerate(text):
        category = unicodedata.category(char)
        if category in ("Mn", "Me"):
            marks += 1
        elif category != "Mc":
            # Only letters beyond ASCII carry marks in honest text that is composed.
            marks = 0 if category.startswith("L") and not char.isascii() else _MARKS_PER_LETTER
        if char in " \t" and layout:
            shown.append(char)
        elif (
            index in suspects
            or marks > _MARKS_PER_LETTER
            or _hidden(char, category)
            or (json and char in _LOOKALIKE_QUOTES)
        ):
            shown.append(_code(char, json=json))
        elif char == "\\" and not json and not layout:
            shown.append("\\\\")
        else:
            shown.append(char)
    line = "".join(shown)
    return line if layout else _SPACES.sub(_mark_spaces, line)


def _hidden(char: str, category: str) -> bool:
    code = ord(char)
    if category in _ESCAPED_CATEGORIES or (category == "Zs" and char != " ") or char == _SPACE_MARK:
        return True
    return code > 0xAC and any(first <= code <= last for first, last in _IGNORABLE)


def _mark_spaces(run: re.Match[str]) -> str:
    count = len(run.group())
    return _SPACE_MARK * count if count <= 8 else f"{_SPACE_MARK}x{count}{_SPACE_MARK}"


def _code(char: str, *, json: bool) -> str:
    if char in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[char]
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    if not json:
        return f"\\U{code:08x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def _confusable_positions(text: str) -> frozenset[int]:
    """Return where letters and digits stand that could pass for ASCII ones, and what is foreign in hosts.

    In a word with ASCII letters that is every foreign one; in a word with ASCII digits, or of look-alikes
    alone, every look-alike; anywhere what is an ASCII letter or digit in another typeface.
    """
    if text.isascii():
        return frozenset()
    found: set[int] = set()
    for word in _WORD.finditer(text):
        letters = word.group()
        if letters.isascii():
            continue
        mixed = any(char.isascii() and char.isalpha() for char in letters)
        posing = any(char.isascii() and char.isdigit() for char in letters) or (
            len(letters) > 1 and all(_looks_ascii(char) for char in letters if char.isalnum())
        )
        found.update(
            word.start() + offset
            for offset, char in enumerate(letters)
            if not char.isascii()
            and char.isalnum()
            and not _plain_latin(char)
            and (mixed or (posing and _looks_ascii(char)) or _other_typeface(char))
        )
    for host in _AUTHORITY.finditer(text):
        found.update(place for place in range(host.start(), host.end()) if not text[place].isascii())
    return frozenset(found)


def _looks_ascii(char: str) -> bool:
    code = ord(char)
    return (
        char in _LOOKALIKES
        or (char.isdecimal() and code > 0x7F)
        or any(first <= code <= last for first, last in _LOOKALIKE_BLOCKS)
    )


def _other_typeface(char: str) -> bool:
    """Tell whether a character is an ASCII one by compatibility: full width, mathematical, circled."""
    plain = unicodedata.normalize("NFKC", char)
    return plain.isascii() and plain.isalnum()


def _plain_latin(char: str) -> bool:
    """Tell whether a letter is one of the accented Latin letters that Europeans write names with."""
    return "\u00c0" <= char <= "\u017f" and char not in _LOOKALIKE_LATIN
