"""What one run shares between its parts: clock, randomness, output, loop, notes. Fresh for every run."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import msgspec

from bascule.guest.clock import Clock
from bascule.guest.output import Output
from bascule.wire import Note

if TYPE_CHECKING:
    from bascule.guest.loop import Loop


class Environment(msgspec.Struct, kw_only=True):
    """The one object that facades and guards get.

    Attributes:
        clock: stands still between deliveries.
        rng: every random number of the script comes from it.
        output: where printed text goes.
        loop: the only way out: tool calls and sleeps.
        notes: what the author of the script should know, in order.
    """

    clock: Clock
    rng: random.Random
    output: Output
    loop: Loop
    notes: list[Note] = msgspec.field(default_factory=list[Note])
