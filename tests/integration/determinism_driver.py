"""Runs the determinism script in a guest and prints its frames: ``python -m … ISOLATION NOW``.

A program of its own, so that the test can give each host process another hash seed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Literal, cast

import msgspec

from bascule.sandbox import SandboxLimits, open_backend
from bascule.wire import Act, Call, Delivery, Done, Finish, Sleep, Start, decode_guest_frame, encode_frame
from tests.unit.guest.determinism_script import SCRIPT
from tests.unit.guest.harness import guest_limits, stub_of


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


def _answer(act: Act, now: float) -> Done:
    """Answer every command of an Act at once; the clock goes on with each sleep."""
    deliveries: list[Delivery] = []
    for activation in act.activations:
        for command in activation.commands:
            if isinstance(command, Call):
                value = msgspec.Raw(msgspec.json.encode(double(**command.args)))
                deliveries.append(Delivery(seq=command.seq, now=now + command.seq, value=value))
            elif isinstance(command, Sleep):
                deliveries.append(
                    Delivery(seq=command.seq, now=now + command.seq, value=msgspec.Raw(b"null"))
                )
    return Done(deliveries=tuple(deliveries))


async def drive(isolation: Literal["container", "process"], now: float) -> list[Any]:
    """Return the frames of one run, without what the run cost."""
    backend = open_backend(isolation, build=isolation == "container")
    sandbox = await backend.start(SandboxLimits(), run_id="determinism")
    frames: list[Any] = []
    try:
        await sandbox.receive()
        start = Start(
            script=SCRIPT, tools=(stub_of("double", double),), seed=7, now=now, limits=guest_limits()
        )
        await sandbox.send(encode_frame(start, max_bytes=1 << 20))
        while True:
            frame = decode_guest_frame(await sandbox.receive())
            kept = msgspec.to_builtins(frame)
            kept.pop("usage", None)
            frames.append(kept)
            if isinstance(frame, Finish):
                return frames
            if isinstance(frame, Act) and frame.blocked:
                await sandbox.send(encode_frame(_answer(frame, now), max_bytes=1 << 20))
    finally:
        await sandbox.close()
        await backend.close()


if __name__ == "__main__":
    found = asyncio.run(drive(cast(Any, sys.argv[1]), float(sys.argv[2])))
    print(json.dumps(found, sort_keys=True))
