"""The token account of a run: what it cost as a script, and what the same calls would have cost directly.

Reads the run's journal, which has every argument and result, and counts them; with a Result alone, whose
receipts have only the sizes of results, it estimates and says so. Texts are untrusted and only counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

import msgspec

from bascule.bridge.errors import ResumeError
from bascule.bridge.history import History, StartedRun, read_history
from bascule.bridge.journal import EventKind, JournalEntry
from bascule.bridge.result import JsonValue, Result
from bascule.bridge.runs import decode_result
from bascule.bridge.store import Store
from bascule.models.counting import TokenCounter, estimate_tokens
from bascule.models.exchange import CallTokens, Exchange

MAX_VALUES: Final = 200_000
"""Values of results that are remembered to find what a call depends on; later ones count as known."""

_SHORTEST_TEXT: Final = 3
_SMALLEST_NUMBER: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """Tokens that a model is given before anything is asked.

    Attributes:
        direct: the tools as JSON Schemas, one function each.
        script: the prompt with the stubs, and the surface's own functions.
    """

    direct: int
    script: int


NO_DEFINITIONS: Final = Definitions(direct=0, script=0)


def account_journal(
    run_id: str,
    entries: Sequence[JournalEntry],
    counter: TokenCounter,
    *,
    definitions: Definitions = NO_DEFINITIONS,
    question: str = "",
) -> Exchange:
    """Return the account of a finished run from its journal.

    A call's round is one after the latest round whose results hold one of its argument values; a value that
    the script's own text has counts as known. So the parallel way is the best a caller could do that foresees
    everything, whatever the script waited for.

    Args:
        definitions: 0 tokens by default: only what the calls themselves cost.
        question: what was asked, system prompt aside.

    Raises:
        ResumeError: the run is not finished, or retention dropped its values.
    """
    history = read_history(run_id, entries)
    if history is None or history.finished is None or history.finished.payload is None:
        raise ResumeError("recording_unfinished", f"{run_id} is not finished; only finished runs are counted")
    result = decode_result(history.finished.payload)
    calls = tuple(_count_calls(entries, history, counter))
    return Exchange(
        id=run_id,
        origin="run",
        question=counter.count(question),
        direct_definitions=definitions.direct,
        script_definitions=definitions.script,
        calls=calls,
        script=count_script(history.started.script, counter),
        returned=counter.count(result.for_model()),
        exact=counter.exact,
    )


def account_result(
    result: Result,
    script: str,
    counter: TokenCounter,
    *,
    definitions: Definitions = NO_DEFINITIONS,
    question: str = "",
) -> Exchange:
    """Return the account of a run from its Result: results are estimated from their sizes.

    What depends on what is not known: the parallel way makes all calls in one round, the least that any
    caller could pay.
    """
    calls = tuple(
        CallTokens(
            arguments=count_call(receipt.tool, receipt.arguments, counter),
            result=estimate_tokens(receipt.result_bytes),
            result_bytes=receipt.result_bytes,
        )
        for receipt in result.calls
    )
    return Exchange(
        id=result.run_id,
        origin="run",
        question=counter.count(question),
        direct_definitions=definitions.direct,
        script_definitions=definitions.script,
        calls=calls,
        script=count_script(script, counter),
        returned=counter.count(result.for_model()),
        exact=False,
    )


def count_call(tool: str, arguments: bytes, counter: TokenCounter) -> int:
    """Return the tokens of a call as a model writes it: its name, and its arguments as JSON text."""
    return counter.count(f'{{"name":"{tool}","arguments":{arguments.decode("utf-8", "replace")}}}')


def count_script(script: str, counter: TokenCounter) -> int:
    """Return the tokens of a call of ``run_script``: the script as JSON text, newlines escaped."""
    return count_call("run_script", msgspec.json.encode({"code": script}), counter)


def _count_calls(
    entries: Iterable[JournalEntry], history: History, counter: TokenCounter
) -> Iterator[CallTokens]:
    script = history.started.script
    known = _Known(script)
    rounds: dict[int, int] = {}
    for entry in entries:
        if entry.kind is EventKind.CALL_ISSUED:
            seq, sent = cast("int", entry.facts["seq"]), entry.payload or b"{}"
            call = history.calls[seq]
            value = b"" if call.completed is None else _text_of(call.value, call.failure)
            rounds[seq] = known.round_of(msgspec.json.decode(sent))
            yield CallTokens(
                arguments=count_call(str(entry.facts["tool"]), call.arguments or sent, counter),
                result=counter.count(value.decode("utf-8", "replace")),
                result_bytes=len(value),
                round=rounds[seq],
            )
        elif entry.kind is EventKind.DELIVERED:
            for seq in cast("Sequence[int]", entry.facts["seqs"]):
                if seq in rounds:
                    known.learn(msgspec.json.decode(history.calls[seq].value), rounds[seq])


def _text_of(value: bytes, failure: object) -> bytes:
    """Return what a direct caller would have been given: the value, or the failure's words."""
    return value if failure is None else str(getattr(failure, "message", "")).encode("utf-8", "replace")


class _Known:
    """In which round each value first came up in a result."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._first: dict[JsonValue, int] = {}

    def learn(self, value: JsonValue, round_: int) -> None:
        for leaf in _leaves(value):
            if len(self._first) >= MAX_VALUES:
                return
            if _is_telling(leaf):
                self._first[leaf] = min(round_, self._first.get(leaf, round_))

    def round_of(self, arguments: JsonValue) -> int:
        needed = (self._first.get(leaf, 0) for leaf in _leaves(arguments) if not self._is_written(leaf))
        return 1 + max(needed, default=0)

    def _is_written(self, leaf: JsonValue) -> bool:
        return not _is_telling(leaf) or str(leaf) in self._script


def _is_telling(value: JsonValue) -> bool:
    if isinstance(value, str):
        return len(value) >= _SHORTEST_TEXT
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= _SMALLEST_NUMBER


def _leaves(value: JsonValue) -> Iterator[JsonValue]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
        else:
            yield found


def script_of(store: Store, run_id: str) -> str:
    """Return what a run was begun with; empty when the store does not hold it any more."""
    journal = store.journal(run_id)
    started = None if journal is None else started_of(journal.entries)
    return "" if started is None else started.script


def started_of(entries: Sequence[JournalEntry]) -> StartedRun | None:
    """Return what a run was started with, None when its journal is empty or was pruned."""
    payload = entries[0].payload if entries else None
    return None if payload is None else msgspec.json.decode(payload, type=StartedRun)
