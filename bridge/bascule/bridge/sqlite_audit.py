"""The audit table of `SqliteStore`: entries are added at the end of its chain, and only there."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from bascule.bridge.audit_chain import make_entry
from bascule.bridge.journal import GENESIS, encode_facts
from bascule.bridge.noted import NotedAudit


def append_audits(connection: sqlite3.Connection, audits: Sequence[NotedAudit]) -> None:
    """Add entries at the end of the deployment's chain."""
    if not audits:
        return
    last = connection.execute("SELECT idx, hash FROM audit ORDER BY idx DESC LIMIT 1").fetchone()
    index, previous = (0, GENESIS) if last is None else (last[0] + 1, last[1])
    for audit in audits:
        entry = make_entry(index, previous, audit)
        connection.execute(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                index,
                entry.at,
                entry.action,
                entry.run_id,
                encode_facts(entry.facts),
                previous,
                entry.hash,
            ),
        )
        index, previous = index + 1, entry.hash
