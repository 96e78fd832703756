"""What the linter finds, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, JsonValue

from bascule.tools import AnyTool, tool
from bascule.tools.lint import MANY_TOOLS, lint_tools


class Filter(BaseModel):
    """Which."""

    city: str


@tool(effects="read")
def find_customers(
    where: Filter, tags: list[str], mode: Literal["any", "all"], limit: int = 3, exact: bool = False
) -> list[str]:
    """Find customers of a city whose tags fit."""
    return []


def rules(*tools: AnyTool) -> list[str]:
    return [finding.rule for finding in lint_tools(tools)]


def test_a_good_tool_passes() -> None:
    assert rules(find_customers) == []


def test_every_rule_has_a_case_and_an_advice() -> None:
    @tool(name="api.get")
    def get(data: Any, x: str, payload: Annotated[str, Field(description="the letter")] = "") -> str:
        """Get."""
        return ""

    def send_letter(to: str, a: dict, b: list, c: JsonValue, fast: bool, registered: bool):  # type: ignore
        """Send a letter by mail."""

    findings = lint_tools([get, tool(cast("Callable[..., object]", send_letter))])
    assert [(finding.tool, finding.rule) for finding in findings] == [
        ("api.get", "vague-name"),
        ("api.get", "no-description"),
        ("api.get", "vague-parameter"),
        ("api.get", "untyped-parameter"),
        ("api.get", "vague-parameter"),
        ("send_letter", "no-return-type"),
        ("send_letter", "two-booleans"),
        ("send_letter", "vague-parameter"),
        ("send_letter", "untyped-parameter"),
        ("send_letter", "vague-parameter"),
        ("send_letter", "untyped-parameter"),
        ("send_letter", "vague-parameter"),
        ("send_letter", "untyped-parameter"),
    ]
    assert all(finding.advice and finding.location for finding in findings)
    assert "fast and registered are each yes or no" in str(findings[6])


def test_descriptions_that_say_little_or_the_same_are_found() -> None:
    def make(name: str, text: str) -> AnyTool:
        def do() -> str:
            return ""

        do.__doc__ = text
        return tool(name=name, effects="read")(do)

    assert rules(make("list_orders", "")) == ["no-description"]
    assert rules(make("list_orders", "List orders.")) == ["short-description"]
    assert rules(make("list_all_open_orders", "List open orders all.")) == ["repeated-name"]
    assert rules(make("chaxun", "查询快递单号的物流进度。")) == []
    same = "Find the address of a customer by name."
    assert rules(make("find_address", same), make("look_up_address", same)) == ["overlapping-descriptions"]


def test_many_tools_need_a_search() -> None:
    def make(number: int) -> AnyTool:
        def do() -> str:
            return ""

        do.__doc__ = f"Answer question number {number} of the catalogue {number}."
        return tool(name=f"answer_{number}", effects="read")(do)

    many = [make(number) for number in range(MANY_TOOLS + 1)]
    assert [finding.rule for finding in lint_tools(many)][-1] == "too-many-tools"
    assert "too-many-tools" not in rules(*many[:-1])
    assert "too-many-tools" not in [finding.rule for finding in lint_tools(many, searchable=True)]
