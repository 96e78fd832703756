"""Results of recorded calls, for the stubs of tools that declare no return type.

Reads journals of this deployment's own store, or a recording that somebody vouches for.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, cast

import msgspec
from pydantic import JsonValue

from bascule.bridge.journal import EventKind, JournalEntry
from bascule.bridge.store import Store
from bascule.tools import AnyTool
from bascule.tools.observed import MAX_VALUES, observe

MAX_RUNS: Final = 200
"""Runs of a store that are read, the newest ones."""

MAX_RESULT_BYTES: Final = 4 << 20
"""Larger results are passed over."""


def collect_results(journals: Iterable[Iterable[JournalEntry]]) -> dict[str, list[JsonValue]]:
    """Return results of completed calls by tool, `MAX_VALUES` of each at most."""
    found: defaultdict[str, list[JsonValue]] = defaultdict(list)
    for entries in journals:
        tools: dict[object, str] = {}
        for entry in entries:
            if entry.kind is EventKind.CALL_ISSUED:
                tools[entry.facts.get("seq")] = str(entry.facts.get("tool"))
            elif entry.kind is EventKind.COMPLETED and entry.facts.get("state") == "done":
                name = tools.get(entry.facts.get("seq"))
                payload = entry.payload
                if name and payload and len(payload) <= MAX_RESULT_BYTES and len(found[name]) < MAX_VALUES:
                    found[name].append(cast("JsonValue", msgspec.json.decode(payload)))
    return dict(found)


def observe_store(tools: Iterable[AnyTool], store: Store) -> list[AnyTool]:
    """Return tools with the shapes of the results that a store's newest runs hold."""
    journals = (store.journal(row.run_id) for row in store.runs(limit=MAX_RUNS))
    return observe_results(tools, collect_results(each.entries for each in journals if each is not None))


def observe_results(tools: Iterable[AnyTool], results: Mapping[str, Iterable[JsonValue]]) -> list[AnyTool]:
    """Return tools with the shapes of results, each by its name."""
    return [observe(each, results.get(each.name, ())) for each in tools]
