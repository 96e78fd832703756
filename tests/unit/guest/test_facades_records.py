"""dataclasses, copy, collections, enum and typing work on a script's own classes, and on no others."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import enum
import fractions
import types
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.guest.facade_stage import Stage
from tests.unit.guest.harness import run


def _run(script: str) -> str:
    outcome = run(script)
    assert outcome.errors == (), outcome.errors
    return outcome.output


def test_dataclasses_work_with_all_usual_options() -> None:
    assert (
        _run(
            "from __future__ import annotations\n"
            "import dataclasses\n"
            "from dataclasses import dataclass, field, asdict, astuple, replace, fields, is_dataclass\n"
            "from dataclasses import KW_ONLY\n"
            "from typing import ClassVar\n"
            "@dataclass(order=True, frozen=True)\n"
            "class Item:\n"
            "    kind: ClassVar[str] = 'item'\n"
            "    name: str\n"
            "    _: KW_ONLY\n"
            "    tags: list[str] = field(default_factory=list, compare=False)\n"
            "@dataclass(slots=True)\n"
            "class Slim:\n"
            "    inner: Item\n"
            "    more: dict = field(default_factory=dict)\n"
            "item = Item('a', tags=['t'])\n"
            "slim = Slim(item, {'k': [item]})\n"
            "print(item, Item.kind, [f.name for f in fields(Item)], is_dataclass(item), item < Item('b'))\n"
            "print(asdict(slim), astuple(Slim(item)))\n"
            "print(replace(item, name='c').name, slim.inner is item)\n"
            "try:\n"
            "    item.name = 'x'\n"
            "except dataclasses.FrozenInstanceError as error:\n"
            "    print(error)\n"
        )
        == "Item(name='a', tags=['t']) item ['name', 'tags'] True True\n"
        "{'inner': {'name': 'a', 'tags': ['t']}, 'more': {'k': [{'name': 'a', 'tags': ['t']}]}} "
        "(('a', ['t']), {})\n"
        "c True\n"
        "cannot assign to field 'name'\n"
    )


@pytest.mark.parametrize("cls", [collections.Counter, fractions.Fraction, int, 3])
def test_a_class_that_is_not_the_scripts_cannot_become_a_dataclass(cls: Any) -> None:
    with pytest.raises(TypeError, match="a class that this script defines"):
        Stage()["dataclasses"].dataclass(cls)


def test_dataclass_leaves_no_module_behind() -> None:
    import sys

    stage = Stage()
    before = set(sys.modules)

    class Row:
        a: int = 1

    made = stage["dataclasses"].dataclass(slots=True)(stage.owned(Row))
    assert set(sys.modules) == before
    assert made.__module__ == __name__
    assert stage.guards.owns(made)


def test_asdict_converts_containers_of_every_kind() -> None:
    stage = Stage()
    module = stage["dataclasses"]
    pair = stage["collections"].namedtuple("pair", "a b")

    class Row:
        value: Any

    row = module.dataclass(stage.owned(Row))
    inner = row(1)
    counted = collections.defaultdict(list, {"k": [inner]})
    made = module.asdict(
        row([(inner,), pair(inner, 2), counted, collections.OrderedDict(a=inner), {"c": inner}])
    )
    plain = {"value": 1}
    assert made == {"value": [(plain,), (plain, 2), {"k": [plain]}, {"a": plain}, {"c": plain}]}
    assert type(made["value"][1]) is pair
    assert made["value"][2].default_factory is list
    assert module.asdict(row(collections.Counter("a"))) == {"value": {"a": 1}}
    assert module.astuple(row((inner, [inner]))) == (((1,), [(1,)]),)
    for wrong in (3, row):
        with pytest.raises(TypeError, match="dataclass instances"):
            module.asdict(wrong)


class Letter(enum.Enum):
    A = 1


class Own:
    def __init__(self) -> None:
        self.items = [1]


class Slotted:
    __slots__ = ("a", "never_set")

    def __init__(self) -> None:
        self.a = [1]


class OwnDict(dict[str, Any]):
    pass


class OwnList(list[Any]):
    pass


class OwnSet(set[Any]):
    pass


class OwnText(str):
    pass


class OwnTuple(tuple[Any, ...]):
    pass


@pytest.mark.parametrize(
    "make",
    [
        Own,
        lambda: [[1], {"a": [2]}],
        lambda: OwnDict(a=[1]),
        lambda: OwnList([[1]]),
        lambda: OwnSet({1}),
        lambda: OwnText("a"),
        lambda: OwnTuple(([1],)),
        lambda: collections.defaultdict(list, {"a": [1]}),
        lambda: collections.Counter("aab"),
        lambda: collections.OrderedDict([("b", [1]), ("a", [2])]),
        lambda: collections.deque([[1]], maxlen=3),
        lambda: types.SimpleNamespace(a=[1]),
        lambda: bytearray(b"a"),
        lambda: {1, 2},
        lambda: ([1], 2),
        lambda: frozenset({1}),
    ],
)
def test_deep_copies_are_equal_and_apart(make: Callable[[], Any]) -> None:
    stage = Stage()
    for cls in (Own, OwnDict, OwnList, OwnSet, OwnText, OwnTuple):
        stage.owned(cls)
    original = make()
    for copied in (stage["copy"].deepcopy(original), stage["copy"].copy(original)):
        assert type(copied) is type(original)
        assert vars(copied) == vars(original) if isinstance(original, Own) else copied == original
    deep = stage["copy"].deepcopy(original)
    if isinstance(original, Own):
        assert deep.items is not original.items
    if isinstance(original, list):
        assert deep[0] is not original[0]


def test_copies_keep_what_is_special() -> None:
    stage = Stage()
    copy = stage["copy"]
    stage.owned(Slotted)
    slotted = copy.deepcopy(Slotted())
    assert slotted.a == [1]
    assert not hasattr(slotted, "never_set")
    assert copy.deepcopy(collections.deque([1], maxlen=3)).maxlen == 3
    assert copy.deepcopy(collections.defaultdict(list)).default_factory is list


def test_what_occurs_twice_or_contains_itself_stays_one_object() -> None:
    copy = Stage()["copy"]
    shared = [1]
    first, second = copy.deepcopy([shared, shared])
    assert first is second
    endless: list[Any] = []
    endless.append(endless)
    copied = copy.deepcopy(endless)
    assert copied[0] is copied


@pytest.mark.parametrize(
    "value",
    [
        3,
        "a",
        None,
        decimal.Decimal(1),
        int,
        len,
        Letter.A,
        ValueError("a"),
        fractions.Fraction(1),
    ],
)
def test_what_cannot_change_is_its_own_copy(value: object) -> None:
    copy = Stage()["copy"]
    assert copy.copy(value) is value
    assert copy.deepcopy(value) is value


def test_objects_of_the_guest_cannot_be_copied() -> None:
    stage = Stage()
    with pytest.raises(TypeError, match="cannot pickle 'module' object"):
        stage["copy"].deepcopy([stage["json"]])
    with pytest.raises(TypeError, match="cannot pickle"):
        stage["copy"].copy(Own())


def test_replace_works_on_records_only() -> None:
    stage = Stage()
    replace = stage["copy"].replace
    pair = stage["collections"].namedtuple("pair", "a b")
    assert replace(pair(1, 2), a=3) == (3, 2)

    @dataclasses.dataclass
    class Row:
        a: int

    assert replace(Row(1), a=2) == Row(2)
    with pytest.raises(TypeError, match="does not support int"):
        replace(3)


def test_named_tuples_are_the_scripts_own() -> None:
    stage = Stage()
    namedtuple = stage["collections"].namedtuple
    made = namedtuple("P", ["a", "b"], defaults=[2])
    assert made(1) == (1, 2)
    assert stage.guards.owns(made)
    assert namedtuple("P", "a, b")._fields == ("a", "b")
    assert namedtuple("P", [type("S", (str,), {})("a")])._fields == ("a",)
    with pytest.raises(TypeError, match="must be strings"):
        namedtuple(3, "a")
    with pytest.raises(ValueError):
        namedtuple("P", [1])
    with pytest.raises(ValueError):
        namedtuple("P", ["a=__import__('os')"])


def test_abstract_methods_are_functions() -> None:
    abstractmethod = Stage()["abc"].abstractmethod

    def method(self: object) -> None: ...

    assert abstractmethod(method).__isabstractmethod__ is True
    getter = property(method)
    assert abstractmethod(getter) is getter
    with pytest.raises(TypeError, match="needs a method"):
        abstractmethod(collections.Counter)


def test_typing_gives_what_annotations_use_and_evaluates_nothing() -> None:
    stage = Stage()
    typing = stage["typing"]
    assert typing.TYPE_CHECKING is False
    assert typing.cast(int, "a") == "a"
    assert typing.overload(len) is typing.final(len) is len
    with pytest.raises(AssertionError, match="unreachable"):
        typing.assert_never(3)

    class Sized(typing.Protocol):  # type: ignore[misc,name-defined]
        size: int

    assert typing.runtime_checkable(Sized) is Sized
    stage.owned(Sized)
    typing.runtime_checkable(Sized)
    assert isinstance(types.SimpleNamespace(size=1), Sized)
    assert not hasattr(typing, "ForwardRef")
    assert not hasattr(typing, "get_type_hints")


def test_scripts_use_enums_named_tuples_and_typed_dicts() -> None:
    assert (
        _run(
            "from enum import Enum, Flag, IntEnum, StrEnum, auto, unique\n"
            "from typing import NamedTuple, TypedDict, Optional, Generic, TypeVar\n"
            "@unique\n"
            "class Colour(Enum):\n"
            "    RED = auto()\n"
            "    BLUE = auto()\n"
            "    @property\n"
            "    def short(self):\n"
            "        return self.name[0]\n"
            "class Mark(Flag):\n"
            "    A = auto()\n"
            "    B = auto()\n"
            "class Point(NamedTuple):\n"
            "    x: int\n"
            "    y: Optional[int] = None\n"
            "class Data(TypedDict, total=False):\n"
            "    k: int\n"
            "T = TypeVar('T')\n"
            "class Box(Generic[T]):\n"
            "    def __init__(self, value: T):\n"
            "        self.value = value\n"
            "print(Colour.RED.value, Colour['BLUE'].short, list(Colour))\n"
            "print(Mark.A | Mark.B, Mark.A in Mark(3))\n"
            "print(Point(1), Point(1)._replace(y=2)._asdict(), Data(k=1), Box[int](3).value)\n"
        )
        == "1 B [<Colour.RED: 1>, <Colour.BLUE: 2>]\nMark.A|B True\n"
        "Point(x=1, y=None) {'x': 1, 'y': 2} {'k': 1} 3\n"
    )
