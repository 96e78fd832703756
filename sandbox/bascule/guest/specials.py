"""Special methods read as values: ``Base.__init__``, ``rows.__len__``, ``object.__setattr__``.

Decides by the class that defines the method, from class dictionaries and tables only. What a script gets does
what the operator does, no more: a method of its own, a method written in C of plain data, or a function that
applies the operator. Methods written in Python of classes that are not the script's are never handed out for
objects.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from types import FunctionType

from bascule.guest.classes import ScriptClasses, stable_object_repr
from bascule.guest.formatting import stable_repr, without_addresses
from bascule.guest.rules.attributes import OPERABLE
from bascule.guest.shims import bound_to, only_for, unbound, without_addresses_of
from bascule.guest.tables import Tables

_TEXT_METHODS = frozenset({"__repr__", "__str__", "__format__", "__mod__"})
"""Methods whose native implementations put addresses into the text they give."""

_SET_UP = frozenset({"__init__", "__post_init__"})


def _call(value: Callable[..., object], *args: object, **kwargs: object) -> object:
    return value(*args, **kwargs)


def _text(value: object) -> str:
    return without_addresses(str(value))


def _arguments(value: tuple[object, ...]) -> tuple[tuple[object, ...]]:
    return (tuple(value),)


_OPERATIONS: dict[str, Callable[..., object]] = {
    "__aiter__": aiter,
    "__anext__": anext,
    "__call__": _call,
    "__contains__": operator.contains,
    "__fspath__": _text,
    "__getnewargs__": _arguments,
    "__getitem__": operator.getitem,
    "__iter__": iter,
    "__len__": len,
    "__next__": next,
    "__repr__": stable_repr,
    "__str__": _text,
}
"""What the methods of objects of all other types do, as the script could write it itself."""


class Specials:
    """Answers for the special methods of one run.

    Args:
        tables: the known types.
        classes: the script's own.
        set_field: ``object.__setattr__`` for scripts.
    """

    def __init__(
        self, tables: Tables, classes: ScriptClasses, set_field: Callable[[object, str, object], None]
    ) -> None:
        self._tables = tables
        self._classes = classes
        self._set_field = unbound(set_field)

    def read(self, value: object, name: str) -> object:
        """Return the special method ``name`` of ``value``.

        Raises:
            AttributeError: it has none, or scripts do not get it.
        """
        if isinstance(value, type):
            return self._of_class(value, name)
        kind = type(value)
        owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
        if self._classes.is_known(kind):
            if owner is None or self._classes.is_known(owner):
                return getattr(value, name)  # an attribute of the object's own, or a method of the script's
            if owner is object and name in ("__repr__", "__hash__"):
                return bound_to(self._classes.order if name == "__hash__" else stable_object_repr, value)
        if owner in OPERABLE and name not in _SET_UP and (kind in OPERABLE or self._classes.is_known(kind)):
            found: Callable[..., object] = getattr(value, name)
            return without_addresses_of(found) if name in _TEXT_METHODS else found
        listed = kind in self._tables.instances or self._classes.is_known(kind)
        if listed and owner is not None and name in _OPERATIONS:
            return bound_to(_OPERATIONS[name], value)
        if owner is None:
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        raise AttributeError(f"`{name}` of an object of type {kind.__name__!r} is not available to scripts")

    def _of_class(self, cls: type, name: str) -> object:
        if name == "__setattr__":
            if cls is object:
                return self._set_field
        elif self._classes.is_known(cls) or cls in self._tables.extensible:
            owner = next((base for base in cls.__mro__ if name in base.__dict__), None)
            if owner is not None and self._classes.is_known(owner):
                return getattr(cls, name)
            if owner is object and name in ("__repr__", "__hash__"):
                return unbound(self._classes.order if name == "__hash__" else stable_object_repr)
            if owner in self._tables.extensible or owner in self._tables.instances:
                found: Callable[..., object] = getattr(cls, name)
                if owner is not None and isinstance(found, FunctionType):
                    found = only_for(owner, found)
                return without_addresses_of(found) if name in _TEXT_METHODS else found
        raise AttributeError(f"`{name}` can be read only from a class of yours or one it inherits from")
