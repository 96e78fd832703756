"""A run at its edges: late answers, ends in the middle of things, limits before and after the script."""

from __future__ import annotations

import os
import signal
import socket
from typing import Any

import pytest

from bascule.guest import limits, main
from bascule.guest.channel import Channel
from bascule.guest.ending import RunEnded
from bascule.guest.futures import Future
from bascule.guest.limits import Deadlines, NoDeadlines
from bascule.guest.report import describe_exception
from bascule.guest.run import Run
from bascule.guest.source import Source
from bascule.wire import Act, Finish, Start, decode_guest_frame, encode_frame
from bascule.wire.frames import Command
from tests.unit.guest.guest_process import run_process
from tests.unit.guest.harness import NOW, MemoryHost, Tools, guest_limits, run, stub_of


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


def fail(key: str) -> None:
    """Raise KeyError."""
    raise KeyError(key)


TOOLS: Tools = {"double": double, "fail": fail}


class DeafHost(MemoryHost):
    """Answers what the script has given up as well, as a host does whose answer was on its way."""

    def _take(self, command: Command) -> None:
        if type(command).__name__ != "Cancel":
            super()._take(command)


def ended(finish: Finish) -> Any:
    """End a run as a test can bear it."""
    raise RunEnded(finish)


def fresh_run(host: Any = None) -> Run:
    """Return a run that has not begun."""
    start = Start(script="1", tools=(), seed=0, now=NOW, limits=guest_limits())
    return Run(start, host or MemoryHost(tools={}), ended)


def test_an_answer_nobody_waits_for_any_more_is_dropped() -> None:
    outcome = run(
        "import asyncio\ntask = asyncio.create_task(double(1))\nawait asyncio.sleep(0)\ntask.cancel()\n"
        "print(await double(4))\n",
        stubs=[stub_of("double", double)],
        host=DeafHost(tools=TOOLS),
    )
    assert outcome.output == "8\n"
    assert outcome.calls == [("double", {"i": 1}), ("double", {"i": 4})]


def test_output_waits_for_the_calls_before_it() -> None:
    outcome = run(
        "import asyncio\ntask = asyncio.create_task(double(1))\nawait asyncio.sleep(0)\n"
        "print('x' * 70_000)\nprint(await task)\n",
        TOOLS,
    )
    assert all(act.blocked for act in outcome.acts)
    assert outcome.output == "x" * 70_000 + "\n2\n"


def test_text_of_closed_stretches_goes_out_before_a_full_last_frame() -> None:
    outcome = run(
        "import asyncio\nasync def first():\n    await double(1)\n    print('a' * 20_000)\n"
        "    await double(3)\n"
        "task = asyncio.create_task(first())\nawait asyncio.sleep(0)\nawait double(2)\nprint('b' * 20_000)\n"
        "late = asyncio.create_task(double(5))\nawait asyncio.sleep(0)\n",
        TOOLS,
        batch=True,
    )
    assert outcome.output == "a" * 20_000 + "\n" + "b" * 20_000 + "\n"


def test_a_generator_left_in_a_timeout_takes_nothing_back_after_the_end() -> None:
    outcome = run(
        "import asyncio\nasync def items():\n    async with asyncio.timeout(9):\n        yield 1\n"
        "left = items()\nprint(await anext(left))\n"
    )
    assert (outcome.status, outcome.output, outcome.cancelled) == ("ok", "1\n", [])


def test_a_coroutine_that_was_thrown_away_is_noted_with_its_line() -> None:
    outcome = run("import asyncio\nasync def f():\n    pass\nf()\nawait asyncio.sleep(0)\n")
    assert [(note.code, note.line) for note in outcome.notes if note.code == "never_awaited"] in (
        [("never_awaited", 4)],
        [],
    )
    assert outcome.status in {"ok", "refused"}


def test_a_coroutine_made_in_a_lambda_and_thrown_away_is_noted() -> None:
    outcome = run(
        "import asyncio\nasync def f():\n    pass\nfor make in [f]:\n    made = make()\nmade = None\n"
        "await asyncio.sleep(0)\n"
    )
    assert [(note.code, note.line) for note in outcome.notes] == [("never_awaited", 5)]


def test_a_failing_callback_is_dropped_before_anybody_listens() -> None:
    part = fresh_run()
    future = Future()
    part.loop.call_soon(int, "no number")
    part.loop.call_soon(future.set_result, 3)
    assert part.loop.run_until_complete(future) == 3


