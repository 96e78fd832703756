"""functools and operator: what holds callables is opaque, what reads attributes goes through the guard."""

from __future__ import annotations

import functools
import typing
from collections.abc import Callable, Iterable
from types import FunctionType, NoneType, UnionType
from typing import Any, cast

from bascule.guest.facade import FacadeContext, Members, fresh

Function = Callable[..., Any]

_TYPING_UNION: type = type(typing.Optional[int])  # noqa: UP045


class Partial:
    """A call with some arguments already given. Shows only what the script put in."""

    __slots__ = ("args", "func", "keywords")

    def __init__(self, func: Function, /, *args: object, **keywords: object) -> None:
        if not callable(func):
            raise TypeError("the first argument must be callable")
        self.func: Function = func
        self.args: tuple[object, ...] = args
        self.keywords: dict[str, object] = keywords
        if isinstance(func, Partial):
            self.func = func.func
            self.args = (*func.args, *args)
            self.keywords = {**func.keywords, **keywords}

    def __call__(self, /, *args: object, **keywords: object) -> Any:
        return self.func(*self.args, *args, **{**self.keywords, **keywords})

    def __repr__(self) -> str:
        return f"functools.partial({getattr(self.func, '__name__', 'function')}, ...)"


class SingleDispatch:
    """A function chosen by the class of its first argument."""

    __slots__ = ("_implementations",)

    def __init__(self, function: Function) -> None:
        self._implementations: dict[type, Function] = {object: function}

    def register(self, cls: object, func: Function | None = None) -> Any:
        """Use ``func`` for instances of ``cls``, one class or a union of them.

        A decorator when ``func`` is left out, and as it stands above a function that names the class of its
        first argument in the annotation.

        Raises:
            TypeError: there is no class to go by.
        """
        if func is None and type(cls) is FunctionType:
            return self._add(_annotated_classes(cls), cls)
        classes = _classes_of(cls)
        if func is None:

            def decorate(func: Function) -> Function:
                return self._add(classes, func)

            return decorate
        return self._add(classes, func)

    def dispatch(self, cls: type) -> Function:
        """Return the implementation for ``cls``."""
        for kind in type.mro(cls):
            if kind in self._implementations and kind is not object:
                return self._implementations[kind]
        # Abstract classes count their virtual subclasses too: Mapping, Number.
        for kind, function in self._implementations.items():
            if kind is not object and issubclass(cls, kind):
                return function
        return self._implementations[object]

    def __call__(self, first: object, /, *args: object, **keywords: object) -> Any:
        return self.dispatch(type(first))(first, *args, **keywords)

    def _add(self, classes: Iterable[type], func: Function) -> Function:
        for cls in classes:
            self._implementations[cls] = func
        return func


def _annotated_classes(function: FunctionType) -> tuple[type, ...]:
    """Return the classes in the annotation of the first argument that has one.

    Where annotations are text, names of classes and ``|`` between them are understood.
    """
    hint = next((each for name, each in function.__annotations__.items() if name != "return"), None)
    if hint is None:
        raise TypeError("write @name.register(int), or annotate the first argument with its class")
    if type(hint) is not str:
        return _classes_of(hint)
    names = function.__globals__
    known = {**names["__builtins__"], **names, "None": NoneType}
    return tuple(
        kind for part in hint.strip("'\"").split("|") for kind in _classes_of(known.get(part.strip()))
    )


def _classes_of(cls: object) -> tuple[type, ...]:
    """Return the classes that a class or a union stands for."""
    classes = typing.get_args(cls) if isinstance(cls, UnionType | _TYPING_UNION) else (cls,)
    if not all(isinstance(each, type) for each in classes):
        raise TypeError("write @name.register(int): a class, or a union of classes, must be given")
    return cast("tuple[type, ...]", classes)


