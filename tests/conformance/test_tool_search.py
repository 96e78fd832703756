"""Search over hundreds of tools: the right one among the first five, and what the rest find instead."""

from __future__ import annotations

import pytest

from bascule.tools import AnyTool, ArgumentsInvalid, fit_stubs, render_stubs
from bascule.tools.search import ToolIndex
from tests.bench.stub_tokens import measure
from tests.conformance.many_tools import SUITES, make_tools, suite_tools
from tests.conformance.tool_queries import QUERIES

FIRST = 5
LEAST_FOUND = 90


@pytest.fixture(scope="module")
def tools() -> list[AnyTool]:
    return make_tools()


def test_the_right_tool_is_among_the_first_five_for_nine_of_ten_questions(
    tools: list[AnyTool], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(tools) > 500
    assert len(QUERIES) == 100
    index = ToolIndex(tools)
    names = {each.name for each in tools}
    missed: list[str] = []
    for query, wanted in QUERIES:
        right = set(wanted.split())
        assert right <= names
        found = [match.name for match in index.search(query, FIRST)]
        if not right & set(found):
            missed.append(f"{query!r}: wanted {wanted}, found {', '.join(found) or 'nothing'}")
    with capsys.disabled():
        print(f"\n{len(QUERIES) - len(missed)} of {len(QUERIES)} found among {len(tools)} tools; missed:")
        print("\n".join(f"  {line}" for line in missed))
    assert len(QUERIES) - len(missed) >= LEAST_FOUND


@pytest.mark.anyio
async def test_every_suite_goes_through_import_stubs_search_and_calls() -> None:
    called = 0
    for path in sorted(SUITES.glob("*.py")):
        tools = suite_tools(path)
        index = ToolIndex(tools)
        for each in tools:
            assert each.name in [match.name for match in index.search(each.name, 5)], each.name
            compile(index.describe(each.name), each.name, "exec")
            if not each.parameters["required"] and each.effects == "read":
                outcome = each.call(each.validate({}).values)
                each.dump_result(await outcome if each.is_async else outcome)
                called += 1
            else:
                with pytest.raises(ArgumentsInvalid):
                    each.validate({"no such parameter": 1})
        compile(render_stubs(tools, detail="full"), path.stem, "exec")
    assert called >= 15


def test_stubs_of_all_of_them_fit_any_budget(tools: list[AnyTool]) -> None:
    for budget in (200, 2_000, 20_000, 200_000):
        fitted = fit_stubs(tools, budget_tokens=budget, pinned=("mailbox.send_email",))
        assert fitted.tokens <= budget
        assert "mailbox.send_email" in fitted.shown
        assert len(fitted.shown) + len(fitted.hidden) == len(tools)
        compile(fitted.text, "<stubs>", "exec")


def test_each_level_of_detail_costs_more_than_the_one_before() -> None:
    for row in measure().values():
        assert row["names"] < row["signatures"] < row["full"]
