"""The loop is deterministic: the same script and the same deliveries give the same commands, always."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from bascule.guest.clock import Clock
from bascule.guest.commands import Commands
from bascule.guest.futures import CancelledError, Future, InvalidStateError
from bascule.guest.loop import Loop
from bascule.guest.output import Output
from bascule.guest.position import awaiting_line, script_line
from bascule.guest.statement_at import statement_at
from bascule.wire import Call, Sleep
from tests.unit.guest.harness import MemoryHost, run

SCRIPT = """
import asyncio
async def worker(name, queue):
    total = 0
    while True:
        item = await queue.get()
        if item is None:
            return total
        total += await square(i=item)
        print(name, item, total)
async def main():
    queue = asyncio.Queue(maxsize=3)
    workers = [asyncio.create_task(worker(f"w{i}", queue)) for i in range(3)]
    for i in range(12):
        await queue.put(i)
        if i % 4 == 0:
            done, pending = await asyncio.wait([asyncio.create_task(square(i=i)) for i in range(3)],
                                               return_when=asyncio.FIRST_COMPLETED)
            print(len(done), len(pending), [task.get_name() for task in pending])
            for task in pending:
                task.cancel()
    for _ in workers:
        await queue.put(None)
    print(await asyncio.gather(*workers))
await main()
"""


def square(i: int) -> int:
    """Return the square."""
    return i * i


TOOLS: dict[str, Callable[..., Any]] = {"square": square}


@pytest.mark.parametrize("seed", range(8))
def test_the_same_order_of_deliveries_gives_the_same_commands(seed: int) -> None:
    first = run(SCRIPT, TOOLS, order="random", seed=seed)
    second = run(SCRIPT, TOOLS, order="random", seed=seed)
    assert first.errors == ()
    assert first.acts == second.acts
    assert first.output == second.output


def test_sequence_numbers_rise_over_calls_and_sleeps() -> None:
    host = MemoryHost(tools=TOOLS)
    run("import time\nsquare(1)\ntime.sleep(1)\nsquare(2)\n", TOOLS, host=host)
    assert [command.seq for command in host.commands if isinstance(command, Call | Sleep)] == [1, 2, 3]


def test_a_blocking_sleep_inside_a_task_holds_up_the_others() -> None:
    outcome = run(
        "import asyncio, time\nasync def sleepy():\n    print('a')\n    time.sleep(5)\n    print('b')\n"
        "async def other():\n    print('c')\nawait asyncio.gather(sleepy(), other())\n"
    )
    assert outcome.output == "a\nb\nc\n"


def test_a_deadlock_in_blocking_code_names_its_line() -> None:
    outcome = run(
        "from concurrent.futures import Future\nx = 1\nFuture().result()\n",
    )
    assert (outcome.error.kind, outcome.error.line) == ("deadlock", 3)


def test_a_failing_callback_becomes_a_note() -> None:
    outcome = run(
        "import asyncio\ntask = asyncio.create_task(square(3))\ntask.add_done_callback(lambda task: 1 / 0)\n"
        "print(await task)\nawait asyncio.sleep(0)\n",
        TOOLS,
    )
    assert outcome.output == "9\n"
    assert [note.code for note in outcome.notes] == ["callback_failed"]


@pytest.fixture(name="loop")
def make_loop() -> Loop:
    """Give a loop that talks to nobody."""

    def never(*_: object) -> Any:
        raise AssertionError("not here")

    output = Output(cap_bytes=1_000, hand_over=never, overflow=never)
    commands = Commands(output=output, frame_bytes=1 << 20)
    ender: Any = None
    return Loop(host=MemoryHost(tools={}), clock=Clock(0.0), commands=commands, ender=ender, max_calls=1)


def test_a_future_is_completed_once(loop: Loop) -> None:
    future = Future()
    seen: list[Future] = []
    future.on_done(seen.append)
    future.set_result(1)
    assert seen == [future]
    assert (future.result(), future.exception(), future.cancel()) == (1, None, False)
    with pytest.raises(InvalidStateError):
        future.set_exception(ValueError)
    assert not loop.closed


def test_a_future_refuses_what_would_end_its_waiter(loop: Loop) -> None:
    with pytest.raises(TypeError):
        Future().set_exception(StopIteration)
    assert not loop.closed


def test_a_cancelled_future_says_why(loop: Loop) -> None:
    future = Future()
    assert future.cancel("late")
    with pytest.raises(CancelledError, match="late"):
        future.result()
    with pytest.raises(CancelledError):
        future.exception()
    assert repr(future) == "<Future cancelled>"
    assert not loop.closed


def test_a_closed_loop_issues_nothing(loop: Loop) -> None:
    loop.close()
    with pytest.raises(RuntimeError, match="ended"):
        loop.start_sleep(1.0)


def test_numbers_of_futures_are_their_hashes(loop: Loop) -> None:
    futures = [Future() for _ in range(50)]
    shuffled = futures[:]
    random.Random(1).shuffle(shuffled)
    assert list(set(shuffled)) == futures
    assert not loop.closed


def test_positions_of_what_is_not_the_script_are_unknown() -> None:
    assert script_line(None) is None
    assert awaiting_line(3) is None


def test_the_innermost_loop_around_a_line_is_named() -> None:
    import ast

    tree = ast.parse("for a in b:\n    x = 1\n    while c:\n        d()\ny = [e for e in f]\ng()\n")
    assert [statement_at(tree, line) for line in range(1, 7)] == [
        "in a for loop",
        "in a for loop",
        "in a while loop",
        "in a while loop",
        "in a list comprehension",
        "",
    ]
