"""functools' descriptors for methods: arguments given ahead, and a choice by the class of the first argument.

Ours, because the real ones show what they hold and read annotations. What they give is a call and no more.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from bascule.guest.facades.callables import Function, Partial, SingleDispatch

_BINDING = (FunctionType, classmethod, staticmethod)


def _bound(function: Any, value: object, owner: type | None) -> Function:
    """Return a function of a class body as the object it was read from calls it."""
    if _is_descriptor(function):
        bound: Function = function.__get__(value, owner)
        return bound
    return Partial(function, value)


def _is_descriptor(function: object) -> bool:
    return isinstance(function, (*_BINDING, PartialMethod, SingleDispatchMethod))


class PartialMethod:
    """A method with some arguments already given."""

    __slots__ = ("_args", "_func", "_keywords")

    def __init__(self, func: object, /, *args: object, **keywords: object) -> None:
        if not callable(func) and not _is_descriptor(func):
            raise TypeError(f"{type(func).__name__!r} object is not callable or a descriptor")
        self._func = func
        self._args = args
        self._keywords = keywords

    def __get__(self, value: object, owner: type | None = None) -> Function:
        if value is not None or not callable(self._func):
            return Partial(_bound(self._func, value, owner), *self._args, **self._keywords)
        function, given, named = self._func, self._args, self._keywords

        def method(value: object, /, *args: object, **keywords: object) -> Any:
            return function(value, *given, *args, **{**named, **keywords})

        return method


class SingleDispatchMethod:
    """A method chosen by the class of its first argument."""

    __slots__ = ("_dispatch",)

    def __init__(self, function: Function) -> None:
        self._dispatch = SingleDispatch(function)

    def register(self, cls: object, method: Function | None = None) -> Any:
        """Use ``method`` for first arguments of ``cls``; a decorator when ``method`` is left out."""
        return self._dispatch.register(cls, method)

    def __get__(self, value: object, owner: type | None = None) -> Function:
        dispatch = self._dispatch.dispatch

        def method(first: object, /, *args: object, **keywords: object) -> Any:
            return _bound(dispatch(type(first)), value, owner)(first, *args, **keywords)

        return method
