"""The chain of audit entries: each carries the hash of the one before it, so a change or a gap is found."""

from __future__ import annotations

from bascule.bridge.journal import GENESIS, chain, encode_facts
from bascule.bridge.noted import NotedAudit
from bascule.bridge.store import AuditEntry


class AuditChain:
    """Makes links.

    Args:
        index: number of the next entry.
        previous: hash of the last one.
    """

    def __init__(self, index: int = 0, previous: str = GENESIS) -> None:
        self.index = index
        self.previous = previous

    def link(self, audit: NotedAudit) -> AuditEntry:
        """Return the entry at the chain's end, and go on from it."""
        made = make_entry(self.index, self.previous, audit)
        self.index += 1
        self.previous = made.hash
        return made


def make_entry(index: int, previous: str, audit: NotedAudit) -> AuditEntry:
    """Return one entry with its hash."""
    return AuditEntry(
        index=index,
        at=audit.at,
        action=audit.action,
        run_id=audit.run_id,
        facts=audit.facts,
        previous=previous,
        hash=entry_hash(index, audit.at, audit.action, audit.run_id, encode_facts(audit.facts), previous),
    )


def entry_hash(index: int, at: float, action: str, run_id: str | None, facts: bytes, previous: str) -> str:
    """Return the hash an entry must have."""
    return chain(previous, index, f"{action}|{run_id or ''}", at, facts)