def test_time_that_is_up_before_the_script_compiles_has_no_line() -> None:
    with pytest.raises(RunEnded) as raised:
        fresh_run().time_is_up("wall_limit", 1.5, None)
    (error,) = raised.value.finish.errors
    assert (error.kind, error.line, error.message) == ("wall_limit", None, "stopped after 1.5 s")


@pytest.mark.parametrize(
    "script",
    [
        "class E(Exception):\n    def __str__(self):\n        print('x' * 9999)\nraise E\n",
        "class R:\n    def __repr__(self):\n        print('x' * 9999)\n        return ''\nreturn R()\n",
    ],
)
def test_a_limit_holds_while_the_outcome_is_put_into_words(script: str) -> None:
    assert run(script, output_bytes=100).error.kind == "output_limit"


@pytest.mark.parametrize(
    ("script", "suggestion"),
    [
        ("{}[5]", "look at the keys first"),
        ("import asyncio\nasync def f():\n    pass\nreturn fail('k')", "look at the keys first"),
        ("raise NameError('own')", None),
        ("import json\ndel json\njson.dumps(1)", "add `import json`"),
        ("page = {'rows': [1], 'n': 2}\nfor row in page:\n    row['id']", "loop over page['rows']"),
        (
            "page, n = {'a': 1, 'b': 2}, 5\nfor row in page:\n    row['id']",
            "a loop over a dict gives its keys",
        ),
        ("text = 'abc'\nother = {'x': 1}\ntext['id']", "`text` is the text 'abc', not a dict"),
    ],
)
def test_a_failure_says_what_to_write_instead(script: str, suggestion: str | None) -> None:
    error = run(script, TOOLS).error
    if suggestion is None:
        assert error.suggestion is None
    else:
        assert suggestion in (error.suggestion or "")


def test_an_error_of_code_without_positions_is_described_all_the_same() -> None:
    code = compile("def f():\n    return 1 // 0\n", "<script>", "exec")
    bare = [each.replace(co_linetable=b"") if hasattr(each, "co_code") else each for each in code.co_consts]
    namespace: dict[str, Any] = {}
    exec(code.replace(co_consts=tuple(bare)), namespace)
    with pytest.raises(ZeroDivisionError) as raised:
        namespace["f"]()
    described = describe_exception(raised.value, Source(lines=("def f():", "    return 1 // 0")))
    assert described.message.startswith("ZeroDivisionError: ")
    assert described.column is None


def test_a_long_frame_is_read_and_written_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    read_fd, to_guest = os.pipe()
    from_guest, write_fd = os.pipe()
    channel = Channel(read_fd=read_fd, write_fd=write_fd, frame_bytes=1 << 20, meter=NoDeadlines())
    write, read = os.write, os.read

    def write_little(fd: int, data: bytes) -> int:
        return write(fd, bytes(data)[:3])

    def read_little(fd: int, size: int) -> bytes:
        return read(fd, min(size, 3))

    monkeypatch.setattr(os, "write", write_little)
    channel.hand_over(Act(activations=(), blocked=False))
    monkeypatch.undo()
    sent = os.read(from_guest, 1 << 16)
    assert decode_guest_frame(sent[4:]) == Act(activations=(), blocked=False)
    frame = encode_frame(
        Start(script="1", tools=(), seed=1, now=1.0, limits=guest_limits()), max_bytes=1 << 20
    )
    monkeypatch.setattr(os, "read", read_little)
    os.write(to_guest, frame)
    assert channel.start().script == "1"
    for fd in (read_fd, to_guest, from_guest, write_fd):
        os.close(fd)


def test_the_image_is_named_by_argument_or_by_the_file_beside_the_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "IMAGE").write_text("0123456789ab\n", encoding="ascii")
    monkeypatch.setattr(main, "__file__", str(tmp_path / "bascule" / "guest" / "main.py"))
    named: Any = vars(main)["_image"]
    monkeypatch.setattr("sys.argv", ["main"])
    assert named() == "0123456789ab"
    monkeypatch.setattr("sys.argv", ["main", "other"])
    assert named() == "other"


