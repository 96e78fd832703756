"""Which names a script binds, and where: at module level, or anywhere at all.

The compiler declares the module-level ones global in the script function; preflight takes a name that is
bound anywhere, in any scope, as known. Both must see every binding form, so there is one walk for both.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that ``node`` itself binds in its scope (children not included)."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.arg(arg=name):
            yield name
        case _:
            return


def bound_anywhere(tree: ast.AST) -> set[str]:
    """Return every name bound in any scope of ``tree``."""
    return {name for node in ast.walk(tree) for name in bound_by(node)}


def bound_in_module(tree: ast.Module) -> set[str]:
    """Return the names bound in the module's own scope, including by walrus in comprehensions there."""
    names: set[str] = set()
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        names.update(bound_by(node))
        pending.extend(_same_scope(node))
    return names


def _same_scope(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children of ``node`` that run in the scope of ``node``."""
    if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
        yield from (default for default in node.args.defaults)
        yield from (default for default in node.args.kw_defaults if default is not None)
        if not isinstance(node, ast.Lambda):
            yield from node.decorator_list
    elif isinstance(node, ast.ClassDef):
        yield from (*node.decorator_list, *node.bases, *node.keywords)
    elif isinstance(node, ast.comprehension):
        # The target is the comprehension's own; a walrus in the rest binds outside.
        yield from (node.iter, *node.ifs)
    elif isinstance(node, ast.arguments):
        return
    else:
        yield from ast.iter_child_nodes(node)
