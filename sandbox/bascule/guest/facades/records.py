"""dataclasses, collections, enum, abc, typing: what makes classes, on the script's own classes only."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import abc
import collections
import enum
import keyword
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from bascule.guest.facade import FacadeContext, FacadeGuards, Members
from bascule.guest.facades.copying import Copier
from bascule.guest.rules.syntax import name_problem

_SCRIPT_MODULE = "__main__"
_ANNOTATIONS_MODULE = "<annotations of the script>"


def _class_names(value: Iterable[object]) -> list[str]:
    # Exact type: namedtuple builds a function from these texts.
    chosen = list(value)
    for name in chosen:
        if type(name) is not str:
            raise TypeError("type names and field names must be strings")
    return cast(list[str], chosen)


def collections_module(context: FacadeContext) -> Members:
    """Give collections; the classes that namedtuple makes are the script's own."""

    def namedtuple(
        typename: str,
        field_names: str | Iterable[str],
        *,
        rename: bool = False,
        defaults: Iterable[object] | None = None,
        module: object = None,
    ) -> type:
        (name,) = _class_names([typename])
        # As namedtuple does, any value is taken as its text; exact texts, so that none lies later.
        texts = (
            str.__str__(field_names).replace(",", " ").split()
            if isinstance(field_names, str)
            else [str.__str__(str(text)) for text in field_names]
        )
        made: Any = cast(Any, collections.namedtuple)(
            name, _class_names(texts), rename=bool(rename), defaults=defaults, module=_SCRIPT_MODULE
        )
        context.guards.adopt(made)
        return cast(type, made)

    return {"namedtuple": namedtuple}


def abc_module(context: FacadeContext) -> Members:
    """Give abc; abstractmethod marks functions only, never a class that outlives the run."""

    def abstractmethod(funcobj: Any) -> Any:
        if type(funcobj) in (types.FunctionType, property, classmethod, staticmethod):
            # A property tells from its getter whether it is abstract and takes no mark.
            return funcobj if type(funcobj) is property else abc.abstractmethod(funcobj)
        raise TypeError("abstractmethod needs a method")

    return {"abstractmethod": abstractmethod}


