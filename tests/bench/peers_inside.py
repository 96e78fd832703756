"""Runs in the peers' own virtual environment and prints one JSON object: peer to measure to seconds.

Everything a peer needs is imported by name at run time, because none of it is a dependency of ours.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

HELLO = "print('hello')"
CALLS = "for i in range(100):\n    noop(i)\n"
CPU = "total = 0\nfor i in range(30000):\n    total += i * i % 7\ntotal\n"
RESULT = "len(big())"

ROW = {"id": 12345, "name": "a name of a row", "amount": 12.5, "tags": ["one", "two"]}
MIB = [ROW] * ((1 << 20) // (len(json.dumps(ROW, separators=(",", ":"))) + 1))

Run = Callable[[str], object]


def noop(n: int) -> int:
    """Give back what came."""
    return n


def big() -> list[dict[str, Any]]:
    """Give a mebibyte of rows, the same as ours."""
    return MIB


def say_nothing(*_: object) -> None:
    """Take the place of print."""


def add_in_place(operator: str, value: Any, other: Any) -> Any:
    """Do the one augmented assignment of the scripts."""
    assert operator == "+="
    return value + other


def timed(run: Run, script: str) -> float:
    """Return the seconds of one run."""
    began = time.perf_counter()
    run(script)
    return time.perf_counter() - began


def measure(run: Run) -> dict[str, float]:
    """Return every measure of one peer, warmed up, the best of three."""
    found: dict[str, float] = {}
    run(HELLO)
    for name, script in (("hello", HELLO), ("100 calls", CALLS), ("CPU loop", CPU), ("1 MiB result", RESULT)):
        found[name] = min(timed(run, script) for _ in range(3))
    return found


def plain() -> dict[str, float]:
    """Measure CPython in this process."""
    return measure(lambda script: exec(script, {"noop": noop, "big": big, "print": say_nothing}))


def restricted() -> dict[str, float]:
    """Measure RestrictedPython with its usual guards."""
    package, eval_, guards = (
        import_module(name)
        for name in ("RestrictedPython", "RestrictedPython.Eval", "RestrictedPython.Guards")
    )

    def run(script: str) -> None:
        names: dict[str, Any] = {
            **guards.safe_globals,
            "_getiter_": eval_.default_guarded_getiter,
            "_getitem_": eval_.default_guarded_getitem,
            "_inplacevar_": add_in_place,
            "_print_": import_module("RestrictedPython.PrintCollector").PrintCollector,
            "_getattr_": guards.safer_getattr,
            "noop": noop,
            "big": big,
            "range": range,
        }
        exec(package.compile_restricted(script, "<script>", "exec"), names)

    return measure(run)


def monty() -> dict[str, float]:
    """Measure Monty: an interpreter of its own in a worker process, no container."""
    module = import_module("pydantic_monty")
    with module.Monty(min_processes=2) as pool:

        def run(script: str) -> None:
            with pool.checkout() as session:
                session.feed_run(
                    script, external_lookup={"noop": noop, "big": big}, print_callback=say_nothing
                )

        return measure(run)


def smolagents() -> dict[str, float]:
    """Measure smolagents' local executor: an interpreter of syntax trees in this process."""
    module = import_module("smolagents.local_python_executor")

    def run(script: str) -> None:
        executor = module.LocalPythonExecutor([])
        executor.send_tools({"noop": noop, "big": big})
        executor(script)

    return measure(run)


def llm_sandbox() -> dict[str, float]:
    """Measure llm-sandbox: one container for a session, no tools; it pulls an image of its own."""
    module = import_module("llm_sandbox")
    with module.SandboxSession(lang="python", verbose=False) as session:
        session.run(HELLO)
        return {"hello": min(timed(session.run, HELLO) for _ in range(3))}


PEERS: dict[str, Callable[[], dict[str, float]]] = {
    "plain CPython": plain,
    "RestrictedPython": restricted,
    "Monty": monty,
    "smolagents local": smolagents,
    "llm-sandbox": llm_sandbox,
}


def main() -> None:
    """Measure the peers named in the arguments, all without; one that does not run says why."""
    found: dict[str, object] = {}
    for name in sys.argv[1:] or PEERS:
        try:
            found[name] = PEERS[name]()
        except Exception as error:  # a peer that cannot run here is a row of the table, not an end of it
            found[name] = f"{type(error).__name__}: {error}"[:78]  # what follows names the machine
    print(json.dumps(found))


if __name__ == "__main__":
    main()
