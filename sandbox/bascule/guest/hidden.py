"""Names and nodes that only the compiler can write.

Every helper of the transformed code is a global, and every temporary a variable, whose name is not an
identifier. No binding form of the language, reviewed or forgotten, can create or shadow such a name, and no
script can spell it. This module names them once and builds the few nodes that use them.
"""

from __future__ import annotations

import ast
from typing import TypeVar, cast

import msgspec

TYPE = "<type>"  # the real type(), for exact tests
PLAIN = "<plain>"  # set of script classes whose attributes are all the script's own
EXACT = "<exact>"  # frozenset of types whose text is plain data
CHECK = "<check>"  # check(object, name) -> what to read `name` from, or AttributeError
WRITE = "<write>"  # write(object, name) -> object, or AttributeError
UPDATE = "<update>"  # update(object, name) -> object, or AttributeError: reads, then writes
DELETE = "<delete>"  # delete(object, name) -> object, or AttributeError
SUPER = "<super>"  # super(super object, name) -> what to read `name` from, or AttributeError
SPECIAL = "<special>"  # read a special method from a class
ABOUT = "<about>"  # read __name__, __class__, __doc__ ... of anything
CLASS = "<class>"  # innermost class decorator: the class is the script's
FINISH = "<finish>"  # outermost class decorator: text and hash
BASE = "<base>"  # checks one base of a class statement
ANNOTATION = "<annotation>"  # evaluates a class-level annotation, never raises
IMPORT = "<import>"  # import x.y
IMPORT_FROM = "<import from>"  # from x import y
EXCEPTION = "<Exception>"  # what a bare except catches
SHOWN = "<shown>"  # value whose text has no memory addresses
PERCENT = "<percent>"  # text % values, without memory addresses
PERCENT_IN_PLACE = "<percent in place>"  # what `text %= values` binds, without memory addresses
TEXT = "<text>"  # the type of texts, in a set
MATCHABLE = "<matchable>"  # class pattern -> class that vets the subject first
GUARDS = "<guards>"  # the guards themselves, for the next script of a session
HOLDER = "<holder>"  # value pattern -> object whose `value` is compared
SCRIPT = "<script>"  # the function the script becomes

TEMPORARY = "<t>"
TARGET, KEY = "<target>", "<key>"  # parts of the target of `x.y %= ...`, which are evaluated once
INNER_TEMPORARY = "<u>"  # the same inside comprehensions, where it is a closure variable

METACLASSES = "<metaclasses>"  # frozenset of metaclasses whose classes hash by identity
SEE = "<see>"  # what stands beside `is`, in a rehearsal: returned, unless it is withheld
SEE_INSIDE = "<see inside>"  # what is matched, in a rehearsal: returned, unless a withheld result is in it
RECEIVER = "<self>"  # whether the first argument of this method is of a plain script class

_Node = TypeVar("_Node", bound=ast.AST)
_LOAD, _STORE, _IN = ast.Load(), ast.Store(), ast.In()


def allowed_set(name: str) -> str:
    """Return the name of the global set of types that give the attribute ``name``."""
    return f"<ok:{name}>"


def class_set(name: str) -> str:
    """Return the name of the global set of class objects that give ``name``."""
    return f"<class:{name}>"


def super_set(name: str) -> str:
    """Return the name of the global set of types on which ``super().name`` is safe wherever it starts."""
    return f"<super:{name}>"


def place(node: _Node, origin: ast.AST) -> _Node:
    """Give ``node`` (not its children) the position of ``origin``, so that errors point into the script."""
    there = origin.__dict__
    node.__dict__.update(
        lineno=there["lineno"],
        col_offset=there["col_offset"],
        end_lineno=there["end_lineno"],
        end_col_offset=there["end_col_offset"],
    )
    return node


def load(name: str, origin: ast.AST) -> ast.Name:
    """Build a read of a hidden name."""
    return place(ast.Name(name, _LOAD), origin)


def store(name: str, origin: ast.AST) -> ast.Name:
    """Build a write of a hidden name."""
    return place(ast.Name(name, _STORE), origin)


def constant(value: str | int | tuple[str, ...] | None, origin: ast.AST) -> ast.Constant:
    """Build a constant."""
    return place(ast.Constant(cast(str, value)), origin)


def call(name: str, origin: ast.AST, *arguments: ast.expr) -> ast.Call:
    """Build a call of a hidden helper."""
    return place(ast.Call(load(name, origin), list(arguments), []), origin)


def type_in(subject: ast.expr, types: str) -> ast.expr:
    """Build ``type(subject) in types``."""
    test = ast.Compare(call(TYPE, subject, subject), [_IN], [load(types, subject)])
    return place(test, subject)


def choice(test: ast.expr, value: ast.expr, other: ast.expr) -> ast.IfExp:
    """Build ``value if test else other``."""
    return place(ast.IfExp(test, value, other), value)


def both(first: ast.expr, second: ast.expr) -> ast.BoolOp:
    """Build ``first and second``."""
    return place(ast.BoolOp(ast.And(), [first, second]), first)


def is_in(subject: ast.expr, members: str) -> ast.expr:
    """Build ``subject in members``."""
    return place(ast.Compare(subject, [_IN], [load(members, subject)]), subject)


class GuardedNames(msgspec.Struct, frozen=True, kw_only=True):
    """Attribute names for which compiled code reads sets of types.

    Attributes:
        attributes: names read of objects.
        classes: names read of what is most likely a class.
        supers: names read of ``super()`` in methods.
    """

    attributes: frozenset[str] = frozenset()
    classes: frozenset[str] = frozenset()
    supers: frozenset[str] = frozenset()
