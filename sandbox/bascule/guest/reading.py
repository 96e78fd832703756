"""The few special attributes that scripts read of any object: its name, its class, its text, its fields.

Each is answered from data, as a plain value or a copy; none is read natively.
"""

from __future__ import annotations

import enum
import functools
import types
import typing
from typing import cast

from bascule.guest.calls import Tool
from bascule.guest.classes import ScriptClasses, TypeView
from bascule.guest.facade import Facade
from bascule.guest.rules.syntax import READABLE_SPECIALS

_CACHED: type = type(functools.lru_cache(ascii))

_NAMED: frozenset[type] = frozenset(
    {
        types.FunctionType,
        types.BuiltinFunctionType,
        types.MethodType,
        types.MethodDescriptorType,
        types.MethodWrapperType,
        types.WrapperDescriptorType,
        types.ClassMethodDescriptorType,
        _CACHED,
    }
)
"""Callables whose ``__name__`` is plain data."""


_GENERIC: tuple[object, ...] = (
    types.GenericAlias,
    types.UnionType,
    type(cast(object, typing.List[int])),  # noqa: UP006
    type(cast(object, typing.Optional[int])),  # noqa: UP045
)
"""Aliases whose arguments ``typing.get_args`` gives as well."""


class About:
    """Answers for the special attributes that are readable.

    Args:
        classes: decides which classes scripts may hold, and which are the script's.
        namespace: the globals of the script.
    """

    NAMES = READABLE_SPECIALS

    def __init__(self, classes: ScriptClasses, namespace: dict[str, object]) -> None:
        self._classes = classes
        self._namespace = namespace
        self._dataclass_fields: dict[type, dict[str, object]] = {}

    def read(self, value: object, name: str) -> object:
        """Return the special attribute ``name`` of ``value``.

        Raises:
            AttributeError: this object has none, or does not give it.
        """
        answer: object
        if name == "__class__":
            return self._classes.class_of(value)
        if name in ("__name__", "__qualname__"):
            answer = self._name(value, name)
        elif name == "__doc__":
            return self._doc(value)
        elif name == "__dict__":
            answer = self._fields(value)
        elif name == "__annotations__":
            answer = self._annotations(value)
        elif name == "__args__":
            answer = getattr(value, "__args__", None) if type(value) in _GENERIC else None
        elif name == "__dataclass_fields__":
            answer = self._fields_of_dataclass(value)
        elif name == "__members__":
            answer = dict(value.__members__) if isinstance(value, enum.EnumMeta) else None
        elif name == "__notes__":
            answer = _notes(value)
        else:
            if isinstance(value, BaseException):
                return value.__cause__ if name == "__cause__" else value.__context__
            answer = None
        if answer is None:
            raise AttributeError(f"{type(value).__name__!r} object does not give `{name}` to scripts")
        return answer

    def _name(self, value: object, name: str) -> str | None:
        kind = type(value)
        if isinstance(value, TypeView):
            return TypeView.name_of(value)
        if kind is Tool:
            return value.tool_name  # type: ignore[attr-defined,no-any-return]
        if kind is Facade:
            return value.__name__  # type: ignore[attr-defined,no-any-return]
        if self._classes.is_known(kind):
            own = (_own_fields(value) or {}).get(name)  # as functools.update_wrapper sets it
            return own if type(own) is str else None
        if kind in _NAMED or isinstance(value, type):
            found: object = getattr(value, name, None)
            return found if type(found) is str else None
        return None

    def _doc(self, value: object) -> str | None:
        own = isinstance(value, types.FunctionType) and value.__globals__ is self._namespace
        if isinstance(value, type):
            own = self._classes.is_known(value)
        elif self._classes.is_known(type(value)):
            own, value = True, type(value)
        found: object = value.__doc__ if own else None
        return found if type(found) is str else None

    def _annotations(self, value: object) -> dict[str, object] | None:
        if type(value) is _CACHED:
            # What functools.cache was given; it copies the annotations, differently in each version.
            value = cast("object", value.__wrapped__)  # type: ignore[attr-defined]
        own = isinstance(value, types.FunctionType) and value.__globals__ is self._namespace
        if not own and not (isinstance(value, type) and self._classes.is_known(value)):
            return None
        found: object = getattr(value, "__annotations__", None)
        return dict(cast("dict[str, object]", found)) if isinstance(found, dict) else None

    def _fields_of_dataclass(self, value: object) -> dict[str, object] | None:
        # A copy, the same one each time: dataclasses reads attributes by the names in the real one.
        cls = value if isinstance(value, type) else type(value)
        found: object = getattr(cls, "__dataclass_fields__", None) if self._classes.is_known(cls) else None
        if not isinstance(found, dict):
            return None
        owner = next(base for base in cls.__mro__ if "__dataclass_fields__" in base.__dict__)
        return self._dataclass_fields.setdefault(owner, dict(cast("dict[str, object]", found)))

    def _fields(self, value: object) -> dict[str, object] | None:
        kind = type(value)
        if isinstance(value, type) or not (kind is types.SimpleNamespace or self._classes.is_known(kind)):
            return None
        fields = _own_fields(value)
        if fields is None:
            return None
        return {key: item for key, item in fields.items() if type(key) is str and not _is_internal(key)}


def _notes(error: object) -> list[object] | None:
    notes = (_own_fields(error) or {}).get("__notes__") if isinstance(error, BaseException) else None
    return list(cast("list[object]", notes)) if isinstance(notes, list) else None


def _own_fields(value: object) -> dict[object, object] | None:
    try:
        fields: object = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return cast("dict[object, object]", fields)


def _is_internal(name: str) -> bool:
    return name.startswith("_") and name.endswith("_")
