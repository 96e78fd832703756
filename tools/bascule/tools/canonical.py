"""The one spelling of a JSON value: RFC 8785, with integers always exact.

Canonical bytes are what operators see, what is hashed, journaled and executed. RFC 8785 knows no integers
beyond 2**53; ids of 64 bits are common, so we write such integers as their decimal digits instead of
refusing them (docs/decisions/010-canonical-arguments.md). Trusts its input to be plain data within the
depth that `check_plain` allows.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import cast

import rfc8785
from pydantic import JsonValue

MAX_DEPTH = 64
"""Nesting of lists and objects in arguments and results, as on the wire."""

MAX_INTEGER = 2**1024
"""Integers stay below the range of a double, so that no reader of the bytes can make one infinite."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def canonical_json(value: JsonValue) -> bytes:
    """Return the canonical bytes of a plain value.

    Raises:
        ValueError: a number is not finite, or a text holds half of a surrogate pair.
    """
    return _text(value).encode()


def _text(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return rfc8785.dumps(value).decode()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
    return f"{{{','.join(f'{_text(key)}:{_text(item)}' for key, item in members)}}}"


def check_plain(value: object, *, path: str) -> None:
    """Check that a value is JSON data by exact type, finite, within depth and integer range.

    Raises:
        ValueError: with the path of the first fault, starting at ``path``, and what is wrong there.
    """
    fault = _find_fault(value, 1)
    if fault is not None:
        steps, reason = fault
        for step in reversed(steps):
            path = join_path(path, step)
        raise ValueError(f"{path}: {reason}")


def _find_fault(value: object, depth: int) -> tuple[list[str | int], str] | None:
    """Return the steps to the first fault, innermost first, and the reason."""
    reason = None
    if value is None or type(value) is bool:
        return None
    if type(value) is str:
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            reason = "the text holds half of a surrogate pair"
    elif type(value) is int:
        if not -MAX_INTEGER < value < MAX_INTEGER:
            reason = "the integer is too large; pass it as text"
    elif type(value) is float:
        if not math.isfinite(value):
            reason = f"{value} is not a JSON number; pass a finite number or None"
    elif type(value) is not list and type(value) is not dict:
        reason = f"a {type(value).__name__} is not plain data"
    elif depth > MAX_DEPTH:
        reason = f"nested deeper than {MAX_DEPTH}"
    else:
        return _find_fault_inside(cast("list[object] | dict[object, object]", value), depth)
    return None if reason is None else ([], reason)


def _find_fault_inside(
    value: list[object] | dict[object, object], depth: int
) -> tuple[list[str | int], str] | None:
    if isinstance(value, list):
        members: Iterable[tuple[object, object]] = enumerate(value)
    else:
        for key in value:
            if type(key) is not str:
                return [], f"the key {key!r:.40} is not a string"
            if _find_fault(key, depth):
                return [], "a key holds half of a surrogate pair"
        members = value.items()
    for step, item in members:
        fault = _find_fault(item, depth + 1)
        if fault is not None:
            fault[0].append(cast("str | int", step))
            return fault
    return None


def join_path(path: str, step: str | int) -> str:
    """Append one step to a path: ``filter`` and ``min`` give ``filter.min``, an index gives ``filter[0]``."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if _PLAIN_KEY.fullmatch(step):
        return f"{path}.{step}" if path else step
    return f"{path}[{json.dumps(step if len(step) <= 40 else f'{step[:40]}…')}]"
