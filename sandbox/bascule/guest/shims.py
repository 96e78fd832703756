"""What stands in for objects and functions where the real ones may not be read: small, opaque, never kept."""

from __future__ import annotations

from collections.abc import Callable

from bascule.guest.formatting import without_addresses


def bound_to(function: Callable[..., object], first: object) -> Callable[..., object]:
    """Bind the first argument in a closure: functools.partial would show what it holds."""

    def bound(*args: object, **kwargs: object) -> object:
        return function(first, *args, **kwargs)

    return bound


def unbound(function: Callable[..., object]) -> Callable[..., object]:
    """Hide whose method a function is."""

    def free(*args: object, **kwargs: object) -> object:
        return function(*args, **kwargs)

    return free


def without_addresses_of(function: Callable[..., object]) -> Callable[..., object]:
    """Leave the addresses out of the text that a function gives."""

    def clean(*args: object, **kwargs: object) -> object:
        made = function(*args, **kwargs)
        return without_addresses(made) if type(made) is str else made

    return clean


def only_for(owner: type, function: Callable[..., object]) -> Callable[..., object]:
    """Make a method written in Python check what it is called on, as those written in C do."""

    def checked(first: object, /, *args: object, **kwargs: object) -> object:
        if not isinstance(first, owner):
            name = f"{owner.__name__}.{function.__name__}"
            raise TypeError(f"{name}() needs a {owner.__name__!r} object, not {type(first).__name__!r}")
        return function(first, *args, **kwargs)

    return checked


class Shim:
    """Carries a safe implementation under the name the code reads next; scripts never hold it."""

    def __init__(self, name: str, implementation: object) -> None:
        self.__dict__[name] = implementation


def annotation(evaluate: Callable[[], object], text: str) -> object:
    """Evaluate a class-level annotation; what cannot be evaluated yet is its text, as a forward reference."""
    try:
        return evaluate()
    except Exception:  # annotations may name anything: a class defined later, or one that exists nowhere
        return text
