"""The base of the transformer: one dispatch by the syntax table, the scopes, the findings.

Trusts nothing of the tree but its shape, which ast.parse made. A node type without a row is refused here,
before any visit method could be reached.
"""

from __future__ import annotations

import ast
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal, TypeVar, cast

import msgspec
from RestrictedPython.transformer import RestrictingNodeTransformer

from bascule.guest.bindings import Bindings
from bascule.guest.rules.names import NAMES
from bascule.guest.rules.syntax import SYNTAX, SyntaxRule, name_problem
from bascule.guest.source import Source
from bascule.wire import ScriptError

Visited = ast.AST | list[ast.stmt] | None
_Expression = TypeVar("_Expression", bound=ast.AST)

_KINDS: dict[type[ast.AST], SyntaxRule] = {
    kind: SYNTAX[kind.__name__]
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST) and kind.__name__ in SYNTAX
}
_CHECKED = {kind: f"visit_{kind.__name__}" for kind, rule in _KINDS.items() if rule.verdict == "checked"}
_ALLOWED = {kind for kind, rule in _KINDS.items() if rule.verdict == "allowed"}
_PASSED = frozenset(kind for kind in _ALLOWED if kind is ast.Constant or not kind._fields)
_HOLDING = frozenset(_ALLOWED - _PASSED)
"""Node types by what happens to them: looked at, passed as they are, or visited inside."""


class Scope(msgspec.Struct):
    """One scope of the script while it is walked.

    Attributes:
        kind: what opened it; ``module`` becomes the script function.
        class_name: name of the innermost class around, which mangles private names.
        is_async: whether ``await`` may stand here.
        iterables: how many iterables and targets of comprehensions are open; no walrus may stand there.
        comprehensions: the open comprehensions, innermost last.
        own: variables that no other code can change while an expression of this scope runs.
        first: first parameter of a method, if nothing binds it again.
        receiver: the same, when the class looks plain: the method asks once whether it is.
        looks_plain: whether the class most likely inherits nothing but script classes.
    """

    kind: Literal["module", "function", "lambda", "class"]
    class_name: str = ""
    is_async: bool = False
    iterables: int = 0
    comprehensions: list[Comprehension] = msgspec.field(default_factory=list["Comprehension"])
    name: str = ""
    own: frozenset[str] = frozenset()
    first: str | None = None
    receiver: str | None = None
    looks_plain: bool = False


class Comprehension(msgspec.Struct):
    """One comprehension: its own variables, and whether it runs later, as a generator does."""

    own: frozenset[str]
    is_generator: bool


class Walker(RestrictingNodeTransformer):
    """Visits by the table, keeps the scopes, collects the findings.

    Attributes:
        findings: everything that is wrong, in the order it was met.
        annotations_are_text: whether ``from __future__ import annotations`` was met.
        uses_async: whether any asynchronous syntax was met.
        attribute_names, class_names, super_names: names for which the transformed code reads a set.
    """

    def __init__(self, source: Source, bindings: Bindings) -> None:
        super().__init__()
        self.source = source
        self.bindings = bindings
        self.bound = bindings.anywhere
        self.findings: list[ScriptError] = []
        self.uses_async = False
        self.top_level_async = False
        self.annotations_are_text = False
        self.attribute_names: set[str] = set()
        self.class_names: set[str] = set()
        self.super_names: set[str] = set()
        self._scopes = [Scope("module", is_async=True)]

    # ------------------------------------------------------------ dispatch

    def visit(self, node: ast.AST) -> Visited:
        """Visit one node if its row lets it."""
        kind = type(node)
        if kind in _PASSED:
            return node
        method = _CHECKED.get(kind)
        if method is not None:
            return cast(Visited, getattr(self, method)(node))
        if kind in _HOLDING:
            return self.node_contents_visit(node)
        rule = SYNTAX.get(kind.__name__)
        if rule is None:
            return self.generic_visit(node)
        self.refuse(node, f"{rule.title} is not available", suggestion=rule.substitute)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse a node type that has no row."""
        self.refuse(node, f"this syntax ({type(node).__name__}) is not available")
        return node

    def node_contents_visit(self, node: _Expression) -> _Expression:
        """Visit the fields of a node in place; a statement may become several or none."""
        fields = node.__dict__
        for name in node._fields:
            value = fields.get(name)
            if isinstance(value, ast.AST):
                fields[name] = self.visit(value)
            elif type(value) is list:
                fields[name] = self._visit_list(cast("list[object]", value))
        return node

    def _visit_list(self, items: list[object]) -> list[object]:
        made: list[object] = []
        for item in items:
            result = self.visit(item) if isinstance(item, ast.AST) else item
            if type(result) is list:
                made.extend(cast("list[object]", result))
            else:
                made.append(result)
        return made

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
            else:
                made.append(cast(ast.stmt, result))
        return made or [ast.copy_location(ast.Pass(), nodes[0])]

    # ------------------------------------------------------------ scopes

    @property
    def scope(self) -> Scope:
        """The innermost scope."""
        return self._scopes[-1]

    @contextmanager
    def inside(self, scope: Scope) -> Generator[None]:
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
            rule = NAMES.get(name) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None
            hint = rule.substitute if rule else "choose another name"
            self.refuse(node, problem, kind="refused_name", suggestion=hint)
