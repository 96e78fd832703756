"""The base of the transformer: one dispatch by the syntax table, the scopes, the findings.

Trusts nothing of the tree but its shape, which ast.parse made. A node type without a row is refused here,
before any visit method could be reached.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from RestrictedPython.transformer import RestrictingNodeTransformer

from bascule.guest.rules.syntax import SYNTAX, name_problem
from bascule.guest.source import Source
from bascule.wire import ScriptError

Visited = ast.AST | list[ast.stmt] | None
_Expression = TypeVar("_Expression", bound=ast.AST)

_PASSED: frozenset[type[ast.AST]] = frozenset(
    kind
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind.__name__ in SYNTAX
    if SYNTAX[kind.__name__].verdict == "allowed" and (kind is ast.Constant or not kind._fields)
)
"""Node types that are allowed and have nothing below them to visit."""


@dataclass(slots=True)
class Scope:
    """One scope of the script while it is walked.

    Attributes:
        kind: what opened it; ``module`` becomes the script function.
        class_name: name of the innermost class around, which mangles private names.
        is_async: whether ``await`` may stand here.
        iterables: how many comprehension iterables are open; no walrus may stand inside one.
        comprehensions: how many comprehensions are open.
    """

    kind: Literal["module", "function", "lambda", "class"]
    class_name: str = ""
    is_async: bool = False
    iterables: int = 0
    comprehensions: int = 0
    name: str = ""


class Walker(RestrictingNodeTransformer):
    """Visits by the table, keeps the scopes, collects the findings.

    Attributes:
        findings: everything that is wrong, in the order it was met.
        uses_async: whether any asynchronous syntax was met.
        attribute_names: names for which the transformed code reads a set of types.
    """

    def __init__(self, source: Source, bound: frozenset[str]) -> None:
        super().__init__()
        self.source = source
        self.bound = bound
        self.findings: list[ScriptError] = []
        self.uses_async = False
        self.top_level_async = False
        self.attribute_names: set[str] = set()
        self._scopes = [Scope("module", is_async=True)]

    # ------------------------------------------------------------ dispatch

    def visit(self, node: ast.AST) -> Visited:
        """Visit one node if its row lets it."""
        kind = type(node)
        if kind in _PASSED:
            return node
        name = kind.__name__
        rule = SYNTAX.get(name)
        if rule is None:
            return self.generic_visit(node)
        if rule.verdict == "refused":
            self.refuse(node, f"{rule.title} is not available", suggestion=rule.substitute)
            return node
        if rule.verdict == "checked":
            return getattr(self, f"visit_{name}")(node)  # type: ignore[no-any-return]
        return self.node_contents_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse a node type that has no row."""
        self.refuse(node, f"this syntax ({type(node).__name__}) is not available")
        return node

    def node_contents_visit(self, node: _Expression) -> _Expression:
        """Visit the fields of a node in place; a statement may become several or none."""
        for field in node._fields:
            value = getattr(node, field, None)
            if type(value) is list:
                value[:] = [made for item in value for made in self._visit_item(item)]
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node

    def _visit_item(self, item: object) -> list[object]:
        if not isinstance(item, ast.AST):
            return [item]
        made = self.visit(item)
        if isinstance(made, list):
            return [*made]
        return [made]

    def expression(self, node: ast.expr) -> ast.expr:
        """Visit an expression; expressions stay single expressions."""
        made = self.visit(node)
        return made if isinstance(made, ast.expr) else node

    def expressions(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """Visit expressions in order."""
        return [self.expression(node) for node in nodes]

    def statements(self, nodes: list[ast.stmt]) -> list[ast.stmt]:
        """Visit statements in order; never returns an empty body."""
        made: list[ast.stmt] = []
        for node in nodes:
            result = self.visit(node)
            if isinstance(result, list):
                made.extend(result)
            elif isinstance(result, ast.stmt):
                made.append(result)
        return made or [ast.copy_location(ast.Pass(), nodes[0])]

    # ------------------------------------------------------------ scopes

    @property
    def scope(self) -> Scope:
        """The innermost scope."""
        return self._scopes[-1]

    @contextmanager
    def inside(self, scope: Scope) -> Iterator[None]:
        """Walk in a new scope."""
        self._scopes.append(scope)
        try:
            yield
        finally:
            self._scopes.pop()

    @property
    def in_module(self) -> bool:
        """Whether the innermost scope is the module itself."""
        return len(self._scopes) == 1

    # ------------------------------------------------------------ findings and names

    def refuse(
        self, node: ast.AST, message: str, *, kind: str = "refused_syntax", suggestion: str | None = None
    ) -> None:
        """Note that something may not run."""
        self.findings.append(self.source.error_at(node, kind, message, suggestion=suggestion))

    def mangled(self, name: str) -> str:
        """Return a private name (``__x``) as CPython stores it inside the innermost class."""
        owner = self.scope.class_name.lstrip("_")
        if owner and name.startswith("__") and not name.endswith("__"):
            return f"_{owner}{name}"
        return name

    def check_bound_name(self, node: ast.AST, name: str | None) -> None:
        """Check a name that is bound or used: the one rule for every binding form."""
        if name is None:
            return
        problem = name_problem(name) or name_problem(self.mangled(name))
        if problem:
            self.refuse(node, problem, kind="refused_name", suggestion="choose another name")
