"""The match statement: patterns read attributes and compare in C, so what they read is vetted first.

A class in a pattern is replaced by one that looks the same and, when CPython asks whether the subject is an
instance, asks the guards about every attribute the pattern is going to read. A dotted value is read once,
through the guards, before the statement. Both sit in hidden variables set just above the match.
"""

from __future__ import annotations

import ast

from bascule.guest import hidden
from bascule.guest.definitions import DefinitionRules
from bascule.guest.rules.syntax import attribute_problem
from bascule.guest.walker import Visited


class PatternRules(DefinitionRules):
    """Visits match statements."""

    _hoisted: list[ast.stmt]
    _hoist_count = 0

    def visit_Match(self, node: ast.Match) -> Visited:
        """Hoist classes and values above the statement, then visit it."""
        if self.scope.kind == "class":
            self.refuse(node, "match is not available directly in a class body", suggestion="use a method")
            return node
        node.subject = self.expression(node.subject)
        hoisted: list[ast.stmt] = []
        cases: list[ast.match_case] = []
        for case in node.cases:
            self._hoisted = hoisted
            self.visit(case.pattern)
            case.guard = None if case.guard is None else self.expression(case.guard)
            case.body = self.statements(case.body)
            cases.append(case)
        node.cases = cases
        return [*hoisted, node]

    def visit_match_case(self, node: ast.match_case) -> Visited:
        """Refuse: cases are visited by their statement."""
        return self.generic_visit(node)

    def visit_MatchValue(self, node: ast.MatchValue) -> Visited:
        """Hoist a dotted name; literals stay."""
        value = node.value
        if isinstance(value, ast.Attribute):
            holder = self._hoist(hidden.call(hidden.HOLDER, value, self.expression(value)), value)
            node.value = hidden.place(ast.Attribute(holder, "value", ast.Load()), value)
        elif not isinstance(value, (ast.Constant, ast.UnaryOp, ast.BinOp)):
            self.refuse(node, "only literals and dotted names may be compared in a pattern")
        return node

    def visit_MatchClass(self, node: ast.MatchClass) -> Visited:
        """Hoist the class together with the names its pattern reads."""
        for name in node.kwd_attrs:
            if problem := attribute_problem(name):
                self.refuse(node, problem, kind="refused_attribute")
        arguments = (
            self.expression(node.cls),
            hidden.constant(tuple(node.kwd_attrs), node.cls),
            hidden.constant(len(node.patterns), node.cls),
        )
        node.cls = self._hoist(hidden.call(hidden.MATCHABLE, node.cls, *arguments), node.cls)
        for pattern in (*node.patterns, *node.kwd_patterns):
            self.visit(pattern)
        return node

    def _visit_capture(self, node: ast.MatchAs | ast.MatchStar) -> Visited:
        self.check_bound_name(node, node.name)
        return self.node_contents_visit(node)

    visit_MatchAs = _visit_capture
    visit_MatchStar = _visit_capture

    def visit_MatchMapping(self, node: ast.MatchMapping) -> Visited:
        """Check the captured rest; keys are literals or dotted names, which are hoisted."""
        self.check_bound_name(node, node.rest)
        for index, key in enumerate(node.keys):
            if isinstance(key, ast.Attribute):
                holder = self._hoist(hidden.call(hidden.HOLDER, key, self.expression(key)), key)
                node.keys[index] = hidden.place(ast.Attribute(holder, "value", ast.Load()), key)
            elif not isinstance(key, (ast.Constant, ast.UnaryOp, ast.BinOp)):
                self.refuse(key, "only literals and dotted names may be keys in a pattern")
        for pattern in node.patterns:
            self.visit(pattern)
        return node

    def _hoist(self, value: ast.expr, origin: ast.expr) -> ast.Name:
        self._hoist_count += 1
        name = f"<m{self._hoist_count}>"
        self._hoisted.append(hidden.place(ast.Assign([hidden.store(name, origin)], value), origin))
        return hidden.load(name, origin)
