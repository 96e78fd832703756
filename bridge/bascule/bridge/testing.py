"""A pytest plugin: a sandbox for scripts, tools that note their calls, and reruns of recordings.

Loaded by pytest through its entry point; costs nothing until a fixture is used. Isolation is ``process``
unless ``--bascule-isolation=container`` is given: tests run scripts that their authors wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

if TYPE_CHECKING:
    from bascule.bridge import Approver, Limits, Policy, Result
    from bascule.bridge.recording import Rerun
    from bascule.tools import AnyTool, Registry

    Tools = Registry | Iterable[AnyTool | Callable[..., Any]]

Isolation = Literal["container", "process"]
Call = tuple[str, Mapping[str, Any]]

__all__ = ["Bascule", "assert_calls", "bascule", "calls_of", "pytest_addoption"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--bascule-isolation``."""
    parser.getgroup("bascule").addoption(
        "--bascule-isolation",
        choices=("process", "container"),
        default="process",
        help="where scripts of tests run (default: process)",
    )


class Bascule:
    """Runs scripts in tests.

    Args:
        isolation: ``process`` or ``container``.
    """

    def __init__(self, isolation: Isolation = "process") -> None:
        self._isolation: Isolation = isolation

    def run(
        self,
        script: str,
        tools: Tools = (),
        *,
        policy: Policy | None = None,
        approver: Approver | None = None,
        limits: Limits | None = None,
        seed: int = 1,
        record: Path | None = None,
    ) -> Result:
        """Run a script to its end and return its result.

        Args:
            approver: by default everything that policy asks about is approved.
            record: where to write a recording.
        """
        from bascule.bridge import Executor, Limits, approve_all
        from bascule.bridge.memory_store import MemoryStore
        from bascule.bridge.recording import make_recording, write_recording

        store = MemoryStore(keep_values=record is not None)
        with Executor(
            tools,
            policy=policy,
            approver=approver or approve_all,
            isolation=self._isolation,
            limits=limits or Limits(),
            store=store,
        ) as executor:
            result = executor.run_sync(script, seed=seed)
        if record is not None:
            journal = store.journal(result.run_id)
            assert journal is not None
            write_recording(make_recording(result.run_id, journal.entries), record)
        return result

    def replay(self, path: Path | str) -> Result:
        """Run the script of a recording again, without tools and network, and assert that it does the same.

        Raises:
            AssertionError: it does something else: other calls, output or result.
        """
        done = asyncio.run(self._rerun(Path(path)))
        if done.problems:
            raise AssertionError(
                f"{path} does not replay:\n" + "\n".join(f"  {each}" for each in done.problems)
            )
        return done.result

    async def _rerun(self, path: Path) -> Rerun:
        from bascule.bridge.recording import read_recording, rerun
        from bascule.sandbox import open_backend

        backend = open_backend(self._isolation)
        try:
            return await rerun(read_recording(path), backend)
        finally:
            await backend.close()


@pytest.fixture
def bascule(request: pytest.FixtureRequest) -> Bascule:
    """Give what runs scripts and replays recordings."""
    return Bascule(cast("Isolation", request.config.getoption("--bascule-isolation")))


def calls_of(result: Result, *, tool: str | None = None) -> list[Call]:
    """Return the calls of a run in issue order: name and arguments as they ran."""
    import msgspec

    return [
        (receipt.tool, msgspec.json.decode(receipt.arguments))
        for receipt in result.calls
        if tool is None or receipt.tool == tool
    ]


def assert_calls(result: Result, expected: Sequence[Call], *, tool: str | None = None) -> None:
    """Assert that a run made exactly these calls, in this order; ``tool`` looks at one tool's only."""
    found = calls_of(result, tool=tool)
    wanted = [(name, dict(arguments)) for name, arguments in expected]
    assert found == wanted, f"calls differ:\n  made     {found}\n  expected {wanted}"
