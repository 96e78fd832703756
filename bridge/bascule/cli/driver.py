"""Drives an executor from the command line: signals, what tools print, and what is told at the end."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import typer

from bascule.cli.exits import Exit
from bascule.cli.streams import tools_on_stderr
from bascule.cli.waiting import tell_waiting

if TYPE_CHECKING:
    from bascule.bridge import Approver, Executor, Result, Store
    from bascule.bridge.result import JsonValue
    from bascule.cli.next_steps import NextSteps
    from bascule.tools.source import AnySource

Approve = Literal["terminal", "console", "deny", "all"]
Isolation = Literal["container", "oci", "process"]

T = TypeVar("T")

SILENT_END_S: Final = 1.0
"""Seconds after which somebody who ended a command is told what it still waits for."""


def pick_approver(name: Approve) -> Approver:
    """Return the approver of a name."""
    from bascule.bridge import approve_all, ask_elsewhere, ask_in_terminal, deny_all

    approvers: dict[Approve, Approver] = {
        "terminal": ask_in_terminal,
        "console": ask_elsewhere,
        "deny": deny_all,
        "all": approve_all,
    }
    return approvers[name]


def is_unattended(approve: Approve) -> bool:
    """Tell whether somebody is to be asked on a terminal, and there is none."""
    return approve == "terminal" and not sys.stdin.isatty()


def _needs_people(store: Store, run_id: str) -> bool:
    """Tell whether people have yet to decide about calls of a run, or to say what became of one."""
    if store.approvals.find(run_id=run_id, states=("pending",), limit=1):
        return True
    row = store.run(run_id)
    return row is not None and any(wait.startswith("answer:") for wait in row.waits)


async def see_through_here(executor: Executor, result: Result, steps: NextSteps, approve: Approve) -> Result:
    """Carry a suspended run on. Where it waits for people, it is said what for, and how they decide.

    Without a terminal nobody sees that, so such a run is left suspended; with ``console`` people are
    elsewhere in any case, and it waits for them.
    """
    from bascule.bridge.carrying import see_through
    from bascule.bridge.run_view import read_view
    from bascule.cli.summary import print_wait

    told = set[str]()

    def leave(run_id: str) -> bool:
        if not _needs_people(executor.store, run_id):
            return False
        if approve != "console" and not sys.stdin.isatty():
            return True
        view = read_view(executor.store, run_id)
        if view.record.reason not in told:
            told.add(view.record.reason)
            print_wait(view, steps, sys.stderr)
        return False

    return await see_through(
        executor.store, result, lambda run_id: executor.resume(run_id, wait=False), leave=leave
    )


def suspend_at_once(limits: Mapping[str, float | None], *, wait: bool) -> dict[str, float | None]:
    """Return limits under which a run that is not waited for is suspended without holding its sandbox.

    ``hold_warm_s`` given as a flag or in the environment stays as it is.
    """
    held = limits.get("hold_warm_s") is not None or "BASCULE_HOLD_WARM_S" in os.environ
    return {**limits, "hold_warm_s": 0.0} if not wait and not held else dict(limits)


def drive(
    executor: Executor, work: Callable[[], Coroutine[Any, Any, T]], *, sources: Sequence[AnySource] = ()
) -> T:
    """Open an executor, do one thing with it, close it; a signal ends the run and then the command.

    Args:
        sources: what the executor was given; what waits in them to be confirmed is told first.

    Raises:
        typer.Exit: ended by a signal; by then the run is cancelled and its sandbox removed.
    """
    import asyncio

    async def inside() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        for name in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(name) is signal.SIG_DFL:  # nohup stays nohup
                loop.add_signal_handler(name, task.cancel)
        async with executor:
            tell_waiting(sources)
            working = asyncio.ensure_future(work())
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                working.cancel()
                if not (await asyncio.wait({working}, timeout=SILENT_END_S))[0]:
                    print("bascule: calls that were started end first, then the run", file=sys.stderr)
                return await working

    try:
        with tools_on_stderr():
            return asyncio.run(inside())
    except asyncio.CancelledError:
        print("bascule: ended by a signal", file=sys.stderr)
        raise typer.Exit(Exit.TERMINATED) from None
    except KeyboardInterrupt:
        print("bascule: interrupted", file=sys.stderr)
        raise typer.Exit(Exit.INTERRUPTED) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What is told of a result beside the result itself.

    Attributes:
        json: the whole result as one JSON object.
        receipts: a table of all calls.
        quiet: no account.
        unattended: there was no terminal to ask on, so that people have to be asked elsewhere.
        tokens: counts the run, for JSON.
    """

    json: bool
    receipts: bool
    quiet: bool
    unattended: bool = False
    tokens: Callable[[Result], JsonValue]

    def tell(self, result: Result, store: Store, steps: NextSteps | None) -> None:
        """Print a result; of one that is suspended in a store, how to go on.

        Raises:
            typer.Exit: standard output cannot be written.
        """
        from bascule.cli.summary import print_account, print_receipts, print_result, print_suspension

        if self.receipts:
            print_receipts(result, sys.stderr)
        if not self.quiet:
            print_account(result, sys.stderr)
        try:
            print_result(result, json=self.json, tokens=self.tokens(result) if self.json else None)
        except OSError as error:
            # What is left in the buffer has nowhere to go.
            sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            print(f"bascule: the result cannot be written: {error}", file=sys.stderr)
            raise typer.Exit(Exit.INTERNAL) from error
        if result.status != "suspended" or steps is None:
            return
        if self.unattended and not self.quiet:
            print("bascule: no terminal to ask on: people decide with `bascule approvals`", file=sys.stderr)
        if not self.json:
            from bascule.bridge.run_view import read_view

            print_suspension(read_view(store, result.run_id), steps, sys.stderr)
