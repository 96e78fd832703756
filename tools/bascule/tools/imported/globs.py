"""Patterns of names in configuration: ``*`` stands for any characters, nothing else is special; anchored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache


def matches_any(text: str, patterns: Iterable[str]) -> bool:
    """Tell whether one of the patterns fits the whole text; case counts."""
    return any(_compile(pattern).fullmatch(text) for pattern in patterns)


@lru_cache(maxsize=1000)
def _compile(pattern: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in re.split(r"\*+", pattern)]
    return re.compile(".*?".join(parts), re.DOTALL)
