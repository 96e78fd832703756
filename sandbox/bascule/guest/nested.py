"""Expressions that open a scope or suspend one: comprehensions, lambda, parameters, await and yield."""

from __future__ import annotations

import ast

from bascule.guest.bindings import bound_in
from bascule.guest.expressions import ExpressionRules
from bascule.guest.walker import Comprehension, Scope, Visited


class NestedRules(ExpressionRules):
    """Visits expressions with a scope of their own."""

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp
    ) -> Visited:
        targets = frozenset(name for part in node.generators for name in bound_in([part.target]))
        comprehension = Comprehension(targets - self.bindings.shared, isinstance(node, ast.GeneratorExp))
        self.scope.comprehensions.append(comprehension)
        try:
            node.generators = [self._visit_generator(part) for part in node.generators]
            if isinstance(node, ast.DictComp):
                node.key = self.expression(node.key)
                node.value = self.expression(node.value)
            else:
                node.elt = self.expression(node.elt)
        finally:
            self.scope.comprehensions.pop()
        return node

    visit_ListComp = _visit_comprehension
    visit_SetComp = _visit_comprehension
    visit_GeneratorExp = _visit_comprehension
    visit_DictComp = _visit_comprehension

    def _visit_generator(self, node: ast.comprehension) -> ast.comprehension:
        if node.is_async:
            self.check_await(node.iter, "async for")
        self.scope.iterables += 1
        try:
            node.iter = self.expression(node.iter)
            node.target = self.expression(node.target)
        finally:
            self.scope.iterables -= 1
        node.ifs = self.expressions(node.ifs)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Visited:
        """Check the parameters; the body is a scope of its own."""
        self.visit_arguments(node.args)
        scope = self.scope
        own = frozenset(parameter_names(node.args)) - self.bindings.shared
        with self.inside(Scope("lambda", scope.class_name, iterables=scope.iterables, own=own)):
            node.body = self.expression(node.body)
        return node

    def visit_arguments(self, node: ast.arguments) -> Visited:
        """Check the names of all five kinds of parameters; defaults run in the scope around."""
        for parameter in (*node.posonlyargs, *node.args, node.vararg, *node.kwonlyargs, node.kwarg):
            if parameter is not None:
                self.visit_arg(parameter)
        node.defaults = self.expressions(node.defaults)
        node.kw_defaults = [None if part is None else self.expression(part) for part in node.kw_defaults]
        return node

    def visit_arg(self, node: ast.arg) -> Visited:
        """Check the name of one parameter."""
        self.check_bound_name(node, node.arg)
        return node

    def check_await(self, node: ast.AST, what: str) -> None:
        """Check that asynchronous syntax may stand here."""
        self.uses_async = True
        scope = self.scope
        if scope.kind == "module":
            self.top_level_async = True
        elif not scope.is_async:
            where = {"class": "a class body", "lambda": "a lambda"}.get(scope.kind, f"`def {scope.name}`")
            self.refuse(
                node,
                f"`{what}` is only allowed inside `async def`, not in {where}",
                kind="syntax_error",
                suggestion=f"write `async def {scope.name}(...)` and await its calls"
                if scope.kind == "function"
                else "fetch the values first, then use them",
            )

    def visit_Await(self, node: ast.Await) -> Visited:
        """Note that the script is asynchronous."""
        self.check_await(node, "await")
        return self.node_contents_visit(node)

    def _visit_yield(self, node: ast.Yield | ast.YieldFrom) -> Visited:
        if self.scope.kind in ("module", "class"):
            self.refuse(node, "`yield` is only allowed inside a function", kind="syntax_error")
        return self.node_contents_visit(node)

    visit_Yield = _visit_yield
    visit_YieldFrom = _visit_yield


def parameter_names(arguments: ast.arguments) -> list[str]:
    """Return the names of all parameters, the positional ones first."""
    parts = (
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    )
    return [part.arg for part in parts if part is not None]
