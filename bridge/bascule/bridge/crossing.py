"""What the calls of one run share on their way over the bridge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bascule.bridge.budget import Budget
from bascule.bridge.circuits import Circuits
from bascule.bridge.gate import Gate
from bascule.bridge.journal import Journal
from bascule.bridge.lanes import Lanes
from bascule.bridge.ledger import Ledger
from bascule.bridge.limits import Limits
from bascule.bridge.narrator import Narrator
from bascule.bridge.parking import Parking
from bascule.bridge.recovery import Recovery
from bascule.bridge.redaction import Redactor
from bascule.bridge.rehearsal import WantedEffects
from bascule.bridge.store import Store
from bascule.bridge.workers import Workers
from bascule.tools import Registry


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What the calls of one run share."""

    run_id: str
    registry: Registry
    offered: frozenset[str]
    limits: Limits
    gate: Gate
    budget: Budget
    lanes: Lanes
    ledger: Ledger
    workers: Workers
    journal: Journal
    narrator: Narrator
    parking: Parking
    recovery: Recovery
    store: Store
    redactor: Redactor
    circuits: Circuits
    secrets: Mapping[str, str]
    rehearsal: WantedEffects | None = None
