"""One run ends in one well-formed frame, with the right result, whatever the script does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.guest.harness import MemoryHost, run


def double(i: int) -> int:
    """Return twice the number."""
    return 2 * i


TOOLS: dict[str, Callable[..., Any]] = {"double": double}


@pytest.mark.parametrize(
    ("script", "source", "value"),
    [
        ("return double(2)", "return", 4),
        ("return await double(2)", "return", 4),
        ("if double(1) == 2:\n    return 'early'\n'late'", "return", "early"),
        ("double(3)", "last_expression", 6),
        ("await double(3)", "last_expression", 6),
        ("x = double(4)", "last_assignment", 8),
        ("double(1)\nfor x in []:\n    pass", "none", None),
        ("async def main():\n    return await double(5)\nawait main()", "last_expression", 10),
        (
            "import asyncio\nasync def main():\n    return await double(5)\nasyncio.run(main())",
            "last_expression",
            10,
        ),
    ],
)
def test_the_result_is_chosen_by_the_first_rule_that_applies(script: str, source: str, value: Any) -> None:
    outcome = run(script, TOOLS)
    assert outcome.errors == ()
    assert (outcome.status, outcome.value_source, outcome.value) == ("ok", source, value)


def test_a_lone_main_is_called_in_both_dialects() -> None:
    assert run("def main():\n    print(double(1))\n", TOOLS).output == "2\n"
    assert run("async def main():\n    print(await double(1))\n", TOOLS).output == "2\n"


def test_output_and_calls_keep_their_order() -> None:
    host = MemoryHost(tools=TOOLS)
    run("print('a')\ndouble(1)\nprint('b')\ndouble(2)\nprint('c')\n", TOOLS, host=host)
    assert [type(command).__name__ for command in host.commands] == [
        "Output",
        "Call",
        "Output",
        "Call",
        "Output",
    ]


def test_calls_carry_their_line() -> None:
    host = MemoryHost(tools=TOOLS)
    run("x = 1\ndef f():\n    return double(x)\nf()\n", TOOLS, host=host)
    assert [getattr(command, "line", None) for command in host.commands] == [3]


def test_a_refused_script_runs_nothing_and_lists_everything() -> None:
    outcome = run("double(1)\nimport requests\ndoubel(2)\n", TOOLS)
    assert outcome.status == "refused"
    assert len(outcome.errors) >= 2
    assert outcome.calls == []


def test_text_that_is_not_python_is_refused() -> None:
    assert run("this is not python").status == "refused"
    assert run("").status in {"ok", "refused"}


def test_every_delivery_is_answered_by_one_activation() -> None:
    outcome = run(
        "import asyncio\nasync def f(i):\n    print('start', i)\n    print(await double(i))\n"
        "await asyncio.gather(*[f(i) for i in range(4)])\nawait double(9)\n",
        TOOLS,
        batch=True,
    )
    assert [len(act.activations) for act in outcome.acts] == [1, 4]
    assert len(outcome.finish.activations) == 1


def test_a_finish_in_the_middle_of_a_batch_has_fewer_activations() -> None:
    outcome = run(
        "import asyncio\ntasks = [asyncio.create_task(double(i)) for i in range(4)]\nawait tasks[0]\n1 / 0\n",
        TOOLS,
        batch=True,
    )
    assert outcome.status == "failed"
    assert len(outcome.finish.activations) == 1


def test_more_calls_than_fit_into_a_frame_follow_later() -> None:
    def store(text: str) -> int:
        return len(text)

    outcome = run(
        "import asyncio\nprint(sum(await asyncio.gather(*[store('x' * 10_000) for i in range(50)])))\n",
        {"store": store},
        frame_bytes=65_536,
    )
    assert outcome.output == "500000\n"
    assert len(outcome.calls) == 50


def test_more_output_than_fits_into_a_frame_is_kept_whole() -> None:
    outcome = run(
        "import asyncio\nasync def f(i):\n    await double(i)\n    print(str(i) * 20_000)\n"
        "    await double(i)\n"
        "await asyncio.gather(*[f(i) for i in range(9)])\n",
        TOOLS,
        frame_bytes=65_536,
        batch=True,
    )
    assert [(text[0], len(text)) for text in sorted(outcome.output.split())] == [
        (str(i), 20_000) for i in range(9)
    ]


def test_text_that_grows_in_json_still_fits() -> None:
    outcome = run("print(chr(1) * 60_000)\n", frame_bytes=65_536)
    assert (len(outcome.output), set(outcome.output)) == (60_001, {"\x01", "\n"})


def test_output_is_handed_over_while_the_script_runs() -> None:
    outcome = run("for i in range(100):\n    print('x' * 999)\n", output_bytes=200_000)
    assert len(outcome.output) == 100_000
    assert outcome.acts
    assert not any(act.blocked for act in outcome.acts)


def test_the_output_limit_ends_the_run_with_what_was_printed_so_far() -> None:
    outcome = run("try:\n    while True:\n        print('é' * 10)\nexcept:\n    pass\n", output_bytes=1_001)
    assert (outcome.status, outcome.error.kind, outcome.error.line) == ("limit", "output_limit", 3)
    assert len(outcome.output.encode()) in {1_000, 1_001}
    assert "1001" in outcome.error.message


def test_lone_surrogates_are_printed_as_escapes() -> None:
    assert run("print('a\\ud800b', 'é')").output == "a\\ud800b é\n"


def test_the_call_limit_ends_the_run() -> None:
    outcome = run(
        "while True:\n    try:\n        double(1)\n    except Exception:\n        pass\n", TOOLS, calls=3
    )
    assert (outcome.status, outcome.error.kind, outcome.error.line) == ("limit", "call_limit", 3)
    assert len(outcome.calls) == 3


def test_a_result_larger_than_a_frame_is_a_limit_not_a_crash() -> None:
    outcome = run("'x' * 100_000", frame_bytes=65_536)
    assert (outcome.status, outcome.error.kind, outcome.value) == ("limit", "result_limit", None)


def test_a_result_that_is_not_json_is_rendered_with_a_note() -> None:
    outcome = run("[float('nan'), {1, 2}, print]")
    assert outcome.status == "ok"
    assert [note.code for note in outcome.notes][:1] == ["result_not_json"]


def test_recursion_is_a_limit_with_its_line() -> None:
    outcome = run("def f(n):\n    return f(n + 1)\nf(0)\n", recursion=150)
    assert (outcome.status, outcome.error.kind, outcome.error.line) == ("limit", "recursion_limit", 2)


def test_running_out_of_memory_is_a_limit_with_its_line() -> None:
    outcome = run("x = 1\nraise MemoryError('all of it')\n")
    assert (outcome.status, outcome.error.kind, outcome.error.line) == ("limit", "memory_limit", 2)
    assert "256 MiB" in outcome.error.message


@pytest.mark.parametrize(
    ("code", "status"), [("", "ok"), ("0", "ok"), ("None", "ok"), ("3", "failed"), ("'x'", "failed")]
)
def test_sys_exit_ends_the_script(code: str, status: str) -> None:
    outcome = run(f"import sys\nprint('a')\nsys.exit({code})\nprint('b')\n")
    assert outcome.status == status
    assert outcome.output == "a\n"


def test_sleeping_moves_the_clock_and_nothing_else_does() -> None:
    outcome = run(
        "import time\nfrom datetime import datetime\nstart, first = time.time(), datetime.now()\n"
        "for i in range(1000):\n    pass\nprint(time.time() - start, datetime.now() == first)\n"
        "time.sleep(90)\nprint(time.time() - start, (datetime.now() - first).total_seconds())\n"
    )
    assert outcome.output == "0.0 True\n90.0 90.0\n"


def test_the_same_seed_gives_the_same_randomness() -> None:
    script = "import random, uuid\nprint(random.random(), random.sample(range(9), 3), uuid.uuid4())\n"
    assert run(script, seed=7).output == run(script, seed=7).output != run(script, seed=8).output


def test_big_results_arrive_whole() -> None:
    rows = [{"id": i, "name": "x" * 50} for i in range(5_000)]
    assert run("rows = big()\nlen(rows), rows[-1]", {"big": lambda: rows}).value == [5_000, rows[-1]]


def test_nothing_is_called_after_the_script_has_ended() -> None:
    outcome = run(
        "def gen():\n    try:\n        yield 1\n    finally:\n        try:\n            double(1)\n"
        "        except RuntimeError:\n            print('after')\n"
        "g = gen()\nnext(g)\n",
        TOOLS,
    )
    assert outcome.status == "ok"
    assert outcome.calls == []
