"""Results that a tool declares with a JSON Schema instead of a type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bascule.tools import AnyTool, ResultInvalid, ToolDefinitionError, render_stubs, tool

ORDERS: dict[str, Any] = {
    "type": "array",
    "items": {"$ref": "#/$defs/order"},
    "maxItems": 2,
    "$defs": {
        "order": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "pattern": "^O-[0-9]+$"},
                "total": {"type": "number", "minimum": 0},
                "next": {"anyOf": [{"$ref": "#/$defs/order"}, {"type": "null"}]},
            },
            "required": ["id"],
            "additionalProperties": False,
        }
    },
}


@dataclass
class Order:
    id: str
    total: float = 0.0
    next: Order | None = None


def make(schema: object) -> AnyTool:
    @tool(effects="read", name="shop.orders", returns=schema)
    def orders() -> Any:
        """Return orders."""

    return orders


def test_a_schema_is_told_and_results_that_fit_it_pass() -> None:
    orders = make(ORDERS)
    assert orders.returns == ORDERS
    stub = render_stubs([orders])
    compile(stub, "stub", "exec")
    assert "def orders() -> list[" in stub
    assert "total: " in stub
    assert orders.dump_result([{"id": "O-1", "next": {"id": "O-2"}}]) == b'[{"id":"O-1","next":{"id":"O-2"}}]'
    assert orders.dump_result([Order("O-1")]) == b'[{"id":"O-1","total":0.0,"next":null}]'
    assert orders.read_response(b'[{"id": "O-7"}]') == b'[{"id":"O-7"}]'


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"id": "O-1"}, ""),
        ([{"id": "X"}], "[0].id"),
        ([{"total": 1}], "[0].id"),
        ([{"id": "O-1", "total": -1}], "[0].total"),
        ([{"id": "O-1", "more": 1}], "[0].more"),
        ([Order("O-1", next=Order("O"))], "[0].next.id"),
        ([{"id": "O-1"}] * 3, ""),
    ],
)
def test_a_result_that_does_not_fit_is_a_bug_with_its_place(value: object, path: str) -> None:
    with pytest.raises(ResultInvalid) as caught:
        make(ORDERS).dump_result(value)
    assert (caught.value.code, caught.value.path) == ("result_type_mismatch", path)


def test_what_a_person_answers_in_its_place_is_checked_too() -> None:
    with pytest.raises(ResultInvalid, match=r"not what shop\.orders returns: 0\.id"):
        make(ORDERS).read_response(b'[{"id": "no"}]')


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "objekt"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://elsewhere.example/schema.json"},
        {"description": "an order"},
        {"type": "object", "properties": {"a": {1, 2}}},
        {"type": "number", "minimum": float("nan")},
    ],
)
def test_a_schema_that_checks_nothing_or_is_no_json_is_refused(schema: object) -> None:
    with pytest.raises(ToolDefinitionError, match="JSON Schema in returns") as caught:
        make(schema)
    assert caught.value.code == "tool_type_unsupported"


def test_later_changes_of_the_dict_do_not_change_the_tool() -> None:
    schema: dict[str, Any] = {"type": "string", "enum": ["a"]}
    made = make(schema)
    before = made.digest
    schema["enum"].append("b")
    assert made.digest == before
    with pytest.raises(ResultInvalid):
        made.dump_result("b")
