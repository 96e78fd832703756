"""The attribute table: explicit, true to the running Python, closed for the interpreter's insides."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import inspect
import re
import textwrap
import types

import pytest

from bascule.guest.errors import SCRIPT_ERRORS
from bascule.guest.rules.attributes import (
    ATTRIBUTES,
    CLASS_ATTRIBUTES,
    EXTENSIBLE,
    OPEN,
    REPLACED,
    WRITABLE,
    names,
)
from bascule.guest.rules.late import LATE

INSIDES = [
    types.FrameType,
    types.CodeType,
    types.TracebackType,
    types.ModuleType,
    types.CellType,
]

SAMPLES: dict[type, object] = {
    # Names that only instances have, not their class.
    collections.ChainMap: collections.ChainMap(),
    re.RegexFlag: re.IGNORECASE,
    enum.EnumCheck: enum.UNIQUE,
    decimal.Context: decimal.Context(),
    textwrap.TextWrapper: textwrap.TextWrapper(),
}


@pytest.mark.parametrize("kind", INSIDES)
def test_types_of_the_interpreter_itself_have_no_row(kind: type) -> None:
    assert kind not in ATTRIBUTES
    assert kind not in CLASS_ATTRIBUTES
    assert kind not in EXTENSIBLE


def test_every_listed_name_exists_on_its_type() -> None:
    import string

    samples = {**SAMPLES, string.Template: string.Template("")}
    missing = {
        (kind.__name__, name)
        for kind, row in ATTRIBUTES.items()
        for name in row
        if not hasattr(samples.get(kind, kind), name)
    }
    # Set on instances by the C code or by __init__.
    missing -= {(re.error.__name__, name) for name in ("colno", "lineno", "msg", "pattern", "pos")}
    missing -= {
        (error.__name__, name) for error in SCRIPT_ERRORS.values() for name in ("retryable", "suggestion")
    }
    missing -= {(error.__name__, "message") for error in SCRIPT_ERRORS.values()}
    missing -= {("_lru_cache_wrapper", "cache_parameters")}
    assert missing == set()


def test_a_name_of_a_later_python_counts_only_there() -> None:
    assert names("a b@3.0 c@99.0") == {"a", "b"}


def test_no_row_gives_a_name_that_looks_into_the_interpreter() -> None:
    rows = [*ATTRIBUTES.values(), *CLASS_ATTRIBUTES.values(), *WRITABLE.values()]
    for make in LATE.values():
        late = make()
        rows += [*late.instances.values(), *late.classes.values(), *late.writable.values()]
    given = frozenset[str]().union(*rows)
    assert not [name for name in given if name.startswith("__")]
    assert {name for name in given if name.startswith("_")} == {"_asdict", "_fields", "_make", "_replace"}
    assert not [name for name in given if name[:3] in ("gi_", "cr_", "ag_", "tb_", "co_") or name[:2] == "f_"]
    assert given.isdisjoint({"obj", "with_traceback", "mro", "gen", "mapping"})


@pytest.mark.parametrize(
    ("kind", "name"),
    [(str, "format"), (str, "format_map"), (datetime.datetime, "now"), (datetime.date, "today")],
)
def test_what_reads_attributes_or_the_machine_is_replaced(kind: type, name: str) -> None:
    assert (kind, name) in REPLACED


def test_no_class_gives_a_method_written_in_python_to_call_on_anything() -> None:
    # Counter.copy(SomeClass) would be the real type().
    tables = [CLASS_ATTRIBUTES, *(make().classes for make in LATE.values())]
    unbound = {
        (kind.__name__, name)
        for table in tables
        for kind, row in table.items()
        for name in row
        if isinstance(getattr(kind, name), types.FunctionType | property)
    }
    static = {("Template", "maketrans"), ("PosixPath", "cwd"), ("PosixPath", "home")}
    assert unbound - static == {("JSONEncoder", "default")}


def test_errors_give_no_live_objects() -> None:
    assert ATTRIBUTES[AttributeError] == {"args", "add_note"}
    assert ATTRIBUTES[NameError] == {"args", "add_note"}


def test_only_namespaces_are_open() -> None:
    assert {types.SimpleNamespace} == OPEN


def test_dates_cannot_be_extended_because_subclasses_would_read_the_machines_clock() -> None:
    assert datetime.date not in EXTENSIBLE
    assert datetime.datetime not in EXTENSIBLE


@pytest.mark.parametrize("name", sorted(LATE))
def test_late_rows_name_what_exists(name: str) -> None:
    rows = LATE[name]()
    set_on_instances = {"line_num", "fieldnames", "colno", "doc", "lineno", "msg", "pos"}
    for table in (rows.instances, rows.classes):
        for kind, row in table.items():
            declared = {each for base in kind.__mro__ for each in inspect.get_annotations(base)}
            missing = {entry for entry in row if not hasattr(kind, entry)}
            assert missing <= (declared or set_on_instances), kind
    assert all(kind in rows.instances for kind in rows.writable)
