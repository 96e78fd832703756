"""The classes a script defines and the view it gets of all others.

A class statement is checked base by base before the class exists, so nothing that reacts to being inherited
from runs unless it is listed. Script classes are remembered: the guards give their names freely. What
``type(x)`` returns for a type that scripts may not name is a stand-in that can only be compared and shown.
"""

from __future__ import annotations

import abc
import enum
import types
import typing
import weakref
from collections.abc import Callable

from bascule.guest.rules.attributes import EXTENSIBLE
from bascule.guest.tables import Tables
from bascule.guest.withheld import Withheld

_UNNAMED: frozenset[type] = frozenset(
    kind
    for kind in vars(types).values()
    if isinstance(kind, type) and kind not in {types.SimpleNamespace, types.MappingProxyType, types.NoneType}
) | {super, type}
"""Types of the interpreter's own machinery: scripts meet their instances, never the classes."""

METACLASSES: frozenset[type] = frozenset(
    {
        type,
        abc.ABCMeta,
        type(enum.Enum),
        type(typing.Protocol),
        type(typing.TypedDict("_Probe", {})),  # type: ignore[operator]
    }
)
"""Metaclasses of classes a script can have; the classes hash by identity, no script code runs for it."""

_ALIASES: frozenset[type] = frozenset({types.GenericAlias, type(typing.Generic[typing.AnyStr])})  # type: ignore[index]
_PLAIN_BASES: frozenset[object] = frozenset({object, abc.ABC, typing.Generic, typing.Protocol})
"""Bases without any public name of their own."""

_OBJECT_REPR: object = object.__repr__
_OBJECT_HASH: object = object.__hash__

_NOT_TYPES = tuple(item for item in EXTENSIBLE if not isinstance(item, type))


class TypeView:
    """Stands for a type that scripts may not name: compares, shows its name, works in isinstance."""

    __slots__ = ("_kind",)

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __instancecheck__(self, instance: object) -> bool:
        return issubclass(type(instance), self._kind)

    def __subclasscheck__(self, subclass: object) -> bool:
        return subclass is self

    def __repr__(self) -> str:
        return f"<class {self._kind.__name__!r}>"

    @staticmethod
    def name_of(view: TypeView) -> str:
        """Return the name of the type; not reachable from scripts, whose views give no attributes."""
        return view._kind.__name__


class TypeFunction(TypeView):
    """``type``, and what stands for it: with one argument, the class as the script may hold it."""

    # Not slotted: what CPython calls a callable in its messages is read of these two.
    def __init__(self, classes: ScriptClasses) -> None:
        super().__init__(type)
        self._classes = classes
        self.__dict__.update(__qualname__="type", __module__="builtins")

    def __call__(self, *values: object, **keywords: object) -> object:
        if len(values) != 1 or keywords:
            raise TypeError("type() takes one argument here: define classes with a class statement")
        return self._classes.class_of(values[0])

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, (type, TypeView))

    def __getitem__(self, _: object) -> TypeFunction:
        return self


