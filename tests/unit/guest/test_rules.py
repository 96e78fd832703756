"""The tables of syntax and names are complete for the running Python, and say what to write instead."""

# ruff: noqa: E501  scripts read better unbroken

from __future__ import annotations

import ast
import builtins
import json
import sys
from pathlib import Path

import pytest

from bascule.guest.rules.names import NAMES
from bascule.guest.rules.syntax import (
    SPECIAL_METHODS,
    SYNTAX,
    attribute_problem,
    is_special,
    name_problem,
)

_ABSTRACT = {"AST", "mod", "stmt", "expr", "expr_context", "boolop", "operator", "unaryop", "cmpop", "pattern",
             "excepthandler", "type_ignore", "type_param"}  # fmt: skip
_DEPRECATED = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis", "Index", "ExtSlice", "slice", "AugLoad",
               "AugStore", "Param", "Suite"}  # fmt: skip


_OF_MODULES = {"__file__", "exit", "quit", "help", "copyright", "credits", "license"}
"""Names that modules have, or that the `site` module adds."""


def node_types() -> list[str]:
    return sorted(
        name
        for name, kind in vars(ast).items()
        if isinstance(kind, type)
        and issubclass(kind, ast.AST)
        and name.removeprefix("_ast_") not in _ABSTRACT | _DEPRECATED
    )


@pytest.mark.parametrize("name", node_types())
def test_every_node_type_of_this_python_has_a_row(name: str) -> None:
    assert name in SYNTAX


def test_every_refused_node_type_says_what_to_write_instead() -> None:
    refused = {name: rule for name, rule in SYNTAX.items() if rule.verdict == "refused"}
    assert all(rule.title and rule.substitute and rule.reason for rule in refused.values())
    assert {"TryStar", "TypeAlias", "TypeVar", "TemplateStr"} <= refused.keys()


@pytest.mark.parametrize("name", sorted(set(dir(builtins)) - {"_"}))
def test_every_builtin_of_this_python_has_a_row(name: str) -> None:
    assert name in NAMES


_INVENTORY = {
    row["python"]: row
    for row in json.loads(Path(__file__).with_name("inventory.json").read_text(encoding="utf-8"))
}
"""What `ast` and `builtins` hold, taken from each Python that is supported."""


def test_every_supported_python_is_in_the_inventory() -> None:
    assert sorted(_INVENTORY) == ["3.11", "3.12", "3.13", "3.14"]


@pytest.mark.parametrize("python", _INVENTORY)
def test_every_node_type_of_every_supported_python_has_a_row(python: str) -> None:
    names = {name.removeprefix("_ast_") for name in _INVENTORY[python]["nodes"].split()}
    assert names - _ABSTRACT - _DEPRECATED - SYNTAX.keys() == set()


@pytest.mark.parametrize("python", _INVENTORY)
def test_every_builtin_of_every_supported_python_has_a_row(python: str) -> None:
    assert set(_INVENTORY[python]["builtins"].split()) - NAMES.keys() == set()


def test_no_row_is_about_something_that_no_python_has() -> None:
    nodes = {name for row in _INVENTORY.values() for name in row["nodes"].split()}
    names = {name for row in _INVENTORY.values() for name in row["builtins"].split()}
    assert SYNTAX.keys() - nodes == set()
    assert NAMES.keys() - names - _OF_MODULES == set()


def test_the_inventory_is_right_about_this_python() -> None:
    row = _INVENTORY.get(f"{sys.version_info.major}.{sys.version_info.minor}")
    assert row is not None, "take the inventory of this Python first"
    assert {*dir(builtins)} - {"_", *row["builtins"].split()} - _OF_MODULES == set()
    assert {*node_types()} - {*row["nodes"].split()} == set()


def test_every_refused_name_says_what_to_write_instead() -> None:
    refused = {name: rule for name, rule in NAMES.items() if not rule.given}
    assert all(rule.substitute and rule.reason for rule in refused.values())
    assert {"open", "exec", "compile", "globals", "locals", "vars", "dir", "input"} <= refused.keys()
    assert {"__import__", "breakpoint", "__build_class__"} <= refused.keys()


@pytest.mark.parametrize(
    "name",
    [
        "__del__",
        "__getattr__",
        "__getattribute__",
        "__setattr__",
        "__delattr__",
        "__class_getitem__",
        "__init_subclass__",
        "__set_name__",
        "__get__",
        "__set__",
        "__delete__",
        "__reduce__",
        "__reduce_ex__",
        "__getstate__",
        "__mro_entries__",
        "__prepare__",
        "__instancecheck__",
        "__subclasscheck__",
        "__class__",
        "__dir__",
        "__new__",
        "__await__",
        "__sizeof__",
    ],
)
def test_methods_that_change_classes_or_lie_about_objects_cannot_be_defined(name: str) -> None:
    assert name not in SPECIAL_METHODS


@pytest.mark.parametrize(
    ("name", "special"),
    [
        ("_", False),
        ("__", False),
        ("_x", False),
        ("x_", False),
        ("__x", False),
        ("__x__", True),
        ("_x_", True),
    ],
)
def test_special_names_begin_and_end_with_an_underscore(name: str, special: bool) -> None:
    assert is_special(name) is special
    assert (name_problem(name) is not None) is special


@pytest.mark.parametrize(
    "name", ["gi_frame", "f_back", "tb_next", "co_code", "cr_await", "ag_frame", "f_globals"]
)
def test_names_of_interpreter_internals_are_refused_on_any_object(name: str) -> None:
    assert attribute_problem(name) is not None
