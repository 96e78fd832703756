"""Stubs that are chosen to fit a budget, and shapes that were observed."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from bascule.tools import AnyTool, FittedStubs, fit_stubs, render_stubs, tool
from bascule.tools.observed import infer_schema, observe
from bascule.tools.stubs import bound_tokens


def make(name: str, *, effects: str = "read") -> AnyTool:
    @tool(name=name, effects="read" if effects == "read" else "once")
    def do(first: str, second: int = 3) -> list[str]:
        """Do one thing of many.

        It takes a while, and there is more to be said about it than fits a line.

        Args:
            first: what is to be done.
            second: how often.
        """
        return [first] * second

    return do


TOOLS = [make(f"crm.do_{number}") for number in range(20)] + [
    make(f"mail.do_{number}") for number in range(20)
]


def cost(detail: str) -> int:
    return len(render_stubs(TOOLS, detail=detail))  # type: ignore[arg-type]


def fit(budget: int, pinned: tuple[str, ...] = ()) -> FittedStubs:
    fitted = fit_stubs(TOOLS, budget_tokens=budget, count_tokens=len, pinned=pinned)
    assert fitted.tokens == len(fitted.text) <= budget
    assert sorted(fitted.shown + fitted.hidden) == sorted(each.name for each in TOOLS)
    return fitted


@pytest.mark.parametrize("detail", ["full", "signatures", "names"])
def test_the_richest_level_that_fits_is_chosen(detail: str) -> None:
    exact = fit(cost(detail))
    assert (exact.detail, exact.hidden) == (detail, ())
    assert exact.text == render_stubs(TOOLS, detail=exact.detail)
    less = fit(cost(detail) - 1)
    assert (less.detail, bool(less.hidden)) != (detail, False)


def test_what_does_not_fit_is_counted_by_namespace_in_the_last_line() -> None:
    fitted = fit(cost("names") // 2)
    assert fitted.shown[0] == "crm.do_0"
    assert 5 < len(fitted.shown) < 40
    last = fitted.text.splitlines()[-1]
    assert last.startswith(f"# {len(fitted.hidden)} more tools are not shown: mail 20")


def test_pinned_tools_come_first_and_keep_their_signatures_longest() -> None:
    fitted = fit(cost("names") // 2, pinned=("mail.do_7",))
    assert fitted.detail == "names"
    assert "class mail:\n    def do_7(first: str, second: int = 3) -> list[str]:" in fitted.text
    assert fitted.shown[0] == "mail.do_7"
    tight = fit(90, pinned=("mail.do_7",))
    assert tight.shown == ("mail.do_7",)
    assert tight.text.startswith("mail.do_7  #")


def test_nothing_is_shown_without_a_budget() -> None:
    assert fit(0) == FittedStubs(
        text="", detail="names", tokens=0, shown=(), hidden=tuple(each.name for each in TOOLS)
    )
    assert fit_stubs([], budget_tokens=10).text == ""


def test_the_estimate_is_above_what_a_real_tokenizer_counts() -> None:
    toktok = pytest.importorskip("toktok")
    for text in (render_stubs(TOOLS, detail="full"), "退款给客户的订单，并发送邮件通知" * 20):
        assert bound_tokens(text) >= toktok.batch_count([text], "o200k_base")[0]


# ------------------------------------------------------------ observed shapes


@tool(effects="read")
def look(word: str):  # type: ignore[no-untyped-def]  # the point: nothing is declared
    """Look something up."""


def test_a_shape_that_was_observed_is_shown_and_marked() -> None:
    results: list[JsonValue] = [
        {"id": 1, "when": "2025-01-02", "tags": ["a"], "score": 1},
        {"id": 2, "when": "2025-02-02", "tags": [], "score": 1.5, "note": None},
    ]
    seen = observe(look, results)
    assert render_stubs([seen]) == (
        'ISODate = str  # "2025-06-30"\n\nclass LookResult(TypedDict):\n    id: int\n    when: ISODate\n'
        "    tags: list[str]\n    score: float\n    note: NotRequired[None]\n\n"
        'def look(word: str) -> LookResult: """Look something up."""  # result as observed\n'
    )
    assert seen.digest == look.digest
    assert look.observed is None


def test_a_declared_type_is_never_replaced_and_no_result_shows_nothing() -> None:
    declared = TOOLS[0]
    assert observe(declared, [1, 2]) is declared
    assert observe(look, []) is look


def test_values_never_stand_in_an_observed_shape() -> None:
    shape = infer_schema(
        [{"alice@example.com": {"n": 1}, "bob@example.com": {"n": 2}}, {"secret token!": {"n": 3}}]
    )
    assert shape == {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    }
    assert infer_schema([{f"k{number}": number} for number in range(5)]) == {
        "type": "object",
        "additionalProperties": {"type": "integer"},
    }


def test_hostile_results_give_bounded_shapes() -> None:
    deep: JsonValue = {}
    for _ in range(60):
        deep = {"a": [deep]}
    wide: JsonValue = {f"name_{number}": number for number in range(10_000)}
    long: list[JsonValue] = [deep for _ in range(1000)]
    shape = str(infer_schema([deep, wide, long]))
    assert len(shape) < 5000
    assert infer_schema([True, None, 1, "x"]) == {
        "anyOf": [{"type": "string"}, {"type": "boolean"}, {"type": "integer"}, {"type": "null"}]
    }
