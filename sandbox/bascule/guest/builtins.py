"""The built-in names of one run: those ``rules/names.py`` gives, made safe where they read or show objects.

The dictionary is fresh for every run. Two entries have names a script cannot write: CPython itself looks them
up there, for class statements and when C code needs a module.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

from bascule.guest.facade import renamed
from bascule.guest.formatting import EXACT, StableText, stable_ascii, stable_format, stable_repr
from bascule.guest.guards import Guards
from bascule.guest.rules.names import NAMES
from bascule.guest.rules.syntax import SPECIAL_METHODS
from bascule.guest.withheld import see

_C_IMPORTS = frozenset(
    {
        "_pylong",  # arithmetic and text of huge integers, from 3.12
        "_strptime",  # datetime.strptime
        "annotationlib",  # annotations of classes and functions, from 3.14
        "re",  # Pattern.sub and Match.expand with a template
        "time",  # datetime.strftime
        "typing",  # TypeVar and Generic, from 3.12
        "warnings",  # deprecation warnings raised in C
    }
)
"""Modules that C code running on behalf of the script may import; the script gets none of them."""

_TESTED_SPECIALS = SPECIAL_METHODS | {"__await__", "__dataclass_fields__"}
"""Special names that scripts test for with ``hasattr``: the answer is true, though no object gives them."""


class Writer(Protocol):
    """Where printed text goes."""

    def write(self, text: str, /) -> object:
        """Take text."""
        ...


def build_builtins(guards: Guards, output: Writer) -> dict[str, object]:
    """Return the built-ins of one run.

    Args:
        guards: attribute access by name goes through them.
        output: where ``print`` writes.
    """
    made: dict[str, object] = {
        name: getattr(builtins, name)
        for name, rule in NAMES.items()
        if rule.given and not name.startswith("__") and hasattr(builtins, name)
    }
    made |= {
        "BaseException": Exception,
        "type": guards.view(type),
        "print": _print(guards, output),
        "repr": renamed(stable_repr, "repr"),
        "ascii": renamed(stable_ascii, "ascii"),
        "exit": _exit,
        "quit": _exit,
        "__debug__": True,
        "__build_class__": builtins.__build_class__,
        "__import__": _import_for_c,
        **_attribute_functions(guards),
    }
    return made


def _attribute_functions(guards: Guards) -> dict[str, Callable[..., object]]:
    def guarded_getattr(*args: Any, **kwargs: object) -> object:
        _expect("getattr", args, kwargs, 2, 3)
        try:
            return guards.read(args[0], args[1])
        except AttributeError:
            if len(args) == 2:
                raise
            return args[2]

    def guarded_hasattr(*args: Any, **kwargs: object) -> bool:
        _expect("hasattr", args, kwargs, 2, 2)
        if type(args[1]) is str and args[1] in _TESTED_SPECIALS:
            return guards.defines(args[0], args[1])
        try:
            guards.read(args[0], args[1])
        except AttributeError:
            return False
        return True

    def guarded_setattr(*args: Any, **kwargs: object) -> None:
        _expect("setattr", args, kwargs, 3, 3)
        guards.write(args[0], args[1], args[2])

    def guarded_delattr(*args: Any, **kwargs: object) -> None:
        _expect("delattr", args, kwargs, 2, 2)
        guards.delete(args[0], args[1])

    def numbered_id(*args: object, **kwargs: object) -> int:
        _expect("id", args, kwargs, 1, 1)
        return guards.classes.number(see(args[0]))

    def seen_callable(*args: object, **kwargs: object) -> bool:
        _expect("callable", args, kwargs, 1, 1)
        return callable(see(args[0]))

    def safe_format(*args: Any, **kwargs: object) -> str:
        _expect("format", args, kwargs, 1, 2)
        if len(args) == 2 and not isinstance(args[1], str):
            found = "None" if args[1] is None else type(args[1]).__name__
            raise TypeError(f"format() argument 2 must be str, not {found}")
        return stable_format(*args)

    functions: dict[str, Callable[..., object]] = {
        "getattr": guarded_getattr,
        "hasattr": guarded_hasattr,
        "setattr": guarded_setattr,
        "delattr": guarded_delattr,
        "id": numbered_id,
        "callable": seen_callable,
        "format": safe_format,
    }
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
    return functions


def _expect(name: str, args: tuple[object, ...], kwargs: dict[str, object], least: int, most: int) -> None:
    """Count arguments as CPython's own functions do, in the same words."""
    if kwargs:
        raise TypeError(f"{name}() takes no keyword arguments")
    count = len(args)
    if least <= count <= most:
        return
    if least == most:
        one = name in ("id", "callable")
        what = "exactly one argument" if one else f"{least} argument{'s' if least > 1 else ''}"
        raise TypeError(
            f"{name}() takes {what} ({count} given)" if one else f"{name} expected {what}, got {count}"
        )
    bound, limit = ("at least", least) if count < least else ("at most", most)
    raise TypeError(f"{name} expected {bound} {limit} argument{'s' if limit > 1 else ''}, got {count}")


def _print(guards: Guards, output: Writer) -> Callable[..., None]:
    write = output.write

    def print(
        *values: object,
        sep: str | None = " ",
        end: str | None = "\n",
        file: object = None,
        flush: bool = False,
    ) -> None:
        separator = " " if sep is None else _text(sep, "sep")
        ending = "\n" if end is None else _text(end, "end")
        text = separator.join([_shown(value) for value in values]) + ending
        if file is None:
            write(text)
            return
        guards.read(file, "write")(text)
        if flush:
            guards.read(file, "flush")()

    return renamed(print, "print")


def _text(value: object, name: str) -> str:
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"{name} must be None or a string, not {type(value).__name__}")


def _shown(value: object) -> str:
    if type(value) is str:
        return value
    return str(value) if type(value) in EXACT else str(StableText(value))


def _exit(code: object = None, /) -> NoReturn:
    """End the script: well with None or 0, else as failed."""
    raise SystemExit(code)


def _import_for_c(name: str, *_: object) -> object:
    if name not in _C_IMPORTS:
        raise ImportError(f"no module {name!r} here")
    return builtins.__import__(name)