class ScriptClasses:
    """Remembers the classes of one run.

    Attributes:
        known: every class the script made.
        plain: those whose instances have no public name that is not the script's own.
    """

    def __init__(self, tables: Tables, on_plain: Callable[[type], None]) -> None:
        self._tables = tables
        self.known: set[type] = set()
        self.plain: set[type] = set()
        self._on_plain = on_plain
        self._views: dict[type, TypeView] = {type: TypeFunction(self)}
        self._order: dict[int, tuple[object, int]] = {}
        self._hashed = 0
        self._numbers: dict[int, tuple[object, int]] = {}

    # ------------------------------------------------------------ class statements

    def base(self, value: object) -> object:
        """Check one base of a class statement.

        Raises:
            TypeError: scripts may not inherit from it.
        """
        if isinstance(value, type):
            if self.is_known(value) or value in self._tables.extensible:
                return value
            raise TypeError(
                f"a class cannot inherit from {value.__name__!r} here: hold one in an attribute instead"
            )
        if any(value is item for item in _NOT_TYPES):
            return value
        if type(value) in _ALIASES:
            origin: object = value.__origin__  # type: ignore[attr-defined]
            if origin in self._tables.extensible or (isinstance(origin, type) and self.is_known(origin)):
                return value
        raise TypeError(f"a class cannot inherit from an object of type {type(value).__name__!r}")

    def adopt(self, cls: type) -> None:
        """Count a class that a facade made for the script among the script's own."""
        self._remember(cls)

    def register(self, cls: object) -> object:
        """Remember a class right after its statement made it."""
        if isinstance(cls, type) and self._may_be_known(cls):
            self._remember(cls)
            return cls
        raise TypeError("this class statement makes something that scripts cannot use")

    def finish(self, cls: object) -> object:
        """Give a class, once all decorators have run, an address-free text and a repeatable hash."""
        if not isinstance(cls, type) or not self.is_known(cls) or getattr(cls, "_is_protocol", False):
            return cls
        if _slot(cls, "__repr__") is _OBJECT_REPR:
            type.__setattr__(cls, "__repr__", stable_object_repr)
        if _slot(cls, "__hash__") is _OBJECT_HASH:
            type.__setattr__(cls, "__hash__", _hash_by(self.order))
        return cls

    def is_known(self, cls: type) -> bool:
        """Whether the script made this class: by a statement, a facade, or calling Enum or NamedTuple."""
        if cls in self.known:
            return True
        if cls.__module__ != "__main__" or not self._may_be_known(cls):
            return False
        self._remember(cls)
        return True

    def _may_be_known(self, cls: type) -> bool:
        return type(cls) in METACLASSES and all(
            base in self._tables.extensible or self.is_known(base) for base in cls.__bases__
        )

    def _remember(self, cls: type) -> None:
        self.known.add(cls)
        if all(base in _PLAIN_BASES or base in self.plain for base in cls.__bases__):
            self.plain.add(cls)
            self._on_plain(cls)

    # ------------------------------------------------------------ identity and views

    def order(self, value: object) -> int:
        """Return the number of an object in the order in which objects were first hashed."""
        key = id(value)
        entry = self._order.get(key)
        if entry is None:
            self._hashed += 1
            entry = (self._holder(value, key), self._hashed)
            self._order[key] = entry
        return entry[1]

    def number(self, value: object, /) -> int:
        """Return what ``id(value)`` gives a script: the number of the object among those asked for."""
        entry = self._numbers.get(id(value))
        if entry is None:
            entry = self._numbers[id(value)] = (value, len(self._numbers) + 1)
        return entry[1]

    def number_if_asked(self, value: object, /) -> int | None:
        """Return the number that ``id(value)`` gave, None when the script never asked."""
        entry = self._numbers.get(id(value))
        return None if entry is None else entry[1]

    def _holder(self, value: object, key: int) -> object:
        order = self._order
        try:
            return weakref.ref(value, lambda _: order.pop(key, None))
        except TypeError:  # no room for weak references: __slots__
            return value

    def is_nameable(self, cls: type) -> bool:
        """Whether a script may hold the class object itself."""
        if cls in _UNNAMED:
            return False
        tables = self._tables
        return cls in tables.classes or cls in tables.extensible or self.is_known(cls)

    def class_of(self, value: object) -> object:
        """Return what ``type(value)`` and ``value.__class__`` give a script."""
        if type(value) is Withheld:
            value.use()
        return self.view(type if isinstance(value, TypeView) else type(value))

    def view(self, cls: type) -> object:
        """Return the class itself if scripts may hold it, else its stand-in, the same one each time."""
        if self.is_nameable(cls):
            return cls
        view = self._views.get(cls)
        if view is None:
            view = self._views[cls] = TypeView(cls)
        return view


def _hash_by(order: Callable[[object], int]) -> Callable[[object], int]:
    """Make a function out of a bound method, so that it binds to the objects of the class."""

    def __hash__(self: object) -> int:
        return order(self)

    return __hash__


def _slot(cls: type, name: str) -> object:
    return getattr(cls, name)


def stable_object_repr(self: object) -> str:
    """``object.__repr__`` without the address."""
    cls = type(self)
    return f"<{cls.__module__}.{cls.__qualname__} object>"
