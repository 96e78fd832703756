"""Strict schemas and mapped names: what is rewritten says the same, and can be undone."""

from __future__ import annotations

import re
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from bascule.models.anthropic_strict import strict_schemas
from bascule.models.definitions import direct_tools
from bascule.models.names import NameMap, wire_name
from bascule.models.offer import Offer
from bascule.models.strict import make_strict, restore
from bascule.tools import Registry, Tool, tool
from tests.models.servers import Refused
from tests.models.strict_schema import check_anthropic_strict, check_strict


class Line(BaseModel):
    """A line of an order."""

    sku: str = Field(min_length=3, description="the article")
    count: int = Field(default=1, ge=1, le=9)
    note: str | None = None
    tags: list[Literal["a", "b"]] = []


class Node(BaseModel):
    """A tree."""

    name: str
    children: list[Node] = []


@tool(effects="read")
def order(
    lines: list[Line],
    kind: Literal["new", "old"] = "new",
    ship: Line | None = None,
    limit: int | None = 5,
    when: str = Field(default="", json_schema_extra={"format": "uri"}),
) -> None:
    """Take an order."""


@tool(effects="read")
def tree(root: Node) -> None:
    """Take a tree."""


@tool(effects="read")
def free(data: dict[str, int]) -> None:
    """Take anything."""


@tool(effects="read")
def anything(data: Any) -> None:
    """Take anything."""


def strict_of(made: Tool[..., Any]) -> dict[str, Any]:
    """Return the strict form of a tool's schema."""
    found = make_strict(made.parameters)
    assert found is not None
    return found


@pytest.mark.parametrize("made", [order, tree], ids=lambda made: made.name)
def test_what_can_be_strict_keeps_openais_rules(made: Tool[..., Any]) -> None:
    with pytest.raises(Refused):
        check_strict(made.name, made.parameters)
    check_strict(made.name, strict_of(made))


@pytest.mark.parametrize("made", [free, anything], ids=lambda made: made.name)
def test_what_cannot_be_strict_is_left_alone(made: Tool[..., Any]) -> None:
    assert make_strict(made.parameters) is None


def anthropic_strict(*tools: Tool[..., Any]) -> dict[str, Any]:
    """Return what Anthropic's strict mode is told of tools; what it would refuse is an error."""
    offered = Offer(direct_tools(Registry(tools), {}), strict=False)
    found = strict_schemas(offered.tools)
    check_anthropic_strict([{"strict": True, "input_schema": schema} for schema in found.values()])
    return found


def test_anthropics_subset_keeps_what_is_optional_and_tells_what_it_cannot_say() -> None:
    found = anthropic_strict(order, tree, free, anything)
    assert set(found) == {"order"}  # a tree refers to itself, the others admit anything
    assert found["order"]["required"] == ["lines"]
    assert "minLength: 3" in str(found["order"])
    assert "default" not in found["order"]["properties"]["kind"]


def test_anthropics_limits_hold_for_all_strict_tools_together() -> None:
    def take(a: int, b: int = 1, c: int | None = None) -> None:
        """Take."""

    def plain(a: int) -> None:
        """Take."""

    many = [tool(name=f"take{n}")(take) for n in range(30)] + [
        tool(name=f"plain{n}")(plain) for n in range(30)
    ]
    names = list(anthropic_strict(*many))
    assert len(names) == 20
    assert sum(name.startswith("take") for name in names) == 12  # two optional parameters each, of 24


def test_rules_without_a_place_in_the_schema_are_told() -> None:
    text = str(strict_of(order))
    assert "minLength: 3" in text
    assert 'default: "new"' in text


def test_null_for_an_optional_key_is_undone_and_a_null_that_counts_is_kept() -> None:
    asked: dict[str, Any] = {
        "lines": [{"sku": "abc", "count": None, "note": None, "tags": None}],
        "kind": None,
        "ship": {"sku": "xyz", "count": 2, "note": None, "tags": ["a"]},
        "limit": None,
        "when": None,
    }
    assert restore(asked, order.parameters) == {
        "lines": [{"sku": "abc", "note": None}],
        "ship": {"sku": "xyz", "count": 2, "note": None, "tags": ["a"]},
        "limit": None,
    }
    nested: dict[str, Any] = {"root": {"name": "a", "children": [{"name": "b", "children": None}]}}
    assert restore(nested, tree.parameters) == {"root": {"name": "a", "children": [{"name": "b"}]}}


KEYS = st.sampled_from(["lines", "sku", "count", "root", "children", "ship"])
SHAPES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(KEYS, each),
)


@given(st.dictionaries(KEYS, SHAPES))
def test_arguments_of_any_shape_can_be_restored(arguments: dict[str, Any]) -> None:
    for made in (order, tree):
        restored = restore(arguments, made.parameters)
        assert restore(restored, made.parameters) == restored


TOOL_NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}(\.[A-Za-z][A-Za-z0-9_]{0,20}){0,3}", fullmatch=True)


@given(st.lists(TOOL_NAMES, unique=True, max_size=8), st.text(max_size=90))
def test_names_of_tools_have_a_way_out_and_back(names: list[str], invented: str) -> None:
    mapped = NameMap(names)
    wires = [mapped.to_wire(name) for name in names]
    assert len(set(wires)) == len(names)
    for name, wire in zip(names, wires, strict=True):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire)
        assert mapped.from_wire(wire) == name
        assert mapped.from_wire(name) == name
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", wire_name(invented))
