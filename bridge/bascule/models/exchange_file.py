"""Exchanges as a file of JSON lines, so that what was measured in one place is drawn in another.

A file is data of its maker: sizes and types are checked, and what is wrong is said with its line.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from bascule.models.exchange import CallTokens, Exchange
from bascule.wire import BasculeError

EXCHANGES_VERSION: Final = 1
MAX_FILE_BYTES: Final = 256 << 20
HEADER: Final = b'{"bascule_exchanges":'


class ExchangesInvalid(BasculeError):
    """Raised when a file is no file of exchanges, or damaged (``exchanges_invalid``)."""

    def __init__(self, path: Path, line: int, reason: object) -> None:
        super().__init__("exchanges_invalid", f"{path}, line {line}: {reason}")


class _Header(msgspec.Struct):
    bascule_exchanges: int


class _Call(msgspec.Struct, array_like=True, frozen=True):
    arguments: int
    result: int
    result_bytes: int
    round: int


class _Line(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    id: str
    origin: str
    question: int
    direct_definitions: int
    script_definitions: int
    calls: list[_Call]
    script: int
    returned: int
    exact: bool


def write_exchanges(exchanges: Iterable[Exchange], path: Path) -> None:
    """Write exchanges, one a line, after a header."""
    lines = [msgspec.json.encode({"bascule_exchanges": EXCHANGES_VERSION})]
    lines.extend(msgspec.json.encode(_line(each)) for each in exchanges)
    path.write_bytes(b"\n".join(lines) + b"\n")


def read_exchanges(path: Path) -> list[Exchange]:
    """Read a file of exchanges.

    Raises:
        ExchangesInvalid: it is none, a newer one, or damaged.
        OSError: it cannot be read.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ExchangesInvalid(path, 0, f"it is larger than {MAX_FILE_BYTES} bytes")
    found: list[Exchange] = []
    number = 0
    try:
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            if number == 1:
                version = msgspec.json.decode(line, type=_Header).bascule_exchanges
                if version != EXCHANGES_VERSION:
                    raise ValueError(f"its version is {version}, this bascule reads {EXCHANGES_VERSION}")
            else:
                found.append(_exchange(msgspec.json.decode(line, type=_Line)))
        if number == 0:
            raise ValueError("it is empty")
    except (ValueError, msgspec.MsgspecError) as error:
        raise ExchangesInvalid(path, number, error) from error
    return found


def _line(exchange: Exchange) -> _Line:
    return _Line(
        id=exchange.id,
        origin=exchange.origin,
        question=exchange.question,
        direct_definitions=exchange.direct_definitions,
        script_definitions=exchange.script_definitions,
        calls=[_Call(each.arguments, each.result, each.result_bytes, each.round) for each in exchange.calls],
        script=exchange.script,
        returned=exchange.returned,
        exact=exchange.exact,
    )


def _exchange(line: _Line) -> Exchange:
    fields: dict[str, Any] = msgspec.structs.asdict(line)
    numbers = [value for value in fields.values() if isinstance(value, int)]
    numbers += [value for call in line.calls for value in msgspec.structs.astuple(call)]
    if min(numbers) < 0:
        raise ValueError("a number of tokens is below 0")
    calls = tuple(CallTokens(**msgspec.structs.asdict(call)) for call in line.calls)
    fields["calls"] = calls
    return Exchange(**fields)
