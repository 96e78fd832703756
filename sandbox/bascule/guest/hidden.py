"""Names and nodes that only the compiler can write.

Every helper of the transformed code is a global, and every temporary a variable, whose name is not an
identifier. No binding form of the language, reviewed or forgotten, can create or shadow such a name, and no
script can spell it. This module names them once and builds the few nodes that use them.
"""

from __future__ import annotations

import ast
from typing import TypeVar, cast

TYPE = "<type>"  # the real type(), for exact tests
PLAIN = "<plain>"  # set of script classes whose attributes are all the script's own
EXACT = "<exact>"  # frozenset of types whose text is plain data
CHECK = "<check>"  # check(object, name) -> what to read `name` from, or AttributeError
WRITE = "<write>"  # write(object, name) -> object, or AttributeError
DELETE = "<delete>"  # delete(object, name) -> object, or AttributeError
SUPER = "<super>"  # read a name from a super object
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
TEXT = "<str>"  # str() of one value, without memory addresses
PERCENT = "<percent>"  # text % values, without memory addresses
MATCHABLE = "<matchable>"  # class pattern -> class that vets the subject first
GUARDS = "<guards>"  # the guards themselves, for the next script of a session
HOLDER = "<holder>"  # value pattern -> object whose `value` is compared
SCRIPT = "<script>"  # the function the script becomes

TEMPORARY = "<t>"
INNER_TEMPORARY = "<u>"  # the same inside comprehensions, where it is a closure variable

_Node = TypeVar("_Node", bound=ast.AST)


def allowed_set(name: str) -> str:
    """Return the name of the global set of types that give the attribute ``name``."""
    return f"<ok:{name}>"


def place(node: _Node, origin: ast.AST) -> _Node:
    """Give ``node`` (not its children) the position of ``origin``, so that errors point into the script."""
    return ast.copy_location(node, origin)


def load(name: str, origin: ast.AST) -> ast.Name:
    """Build a read of a hidden name."""
    return place(ast.Name(name, ast.Load()), origin)


def store(name: str, origin: ast.AST) -> ast.Name:
    """Build a write of a hidden name."""
    return place(ast.Name(name, ast.Store()), origin)


def constant(value: str | int | tuple[str, ...] | None, origin: ast.AST) -> ast.Constant:
    """Build a constant."""
    return place(ast.Constant(cast(str, value)), origin)


def call(name: str, origin: ast.AST, *arguments: ast.expr) -> ast.Call:
    """Build a call of a hidden helper."""
    return place(ast.Call(load(name, origin), list(arguments), []), origin)


def if_type_in(subject: ast.expr, again: ast.expr, types: str, other: ast.expr) -> ast.IfExp:
    """Build ``again if type(subject) in types else other``."""
    test = ast.Compare(call(TYPE, subject, subject), [ast.In()], [load(types, subject)])
    return place(ast.IfExp(place(test, subject), again, other), subject)
