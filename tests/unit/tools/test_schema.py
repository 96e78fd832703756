"""How each Python type looks in the JSON Schema of arguments and of results."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional
from uuid import UUID

import pytest
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypedDict

from bascule.tools import tool
from bascule.tools.schema import JsonSchema, SchemaError, describe_types, make_adapter


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Leg:
    origin: str
    stops: int = 0


class Options(TypedDict):
    verbose: bool
    depth: NotRequired[int]


class Node(BaseModel):
    title: str = Field("root", title="Shown", description="What is shown.")
    children: list[Node] = Field(default_factory=list["Node"])
    created: dt.datetime | None = None


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    known: int = 0


class Hidden(BaseModel):
    shown: int
    hidden: str = Field("x", exclude=True)


def of(annotation: Any, mode: Literal["validation", "serialization"] = "validation") -> JsonSchema:
    schemas, defs = describe_types({"it": make_adapter(annotation)}, mode)
    return {**schemas["it"], **({"$defs": defs} if defs else {})}


TEXT = {"type": "string"}
INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (str, TEXT),
        (int, INTEGER),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (Any, {}),
        (dict, {"type": "object", "additionalProperties": True}),
        (list[str], {"type": "array", "items": TEXT}),
        (Sequence[int], {"type": "array", "items": INTEGER}),
        (tuple[int, str], {"type": "array", "prefixItems": [INTEGER, TEXT], "minItems": 2, "maxItems": 2}),
        (set[int], {"type": "array", "items": INTEGER, "uniqueItems": True}),
        (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (Optional[int], {"anyOf": [INTEGER, {"type": "null"}]}),  # noqa: UP045
        (int | str, {"anyOf": [INTEGER, TEXT]}),
        (Literal["a", 1], {"enum": ["a", 1]}),
        (dt.date, {"type": "string", "format": "date"}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (dt.time, {"type": "string", "format": "time"}),
        (UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string", "format": "path"}),
        (Annotated[int, Field(ge=1, le=9)], {"type": "integer", "minimum": 1, "maximum": 9}),
        (Color, {"$ref": "#/$defs/Color", "$defs": {"Color": {"type": "string", "enum": ["red", "blue"]}}}),
        (Size, {"$ref": "#/$defs/Size", "$defs": {"Size": {"type": "integer", "enum": [1, 2]}}}),
    ],
)
def test_a_type_has_the_same_schema_as_argument_and_as_result(annotation: Any, schema: JsonSchema) -> None:
    assert of(annotation) == schema
    assert of(annotation, "serialization") == schema


def test_decimals_are_text_and_as_arguments_also_numbers() -> None:
    text = {"type": "string", "format": "decimal"}
    assert of(Decimal) == {"anyOf": [text, {"type": "number"}]}
    assert of(Annotated[Decimal, Field(gt=2)]) == {
        "anyOf": [text, {"type": "number", "exclusiveMinimum": 2.0}]
    }
    assert of(Decimal, "serialization") == text


def test_durations_are_seconds_and_as_arguments_also_iso_text() -> None:
    seconds = {"type": "number", "format": "seconds"}
    assert of(dt.timedelta) == {"anyOf": [{"type": "string", "format": "duration"}, seconds]}
    assert of(dt.timedelta, "serialization") == seconds


def test_bytes_are_text_as_arguments() -> None:
    assert of(bytes) == {"type": "string", "format": "binary"}


def test_named_tuples_are_arrays_as_arguments_and_whole_objects_as_results() -> None:
    argument = of(Point)["$defs"]["Point"]
    assert argument["type"] == "array"
    assert of(Point, "serialization")["$defs"]["Point"] == {
        "type": "object",
        "properties": {"x": INTEGER, "y": INTEGER},
        "required": ["x", "y"],
    }


def test_unknown_fields_are_refused_unless_a_model_says_otherwise() -> None:
    for annotation in (Node, Leg, Options):
        assert of(annotation)["$defs"][annotation.__name__]["additionalProperties"] is False
    assert of(Open)["$defs"]["Open"]["additionalProperties"] is True


def test_every_field_of_a_result_is_required_and_has_no_default() -> None:
    argument = of(Leg)["$defs"]["Leg"]
    assert argument["required"] == ["origin"]
    assert argument["properties"]["stops"] == {"type": "integer", "default": 0}
    result = of(Leg, "serialization")["$defs"]["Leg"]
    assert result["required"] == ["origin", "stops"]
    assert result["properties"]["stops"] == INTEGER
    assert of(Options, "serialization")["$defs"]["Options"]["required"] == ["verbose"]


def test_excluded_fields_are_not_in_the_schema_of_a_result() -> None:
    assert list(of(Hidden, "serialization")["$defs"]["Hidden"]["properties"]) == ["shown"]


def test_titles_are_left_out_but_fields_called_title_stay() -> None:
    node = of(Node)["$defs"]["Node"]
    assert "title" not in node
    assert node["properties"]["title"] == {
        "type": "string",
        "default": "root",
        "description": "What is shown.",
    }
    assert node["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}


def test_properties_are_in_the_order_of_the_signature() -> None:
    def order(zulu: int, alpha: str, *, mike: bool = False, bravo: Color = Color.RED) -> None:
        """Order."""

    schema = tool(order).parameters
    assert list(schema["properties"]) == ["zulu", "alpha", "mike", "bravo"]
    assert schema["required"] == ["zulu", "alpha"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["bravo"]["default"] == "red"


def test_defaults_may_come_from_field_in_either_place() -> None:
    def limits(
        first: int = Field(5, ge=1, description="How many."),
        second: Annotated[list[int], Field(default_factory=list)] = Field(),  # noqa: B008
        third: Annotated[int, Field(description="Third.")] = 3,
    ) -> None:
        """Limits."""

    made = tool(limits)
    properties = made.parameters["properties"]
    assert properties["first"] == {"type": "integer", "minimum": 1, "description": "How many.", "default": 5}
    assert properties["third"] == {"type": "integer", "description": "Third.", "default": 3}
    assert made.validate({}).values == {"first": 5, "second": [], "third": 3}


class Sentinel(BaseModel):
    value: Any = object()


def test_a_field_whose_default_json_cannot_say_is_refused() -> None:
    with pytest.raises(SchemaError, match="not JSON serializable"):
        of(Sentinel)


def test_none_as_default_makes_a_parameter_nullable() -> None:
    def find(text: str = None) -> None:  # type: ignore[assignment]  # noqa: RUF013  # pyright: ignore
        """Find."""

    made = tool(find)
    assert made.parameters["properties"]["text"] == {"anyOf": [TEXT, {"type": "null"}], "default": None}
    assert made.validate({"text": None}).values == {"text": None}


def test_a_missing_return_annotation_declares_nothing_and_none_declares_null() -> None:
    def silent():  # type: ignore[no-untyped-def]
        """Say nothing."""

    def nothing() -> None:
        """Give nothing."""

    assert tool(silent).returns is None
    assert tool(nothing).returns == {"type": "null"}
    assert tool(returns=list[int])(silent).returns == {"type": "array", "items": INTEGER}


def test_parameters_are_described_by_field_before_the_docstring() -> None:
    def search(query: Annotated[str, Field(description="From Field.")], limit: int = 5) -> None:
        """Search.

        Args:
            query: From the docstring.
            limit: How many
                at most.
        """

    properties = tool(search).parameters["properties"]
    assert properties["query"]["description"] == "From Field."
    assert properties["limit"]["description"] == "How many at most."
