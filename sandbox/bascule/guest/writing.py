"""What a script may change on an object, decided by its exact type.

Its own objects freely; of all others, the few names that `rules` list as writable. As for reading, no code of
the script runs while a decision is made.
"""

from __future__ import annotations

import types

from bascule.guest.calls import ToolCall
from bascule.guest.classes import ScriptClasses
from bascule.guest.decisions import Decisions
from bascule.guest.rules.syntax import attribute_problem
from bascule.guest.tables import Tables
from bascule.guest.withheld import Withheld


def check_name(name: object) -> None:
    """Check a name that was not written in the script's text.

    Raises:
        TypeError: it is no text.
        AttributeError: no object gives it to scripts.
    """
    if type(name) is not str:
        raise TypeError(f"attribute name must be string, not {type(name).__name__!r}")
    if problem := attribute_problem(name):
        raise AttributeError(problem)


class WriteGuard:
    """The guard of one run that stands before assignments to attributes.

    Args:
        namespace: the globals of the script; functions defined in it carry attributes of the script's own.
    """

    def __init__(
        self, tables: Tables, classes: ScriptClasses, decisions: Decisions, namespace: dict[str, object]
    ) -> None:
        self._tables = tables
        self._classes = classes
        self._decisions = decisions
        self._namespace = namespace

    def check(self, value: object, name: str) -> object:
        """Return the object to set ``name`` on.

        Raises:
            AttributeError: scripts may not change it.
        """
        kind = type(value)
        if kind in self._classes.plain or self._tables.is_open(kind):
            return value
        if name in self._tables.writable.get(kind, ()):
            return value
        if type(value) is Withheld:
            value.use()
        if isinstance(value, type) and issubclass(kind, type):
            if self._classes.is_known(value):
                return value
        elif self._classes.is_known(kind):
            verdict, owner = self._decisions.by_order(kind.__mro__, name)
            if (
                verdict == "absent"
                or self._classes.is_known(owner)
                or name in self._tables.writable.get(owner, ())
            ):
                return value
        elif kind is types.FunctionType and value.__globals__ is self._namespace:  # type: ignore[attr-defined]
            return value
        raise _read_only(value, name)

    def check_delete(self, value: object, name: str) -> object:
        """Return the object to delete ``name`` from; classes keep what they have.

        Raises:
            AttributeError: scripts may not delete it.
        """
        if isinstance(value, type):
            # A name that a class loses could uncover one of a known type behind decisions already made.
            raise _read_only(value, name)
        return self.check(value, name)

    def set_field(self, value: object, name: str, content: object) -> None:
        """``object.__setattr__`` for scripts: past what a frozen dataclass refuses, not past the guards."""
        check_name(name)
        if isinstance(value, type):
            raise TypeError(f"can't apply this __setattr__ to class {value.__name__!r}")
        object.__setattr__(self.check(value, name), name, content)


def _read_only(value: object, name: str) -> AttributeError:
    if type(value) is ToolCall:
        return AttributeError(value.missing_await())
    what = f"class {value.__name__!r}" if isinstance(value, type) else f"{type(value).__name__!r} object"
    return AttributeError(f"{what} is read-only here: cannot change {name!r}")
