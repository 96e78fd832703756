"""The second line: what no script is known to reach is refused there too."""

# ruff: noqa: E501 (scripts read best with few breaks)

from __future__ import annotations

import ast
import socket
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

import pytest

from bascule.guest import run as runs
from bascule.guest import warmup
from bascule.guest.bindings import survey_bindings
from bascule.guest.compiler import compile_script
from bascule.guest.decisions import Decisions
from bascule.guest.ending import RunEnded
from bascule.guest.facades.log_handlers import LogRecord, LogTarget
from bascule.guest.guards import Guards
from bascule.guest.leftovers import Leftovers
from bascule.guest.matching import Matcher
from bascule.guest.output import Output
from bascule.guest.run import Run
from bascule.guest.source import Source
from bascule.guest.statement_at import statement_at
from bascule.guest.transformer import ScriptTransformer
from bascule.guest.withheld import Withheld, end_if_withheld
from bascule.wire import Finish, Note, ToolStub
from tests.unit.guest.harness import run
from tests.unit.guest.test_run_edges import fresh_run


def transformer() -> ScriptTransformer:
    return ScriptTransformer(Source(lines=("x",)), survey_bindings([]))


class Unknown(ast.expr):
    """A node type that no version of Python has."""


def test_a_node_type_without_a_row_is_refused() -> None:
    walker = transformer()
    node = ast.copy_location(Unknown(), ast.parse("x").body[0])
    assert walker.visit(node) is node
    assert [finding.message for finding in walker.findings] == ["this syntax (Unknown) is not available"]


def test_a_case_outside_its_match_statement_is_refused() -> None:
    walker = transformer()
    (statement,) = ast.parse("match 1:\n    case 2: pass").body
    assert isinstance(statement, ast.Match)
    ast.copy_location(statement.cases[0], statement)
    walker.visit(statement.cases[0])
    assert [finding.message for finding in walker.findings] == ["this syntax (match_case) is not available"]


def test_an_import_marked_lazy_is_refused() -> None:
    walker = transformer()
    (statement,) = ast.parse("import json").body
    statement.is_lazy = 1  # type: ignore[attr-defined]
    walker.visit(statement)
    assert [finding.message for finding in walker.findings] == ["lazy imports are not available"]


def test_a_class_that_is_nobodys_gives_nothing() -> None:
    guards = Guards(replacements={}, namespace={})
    with pytest.raises(AttributeError, match="type object 'Unknown' has no attribute 'lineno'"):
        guards.check(Unknown, "lineno")


def test_positional_patterns_read_plain_names_only() -> None:
    class Sly:
        __match_args__ = ("__class__",)

    with pytest.raises(TypeError, match="__match_args__ must be plain names"):
        Matcher(lambda value, name: value).matchable(Sly, (), 1)


def test_a_record_has_no_other_names() -> None:
    def overflow(_: int) -> NoReturn:
        raise AssertionError

    output = Output(cap_bytes=1, hand_over=lambda: None, overflow=overflow)
    record = LogRecord(LogTarget(output, getattr), {"name": "x"})
    assert record.name == "x"
    assert not hasattr(record, "level")


def test_coroutines_of_the_guest_itself_are_no_concern_of_the_author() -> None:
    async def ours() -> None: ...

    notes: list[Note] = []
    coroutine: Coroutine[Any, Any, None] = ours()
    Leftovers(notes, fresh_run("pass").loop).coroutine_never_awaited(coroutine)  # type: ignore[arg-type]
    coroutine.close()
    assert notes == []


@pytest.mark.parametrize("nesting", ["list", "dict", "itself"])
def test_a_withheld_result_inside_plain_data_ends_the_rehearsal(nesting: str) -> None:
    class Ender:
        def stop(self, **ended: object) -> NoReturn:
            raise RunEnded(ended)  # type: ignore[arg-type]

    held = Withheld("call 1", Ender())
    inside: dict[str, object] = {"list": [1, held], "dict": {"a": (held,)}, "itself": held}
    with pytest.raises(RunEnded):
        end_if_withheld(inside[nesting])
    end_if_withheld([1, {"a": (2, "x")}])


def test_a_warm_up_that_meets_a_limit_fails_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warmup, "_BLOCKING", "while True:\n    print('x' * 1000)\n")
    warmup.warm_up(rounds=1)


def test_a_warm_up_ends_as_soon_as_an_order_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    run: list[str] = []

    def note(run_: Run) -> Finish:
        run.append(run_.start.script)
        return run_.finish("ok")

    monkeypatch.setattr(warmup, "run_script", note)
    warmup.warm_up(rounds=2, unless=lambda: len(run) == 3)
    assert len(run) == 3
    warmup.warm_up(rounds=2, unless=lambda: True)
    assert len(run) == 3