def copy_name(wrapper: Function, wrapped: object) -> Function:
    """Give a function the name and text of the one it stands for."""
    # Only what scripts can see; never __wrapped__ or __dict__ of something that is not a script function.
    if type(wrapper) is FunctionType:
        for name in ("__name__", "__qualname__", "__doc__"):
            text = wrapped.__dict__.get(name) if isinstance(wrapped, type) else getattr(wrapped, name, None)
            if type(text) is str:
                setattr(wrapper, name, text)
        if type(wrapped) is FunctionType and wrapped.__globals__ is wrapper.__globals__:
            wrapper.__annotations__ = dict(wrapped.__annotations__)
    return wrapper


def _wraps(wrapped: object, *_: object, **__: object) -> Callable[[Function], Function]:
    def decorate(wrapper: Function) -> Function:
        return copy_name(wrapper, wrapped)

    return decorate


def functools_module(context: FacadeContext) -> Members:
    """Give functools."""
    from bascule.guest.facades.methods import PartialMethod, SingleDispatchMethod

    guards = context.guards

    def total_ordering(cls: Any) -> Any:
        # It sets methods: never on a class that outlives the run.
        if not guards.owns(cls):
            raise TypeError("total_ordering needs a class that this script defines")
        return functools.total_ordering(cls)

    def update_wrapper(wrapper: Function, wrapped: object, *_: object, **__: object) -> Function:
        if guards.owns(type(wrapper)) and type(name := getattr(wrapped, "__name__", None)) is str:
            # A callable object of the script's: the name is one of its own fields.
            object.__setattr__(wrapper, "__name__", name)
        return copy_name(wrapper, wrapped)

    def lru_cache(maxsize: int | Function | None = 128, typed: bool = False) -> Any:
        return functools.lru_cache(cast(int, maxsize), typed)

    def cache(user_function: Function, /) -> Any:
        return functools.lru_cache(maxsize=None)(user_function)

    return {
        "cache": cache,
        "lru_cache": lru_cache,
        "partial": Partial,
        "partialmethod": PartialMethod,
        "singledispatch": SingleDispatch,
        "singledispatchmethod": SingleDispatchMethod,
        "total_ordering": total_ordering,
        "update_wrapper": update_wrapper,
        "wraps": fresh(cast(FunctionType, _wraps)),
    }


def operator_module(context: FacadeContext) -> Members:
    """Give operator: attrgetter and methodcaller read as the script itself would."""
    read = context.guards.read

    def path(name: object) -> Function:
        # Exact type: a str subclass could lie about what it splits into (CVE-2026-34938).
        if type(name) is not str:
            raise TypeError("attribute name must be a string")
        parts = name.split(".")

        def get(value: Any) -> Any:
            for part in parts:
                value = read(value, part)
            return value

        return get

    def attrgetter(attr: object, /, *attrs: object) -> Function:
        getters = [path(name) for name in (attr, *attrs)]
        if len(getters) == 1:
            return getters[0]

        def get_all(value: object) -> tuple[Any, ...]:
            return tuple(get(value) for get in getters)

        return get_all

    def methodcaller(name: object, /, *args: object, **keywords: object) -> Function:
        if type(name) is not str:
            raise TypeError("method name must be a string")

        def call(value: object) -> Any:
            return read(value, name)(*args, **keywords)

        return call

    return {"attrgetter": attrgetter, "methodcaller": methodcaller}


def itertools_module(context: FacadeContext) -> Members:
    """Give itertools, with batched on every Python."""
    import itertools

    def batched(iterable: Iterable[object], n: int, *, strict: bool = False) -> Iterable[tuple[object, ...]]:
        if n < 1:
            raise ValueError("n must be at least one")
        iterator = iter(iterable)
        while batch := tuple(itertools.islice(iterator, n)):
            if strict and len(batch) != n:
                raise ValueError("batched(): incomplete batch")
            yield batch

    return {} if hasattr(itertools, "batched") else {"batched": batched}
