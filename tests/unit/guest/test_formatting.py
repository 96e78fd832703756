"""Text of values: as Python makes it, without addresses, and without reading attributes in C."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bascule.guest.formatting import (
    SafeFormatter,
    percent,
    reads_nothing,
    stable_ascii,
    stable_format,
    stable_repr,
    without_addresses,
)
from tests.unit.guest.harness import run


class Thing:
    name = "thing"


def read(value: object, name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(name)
    return getattr(value, name)


FORMATTER = SafeFormatter(read)


@pytest.mark.parametrize(
    ("template", "args", "kwargs"),
    [
        ("{} {}", (1, "a"), {}),
        ("{1} {0}", (1, "a"), {}),
        ("{x:>5}|{y!r}", (), {"x": 1, "y": "b"}),
        ("{:>{w}.{p}f}", (3.14159,), {"w": 8, "p": 2}),
        ("{{}}{}", (1,), {}),
        ("{0[1]} {0[0]}", ([1, 2],), {}),
        ("{d[key]}", (), {"d": {"key": 5}}),
        ("{0.real:d}", (7,), {}),
        ("{!s:>4}", (None,), {}),
        ("{:,}", (1234567,), {}),
        ("{:%Y}", (__import__("datetime").date(2024, 1, 1),), {}),
    ],
)
def test_safe_formatting_gives_what_str_format_gives(
    template: str, args: tuple[object, ...], kwargs: dict[str, object]
) -> None:
    assert FORMATTER.text_format(template, *args, **kwargs) == template.format(*args, **kwargs)


@pytest.mark.parametrize(
    "template",
    [
        "{0.__class__}",
        "{0.name.__class__}",
        "{a._x}",
        "{0[k].__init__}",
        "{:{0.__class__}}",
        "{0!r:{0.__doc__}}",
    ],
)
def test_attributes_are_read_through_the_guard(template: str) -> None:
    assert not reads_nothing(template)
    # From 3.14 on, mixing automatic and given numbers fails before anything is read.
    with pytest.raises((AttributeError, TypeError, ValueError)):
        FORMATTER.text_format(template, Thing(), a=Thing())


def test_allowed_attributes_are_read() -> None:
    assert FORMATTER.text_format("{0.name} {t.name!r}", Thing(), t=Thing()) == "thing 'thing'"
    assert FORMATTER.text_format_map("{t.name}", {"t": Thing()}) == "thing"


def test_mistakes_raise_what_str_format_raises() -> None:
    with pytest.raises(IndexError):
        FORMATTER.text_format("{} {}", 1)
    with pytest.raises(KeyError):
        FORMATTER.text_format("{x}")
    with pytest.raises(ValueError):
        FORMATTER.text_format("{")
    with pytest.raises(ValueError):
        FORMATTER.text_format("{0.name} {", Thing())


def test_addresses_are_left_out_of_all_texts() -> None:
    thing = Thing()
    for text in (
        stable_repr(thing),
        stable_ascii([thing]),
        stable_format(thing),
        str(percent("%s %r", (thing, [thing]))),
        FORMATTER.text_format("{} {x!r:>3}", thing, x=[thing]),
        FORMATTER.text_format("{0.name} {0}", thing),
        FORMATTER.text_format_map("{t}", {"t": thing}),
    ):
        assert "0x" not in text
        assert "Thing object>" in text


def test_addresses_in_data_stay() -> None:
    assert without_addresses("<a at 0xzz> at 0x123456 b") == "<a at 0xzz> at 0x123456 b"
    assert percent("%s at 0x7fffffff>", ("x",)) == "x at 0x7fffffff>"


@pytest.mark.parametrize(
    ("template", "args"),
    [
        ("{.real} {.imag}", (3, 4)),
        ("{[0]}{[1]}", ("ab", "cd")),
        ("{0.real:{w}}|{0.imag:>{w}}", (3,)),
        ("{.real:{:{}}}", (1, 2, 3)),
        ("{.real} {0}", (1,)),
        ("{0.real} and more", (1,)),
        ("{0.real} {}", (1, 2)),
        ("{.real} {.real}", (1,)),
        ("{0.real!x}", (1,)),
        ("{0.real!r:>4}{0.real!s}{0.real!a}", (1,)),
        ("{0.real", (1,)),
        ("{a.real}", ()),
    ],
)
def test_fields_with_attributes_are_numbered_and_refused_as_pythons_are(
    template: str, args: tuple[object, ...]
) -> None:
    def outcome(format_it: Callable[[], str]) -> str:
        try:
            return format_it()
        except (ValueError, IndexError, KeyError) as error:
            return f"{type(error).__name__}: {error}"

    ours = outcome(lambda: FORMATTER.text_format(template, *args, w=4))
    assert ours == outcome(lambda: template.format(*args, w=4))


def test_a_mapping_has_no_positional_fields() -> None:
    for template in ("{0.name}", "{} {t.name}"):
        with pytest.raises(ValueError, match="Format string contains positional fields"):
            FORMATTER.text_format_map(template, {"t": Thing()})


def test_percent_in_place_shows_no_address_and_evaluates_its_target_once() -> None:
    outcome = run(
        "def f(): pass\n"
        "class M:\n"
        "    rate = 17\n"
        "    rate %= 10\n"
        "    def __imod__(self, other):\n"
        "        print('in place', other)\n"
        "        return self\n"
        "text = 'text %s'\n"
        "text %= f\n"
        "rows, asked = {'a': '%s-%s', 'n': 17, 's': [1, 2, 3]}, []\n"
        "def key(name):\n"
        "    asked.append(name)\n"
        "    return name\n"
        "rows[key('a')] %= (f, 2)\n"
        "rows[key('n')] %= key(5)\n"
        "m = M()\n"
        "m.label = '%(x)s'\n"
        "m.label %= {'x': f}\n"
        "m %= f\n"
        "try:\n"
        "    rows['s'][0:1] %= rows['n']\n"
        "except TypeError as error:\n"
        "    print(error)\n"
        "def half(a, b):\n"
        "    a %= b\n"
        "    return a\n"
        "return [text, rows['a'], rows['n'], asked, m.label, M.rate, half(7, 4), half('%r', f)]\n"
    )
    function = "<function f>"
    assert outcome.value == [
        f"text {function}", f"{function}-2", 2, ["a", "n", 5], function, 7, 3, function,
    ]  # fmt: skip
    assert outcome.output == (f"in place {function}\nunsupported operand type(s) for %=: 'list' and 'int'\n")
