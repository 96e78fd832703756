"""One walk over the parsed script, shared by everything that looks at the whole of it.

Does not recurse, so no nesting can exhaust it; says when the tree is deeper than the compiler accepts.
"""

from __future__ import annotations

import ast
from typing import cast

import msgspec

MAX_DEPTH = 500
"""Deepest nesting of the syntax tree; each ``elif``, operator or attribute of a chain counts as a level.

Measured on CPython 3.11, 3.13 and 3.14 with a stack of 8 MiB: parser, transformer and compiler take chains of
every kind of 5,000 levels, or refuse them with a RecursionError, and crash at none of them.
"""

MAX_BLOCKS = 20
"""Most blocks and comprehensions nested in one function, CPython's own limit (CO_MAXBLOCKS).

CPython 3.12 and 3.13 compile comprehensions into the function around them without counting them, and crash
above it; measured with 3.12.1 and 3.13.5.
"""

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.GeneratorExp, ast.ClassDef)
_BLOCKS = (
    *(ast.ListComp, ast.SetComp, ast.DictComp),
    *(ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler),
)

_UNREAD = frozenset({"annotation", "returns"})
_ASYNC = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a script that can run.

    Attributes:
        nodes: all of them, outer ones before inner ones; annotations are left out.
        parents: the node around each.
        has_async: whether there is any asynchronous syntax, which makes tool calls give awaitables.
        too_deep: a node below MAX_DEPTH, or None.
    """

    nodes: list[ast.AST]
    parents: dict[ast.AST, ast.AST]
    has_async: bool
    too_deep: ast.AST | None


def outline(tree: ast.Module) -> Outline:
    """Walk over a script."""
    nodes: list[ast.AST] = []
    parents: dict[ast.AST, ast.AST] = {}
    has_async = False
    level: list[ast.AST] = [tree]
    annotations: set[ast.AST] = set()
    for _ in range(MAX_DEPTH):
        below: list[ast.AST] = []
        for node in level:
            unread = node in annotations
            if not unread:
                nodes.append(node)
                if isinstance(node, _ASYNC) or (isinstance(node, ast.comprehension) and node.is_async):
                    has_async = True
            for name, value in node.__dict__.items():
                if isinstance(value, ast.AST):
                    if value._fields:  # contexts, operators and `pass` hold nothing
                        parents[value] = node
                        below.append(value)
                        if unread or name in _UNREAD:
                            annotations.add(value)
                elif type(value) is list:
                    for item in cast("list[object]", value):
                        if isinstance(item, ast.AST) and item._fields:
                            parents[item] = node
                            below.append(item)
                            if unread:
                                annotations.add(item)
        if not below:
            return Outline(nodes=nodes, parents=parents, has_async=has_async, too_deep=None)
        level = below
    deep = next((node for node in level if hasattr(node, "lineno")), tree)
    return Outline(nodes=nodes, parents=parents, has_async=has_async, too_deep=deep)


def too_many_blocks(whole: Outline) -> ast.AST | None:
    """Return the first node with too many blocks of its function around it, or None."""
    blocks = [node for node in whole.nodes if isinstance(node, _BLOCKS)]
    if len(blocks) <= MAX_BLOCKS // 2:
        return None
    for node in blocks:
        depth = 0
        around: ast.AST | None = node
        while around is not None and not isinstance(around, _SCOPES):
            depth += _blocks_of(around)
            around = whole.parents.get(around)
        if depth > MAX_BLOCKS:
            return node
    return None


def _blocks_of(node: ast.AST) -> int:
    if isinstance(node, ast.With | ast.AsyncWith):
        return len(node.items)
    if isinstance(node, ast.Try):
        return bool(node.handlers) + bool(node.finalbody)
    return isinstance(node, _BLOCKS)
