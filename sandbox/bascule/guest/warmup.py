"""What a run needs, done once while nobody waits: imports, codecs, code that is specialised by running."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import NoReturn

import msgspec

from bascule.guest.ending import RunEnded
from bascule.guest.run import Run
from bascule.guest.script import run_script
from bascule.wire import (
    Act,
    Delivery,
    Done,
    Finish,
    GuestLimits,
    Start,
    ToolStub,
    decode_host_frame,
    encode_frame,
)
from bascule.wire.codec import MAX_GUEST_FRAME_BYTES

_ROUNDS = 5
"""Measured: the first run costs 2 ms, the fifth 0.5 ms; the interpreter specialises code as it repeats."""

_BLOCKING = """
rows = look(n=1)
print(rows, [str(n) for n in range(3)], f"{1.5:.2f}")
total = sum(n for n in (1, 2))
"""

_ASYNC = """
import json
class Row:
    def __init__(self, n):
        self.n = n
async def ask(i):
    rows = await look(n=i)
    return f"{Row(i).n}: {json.dumps(rows)}"
print(await ask(1), [n.upper() for n in "ab"], {"a": 1}.get("a"))
try:
    print(1 / 0)
except ZeroDivisionError as error:
    print(type(error).__name__, error)
"""

_HEADER_BYTES = 4


class _Nobody:
    """Stands for the host: answers one call with null."""

    def exchange(self, act: Act) -> Done:
        """Answer the only call."""
        encode_frame(act, max_bytes=MAX_GUEST_FRAME_BYTES)
        done = Done(deliveries=(Delivery(seq=1, now=1.0, value=_null()),))
        decoded = decode_host_frame(encode_frame(done, max_bytes=MAX_GUEST_FRAME_BYTES)[_HEADER_BYTES:])
        assert isinstance(decoded, Done)
        return decoded

    def hand_over(self, act: Act) -> None:
        """Take output."""


def warm_up(rounds: int = _ROUNDS, *, unless: Callable[[], bool] = lambda: False) -> None:
    """Run throw-away scripts, so that imports, codecs and caches are there, and collect what they leave.

    Args:
        unless: asked before each script; nothing more is done once it says so, for whoever has given the
            order does not wait for what only saves time.
    """
    limits = GuestLimits(
        wall_s=1.0,
        cpu_s=1.0,
        memory_bytes=1 << 20,
        output_bytes=1 << 16,
        recursion=100,
        calls=10,
        frame_bytes=MAX_GUEST_FRAME_BYTES,
    )
    stub = ToolStub(name="look", parameters={"properties": {"n": {"type": "integer"}}, "required": ["n"]})
    for script in (_BLOCKING, _ASYNC) * rounds:
        if unless():
            return
        start = Start(script=script, tools=(stub,), seed=0, now=0.0, limits=limits)
        finish = run_script(Run(start, _Nobody(), _raise))
        encode_frame(finish, max_bytes=MAX_GUEST_FRAME_BYTES)
    gc.collect()


def _raise(finish: Finish) -> NoReturn:
    raise RunEnded(finish)


def _null() -> msgspec.Raw:
    return msgspec.Raw(b"null")
