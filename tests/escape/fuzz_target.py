"""What the fuzzer tries one input on: compiler, guards or wire decoder.

A script is refused with findings or compiles; a name is refused or gives what is listed; bytes are a frame or
a FrameError. Anything else is an error of ours.
"""

from __future__ import annotations

from typing import Any, NoReturn

from bascule.guest.compiler import ScriptRefused, compile_script
from bascule.guest.environment import Environment
from bascule.guest.guards import Guards
from bascule.guest.namespace import build_namespace
from bascule.guest.run import Run
from bascule.wire import FrameError, FrameSplitter, Start, decode_guest_frame, decode_host_frame
from tests.escape.test_reachability import FORBIDDEN_BUILTINS, FORBIDDEN_TYPES, LIMITS, Nobody

_TARGETS = 3


def _end(finish: object) -> NoReturn:
    raise SystemExit(str(finish))


class Target:
    """What one input is tried on; the first byte says which part it is for."""

    def __init__(self) -> None:
        script = (
            "class C(dict):\n    x = 1\ndef f():\n    yield 1\n"
            "values = [C, C(), C().get, len, 'a', [1], 1, f, f(), ValueError('a')]\n"
        )
        start = Start(script=script, tools=(), seed=1, now=1.0, limits=LIMITS)
        environment: Environment = Run(start, Nobody(), _end).environment
        compiled = compile_script(script, tool_names=())
        namespace = build_namespace(compiled, environment, {})
        exec(compiled.code, namespace)
        run: Any = namespace["<script>"]
        run()
        check: Any = namespace["<check>"]
        self._guards: Guards = check.__self__
        values: Any = namespace["values"]
        self._values: list[object] = [*values, *(namespace["__builtins__"].values())]  # type: ignore[attr-defined]

    def __call__(self, data: bytes) -> None:
        """Try one input."""
        if not data:
            return
        (self._compile, self._read, self._decode)[data[0] % _TARGETS](data[1:])

    def _compile(self, data: bytes) -> None:
        try:
            compile_script(data.decode("utf-8", "surrogatepass"), tool_names=("look",))
        except UnicodeDecodeError:
            return
        except ScriptRefused as refused:
            if not refused.errors:
                raise AssertionError("refused without a finding") from refused

    def _read(self, data: bytes) -> None:
        if not data:
            return
        name = data[1:].decode("utf-8", "replace")
        try:
            found = self._guards.read(self._values[data[0] % len(self._values)], name)
        except (AttributeError, TypeError):
            return
        if isinstance(found, FORBIDDEN_TYPES) or id(found) in FORBIDDEN_BUILTINS:
            raise AssertionError(f"{name} gives {found!r}")

    def _decode(self, data: bytes) -> None:
        for decode in (decode_guest_frame, decode_host_frame, FrameSplitter(max_bytes=1 << 16).feed):
            try:
                decode(data)
            except FrameError:
                continue
