"""What an import gives a script: a read-only object with listed names, never the real module.

Everything a facade holds is fresh for its run or cannot be changed: functions written in Python are copied,
so that nothing put on one outlives the run; functions and types written in C are immutable.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, Protocol, cast

import msgspec

from bascule.guest.environment import Environment
from bascule.guest.rules.attributes import Row


class Facade:
    """A module as scripts see it. Its public attributes are exactly the names it was given."""

    def __init__(self, name: str, members: Mapping[str, object]) -> None:
        self.__dict__.update(members)
        self.__dict__["__name__"] = name

    def __getattr__(self, name: str) -> NoReturn:
        # Reached for missing names only, so the names that exist cost nothing.
        given = sorted(key for key in self.__dict__ if not key.startswith("_"))
        shown = ", ".join(given[:60]) + (", ..." if len(given) > 60 else "")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} here; it has: {shown}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"module {self.__name__!r} is read-only")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"module {self.__name__!r} is read-only")

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __repr__(self) -> str:
        return f"<module {self.__name__!r}>"


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Attribute rows that come with a module; the guards take them in before the script sees the module.

    Attributes:
        instances: names an instance of exactly this type gives.
        classes: names the class object gives.
        writable: names that may be set on instances.
        extensible: classes a script may inherit from.
    """

    instances: Mapping[type, Row] = msgspec.field(default_factory=dict[type, Row])
    classes: Mapping[type, Row] = msgspec.field(default_factory=dict[type, Row])
    writable: Mapping[type, Row] = msgspec.field(default_factory=dict[type, Row])
    extensible: frozenset[object] = frozenset()


class FacadeGuards(Protocol):
    """What facades need of the run's guards."""

    def read(self, value: object, name: str, /) -> Any:
        """Return an attribute exactly as ``value.name`` written in the script would; or raise."""
        ...

    def owns(self, cls: type, /) -> bool:
        """Whether the script made this class, by a class statement or through a facade."""
        ...

    def number(self, value: object, /) -> int:
        """Return what ``id(value)`` gives the script."""
        ...

    def number_of(self, value: object, /) -> int | None:
        """Return what ``id(value)`` gave the script, None when it never asked."""
        ...

    def view(self, cls: type, /) -> object:
        """Return a class as the script may hold it: itself, or what stands for it."""
        ...

    def adopt(self, cls: type, /) -> None:
        """Count a class that a facade made for the script among the script's own."""
        ...

    def admit(self, rows: Rows, /) -> None:
        """Take in the attribute rows of a module that is about to be given to the script."""
        ...


class FacadeContext(msgspec.Struct, frozen=True):
    """What the builder of a facade works with."""

    environment: Environment
    guards: FacadeGuards


Members = dict[str, object]
Builder = Callable[[FacadeContext], Members]


def take(module: types.ModuleType, names: Iterable[str]) -> Members:
    """Pick names of a real module for a facade; names this Python version lacks are left out.

    Raises:
        TypeError: a name is a module itself, which no facade may hold.
    """
    members: Members = {}
    for name in names:
        if not hasattr(module, name):
            continue
        value: object = getattr(module, name)
        if isinstance(value, types.ModuleType):
            raise TypeError(f"{module.__name__}.{name} is a module")
        if isinstance(value, types.FunctionType):
            value = fresh(value)
        elif isinstance(value, set | list | dict):
            # What the module itself works with: a script gets a copy of its own.
            value = copy.copy(cast(object, value))
        members[name] = value
    return members


def fresh(function: types.FunctionType) -> types.FunctionType:
    """Return a copy of a function written in Python, so that names set on it die with the run."""
    twin = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    twin.__kwdefaults__ = None if function.__kwdefaults__ is None else dict(function.__kwdefaults__)
    twin.__qualname__ = function.__qualname__
    return twin


def fresh_functions(members: Members) -> Members:
    """Return the members of a facade with copies of its functions."""
    return {
        name: fresh(value) if isinstance(value, types.FunctionType) else value
        for name, value in members.items()
    }


def renamed(function: Callable[..., object], name: str) -> types.FunctionType:
    """Return a copy of one of our functions under the name the script knows it by."""
    assert isinstance(function, types.FunctionType)
    twin = fresh(function)
    twin.__name__ = twin.__qualname__ = name
    return twin
