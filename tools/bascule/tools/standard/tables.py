"""Rows of data made small: what columns they have, and as text to be read. Pure; nothing is kept."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from pydantic import Field, JsonValue

from bascule.tools.tool import AnyTool, tool

MAX_ROWS: Final = 200_000
MAX_COLUMNS: Final = 200
MAX_CELL_CHARS: Final = 100
MAX_TEXT_CHARS: Final = 16 << 20

_TYPES: Final[dict[type, str]] = {
    str: "text",
    bool: "yes or no",
    int: "whole number",
    float: "number",
    list: "list",
}

Rows = Annotated[list[dict[str, JsonValue]], Field(max_length=MAX_ROWS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What one column holds; least, greatest and examples are cut to 100 characters."""

    name: str
    types: list[str]
    filled: int
    empty: int
    distinct: int
    least: JsonValue
    greatest: JsonValue
    examples: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a table holds."""

    rows: int
    columns: list[Column]


@tool(name="tables.profile", effects="read", parallel_safe=True)
def profile(rows: Rows) -> Profile:
    """Say what a table holds without showing it: columns, types, how many are filled, ranges, examples.

    Args:
        rows: a list of objects.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"the rows have {len(names)} different names; {MAX_COLUMNS} are allowed")
    return Profile(rows=len(rows), columns=[_column(name, rows) for name in names])


@tool(name="tables.to_text", effects="read", parallel_safe=True)
def to_text(
    rows: Rows,
    columns: Annotated[list[str], Field(max_length=MAX_COLUMNS)] | None = None,
    limit: Annotated[int, Field(ge=1, le=1000)] = 20,
) -> str:
    """Write the first rows of a table as a Markdown table, and how many there are.

    Args:
        rows: a list of objects.
        columns: which columns, in this order; all when None.
        limit: how many rows to show.
    """
    shown = columns or list(dict.fromkeys(name for row in rows[:limit] for name in row))[:MAX_COLUMNS]
    lines = [_line(shown), "|" + " --- |" * len(shown)] if shown else []
    lines += [_line([_cell(row.get(name)) for name in shown]) for row in rows[:limit]]
    if len(rows) > limit:
        lines.append(f"({len(rows) - limit} more of {len(rows)} rows)")
    return "\n".join(lines)


@tool(name="tables.parse_csv", effects="read", parallel_safe=True)
def parse_csv(
    text: Annotated[str, Field(max_length=MAX_TEXT_CHARS)],
    delimiter: Annotated[str, Field(pattern=r'^[^\r\n"]$')] = ",",
) -> list[dict[str, str]]:
    """Read CSV text whose first line names the columns; every value stays text.

    Args:
        text: the CSV.
        delimiter: what stands between values, like ; or a tab.
    """
    try:
        reader = csv.reader(
            io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter, strict=True
        )
        nothing: list[str] = []
        names = next(reader, nothing)
        if len(names) > MAX_COLUMNS or len(set(names)) != len(names):
            raise ValueError("the first line must name up to 200 columns, each once")
        rows: list[dict[str, str]] = []
        for number, values in enumerate(reader, 2):
            if not values:
                continue
            if len(values) != len(names):
                raise ValueError(f"row {number} has {len(values)} values for {len(names)} columns")
            if len(rows) == MAX_ROWS:
                raise ValueError(f"there are more than {MAX_ROWS} rows")
            rows.append(dict(zip(names, values, strict=True)))
    except (csv.Error, TypeError) as error:
        raise ValueError(f"this is not CSV: {error}") from error
    return rows


TOOLS: Final[list[AnyTool]] = [profile, to_text, parse_csv]


def _column(name: str, rows: Sequence[dict[str, Any]]) -> Column:
    values = [row[name] for row in rows if row.get(name) is not None]
    counted = Counter(map(_cell, values))
    numbers = [each for each in values if isinstance(each, int | float) and not isinstance(each, bool)]
    texts = [each for each in values if isinstance(each, str)]
    ordered: Sequence[Any] = (
        numbers if len(numbers) == len(values) else texts if len(texts) == len(values) else []
    )
    return Column(
        name=name,
        types=sorted({_type(each) for each in values}),
        filled=len(values),
        empty=len(rows) - len(values),
        distinct=len(counted),
        least=_short(min(ordered, default=None)),
        greatest=_short(max(ordered, default=None)),
        examples=[text for text, _ in counted.most_common(3)],
    )


def _type(value: object) -> str:
    return _TYPES.get(type(value), "object")


def _short(value: JsonValue) -> JsonValue:
    return value[:MAX_CELL_CHARS] if isinstance(value, str) else value


def _cell(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else repr(value)
    text = " ".join(text[: 4 * MAX_CELL_CHARS].split()).replace("|", "\\|")
    return text if len(text) <= MAX_CELL_CHARS else f"{text[: MAX_CELL_CHARS - 1]}…"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_cell(cell) if '|' not in cell else cell for cell in cells)} |"
