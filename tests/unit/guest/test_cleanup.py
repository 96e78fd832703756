"""Small repairs around a script, each reported, none moving a line."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.guest.harness import run


def echo(text: Any) -> Any:
    return text


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\nx\n```",
        "```\nx = 1\nx\n```\n",
        "\n\n```py\nx = 1\nx\n```\n\n",
        "Here is the script:\n\n```python\nx = 1\nx\n```\nIt returns x.",
        "~~~python\nx = 1\nx\n~~~",
        "```python\nx = 1\nx",
        "  ```python\n  x = 1\n  x\n  ```",
    ],
)
def test_one_fence_is_removed(text: str) -> None:
    outcome = run(text)
    assert outcome.finish.value == 1, outcome.finish.errors
    assert "fence_removed" in [note.code for note in outcome.finish.notes]


def test_lines_stay_those_of_the_submitted_text() -> None:
    outcome = run("Sure!\n\n```python\nx = {}\nx['a']\n```")
    (error,) = outcome.finish.errors
    assert (error.line, error.source) == (5, "x['a']\n^")


def test_a_fence_inside_a_text_stays() -> None:
    outcome = run('x = """\n```python\ny\n```\n"""\nx')
    assert outcome.finish.value == "\n```python\ny\n```\n"
    assert outcome.finish.notes == ()


def test_two_fenced_blocks_are_not_guessed_at() -> None:
    assert run("```\nx = 1\n```\nand\n```\ny = 2\n```").finish.status == "refused"


def test_a_common_indent_is_removed_and_columns_stay() -> None:
    outcome = run("    x = [1]\n    if x:\n        x.nope\n")
    (error,) = outcome.finish.errors
    assert (error.line, error.column, error.source) == (3, 9, "        x.nope\n        ^")
    assert [note.code for note in outcome.finish.notes] == ["dedented"]


@pytest.mark.parametrize(
    ("script", "value", "codes"),
    [
        ("def main():\n    return 4", 4, ["main_called"]),
        ("async def main():\n    return 5", 5, ["main_called"]),
        ("def main(n=2):\n    return n", 2, ["main_called"]),
        ("async def main():\n    return 6\nmain()", 6, ["await_added"]),
        ("async def main():\n    return 7\nif __name__ == '__main__':\n    main()", 7, ["await_added"]),
        ("def main():\n    return 8\nmain()", 8, []),
        ("def main(n):\n    return n", None, []),
        ("def main():\n    return 1\nresult = main", "<", []),
        ("import asyncio\nasync def main():\n    return 9\nasyncio.run(main())", 9, []),
    ],
)
def test_a_forgotten_main_is_called_and_awaited(script: str, value: object, codes: list[str]) -> None:
    outcome = run(script)
    assert outcome.finish.status == "ok", outcome.finish.errors
    if value == "<":
        assert str(outcome.finish.value).startswith("<function main")
        return
    assert outcome.finish.value == value
    assert [note.code for note in outcome.finish.notes] == codes


def test_an_asynchronous_tool_call_that_ends_the_script_is_awaited() -> None:
    outcome = run("async def f(): pass\necho(text='x')", {"echo": echo})
    assert outcome.finish.value == "x"
    assert [note.code for note in outcome.finish.notes] == ["await_added"]
