"""Scripts of a session: names stay, everything that is counted or redirected begins anew."""

from __future__ import annotations

import msgspec

from bascule.guest.ending import RunEnded
from bascule.guest.run import Run
from bascule.guest.script import run_script
from bascule.wire import Finish, Hello, Output, Start
from tests.unit.guest.guest_process import Guest
from tests.unit.guest.harness import NOW, MemoryHost, guest_limits, stub_of


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


def end(finish: Finish) -> None:
    raise RunEnded(finish)


def start(script: str, **limits: int) -> Start:
    stubs = (stub_of("double", double),)
    return Start(script=script, tools=stubs, seed=3, now=NOW, limits=guest_limits(**limits), session=True)


def session(*scripts: Start) -> tuple[list[Finish], str]:
    """Run scripts in one guest; return their last frames and everything printed."""
    host = MemoryHost(tools={"double": double})
    run = Run(scripts[0], host, end)  # type: ignore[arg-type]
    finishes = [host.take_finish(run_script(run))]
    for each in scripts[1:]:
        run.begin(each)
        finishes.append(host.take_finish(run_script(run)))
    return finishes, "".join(command.text for command in host.commands if isinstance(command, Output))


def test_names_stay_and_attributes_of_the_first_script_are_guarded_in_the_second() -> None:
    finishes, output = session(
        start("class Row:\n    def __init__(self, n):\n        self.n = n\nrow = Row(double(i=2))\nrow.n\n"),
        start("row.n += 1\nprint(row.n, Row(5).n)\nrow.n\n"),
        start("print(missing)\n"),
        start("row.missing\n"),
    )
    assert [finish.status for finish in finishes] == ["ok", "ok", "refused", "failed"]
    assert [finish.value for finish in finishes[:2]] == [4, 5]
    assert output == "5 5\n"


def test_counts_and_redirections_begin_anew() -> None:
    calls = "[double(i=i) for i in range(3)]\n"
    first = (
        "import contextlib, io\n"
        "def redirected():\n"
        "    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):\n"
        "        yield\n"
        f"print('x' * 90)\n{calls}open_end = redirected()\nnext(open_end)\n"
    )
    second = f"import sys\nprint('y' * 90)\n{calls}print('z', file=sys.stderr)\n"
    finishes, output = session(
        start(first, output_bytes=100, calls=3),
        start(second, output_bytes=100, calls=3),
        start("open_end.close()\nprint('end')\n", output_bytes=100, calls=3),
        start("[double(i=i) for i in range(4)]\n", output_bytes=100, calls=3),
    )
    assert [finish.status for finish in finishes] == ["ok", "ok", "ok", "limit"]
    assert output == "x" * 90 + "\n" + "y" * 90 + "\nz\nend\n"
    assert finishes[3].errors[0].kind == "call_limit"


def test_a_guest_process_serves_a_session_until_a_limit_ends_it() -> None:
    guest = Guest()
    assert isinstance(guest.receive(), Hello)
    seen: list[str] = []
    for script in ("x = 1\nx\n", "x += 1\nx\n", "while True:\n    x += 1\n"):
        guest.send(msgspec.structs.replace(start(script), limits=guest_limits(wall_s=0.5)))
        finish = guest.receive()
        assert isinstance(finish, Finish)
        seen.append(f"{finish.status} {finish.value}")
    assert seen == ["ok 1", "ok 2", "limit None"]
    assert guest.receive() is None
    assert guest.close() == (0, "")
