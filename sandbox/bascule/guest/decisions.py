"""Who decides about an attribute: the row of a known type, or the first class in the order of a script's own.

Reads class dictionaries and tables only, so no code of the script runs while a decision is made.
"""

from __future__ import annotations

from collections.abc import Iterable

from bascule.guest.classes import ScriptClasses
from bascule.guest.errors import ToolError
from bascule.guest.facade import Facade
from bascule.guest.rules.attributes import REPLACED
from bascule.guest.rules.syntax import SPECIAL_METHODS
from bascule.guest.tables import TOOL_ERROR, Tables, Verdict


class Decisions:
    """Decides from the tables and the script classes of one run."""

    def __init__(self, tables: Tables, classes: ScriptClasses) -> None:
        self.tables = tables
        self.classes = classes

    def of_instance(self, kind: type, name: str) -> tuple[Verdict, type]:
        """Decide what an object of exactly this type gives; with it, the class that decided."""
        row = self.tables.instances.get(kind)
        if row is not None:
            if (kind, name) in REPLACED:
                return "replaced", kind
            return ("given" if name in row or self.tables.is_open(kind) else "refused"), kind
        if kind is Facade:
            return ("refused" if name.startswith("_") else "given"), kind
        if self.classes.is_known(kind):
            verdict, owner = self.by_order(kind.__mro__, name)
            # What no class defines is an instance's own, or missing: Python says so itself.
            return ("given" if verdict == "absent" else verdict), owner
        if issubclass(kind, ToolError):
            return ("given" if name in TOOL_ERROR else "refused"), kind
        return "refused", object

    def by_order(self, order: Iterable[type], name: str, *, of_class: bool = False) -> tuple[Verdict, type]:
        """Decide by the first class in the order that defines the name, as Python would find it."""
        for owner in order:
            if name in owner.__dict__:
                if self.classes.is_known(owner):
                    return "given", owner
                return self.tables.of(
                    owner, name, self.tables.classes if of_class else self.tables.instances
                ), owner
        return "absent", object

    def is_lasting(self, kind: type, name: str, *, of_class: bool = False) -> bool:
        """Whether a name stays given: a class may lose one and uncover that of a known type behind it."""
        return not self.classes.is_known(kind) or all(
            self.by_order((owner,), name, of_class=of_class)[0] == "given"
            for owner in kind.__mro__
            if name in owner.__dict__
        )

    def of_super(self, order: Iterable[type], name: str, *, of_class: bool) -> tuple[Verdict, type]:
        """Decide what ``super()`` gives, special methods included."""
        verdict, owner = self.by_order(order, name, of_class=of_class)
        if verdict == "absent":
            return "given", owner
        if verdict == "refused" and name in SPECIAL_METHODS:
            if owner is object and name in ("__repr__", "__hash__"):
                return "replaced", owner
            if owner in self.tables.extensible or owner in self.tables.instances:
                return "given", owner
        return verdict, owner

    def is_super_safe(self, order: tuple[type, ...], name: str) -> bool:
        """Whether every class in the order that defines the name may give it, wherever super() starts."""
        return all(
            self.of_super((owner,), name, of_class=False)[0] == "given"
            for owner in order
            if name in owner.__dict__
        )
