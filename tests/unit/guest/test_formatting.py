"""Text of values: as Python makes it, without addresses, and without reading attributes in C."""

from __future__ import annotations

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
