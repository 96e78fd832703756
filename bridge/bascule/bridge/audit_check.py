"""Verification of the audit table: a change, a gap and, against signed checkpoints, a cut-off tail are found.

The chain proves that nothing between two entries was changed or taken out. It cannot prove that nothing was
cut off its end; for that, checkpoints (index and hash of an entry, signed with the deployment's key) are kept
where whoever can write the store cannot write.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from bascule.bridge.audit_chain import entry_hash
from bascule.bridge.audit_key import AuditKey
from bascule.bridge.journal import GENESIS, encode_facts
from bascule.bridge.store import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A signed statement: the chain had this entry at its end. One JSON object per line of a file."""

    index: int
    at: float
    hash: str
    signature: str


def sign(entry: AuditEntry, key: AuditKey) -> Checkpoint:
    """Return the checkpoint of an entry."""
    return Checkpoint(
        index=entry.index, at=entry.at, hash=entry.hash, signature=key.hash(_signed(entry.index, entry.hash))
    )


def append_checkpoint(checkpoint: Checkpoint, path: Path) -> None:
    """Add a checkpoint to a file."""
    with path.open("ab") as file:
        file.write(msgspec.json.encode(asdict(checkpoint)) + b"\n")


def read_checkpoints(path: Path) -> list[Checkpoint]:
    """Return the checkpoints of a file.

    Raises:
        ValueError: a line is none.
        OSError: it cannot be read.
    """
    return [msgspec.json.decode(line, type=Checkpoint) for line in path.read_bytes().splitlines() if line]


def verify(entries: Iterable[AuditEntry], checkpoints: Iterable[Checkpoint], key: AuditKey) -> list[str]:
    """Return everything that is wrong with an audit table, in words; nothing when it holds."""
    problems: list[str] = []
    expected: dict[int, Checkpoint] = {}
    for checkpoint in checkpoints:
        signature = key.hash(_signed(checkpoint.index, checkpoint.hash))
        if hmac.compare_digest(signature, checkpoint.signature):
            expected[checkpoint.index] = checkpoint
        else:
            problems.append(f"the checkpoint of entry {checkpoint.index} was not signed with this key")
    previous, index = GENESIS, 0
    for entry in entries:
        if entry.index != index:
            problems.append(f"entries {index} to {entry.index - 1} are missing")
        elif entry.previous != previous:
            problems.append(f"entry {entry.index} does not follow the one before it")
        facts = encode_facts(entry.facts)
        if entry.hash != entry_hash(entry.index, entry.at, entry.action, entry.run_id, facts, entry.previous):
            problems.append(f"entry {entry.index} was changed")
        signed = expected.pop(entry.index, None)
        if signed is not None and signed.hash != entry.hash:
            problems.append(f"entry {entry.index} is not the one that was signed: the chain was written anew")
        previous, index = entry.hash, entry.index + 1
    if expected:
        problems.append(
            f"the end is cut off: {index} entries are left, a checkpoint was signed at {max(expected)}"
        )
    return problems


def export_entry(entry: AuditEntry) -> bytes:
    """Return an entry as one line of JSON."""
    fields: dict[str, Any] = {
        "index": entry.index,
        "at": entry.at,
        "action": entry.action,
        "run_id": entry.run_id,
        "facts": dict(entry.facts),
        "previous": entry.previous,
        "hash": entry.hash,
    }
    return msgspec.json.encode(fields) + b"\n"


def _signed(index: int, link: str) -> bytes:
    return f"bascule audit checkpoint|{index}|{link}".encode()
