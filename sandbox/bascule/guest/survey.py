"""What preflight knows of a script before it runs: parents, bindings, tools, and what tools return.

Only certainties: a name counts as bound when it is bound anywhere, and as meaning something only when it is
bound exactly once.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from bascule.guest.bindings import bound_by
from bascule.guest.outline import Outline
from bascule.guest.schemas import Schema, fields, literal, only_type
from bascule.guest.source import Source
from bascule.wire import ScriptError, ToolStub

_CATCH_ALL = frozenset({"Exception", "BaseException"})


class Survey:
    """One script and its tools, looked at from above.

    Attributes:
        tools: stubs by dotted name, without those whose first part the script binds itself.
        roots: names under which tools are reached.
        given: the same, with those that the script binds itself.
        known: names that earlier scripts of the session have left.
        findings: everything that is certainly wrong.
    """

    def __init__(
        self, source: Source, whole: Outline, stubs: Sequence[ToolStub], known: Collection[str] = ()
    ) -> None:
        self.known = known
        self.source = source
        self.uses_async = whole.has_async
        self.findings: list[ScriptError] = []
        self.nodes = whole.nodes
        self.parents = whole.parents
        self.binders: dict[str, list[ast.AST]] = defaultdict(list)
        self.loads: dict[str, list[ast.Name]] = defaultdict(list)
        for node in whole.nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.loads[node.id].append(node)
            else:
                for name in bound_by(node):
                    self.binders[name].append(node)
        self.tools = {stub.name: stub for stub in stubs if stub.name.partition(".")[0] not in self.binders}
        self.given = {stub.name.partition(".")[0] for stub in stubs}
        self.roots = {name.partition(".")[0] for name in self.tools}

    def find(self, node: ast.AST, kind: str, message: str, suggestion: str | None = None) -> None:
        """Note that something is certainly wrong."""
        self.findings.append(self.source.error_at(node, kind, message, suggestion=suggestion))

    # ------------------------------------------------------------ tools

    def tool_of(self, node: ast.AST) -> ToolStub | None:
        """Return the tool that an expression names, or None."""
        name = self.dotted(node)
        return None if name is None else self.tools.get(name)

    def dotted(self, node: ast.AST) -> str | None:
        """Return ``a.b.c`` for a chain of attributes on a name, or None for anything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        return ".".join([node.id, *reversed(parts)])

    def calls(self) -> Iterator[tuple[ast.Call, ToolStub]]:
        """Yield every direct call of a tool."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and (stub := self.tool_of(node.func)) is not None:
                yield node, stub

    # ------------------------------------------------------------ meaning of names

    def only_value(self, name: str) -> tuple[ast.AST | None, bool]:
        """Return the expression a name always stands for, and whether it stands for its items instead."""
        binders = self.binders.get(name, [])
        if len(binders) != 1 or not isinstance(binders[0], ast.Name):
            return None, False
        target = binders[0]
        match self.parents.get(target):
            case ast.Assign(targets=[only], value=value) if only is target:
                return value, False
            case ast.AnnAssign(target=only, value=ast.expr() as value) if only is target:
                return value, False
            case ast.NamedExpr(value=value):
                return value, False
            case ast.For(target=only, iter=source) | ast.comprehension(target=only, iter=source) if (
                only is target
            ):
                return source, True
            case _:
                return None, False

    def returned(self, node: ast.AST, depth: int = 0) -> tuple[Schema, Schema, str] | None:
        """Return the schema of an expression, the root of its references, and the tool it comes from."""
        if depth > 12:
            return None
        if isinstance(node, ast.Await):
            node = node.value
            if not isinstance(node, ast.Call):
                return None
        elif isinstance(node, ast.Call) and self.uses_async:
            return None
        if isinstance(node, ast.Call):
            stub = self.tool_of(node.func)
            if stub is None or stub.returns is None:
                return None
            return stub.returns, stub.returns, stub.name
        if isinstance(node, ast.Name):
            value, of_items = self.only_value(node.id)
            found = None if value is None else self.returned(value, depth + 1)
            return self._items(found) if of_items else found
        if isinstance(node, ast.Subscript):
            return self._item(self.returned(node.value, depth + 1), literal(node.slice))
        return None

    @staticmethod
    def _items(found: tuple[Schema, Schema, str] | None) -> tuple[Schema, Schema, str] | None:
        if found is None:
            return None
        kind, schema = only_type(found[0], found[1])
        items: Any = schema.get("items")
        return (
            (cast(Schema, items), found[1], found[2]) if kind == "array" and isinstance(items, dict) else None
        )

    @classmethod
    def _item(
        cls, found: tuple[Schema, Schema, str] | None, key: object
    ) -> tuple[Schema, Schema, str] | None:
        if found is None:
            return None
        if isinstance(key, int):
            return cls._items(found)
        known = fields(found[0], found[1])
        if isinstance(key, str) and known is not None and key in known:
            return known[key], found[1], found[2]
        return None

    # ------------------------------------------------------------ surroundings

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around ``node``, innermost first."""
        current = self.parents.get(node)
        while current is not None:
            yield current
            current = self.parents.get(current)

    def is_caught(self, node: ast.AST, *exceptions: str) -> bool:
        """Whether a try statement around ``node`` catches one of the exceptions or all, or it never runs."""
        wanted = _CATCH_ALL | set(exceptions)
        inner = node
        for outer in self.ancestors(node):
            if isinstance(outer, ast.If) and inner in outer.body and _is_type_checking(outer.test):
                return True
            if isinstance(outer, ast.Try) and inner in outer.body and self._catches(outer, wanted):
                return True
            if isinstance(outer, ast.With) and inner in outer.body and "suppress" in ast.dump(outer.items[0]):
                return True
            inner = outer
        return False

    @staticmethod
    def _catches(node: ast.Try, wanted: Mapping[str, object] | set[str] | frozenset[str]) -> bool:
        for handler in node.handlers:
            if handler.type is None:
                return True
            if any(isinstance(part, ast.Name) and part.id in wanted for part in ast.walk(handler.type)):
                return True
        return False


def _is_type_checking(test: ast.expr) -> bool:
    """Whether a test is ``TYPE_CHECKING``, which is never true."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )
