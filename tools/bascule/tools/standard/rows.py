"""Rows of a query as plain data: bounded in number and bytes, columns named once each."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pydantic import JsonValue

MAX_RESULT_BYTES: Final = 8 << 20
MAX_STATEMENT_CHARS: Final = 20_000
MAX_PARAMETERS: Final = 100

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a query gave.

    Attributes:
        rows: each a value by column; dates are ISO text, decimals text with all digits, bytes base64 text.
        columns: their names in order; a name that comes twice gets a number.
        truncated: there were more rows than may be returned; ask for fewer, or for the next ones.
    """

    rows: list[dict[str, JsonValue]]
    columns: list[str]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table or view that may be read, and its columns with their types."""

    name: str
    columns: dict[str, str]


def number_names(names: Iterable[str]) -> list[str]:
    """Return column names, each once: ``id`` and ``id`` become ``id`` and ``id_2``."""
    found: dict[str, None] = {}
    for name in names:
        unique, number = name, 1
        while unique in found:
            number += 1
            unique = f"{name}_{number}"
        found[unique] = None
    return list(found)


def collect_rows(columns: Sequence[str], values: Iterable[Sequence[Any]], *, max_rows: int) -> Rows:
    """Return rows up to a number, reading no further than one more.

    Raises:
        ValueError: they are more than `MAX_RESULT_BYTES` of JSON together.
    """
    names = number_names(columns)
    rows: list[dict[str, JsonValue]] = []
    size = 0
    for row in values:
        if len(rows) == max_rows:
            return Rows(rows=rows, columns=names, truncated=True)
        plain = [_plain(value) for value in row]
        size += sum(len(value) if isinstance(value, str) else 8 for value in plain)
        if size > MAX_RESULT_BYTES:
            raise ValueError(
                f"the rows are more than {MAX_RESULT_BYTES} bytes together; select fewer columns or rows"
            )
        rows.append(dict(zip(names, plain, strict=True)))
    return Rows(rows=rows, columns=names, truncated=False)


def _plain(value: Any) -> JsonValue:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, float) and value - value != 0:  # JSON has no infinity and no NaN
        return str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    plain: JsonValue = value
    return plain


def read_json_row(text: str) -> list[tuple[str, Any]]:
    """Return the columns of a row that a database wrote as JSON, in order, twice-named ones included."""
    pairs: list[list[tuple[str, Any]]] = []

    def keep(found: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append(found)
        return dict(found)

    json.loads(text, parse_float=Decimal, object_pairs_hook=keep)
    return pairs[-1]
