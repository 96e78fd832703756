"""What an object gives to a script, decided by its exact type.

The order is: the name itself (some are refused on every object), then the class. A type with a row gives the
names of its row. An object of a script's own class is looked up as Python would: the first class that defines
the name decides, freely if the script wrote it, by its row if it is a known type. Everything else gives
nothing. Objects are never compared, shown, hashed or asked here: only ``type(x)`` and class dictionaries are
read, so no code of the script runs while a decision is made.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

from bascule.guest import hidden
from bascule.guest.advice import missing_attribute
from bascule.guest.classes import METACLASSES, ScriptClasses, stable_object_repr
from bascule.guest.decisions import Decisions
from bascule.guest.facade import Rows
from bascule.guest.formatting import EXACT, SafeFormatter, percent, percent_in_place, shown
from bascule.guest.reading import About
from bascule.guest.rules.attributes import REPLACED
from bascule.guest.rules.syntax import SPECIAL_METHODS, attribute_problem
from bascule.guest.shims import Shim, annotation, bound_to, unbound
from bascule.guest.specials import Specials
from bascule.guest.tables import Tables, Verdict
from bascule.guest.withheld import Withheld, see, see_inside
from bascule.guest.writing import WriteGuard, check_name

_super_self = super.__dict__["__self__"].__get__
_super_class = super.__dict__["__thisclass__"].__get__
_super_self_class = super.__dict__["__self_class__"].__get__


class Guards:
    """The guards of one run.

    Args:
        replacements: what to read instead of a replaced class method, by class and name.
        namespace: the globals of the script; functions defined in it carry attributes of the script's own.
    """

    def __init__(
        self,
        *,
        replacements: Mapping[tuple[type, str], Callable[..., object]],
        namespace: dict[str, object],
    ) -> None:
        self.tables = Tables()
        self.classes = ScriptClasses(self.tables, self._admit_plain)
        self._decisions = Decisions(self.tables, self.classes)
        self.formatter = SafeFormatter(self.read)
        self._namespace = namespace
        self._replacements = dict(replacements)
        self._allowed: dict[str, set[type]] = {}
        self._class_names: dict[str, set[type]] = {}
        self._super_names: dict[str, set[type]] = {}
        self._about = About(self.classes, namespace)
        self._writing = WriteGuard(self.tables, self.classes, self._decisions, namespace)
        self._specials = Specials(self.tables, self.classes, self._writing.set_field)

    # ------------------------------------------------------------ the helpers of the transformed code

    def globals(self, names: hidden.GuardedNames) -> dict[str, object]:
        """Return the hidden globals; ``names`` are those the code has sets for."""
        return {
            hidden.TYPE: type,
            hidden.PLAIN: self.classes.plain,
            hidden.EXACT: EXACT,
            hidden.CHECK: self.check,
            hidden.WRITE: self._writing.check,
            hidden.UPDATE: self.check_update,
            hidden.DELETE: self._writing.check_delete,
            hidden.SUPER: self.check_super,
            hidden.SPECIAL: self._specials.read,
            hidden.ABOUT: self._about.read,
            hidden.CLASS: self.classes.register,
            hidden.FINISH: self.classes.finish,
            hidden.BASE: self.classes.base,
            hidden.ANNOTATION: annotation,
            hidden.EXCEPTION: Exception,
            hidden.SHOWN: shown,
            hidden.PERCENT: percent,
            hidden.PERCENT_IN_PLACE: percent_in_place,
            hidden.TEXT: frozenset({str}),
            hidden.METACLASSES: METACLASSES,
            hidden.SEE: see,
            hidden.SEE_INSIDE: see_inside,
            **{hidden.allowed_set(name): self._allowed_types(name) for name in names.attributes},
            **{hidden.class_set(name): self._class_names.setdefault(name, set()) for name in names.classes},
            **{hidden.super_set(name): self._super_names.setdefault(name, set()) for name in names.supers},
        }

    def _allowed_types(self, name: str) -> set[type]:
        allowed = self._allowed.get(name)
        if allowed is None:
            allowed = {
                kind
                for kind, row in self.tables.instances.items()
                if name in row and (kind, name) not in REPLACED
            }
            allowed |= self.classes.plain
            self._allowed[name] = allowed
        return allowed

    def _admit_plain(self, cls: type) -> None:
        for allowed in self._allowed.values():
            allowed.add(cls)

    # ------------------------------------------------------------ what facades need

    def read(self, value: object, name: str, /) -> Any:
        """Return an attribute exactly as ``value.name`` written in the script would; or raise."""
        if type(name) is not str:
            raise TypeError(f"attribute name must be string, not {type(name).__name__!r}")
        if name in About.NAMES:
            return self._about.read(value, name)
        if name in SPECIAL_METHODS:
            return self._specials.read(value, name)
        if problem := attribute_problem(name):
            raise AttributeError(problem)
        return getattr(self.check(value, name), name)

    def write(self, value: object, name: str, content: object, /) -> None:
        """Set an attribute exactly as ``value.name = content`` written in the script would; or raise."""
        if type(name) is not str or name not in SPECIAL_METHODS:
            check_name(name)
        setattr(self._writing.check(value, name), name, content)

    def delete(self, value: object, name: str, /) -> None:
        """Delete an attribute exactly as ``del value.name`` written in the script would; or raise."""
        check_name(name)
        delattr(self._writing.check_delete(value, name), name)

    @staticmethod
    def defines(value: object, name: str) -> bool:
        """Whether the class of an object, a class itself or its metaclass defines a special name."""
        classes = [*type(value).__mro__, *(value.__mro__ if isinstance(value, type) else ())]
        return any(name in cls.__dict__ for cls in classes)

    def owns(self, cls: type, /) -> bool:
        """Whether the script made this class, by a class statement or through a facade."""
        return self.classes.is_known(cls)

    def number(self, value: object, /) -> int:
        """Return what ``id(value)`` gives the script."""
        return self.classes.number(value)

    def number_of(self, value: object, /) -> int | None:
        """Return what ``id(value)`` gave the script, None when it never asked."""
        return self.classes.number_if_asked(value)

    def view(self, cls: type, /) -> object:
        """Return a class as the script may hold it: itself, or what stands for it."""
        return self.classes.view(cls)

    def adopt(self, cls: type, /) -> None:
        """Count a class that a facade made for the script among the script's own."""
        self.classes.adopt(cls)

    def admit(self, rows: Rows, /) -> None:
        """Take in the attribute rows of a module that is about to be given to the script."""
        self.tables.admit(rows)

    # ------------------------------------------------------------ reading

    def check(self, value: object, name: str) -> object:
        """Return the object to read ``name`` from.

        Raises:
            AttributeError: the object does not give the name.
        """
        kind = type(value)
        allowed = self._allowed.get(name)
        if allowed is not None and kind in allowed:
            return value
        if type(value) is Withheld:
            value.use()
        if isinstance(value, type) and issubclass(kind, type):
            return self._check_class(value, name)
        verdict, owner = self._decisions.of_instance(kind, name)
        if verdict == "given":
            if allowed is not None and self._decisions.is_lasting(kind, name):
                allowed.add(kind)
            return value
        if verdict == "replaced":
            return Shim(name, self._replacement(owner, name, value))
        if kind is types.FunctionType and self._is_own_name(value, name):
            return value
        raise missing_attribute(value, name, self.tables.instances.get(kind, frozenset()))

    def _check_class(self, cls: type, name: str) -> object:
        given = self._class_names.setdefault(name, set())
        if cls in given:
            return cls
        row = self.tables.classes.get(cls)
        verdict: Verdict
        owner = cls
        if row is not None:
            replaced = next((base for base in cls.__mro__ if (base, name) in REPLACED), None)
            if replaced is not None:
                verdict, owner = "replaced", cls if (cls, name) in REPLACED else replaced
            else:
                verdict = "given" if name in row else "refused"
        elif self.classes.is_known(cls):
            verdict, owner = self._decisions.by_order(cls.__mro__, name, of_class=True)
        else:
            verdict = "refused"
        if verdict == "given":
            if row is not None or self._decisions.is_lasting(cls, name, of_class=True):
                given.add(cls)
            return cls
        if verdict == "replaced":
            return Shim(name, self._replacement(owner, name, None))
        raise missing_attribute(cls, name, row or frozenset())

    def _replacement(self, owner: type, name: str, value: object) -> Callable[..., object]:
        """Return what reading a replaced name gives; ``value`` is None when it is read from the class."""
        if owner is str:
            function = self.formatter.text_format if name == "format" else self.formatter.text_format_map
            return unbound(function) if value is None else bound_to(function, value)
        replacement: Callable[..., object] = self._replacements[owner, name]
        return replacement

    def _is_own_name(self, function: object, name: str) -> bool:
        """Whether a function of the script carries an attribute the script has set."""
        return (
            isinstance(function, types.FunctionType)
            and function.__globals__ is self._namespace
            and name in function.__dict__
        )

    def check_update(self, value: object, name: str) -> object:
        """Return the object whose ``name`` an augmented assignment reads and sets.

        Raises:
            AttributeError: scripts may not read it, or not change it.
        """
        return self.check(self._writing.check(value, name), name)

    # ------------------------------------------------------------ super and special methods

    def check_super(self, bound: super, name: str) -> object:
        """Return the object to read ``super().name`` from.

        Raises:
            AttributeError: what comes next in the order of classes does not give the name.
        """
        self_class: type = _super_self_class(bound)
        value: object = _super_self(bound)
        of_class = isinstance(value, type)
        order = self_class.__mro__
        verdict, owner = self._decisions.of_super(
            order[order.index(_super_class(bound)) + 1 :], name, of_class=of_class
        )
        if verdict == "given":
            if not of_class and self._decisions.is_super_safe(order, name):
                self._super_names.setdefault(name, set()).add(self_class)
            return bound
        if verdict == "replaced":
            if owner is object:
                stand_in = self.classes.order if name == "__hash__" else stable_object_repr
                return Shim(name, lambda: stand_in(value))
            return Shim(name, self._replacement(owner, name, None if of_class else value))
        raise AttributeError(f"super() does not give {name!r} of {owner.__name__!r} to scripts")