def dataclasses_module(context: FacadeContext) -> Members:
    """Give dataclasses."""
    import dataclasses

    guards = context.guards
    copier = Copier(guards)
    annotations = types.ModuleType(_ANNOTATIONS_MODULE)
    # What annotations written as text may mean to dataclass(): these three kinds of pseudo-field and no more.
    annotations.__dict__.update(
        ClassVar=typing.ClassVar,
        InitVar=dataclasses.InitVar,
        KW_ONLY=dataclasses.KW_ONLY,
        typing=typing,
        dataclasses=dataclasses,
    )

    def process(cls: Any, options: dict[str, Any]) -> Any:
        if not _owned(guards, cls):
            raise TypeError("dataclass needs a class that this script defines")
        _check_field_names(cls.__annotations__)
        # dataclass() looks its annotations up in sys.modules; it must not find the guest's own __main__.
        shown = cls.__module__
        sys.modules[_ANNOTATIONS_MODULE] = annotations
        cls.__module__ = _ANNOTATIONS_MODULE
        made: Any = cls
        try:
            made = dataclasses.dataclass(cls, **options)
        finally:
            cls.__module__ = made.__module__ = shown
            del sys.modules[_ANNOTATIONS_MODULE]
        if made is not cls:
            guards.adopt(made)
        return made

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        def decorate(cls: type) -> Any:
            return process(cls, options)

        return decorate if cls is None else decorate(cls)

    def values(instance: object) -> list[tuple[str, Any]]:
        if isinstance(instance, type) or not dataclasses.is_dataclass(instance):
            raise TypeError("asdict() should be called on dataclass instances")
        return [(field.name, getattr(instance, field.name)) for field in dataclasses.fields(instance)]

    def asdict(instance: object, *, dict_factory: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
        return dict_factory([(name, convert(value, dict_factory, None)) for name, value in values(instance)])

    def astuple(instance: object, *, tuple_factory: Callable[[list[Any]], Any] = tuple) -> Any:
        return tuple_factory([convert(value, None, tuple_factory) for _, value in values(instance)])

    def convert(value: Any, to_dict: Callable[..., Any] | None, to_tuple: Callable[..., Any] | None) -> Any:
        kind: Any = type(value)
        if dataclasses.is_dataclass(kind):
            if to_dict is not None:
                return asdict(value, dict_factory=to_dict)
            return astuple(value, tuple_factory=cast(Callable[..., Any], to_tuple))
        if kind in (list, tuple, set, frozenset, collections.deque):
            return kind(convert(item, to_dict, to_tuple) for item in value)
        if isinstance(value, tuple) and hasattr(kind, "_fields"):
            return kind(*[convert(item, to_dict, to_tuple) for item in tuple.__iter__(cast(Any, value))])
        if isinstance(value, dict):
            pairs = [
                (convert(key, to_dict, to_tuple), convert(item, to_dict, to_tuple))
                for key, item in dict.items(cast(Any, value))
            ]
            if kind is collections.defaultdict:
                return collections.defaultdict(cast(Any, value).default_factory, pairs)
            return kind(pairs) if kind in (dict, collections.OrderedDict) else dict(pairs)
        return copier.deepcopy(value)

    return {"asdict": asdict, "astuple": astuple, "dataclass": dataclass}


_CREATE = "_create_"
_create: Callable[..., type] = vars(enum.EnumType)[_CREATE]


def _create_enum(cls: type, class_name: str, names: Any, **options: Any) -> type:
    """``EnumType._create_``, which makes the class of ``Enum("Name", names)``, for plain names only.

    Special names among them would become what no class statement may define.
    """
    if isinstance(names, str):
        names = str.__str__(names).replace(",", " ").split()
    items: list[Any] = list(names.items() if isinstance(names, Mapping) else names or ())
    for item in items:
        name = item if isinstance(item, str) else item[0]
        if type(name) is not str or name_problem(name):
            raise ValueError(f"names of members must be plain names: {name!r}")
    return _create(cls, class_name, items, **{**options, "module": _SCRIPT_MODULE})


def enum_module(context: FacadeContext) -> Members:
    """Give enum: its classes are the real ones, so calls that make classes are checked in the metaclass."""
    setattr(enum.EnumType, _CREATE, _create_enum)
    return {}


def copy_module(context: FacadeContext) -> Members:
    """Give copy."""
    copier = Copier(context.guards)

    def replace(obj: Any, /, **changes: object) -> Any:
        import dataclasses

        if isinstance(obj, tuple) and hasattr(type(obj), "_fields"):
            return cast(Any, obj)._replace(**changes)
        if dataclasses.is_dataclass(obj) and not isinstance(obj, type):
            return dataclasses.replace(obj, **changes)
        raise TypeError(f"replace() does not support {type(obj).__name__} objects")

    return {"copy": copier.copy, "deepcopy": copier.deepcopy, "replace": replace}


def typing_module(context: FacadeContext) -> Members:
    """Give typing; whatever keeps registries or makes classes is ours."""

    def same(value: Any, /, *_: object) -> Any:
        return value

    def cast_to(typ: object, val: Any) -> Any:
        return val

    def assert_never(arg: object, /) -> typing.NoReturn:
        raise AssertionError(f"Expected code to be unreachable, but got: {arg!r}"[:200])

    def get_origin(tp: object) -> object:
        # Of Type[int] it is the real type, which makes classes of anything.
        origin: object = typing.get_origin(tp)
        return context.guards.view(origin) if isinstance(origin, type) else origin

    def runtime_checkable(cls: type) -> type:
        return typing.runtime_checkable(cls) if _owned(context.guards, cls) else cls

    cast_to.__name__ = cast_to.__qualname__ = "cast"
    return {
        # Functions in some Pythons, but bases of classes: they must stay what class statements know.
        "NamedTuple": typing.NamedTuple,
        "TypedDict": typing.TypedDict,
        "TYPE_CHECKING": False,
        "assert_never": assert_never,
        "assert_type": same,
        "cast": cast_to,
        "final": same,
        "get_origin": get_origin,
        "no_type_check": same,
        "overload": same,
        "override": same,
        "reveal_type": same,
        "runtime_checkable": runtime_checkable,
    }


def _check_field_names(names: Iterable[object]) -> None:
    # dataclass() makes source text of them, and those of TypedDict("T", {...}) may be any text.
    for name in names:
        if type(name) is not str or not name.isidentifier() or keyword.iskeyword(name) or name_problem(name):
            raise TypeError(f"field names must be plain names: {name!r}")


def _owned(guards: FacadeGuards, cls: object) -> bool:
    return isinstance(cls, type) and guards.owns(cls)
