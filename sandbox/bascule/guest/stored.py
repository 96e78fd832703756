"""How objects are read where no code of the script may run: from where the interpreter keeps what they hold.

A class of the script cannot lie about itself here: nothing asks it.
"""

from __future__ import annotations

import types
from typing import Any, cast


def isinstance_of(kind: type, base: type) -> bool:
    """Whether ``kind`` really derives from ``base``; classes cannot pretend as with isinstance()."""
    return base in type.__dict__["__mro__"].__get__(kind)


def static(kind: type, name: str) -> object:
    """Read a class attribute from the dictionaries of the class and its bases, running no descriptor."""
    for base in type.__dict__["__mro__"].__get__(kind):
        members = type.__dict__["__dict__"].__get__(base)
        if name in members:
            return members[name]
    return None


def dataclass_fields(kind: type) -> list[str] | None:
    """Return the names of the fields of a dataclass, or None for any other class."""
    fields = static(kind, "__dataclass_fields__")
    if type(fields) is not dict:
        return None
    # _FIELD marks real fields; ClassVar and InitVar are pseudo-fields.
    return [
        name
        for name, field in cast(dict[str, Any], fields).items()
        if type(name) is str and getattr(getattr(field, "_field_type", None), "name", "") == "_FIELD"
    ]


def stored(value: object, kind: type, name: str) -> object:
    """Return what an object stores under a name: its dictionary, then its slots, then its class."""
    try:
        fields: object = object.__getattribute__(value, "__dict__")
    except AttributeError:
        fields = None
    if type(fields) is dict and name in fields:
        return cast(dict[str, object], fields)[name]
    member = static(kind, name)
    if type(member) is types.MemberDescriptorType:
        try:
            return member.__get__(value, kind)
        except AttributeError:
            return None
    return member
