"""Copies of plain data and of the script's own objects, made without calling anything of the script.

The real ``copy`` asks objects how to copy themselves (``__reduce_ex__``, ``__deepcopy__``), which is a way into
pickling; this one knows what it can copy, by type, and refuses the rest.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import re
import types
import uuid
from collections.abc import Callable
from typing import Any, cast

from bascule.guest.facade import FacadeGuards

_SAME = (
    bool,
    bytes,
    complex,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    float,
    int,
    range,
    re.Pattern,
    str,
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    types.BuiltinFunctionType,
    types.FunctionType,
    types.GenericAlias,
    types.MethodType,
    uuid.UUID,
)
_SAME_TYPES = frozenset(_SAME)
_BASES: tuple[type, ...] = (dict, list, set, frozenset, tuple, str, int, float, bytes, collections.deque)

Memo = dict[int, tuple[object, object]]
Step = Callable[[Any], Any]


class Copier:
    """copy() and deepcopy() for one run."""

    __slots__ = ("_guards",)

    def __init__(self, guards: FacadeGuards) -> None:
        self._guards = guards

    def copy(self, x: Any) -> Any:
        """Return a shallow copy.

        Raises:
            TypeError: ``x`` is neither plain data nor an object of the script's own classes.
        """
        return self._build(x, lambda value: value, None)

    def deepcopy(self, x: Any, memo: object = None) -> Any:
        """Return a copy down to the leaves; objects that occur twice stay one object.

        Raises:
            TypeError: something in ``x`` is neither plain data nor an object of the script's own classes.
        """
        return self._deep(x, {})

    def _deep(self, x: Any, memo: Memo) -> Any:
        if type(x) in _SAME_TYPES:
            return x
        known = memo.get(id(x))
        if known is not None:
            return known[1]
        # The original is kept beside its copy so that its id stays its own.
        return self._build(x, lambda value: self._deep(value, memo), memo)

    def _build(self, x: Any, step: Step, memo: Memo | None) -> Any:
        def remember(copy: Any) -> Any:
            if memo is not None:
                memo[id(x)] = (x, copy)
            return copy

        kind = type(x)
        if kind in _SAME_TYPES or isinstance(x, type | enum.Enum | BaseException):
            return x
        if kind in (tuple, frozenset):
            items = [step(item) for item in x]
            if all(new is old for new, old in zip(items, x, strict=True)):
                return x
            return remember(kind(items))
        if kind in (list, set, bytearray):
            copy = remember(kind())
            copy.extend(map(step, x)) if kind is not set else copy.update(map(step, x))
            return copy
        if kind is collections.deque:
            copy = remember(collections.deque(maxlen=x.maxlen))
            copy.extend(map(step, x))
            return copy
        if kind in (dict, collections.OrderedDict, collections.Counter, collections.defaultdict):
            copy = collections.defaultdict(x.default_factory) if kind is collections.defaultdict else kind()
            remember(copy)
            for key, value in x.items():
                dict.__setitem__(copy, step(key), step(value)) if kind is collections.Counter else (
                    copy.__setitem__(step(key), step(value))
                )
            return copy
        if kind is types.SimpleNamespace:
            copy = remember(types.SimpleNamespace())
            copy.__dict__.update({name: step(value) for name, value in x.__dict__.items()})
            return copy
        if self._guards.owns(kind):
            return self._build_own(x, kind, step, remember)
        if kind.__module__ in ("zoneinfo", "fractions", "typing"):
            return x
        raise TypeError(f"cannot copy an object of type {kind.__name__}")

    def _build_own(self, x: Any, kind: type, step: Step, remember: Step) -> Any:
        """Copy an object of a script class: the content of its built-in base, its attributes, its slots."""
        base = next((base for base in _BASES if issubclass(kind, base)), object)
        if base in (tuple, frozenset, str, int, float, bytes):
            content = [step(item) for item in base.__iter__(x)] if base in (tuple, frozenset) else x
            copy = remember(base.__new__(kind, content))
        else:
            copy = remember(base.__new__(kind))
        if base is dict:
            for key, value in dict.items(cast(dict[Any, Any], x)):
                dict.__setitem__(copy, step(key), step(value))
        elif base in (list, collections.deque):
            for item in list(base.__iter__(x)):
                base.append(copy, step(item))
        elif base is set:
            set.update(copy, [step(item) for item in set.__iter__(x)])
        for name, value in _state(x, kind):
            object.__setattr__(copy, name, step(value))
        return copy


def _state(x: object, kind: type) -> list[tuple[str, object]]:
    """Return the attributes of an object, read without running anything of the script."""
    state: dict[str, object] = {}
    for base in kind.__mro__:
        for name, member in base.__dict__.items():
            if type(member) is types.MemberDescriptorType and name not in state:
                try:
                    state[name] = member.__get__(x, kind)
                except AttributeError:
                    continue
    try:
        state.update(object.__getattribute__(x, "__dict__"))
    except AttributeError:
        pass  # a class with slots only
    return list(state.items())
