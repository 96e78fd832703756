"""Retention in `SqliteStore`: what the runs of the past held is dropped, what proves them stays.

Kept are events, their facts and digests, approvals with who decided and why, the audit table. Dropped are
scripts, arguments, results, output, previews and evidence, also from the pages of the file.
"""

from __future__ import annotations

import sqlite3
import time

import msgspec

from bascule.bridge.approval_card import DROPPED, read_card
from bascule.bridge.noted import NotedAudit
from bascule.bridge.sqlite_audit import append_audits
from bascule.bridge.sqlite_rows import APPROVAL_COLUMNS, read_approval


def prune_runs(connection: sqlite3.Connection, *, before: float) -> int:
    """Drop the values of runs finished before a time, within a transaction; return how many had any."""
    connection.execute("PRAGMA secure_delete=ON")
    runs = connection.execute(
        "SELECT id, run_id FROM runs WHERE status = 'finished' AND updated_at < ? AND ("
        " EXISTS (SELECT 1 FROM events WHERE run = runs.id AND payload IS NOT NULL)"
        " OR EXISTS (SELECT 1 FROM blobs WHERE run = runs.id)"
        " OR EXISTS (SELECT 1 FROM answers WHERE run_id = runs.run_id AND value IS NOT NULL)"
        " OR EXISTS (SELECT 1 FROM approvals WHERE run_id = runs.run_id AND instr(body, ?) = 0))",
        (before, msgspec.json.encode(DROPPED)),
    ).fetchall()
    for run, run_id in runs:
        connection.execute("DELETE FROM blobs WHERE run = ?", (run,))
        connection.execute("UPDATE events SET payload = NULL WHERE run = ? AND payload IS NOT NULL", (run,))
        connection.execute("UPDATE answers SET value = NULL WHERE run_id = ?", (run_id,))
        rows = connection.execute(f"SELECT {APPROVAL_COLUMNS} FROM approvals WHERE run_id = ?", (run_id,))
        for record in map(read_approval, rows.fetchall()):
            body = read_card(record).without_values().encode()
            connection.execute("UPDATE approvals SET body = ? WHERE id = ?", (body, record.id))
    if runs:
        append_audits(
            connection,
            [NotedAudit("runs.pruned", time.time(), None, {"runs": len(runs), "before": before})],
        )
    return len(runs)
