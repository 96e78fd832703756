"""Copies of plain data and of the script's own objects.

The real ``copy`` asks objects how to copy themselves (``__reduce_ex__``), which is a way into pickling; this
one knows what it can copy, by type, and refuses the rest. Of the script it calls only the ``__copy__`` and
``__deepcopy__`` that its classes define.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import operator
import random
import re
import types
import uuid
from collections.abc import Callable
from typing import Any, cast

from bascule.guest.facade import Facade, FacadeGuards
from bascule.guest.facades.callables import Partial
from bascule.guest.withheld import Withheld

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
    types.UnionType,
    uuid.UUID,
    Withheld,
)
_SAME_TYPES = frozenset(_SAME)
_SAME_MODULES = frozenset({"fractions", "typing", "zoneinfo"})
"""Modules all of whose objects scripts can hold cannot be changed; named to leave them unimported."""

_BASES: tuple[type, ...] = (
    collections.OrderedDict,
    collections.defaultdict,
    collections.Counter,
    dict,
    list,
    set,
    frozenset,
    tuple,
    str,
    int,
    float,
    bytes,
    bytearray,
    collections.deque,
)


class Memo(dict[int, tuple[object, object]]):
    """What one deep copy has copied: originals and copies by id.

    Attributes:
        shared: the dictionary that ``__deepcopy__`` of the script gets and hands on: copies by ``id(value)``
            as scripts see it.
    """

    __slots__ = ("shared",)

    def __init__(self, shared: dict[int, object]) -> None:
        self.shared = shared


Step = Callable[[Any], Any]


class Copier:
    """copy() and deepcopy() for one run."""

    __slots__ = ("_guards", "_open")

    def __init__(self, guards: FacadeGuards) -> None:
        self._guards = guards
        self._open: list[Memo] = []

    def copy(self, x: Any) -> Any:
        """Return a shallow copy.

        Raises:
            TypeError: ``x`` is neither plain data nor an object of the script's own classes.
        """
        hook = self._hook(x, "__copy__")
        return self._build(x, _same, Memo({})) if hook is None else hook(x)

    def deepcopy(self, x: Any, memo: object = None) -> Any:
        """Return a copy down to the leaves; objects that occur twice stay one object.

        Raises:
            TypeError: something in ``x`` is neither plain data nor an object of the script's own classes.
        """
        shared = cast("dict[int, object]", memo) if isinstance(memo, dict) else {}
        inner = next((passed for passed in self._open if passed.shared is shared), None)
        copied = self._deep(x, Memo(shared) if inner is None else inner)
        if inner is None and shared is memo:
            shared[self._guards.number(x)] = copied
        return copied

    def _hook(self, x: object, name: str) -> Callable[..., Any] | None:
        """Return what the script's own class defines for copying its objects."""
        kind = type(x)
        if not self._guards.owns(kind):
            return None
        owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
        return getattr(kind, name) if owner is not None and self._guards.owns(owner) else None

    def _deep(self, x: Any, memo: Memo) -> Any:
        if type(x) in _SAME_TYPES:
            return x
        known = memo.get(id(x))
        if known is not None:
            return known[1]
        number = self._guards.number_of(x) if memo.shared else None
        if number in memo.shared:
            return memo.shared[number]
        hook = self._hook(x, "__deepcopy__")
        if hook is not None:
            self._open.append(memo)
            try:
                return _remember(memo, x, hook(x, memo.shared))
            finally:
                self._open.remove(memo)
        return self._build(x, lambda value: self._deep(value, memo), memo)

    def _build(self, x: Any, step: Step, memo: Memo) -> Any:
        kind: Any = type(x)
        if kind in _SAME_TYPES or isinstance(x, type | enum.Enum | BaseException):
            return x
        if kind.__module__ in _SAME_MODULES:
            return x
        if kind is types.SimpleNamespace:
            copy = _remember(memo, x, types.SimpleNamespace())
            copy.__dict__.update({name: step(value) for name, value in x.__dict__.items()})
            return copy
        if issubclass(kind, random.Random):
            copy = _remember(memo, x, random.Random.__new__(kind))
            copy.setstate(x.getstate())
            return copy
        if kind is types.MethodType:
            if step is _same or not self._guards.owns(type(x.__self__)):
                return x
            return _remember(memo, x, types.MethodType(x.__func__, step(x.__self__)))
        if kind is Partial:
            copy = _remember(memo, x, Partial(step(x.func)))
            copy.args = tuple([step(value) for value in x.args])
            copy.keywords = {name: step(value) for name, value in x.keywords.items()}
            return copy
        if kind in _BASES:
            return _fill(x, kind, kind, step, memo)
        if self._guards.owns(kind):
            base = next((base for base in _BASES if issubclass(kind, base)), object)
            copy = _fill(x, kind, base, step, memo)
            slots, attributes = _state(x, kind)
            for name, value in slots.items():
                object.__setattr__(copy, name, step(value))
            if attributes:
                object.__getattribute__(copy, "__dict__").update(
                    {name: step(value) for name, value in attributes.items()}
                )
            return copy
        name = "module" if kind is Facade else kind.__name__
        raise TypeError(f"cannot pickle {name!r} object")


def _same(value: Any) -> Any:
    return value


def _remember(memo: Memo, x: object, copy: Any) -> Any:
    # The original is kept beside its copy so that its id stays its own.
    memo[id(x)] = (x, copy)
    return copy


def _fill(x: Any, kind: Any, base: Any, step: Step, memo: Memo) -> Any:
    """Make an object of class ``kind`` with what the built-in class ``base`` holds in ``x``."""
    if base in (str, int, float, bytes):
        return _remember(memo, x, base.__new__(kind, x))
    if base in (tuple, frozenset):
        items = [step(item) for item in base.__iter__(x)]
        if kind is base and (kind is tuple or step is _same) and all(map(operator.is_, items, x)):
            return x
        if kind is tuple and id(x) in memo:
            return memo[id(x)][1]  # one of its items holds it and has copied it already
        return _remember(memo, x, cast(Any, base).__new__(kind, items))
    copy = _remember(memo, x, base.__new__(kind))
    if base is collections.deque:
        collections.deque.__init__(copy, (), x.maxlen)
    if base is collections.defaultdict:
        collections.defaultdict.__init__(copy, step(x.default_factory))
    if issubclass(base, dict):
        setter = collections.OrderedDict if base is collections.OrderedDict else dict
        for key, value in setter.items(x):
            setter.__setitem__(copy, step(key), step(value))
    elif base in (list, bytearray, collections.deque):
        base.extend(copy, [step(item) for item in base.__iter__(x)])
    elif base is set:
        set.update(copy, [step(item) for item in list(set.__iter__(x))])
    return copy


def _state(x: object, kind: type) -> tuple[dict[str, object], dict[str, object]]:
    """Return the slots and the attributes of an object, read without running anything of the script."""
    slots: dict[str, object] = {}
    for base in kind.__mro__:
        if base in _BASES:
            continue  # what a built-in class holds is copied already
        for name, member in base.__dict__.items():
            if type(member) is types.MemberDescriptorType and name not in slots:
                try:
                    slots[name] = member.__get__(x, kind)
                except AttributeError:
                    continue  # a slot that was never set
    try:
        attributes: dict[str, object] = object.__getattribute__(x, "__dict__")
    except AttributeError:
        attributes = {}  # a class with slots only
    return slots, attributes
