"""Every importable module gives exactly its listed names, and nothing behind them."""

from __future__ import annotations

import decimal
import subprocess
import sys
import types

import pytest

from bascule.guest.facade import Facade, take
from bascule.guest.facades import class_replacements
from bascule.guest.rules.modules import MODULES, REFUSED_MODULES, refusal
from tests.unit.guest.facade_stage import Stage, names_of

NEWER = {
    ("base64", "z85decode"),
    ("base64", "z85encode"),
    ("collections.abc", "Buffer"),
    ("collections.abc", "ByteString"),
    ("csv", "QUOTE_NOTNULL"),
    ("csv", "QUOTE_STRINGS"),
    ("math", "fma"),
    ("math", "sumprod"),
    ("operator", "is_none"),
    ("operator", "is_not_none"),
    ("random", "binomialvariate"),
    ("re", "PatternError"),
    ("statistics", "kde"),
    ("typing", "ReadOnly"),
    ("typing", "TypeIs"),
}
"""Names that not every supported Python has."""


BASES = {"NamedTuple", "TypedDict"}
"""Functions in some Pythons, which class statements must recognise; the guards refuse to change them."""


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_gives_exactly_its_listed_names(name: str) -> None:
    facade = Stage()[name]
    inner = {key.removeprefix(f"{name}.") for key in MODULES if key.startswith(f"{name}.")}
    assert names_of(facade) - inner <= MODULES[name]
    assert {(name, missing) for missing in MODULES[name] - names_of(facade)} <= NEWER


@pytest.mark.parametrize("name", sorted(MODULES))
def test_no_module_holds_a_real_module(name: str) -> None:
    members = Stage().members(name)
    assert not [key for key, value in members.items() if isinstance(value, types.ModuleType)]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_functions_written_in_python_are_fresh_for_each_run(name: str) -> None:
    first, second = Stage().members(name), Stage().members(name)
    functions = [key for key, value in first.items() if type(value) is types.FunctionType]
    assert [key for key in functions if first[key] is second[key] and key not in BASES] == []


@pytest.mark.parametrize("name", sorted(MODULES))
def test_nothing_that_can_be_changed_is_shared_between_runs(name: str) -> None:
    first, second = Stage().members(name), Stage().members(name)
    shared = [key for key, value in first.items() if value is second[key]]
    assert [key for key in shared if isinstance(first[key], list | dict | set | bytearray)] == []
    assert [key for key in shared if isinstance(first[key], decimal.Context)] == []


def test_no_facade_can_be_made_to_hold_a_module() -> None:
    import json

    with pytest.raises(TypeError, match=r"json\.codecs is a module"):
        take(json, ["codecs"])


def test_modules_that_are_entirely_ours_leave_the_real_one_unimported() -> None:
    script = (
        "import sys; from tests.unit.guest.facade_stage import Stage; stage = Stage()\n"
        "for name in ('logging', 'traceback', 'secrets', 'asyncio', 'concurrent.futures'): stage[name]\n"
        "print([name for name in ('logging', 'traceback', 'secrets', 'asyncio') if name in sys.modules])"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert done.stdout == "[]\n", done.stderr


def test_a_missing_name_is_answered_with_the_names_there_are() -> None:
    json = Stage()["json"]
    with pytest.raises(
        AttributeError, match=r"module 'json' has no attribute 'codecs' here; it has: .*dumps"
    ):
        _ = json.codecs


def test_a_facade_cannot_be_changed() -> None:
    facade = Facade("x", {"a": 1})
    with pytest.raises(AttributeError, match="read-only"):
        facade.a = 2
    with pytest.raises(AttributeError, match="read-only"):
        del facade.a
    assert repr(facade) == "<module 'x'>"


def test_facades_are_built_on_first_use_and_kept() -> None:
    stage = Stage()
    assert stage["math"] is stage["math"]
    assert "os" not in stage.modules
    assert stage.modules.get("os") is None
    assert set(stage.modules) >= set(MODULES)
    assert len(stage.modules) == len(list(stage.modules))
    extra = Facade("asyncio", {})
    stage.modules["asyncio"] = extra
    assert stage["asyncio"] is extra
    assert "asyncio" in list(stage.modules)
    del stage.modules["asyncio"]
    assert "asyncio" not in stage.modules


def test_packages_give_their_inner_modules() -> None:
    stage = Stage()
    assert stage["urllib"].parse is stage["urllib.parse"]
    assert stage["collections"].abc is stage["collections.abc"]


@pytest.mark.parametrize("name", ["requests", "os", "os.path", "urllib.request", "numpy.linalg", "pandas"])
def test_a_refused_module_names_what_to_do_instead(name: str) -> None:
    assert refusal(name).startswith(f"{name} is not available: ")


def test_an_unknown_module_is_answered_with_the_list() -> None:
    assert "json" in refusal("leftpad")


def test_no_module_is_both_given_and_refused() -> None:
    assert MODULES.keys().isdisjoint(REFUSED_MODULES)


def test_dates_come_from_the_clock_of_the_run() -> None:
    stage = Stage()
    import datetime

    replacements = class_replacements(stage.environment)
    assert replacements[datetime.date, "today"]() == datetime.date(2026, 1, 1)
    moment = datetime.datetime(2026, 1, 1, 0, 0, 0, 250_000)
    assert replacements[datetime.datetime, "now"]() == moment
    assert replacements[datetime.datetime, "utcnow"]() == moment
    assert replacements[datetime.datetime, "now"](datetime.UTC) == moment.replace(tzinfo=datetime.UTC)
    stage.clock.set(1_767_312_000)
    assert replacements[datetime.datetime, "today"]() == datetime.datetime(2026, 1, 2)
    parsed = replacements[datetime.datetime, "strptime"]("2026-03-04", "%Y-%m-%d")
    assert parsed == datetime.datetime(2026, 3, 4)
