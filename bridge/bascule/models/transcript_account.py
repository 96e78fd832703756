"""What a transcript says of tokens: the runs it made, and the usage that the provider reported.

A transcript is a file of somebody's: sizes and types are checked, and what is wrong is said with its line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bascule.models.exchange_file import MAX_FILE_BYTES, ExchangesInvalid

HEADER: Final = b'{"at":'
"""How every line of a transcript begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptUsage:
    """Sums over the conversations of a file.

    Attributes:
        runs: ids, in the order of their first mention.
        input, output: tokens as the provider counted them, or as they were estimated where it said nothing.
    """

    runs: tuple[str, ...]
    input: int
    output: int


class _Line(msgspec.Struct):
    kind: str
    runs: list[str] = []
    input_tokens: int = 0
    output_tokens: int = 0


def read_usage(path: Path) -> TranscriptUsage:
    """Read what the ended conversations of a transcript used.

    Raises:
        ExchangesInvalid: it is none, or damaged.
        OSError: it cannot be read.
    """
    if path.stat().st_size > MAX_FILE_BYTES:
        raise ExchangesInvalid(path, 0, f"it is larger than {MAX_FILE_BYTES} bytes")
    runs: dict[str, None] = {}
    read, written, number = 0, 0, 0
    try:
        for text in path.read_bytes().splitlines():
            number += 1
            line = msgspec.json.decode(text, type=_Line)
            if line.kind == "finished":
                runs.update(dict.fromkeys(line.runs))
                read += line.input_tokens
                written += line.output_tokens
    except msgspec.MsgspecError as error:
        raise ExchangesInvalid(path, number, error) from error
    return TranscriptUsage(runs=tuple(runs), input=read, output=written)
