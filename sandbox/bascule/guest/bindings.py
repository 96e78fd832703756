"""Which names a script binds, and where: at module level, or anywhere at all.

The compiler declares the module-level ones global in the script function; preflight takes a name that is
bound anywhere, in any scope, as known. Both must see every binding form, so there is one walk for both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import msgspec


class Bindings(msgspec.Struct, frozen=True):
    """The names a script binds, in any scope.

    Attributes:
        anywhere: all of them.
        classes: names that only class statements and ``from`` imports bind: most likely classes.
        shared: names that code outside their own scope may change: declared nonlocal or global somewhere,
            or bound by a walrus, which may stand in a generator expression.
    """

    anywhere: frozenset[str]
    classes: frozenset[str]
    shared: frozenset[str]


def bound_by(node: ast.AST) -> Iterable[str]:
    """Return the names that ``node`` itself binds in its scope (children not included)."""
    if isinstance(node, ast.Name):
        return () if isinstance(node.ctx, ast.Load) else (node.id,)
    if isinstance(node, _BINDERS):
        return _bound_by_other(node)
    return ()


_BINDERS = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias, ast.ExceptHandler, ast.arg),
    *(ast.MatchAs, ast.MatchStar, ast.MatchMapping, ast.Global, ast.Nonlocal),
)


def _bound_by_other(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.alias(name=name, asname=asname):
            return (asname or name.partition(".")[0],)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.MatchMapping(rest=str(name)):
            return (name,)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.arg(arg=name):
            return (name,)
        case _:
            return ()


def survey_bindings(nodes: Iterable[ast.AST]) -> Bindings:
    """Summarise the bindings of all nodes of a script."""
    classes: set[str] = set()
    others: set[str] = set()
    shared: set[str] = set()
    for node in nodes:
        kind = type(node)
        if kind is ast.Import:
            others.update(name for alias in cast(ast.Import, node).names for name in bound_by(alias))
        elif kind is ast.ImportFrom:
            classes.update(name for alias in cast(ast.ImportFrom, node).names for name in bound_by(alias))
        elif kind is ast.ClassDef:
            classes.add(cast(ast.ClassDef, node).name)
        elif kind is ast.alias:
            continue
        elif kind is ast.Global or kind is ast.Nonlocal:
            shared.update(bound_by(node))
        elif kind is ast.NamedExpr:
            shared.update(bound_by(cast(ast.NamedExpr, node).target))
        else:
            others.update(bound_by(node))
    anywhere = classes | others | shared
    return Bindings(
        anywhere=frozenset(anywhere),
        classes=frozenset(classes - others),
        shared=frozenset(shared),
    )


def bound_in(body: Sequence[ast.AST]) -> set[str]:
    """Return the names bound in the scope of ``body`` itself, including by walrus in comprehensions there."""
    names: set[str] = set()
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        names.update(bound_by(node))
        pending.extend(_same_scope(node))
    return names


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes right below ``node`` that hold something; contexts, operators and ``pass`` do not."""
    for value in node.__dict__.values():
        if isinstance(value, ast.AST):
            if value._fields:
                yield value
        elif type(value) is list:
            for item in cast("list[object]", value):
                if isinstance(item, ast.AST) and item._fields:
                    yield item


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of ``node`` that run in the scope of ``node``."""
    if not isinstance(node, _SCOPES):
        yield from children(node)
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
    elif isinstance(node, ast.comprehension):
        # The target is the comprehension's own; a walrus in the rest binds outside.
        yield from (node.iter, *node.ifs)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        yield from node.args.defaults
        yield from (default for default in node.args.kw_defaults if default is not None)
        if not isinstance(node, ast.Lambda):
            yield from node.decorator_list


_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.comprehension, ast.arguments),
    *(ast.Name, ast.Constant),
)
"""Nodes of which not everything runs in the scope around, or that hold no node at all."""
