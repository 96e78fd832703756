"""Runs the guest program in a process of its own and plays the host over its pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bascule.wire import (
    Act,
    Call,
    Cancel,
    Delivery,
    Done,
    Finish,
    FrameSplitter,
    Hello,
    Output,
    ScriptError,
    Sleep,
    Start,
    decode_guest_frame,
    encode_frame,
)
from bascule.wire.codec import MAX_GUEST_FRAME_BYTES
from bascule.wire.frames import GuestFrame
from tests.unit.guest.harness import NOW, guest_limits, stub_of

_PROGRAM = "from bascule.guest.main import main; main()"
_MEASURED_PROGRAM = f"""
import faulthandler, os, resource, signal
leave = os._exit
def saving(code):
    # Nothing may end the process, or keep it from the memory it needs, while the counts are written.
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    leave(code)
os._exit = saving
{_PROGRAM}
"""
ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def measuring() -> dict[str, str]:
    """Hand a running coverage measurement on to the guest, whose environment is otherwise our own."""
    return {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}


def program() -> str:
    """Return what runs the guest, measured when this process is."""
    return _MEASURED_PROGRAM if measuring() else _PROGRAM


@dataclass(kw_only=True)
class Ended:
    """What was left of a guest.

    Attributes:
        finish: its last frame, or None when it ended without one.
    """

    hello: Hello
    finish: Finish | None
    output: str
    calls: list[str] = field(default_factory=list[str])
    stderr: str = ""
    exit_code: int = 0

    @property
    def error(self) -> ScriptError:
        """The only error of the last frame."""
        assert self.finish is not None
        (error,) = self.finish.errors
        return error


class Guest:
    """The program, started and not yet told to run anything."""

    def __init__(self, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program(), "process", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**ENVIRONMENT, **measuring()},
        )
        self._splitter = FrameSplitter(max_bytes=MAX_GUEST_FRAME_BYTES)
        self._payloads: list[bytes] = []

    def receive(self) -> GuestFrame | None:
        """Return the next frame, or None at the end of the stream."""
        assert self._process.stdout is not None
        while not self._payloads:
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            if not data:
                return None
            self._payloads += self._splitter.feed(data)
        return decode_guest_frame(self._payloads.pop(0))

    def send(self, frame: Start | Done) -> None:
        """Send a frame."""
        assert self._process.stdin is not None
        self._process.stdin.write(encode_frame(frame, max_bytes=1 << 30))
        self._process.stdin.flush()

    def close(self) -> tuple[int, str]:
        """Close the stream; return exit code and stderr."""
        _, stderr = self._process.communicate()
        return self._process.returncode, stderr.decode("utf-8", "replace")


def run_process(script: str, tools: Mapping[str, Callable[..., Any]] | None = None, **limits: float) -> Ended:
    """Run a script in a guest process; tools answer at once."""
    tools = tools or {}
    guest = Guest()
    hello = guest.receive()
    if not isinstance(hello, Hello):
        _, stderr = guest.close()
        raise AssertionError(stderr)
    stubs = tuple(stub_of(name, function) for name, function in tools.items())
    guest.send(Start(script=script, tools=stubs, seed=1, now=NOW, limits=guest_limits(**limits)))
    ended = Ended(hello=hello, finish=None, output="")
    while True:
        frame = guest.receive()
        if frame is None or isinstance(frame, Finish):
            ended.finish = frame
            break
        assert isinstance(frame, Act)
        done = _answer(frame, tools, ended)
        if frame.blocked:
            guest.send(done)
    if ended.finish is not None:
        _answer(Act(activations=ended.finish.activations), tools, ended)
    ended.exit_code, ended.stderr = guest.close()
    return ended


def _answer(act: Act, tools: Mapping[str, Callable[..., Any]], ended: Ended) -> Done:
    deliveries: list[Delivery] = []
    for activation in act.activations:
        for command in activation.commands:
            match command:
                case Output(text=text):
                    ended.output += text
                case Call(seq=seq, tool=tool, args=args):
                    ended.calls.append(tool)
                    value = msgspec.Raw(msgspec.json.encode(tools[tool](**args)))
                    deliveries.append(Delivery(seq=seq, now=NOW, value=value))
                case Sleep(seq=seq):
                    deliveries.append(Delivery(seq=seq, now=NOW, value=msgspec.Raw(b"null")))
                case Cancel():
                    pass
    return Done(deliveries=tuple(deliveries))