class Timers:
    """Stands in for what would interrupt or end the test's process; keeps what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set: list[tuple[int, float]] = []
        self.handlers: dict[int, Any] = {}
        self.now_s = 100.0
        self.dumps: list[float | None] = []
        monkeypatch.setattr("signal.signal", self.handlers.__setitem__)
        monkeypatch.setattr("signal.setitimer", self._set)
        monkeypatch.setattr("time.monotonic", lambda: self.now_s)
        monkeypatch.setattr("faulthandler.dump_traceback_later", self._dump_later)
        monkeypatch.setattr("faulthandler.cancel_dump_traceback_later", lambda: self.dumps.append(None))

    def _set(self, which: int, seconds: float, again: float = 0.0) -> None:
        self.set.append((which, seconds))

    def _dump_later(self, seconds: float, **_: object) -> None:
        self.dumps.append(seconds)

    def ring(self, number: int) -> None:
        """Deliver a signal."""
        self.handlers[number](number, None)


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    return Timers(monkeypatch)


def test_only_the_time_in_which_the_script_runs_counts(timers: Timers) -> None:
    stopped: list[tuple[str, float]] = []

    def stop(kind: str, limit_s: float, frame: object) -> Any:
        stopped.append((kind, limit_s))

    deadlines = Deadlines(guest_limits(wall_s=10.0, cpu_s=5.0), stop)
    deadlines.start()
    assert timers.dumps == [10.5]
    timers.now_s += 4
    deadlines.pause()
    timers.now_s += 100
    timers.ring(signal.SIGALRM)
    timers.ring(signal.SIGPROF)
    assert stopped == []
    assert timers.dumps[-1] is None
    deadlines.resume()
    assert timers.set[-1] == (signal.ITIMER_REAL, 6.0)
    timers.now_s += 5
    timers.ring(signal.SIGALRM)
    assert (stopped, timers.set[-1]) == ([], (signal.ITIMER_REAL, 1.0))
    timers.now_s += 1
    timers.ring(signal.SIGALRM)
    assert stopped == [("wall_limit", 10.0)]
    deadlines.pause()
    timers.ring(signal.SIGALRM)
    timers.ring(signal.SIGPROF)
    assert stopped == [("wall_limit", 10.0), ("wall_limit", 10.0), ("cpu_limit", 5.0)]
    deadlines.pause()
    deadlines.cancel()
    assert timers.dumps[-1] is None


def test_an_ending_that_fails_leaves_the_next_alarm_its_chance(timers: Timers) -> None:
    tries: list[str] = []

    def stop(kind: str, limit_s: float, frame: object) -> Any:
        tries.append(kind)
        raise MemoryError if len(tries) > 1 else RecursionError

    deadlines = Deadlines(guest_limits(wall_s=1.0), stop)
    deadlines.start()
    timers.now_s += 2
    timers.ring(signal.SIGALRM)
    timers.ring(signal.SIGALRM)
    assert tries == ["wall_limit", "wall_limit"]


def test_limits_that_are_lower_already_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    before = (50, 80)
    asked: list[tuple[int, int]] = []

    def get(which: int) -> tuple[int, int]:
        return before

    def put(which: int, pair: tuple[int, int]) -> None:
        asked.append(pair)

    lower: Any = vars(limits)["_lower"]
    monkeypatch.setattr("resource.getrlimit", get)
    monkeypatch.setattr("resource.setrlimit", put)
    lower(0, 60, 100)
    lower(0, 10, 20)
    before = (-1, -1)
    lower(0, 60, 100)
    assert asked == [(60, 80), (10, 20), (60, 100)]


def test_a_process_under_every_limit_still_uses_threads() -> None:
    done = run_process(
        "from concurrent.futures import ThreadPoolExecutor\ndef work(i):\n    return double(i)\n"
        "with ThreadPoolExecutor() as pool:\n    print(sum(pool.map(work, range(8))))\n",
        {"double": double},
        memory_bytes=64 << 20,
    )
    assert (done.output, done.exit_code) == ("56\n", 0)


def test_the_guest_takes_a_socket_when_it_has_no_streams(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect: Any = vars(main)["_connect"]
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "run"))
        listening.listen()
        monkeypatch.setattr("sys.argv", ["main", f"unix:{tmp_path / 'run'}"])
        taken = connect(-1, -1)
        host, _ = listening.accept()
        with host, socket.socket(fileno=taken) as guest:
            guest.sendall(b"hello")
            assert host.recv(5) == b"hello"


def test_what_a_finalizer_raises_reaches_nobody() -> None:
    ended = run_process(
        "def rows():\n    try:\n        yield 1\n    finally:\n        raise ValueError('secret')\n"
        "made = rows()\nnext(made)\ndel made\nprint('on')\n"
    )
    assert (ended.output, ended.stderr, ended.exit_code) == ("on\n", "", 0)