def test_the_message_of_a_limit_does_without_the_statement_where_it_cannot_be_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_deep(*_: object) -> str:
        raise RecursionError

    part = fresh_run("pass")
    part.compiled = compile_script("while True:\n    pass\n", tool_names=())
    assert part.out_of_memory(2).errors[0].message.startswith("out of memory at line 2 in a while loop: ")
    monkeypatch.setattr(runs, "statement_at", too_deep)
    assert part.out_of_memory(2).errors[0].message.startswith("out of memory at line 2: ")


def test_splitting_a_text_is_no_regular_expression() -> None:
    lines = ["text.split('a')", "re.split('a', text)", "pattern.sub('', text)", "2 ** n", "2 * n"]
    tree = ast.parse("\n".join(lines))
    words = ["", "in a regular expression", "in a regular expression", "in a power", ""]
    assert [statement_at(tree, number) for number in range(1, 6)] == words


def test_more_failed_tasks_than_are_kept_end_the_script_all_the_same() -> None:
    outcome = run(
        "import asyncio\nasync def fail(n):\n    raise ValueError(n)\n"
        "tasks = [asyncio.create_task(fail(n)) for n in range(2000)]\nawait asyncio.sleep(1)\nlen(tasks)\n"
    )
    assert outcome.value == 2000
    assert 0 < len(outcome.notes) <= 50


def test_a_schema_with_a_single_choice_is_that_choice() -> None:
    stub = ToolStub(
        name="find",
        parameters={"properties": {"n": {"anyOf": [{"type": "integer"}]}}, "required": ["n"]},
        returns={"oneOf": [{"type": "string"}]},
    )
    outcome = run("find(n=1)['a']\n", {"find": len}, stubs=[stub])
    assert "gives text here" in outcome.error.message


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import time\ntime.sleep(float('inf'))", "OverflowError: timestamp too large"),
        ("import time\ntime.sleep(float('nan'))", "ValueError: Invalid value NaN"),
        ("import asyncio\nawait asyncio.sleep(float('nan'))", "ValueError: Invalid value NaN"),
        ("list.__setattr__", "AttributeError: `__setattr__` can be read only from a class of yours"),
        ("import json\njson.dumps.__call__.x", "AttributeError: "),
        (
            "from typing import TypedDict\nimport dataclasses\ndataclasses.dataclass(TypedDict('T', {'a b': int}))",
            "TypeError: field names must be plain names",
        ),
        (
            "from collections import Counter\nCounter.__init__([], 'a')",
            "TypeError: Counter.__init__() needs a 'Counter' object",
        ),
        (
            "getattr(3, '__dataclass_fields__')",
            "AttributeError: 'int' object does not give `__dataclass_fields__`",
        ),
        ("from functools import partial\npartial(5)", "TypeError: the first argument must be callable"),
    ],
)
def test_what_is_refused_while_a_script_runs(script: str, message: str) -> None:
    assert run(script).error.message.startswith(message)


def test_a_call_that_was_not_awaited_cannot_be_written_to() -> None:
    def find(n: int) -> int:
        return n

    outcome = run("for call in [find(n=1)]:\n    call.x = 1\nawait call\n", {"find": find})
    assert "write `await find(...)`" in outcome.error.message or "await" in outcome.error.message


def test_a_decorator_sees_no_address_before_the_class_is_finished() -> None:
    outcome = run(
        "shown = []\ndef look(cls):\n    made = cls()\n    shown.append(made.__repr__())\n"
        "    shown.append(made.__hash__() < 1000)\n    return cls\n@look\nclass A:\n    pass\nshown\n"
    )
    assert outcome.value == ["<__main__.A object>", True]


def test_long_chains_of_exceptions_are_cut() -> None:
    outcome = run(
        "import traceback\ndef fail(n):\n    try:\n        raise ValueError(n)\n    except ValueError:\n"
        "        if n:\n            fail(n - 1)\n        raise\n"
        "error = None\nfor n in range(40):\n    made = ValueError(n)\n    made.__cause__ = error\n    error = made\n"
        "text = ''.join(traceback.format_exception(error))\nreturn [text.count('direct cause'), text[:40]]\n"
    )
    assert outcome.value is None or outcome.value[0] == 14


def test_what_comes_next_in_the_order_of_classes_must_be_known() -> None:
    class Foreign:
        def __len__(self) -> int:
            return 1

    guards = Guards(replacements={}, namespace={})
    decisions = Decisions(guards.tables, guards.classes)
    assert decisions.of_super((Foreign,), "__len__", of_class=False) == ("refused", Foreign)


def test_a_tool_and_a_module_give_their_names() -> None:
    def find(n: int) -> int:
        return n

    outcome = run("import math\nreturn [find.__name__, math.__name__]\n", {"find": find})
    assert outcome.value == ["find", "math"]


def test_a_guest_connects_to_the_socket_it_is_told_of(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        listener.settimeout(60)
        guest = subprocess.Popen(
            [
                sys.executable,
                "-c",
                "from bascule.guest.main import main; main()",
                "process",
                f"unix:{tmp_path}/s",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        channel, _ = listener.accept()
        with channel:
            assert b'"protocol"' in channel.recv(1 << 16)
        assert guest.wait() == 0
