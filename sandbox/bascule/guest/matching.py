"""Class and value patterns, vetted: CPython reads the attributes, the guards say first whether it may."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

_SELF_MATCHING: tuple[type, ...] = (
    bool,
    bytearray,
    bytes,
    dict,
    float,
    frozenset,
    int,
    list,
    set,
    str,
    tuple,
)
"""Types whose one positional sub-pattern matches the subject itself (PEP 634), subclasses included."""

Check = Callable[[object, str], object]


class Holder:
    """Carries the value that a dotted name in a pattern is compared with."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class _VettedClass(type):
    """Metaclass of stand-ins for the class of a pattern."""

    real: type
    names: tuple[str, ...]
    check: Callable[[object, str], object]

    def __instancecheck__(cls, instance: object) -> bool:
        """Whether the subject is an instance and gives every attribute that the pattern reads."""
        if not isinstance(instance, cls.real):
            return False
        for name in cls.names:
            try:
                vetted = cls.check(instance, name)
            except AttributeError:
                return False
            if vetted is not instance:
                raise AttributeError(f"{name!r} of {type(instance).__name__!r} cannot be read by a pattern")
        return True


class Matcher:
    """Makes the vetted classes of one run.

    Args:
        check: the guard of attribute reads.
    """

    def __init__(self, check: Check) -> None:
        self._check = check
        self._made: dict[tuple[type, tuple[str, ...], tuple[str, ...]], type] = {}

    def matchable(self, cls: object, keywords: tuple[str, ...], positional: int) -> object:
        """Return what stands in for ``cls`` in a pattern with these keywords and number of positionals.

        Raises:
            TypeError: it is no class, or has too few positional names.
        """
        if not isinstance(cls, type):
            raise TypeError("called match pattern must be a class")
        if not keywords and not positional:
            return cls
        if keywords and cls in _SELF_MATCHING:
            raise TypeError(f"a pattern of {cls.__name__} takes no keywords: test the value with `if`")
        found: object = getattr(cls, "__match_args__", None) if positional else ()
        if found is None and positional == 1 and not keywords and issubclass(cls, _SELF_MATCHING):
            return cls
        arguments = cast("tuple[object, ...]", found) if isinstance(found, tuple) else ()
        if len(arguments) < positional:
            accepted = len(arguments)
            raise TypeError(
                f"{cls.__name__}() accepts {accepted} positional sub-patterns ({positional} given)"
            )
        names = tuple(
            name for name in arguments[:positional] if type(name) is str and not name.startswith("__")
        )
        if len(names) < positional:
            raise TypeError(f"{cls.__name__}.__match_args__ must be plain names")
        key = (cls, keywords, names)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(*key)
        return made

    def _make(self, cls: type, keywords: tuple[str, ...], positional: tuple[str, ...]) -> type:
        made = _VettedClass(cls.__name__, (), {"__match_args__": positional, "__slots__": ()})
        made.real, made.names = cls, (*positional, *keywords)
        type.__setattr__(made, "check", staticmethod(self._check))
        return made
