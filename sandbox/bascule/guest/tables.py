"""The attribute tables of one run: the reviewed rows, and those of modules the script has imported.

Copied for each run, so that what one run admits is not there in the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bascule.guest.errors import SCRIPT_ERRORS
from bascule.guest.facade import Rows
from bascule.guest.rules.attributes import (
    ATTRIBUTES,
    CLASS_ATTRIBUTES,
    EXTENSIBLE,
    OPEN,
    REPLACED,
    WRITABLE,
    Row,
)

TOOL_ERROR: Row = frozenset({"add_note", "args", "kind", "message", "retryable", "suggestion"})
"""What a failure of a tool gives; all of it is data that the host sent."""

Verdict = Literal["given", "replaced", "refused", "absent"]


class Tables:
    """Answers what a known type gives.

    Attributes:
        instances: names of instances, by exact type.
        classes: names of class objects.
        writable: names that may be set on instances.
        extensible: what scripts may inherit from.
    """

    __slots__ = ("classes", "extensible", "instances", "writable")

    def __init__(self) -> None:
        self.instances: dict[type, Row] = dict(ATTRIBUTES)
        self.classes: dict[type, Row] = dict(CLASS_ATTRIBUTES)
        self.writable: dict[type, Row] = dict(WRITABLE)
        self.extensible: set[object] = {*EXTENSIBLE, *SCRIPT_ERRORS.values()}
        for error in SCRIPT_ERRORS.values():
            self.instances.setdefault(error, TOOL_ERROR)
            self.classes.setdefault(error, TOOL_ERROR)

    def admit(self, rows: Rows) -> None:
        """Take in the rows of an imported module. Rows never replace reviewed ones."""
        self.instances |= {kind: row for kind, row in rows.instances.items() if kind not in self.instances}
        self.classes |= {kind: row for kind, row in rows.classes.items() if kind not in self.classes}
        self.writable |= {kind: row for kind, row in rows.writable.items() if kind not in self.writable}
        self.extensible |= rows.extensible

    def of(self, owner: type, name: str, rows: Mapping[type, Row]) -> Verdict:
        """Decide a name that the known class ``owner`` defines, for a subclass the script made."""
        if (owner, name) in REPLACED:
            return "replaced"
        row = rows.get(owner)
        if row is None and owner not in rows:
            # Abstract bases and enumerations: their public names are all meant for subclasses.
            return "given" if owner in self.extensible and not name.startswith("_") else "refused"
        return "given" if row is not None and name in row else "refused"

    @staticmethod
    def is_open(kind: type) -> bool:
        """Whether instances are bags of names the script chose."""
        return kind in OPEN
