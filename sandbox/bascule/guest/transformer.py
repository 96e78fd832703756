"""Turns a parsed script into the function ``<script>`` whose every access goes through the guards.

Decides nothing about objects, only about text: which syntax, which names, where a guard stands, and which
value comes back. Statements and targets stay what they were, so everything is evaluated once and in order by
construction. Nothing of the script is trusted; all problems are collected, none raises.
"""

from __future__ import annotations

import ast
from typing import Literal

from bascule.guest import hidden
from bascule.guest.bindings import bound_in
from bascule.guest.patterns import PatternRules
from bascule.guest.walker import Visited

ValueSource = Literal["return", "last_expression", "last_assignment", "none"]


class ScriptTransformer(PatternRules):
    """Visits a whole script."""

    def visit_Module(self, node: ast.Module) -> ast.Module:
        """Make the script function: ``<script>()`` returns ``(value source, value)``."""
        names = bound_in(node.body)
        self._source_of: dict[int, ValueSource] = {}
        body = self._with_result(node.body)
        body = self.statements(body) if body else []
        start = _start()
        if names:
            body.insert(0, hidden.place(ast.Global(sorted(names)), start))
        body.append(_result("none", ast.copy_location(ast.Constant(None), start), start))
        kind = ast.AsyncFunctionDef if self.top_level_async else ast.FunctionDef
        function = kind(hidden.SCRIPT, _no_arguments(), body, [], None, None)
        if "type_params" in kind._fields:  # pragma: no cover - from Python 3.12 on
            vars(function)["type_params"] = []
        return ast.Module([hidden.place(function, start)], [])

    def visit_Return(self, node: ast.Return) -> Visited:
        """At the top level, return the value together with the rule that chose it."""
        value = None if node.value is None else self.expression(node.value)
        if self.scope.kind == "class":
            self.refuse(node, "`return` is only allowed inside a function", kind="syntax_error")
        if not self.in_module:
            node.value = value
            return node
        return _result(self._source_of.get(id(node), "return"), value or hidden.constant(None, node), node)

    def _with_result(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Make the last statement of ``body`` give the script's value, if it has one."""
        if not body:
            return body
        last = body[-1]
        if isinstance(last, ast.Expr):
            if not _is_print(last.value, self.bound):
                return [*body[:-1], self._marked(last.value, "last_expression")]
        elif isinstance(last, ast.If) and _is_main_test(last):
            last.body = self._with_result(last.body)
        elif (value := _assigned(last)) is not None:
            return [*body, self._marked(value, "last_assignment")]
        return body

    def _marked(self, value: ast.expr, source: ValueSource) -> ast.Return:
        made = hidden.place(ast.Return(value), value)
        self._source_of[id(made)] = source
        return made


def _assigned(node: ast.stmt) -> ast.expr | None:
    """Return a read of what the statement assigned last, or None when it assigns no name."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value is not None):
        target = node.target
    else:
        return None
    if isinstance(target, ast.Name):
        return hidden.place(ast.Name(target.id, ast.Load()), target)
    if isinstance(target, ast.Tuple):
        names = [item for item in target.elts if isinstance(item, ast.Name)]
        if len(names) == len(target.elts):
            reads: list[ast.expr] = [hidden.place(ast.Name(item.id, ast.Load()), item) for item in names]
            return hidden.place(ast.Tuple(reads, ast.Load()), target)
    return None


def _is_print(node: ast.expr, bound: frozenset[str]) -> bool:
    """Whether the expression is a call of the built-in print, whose None is no result."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
        and "print" not in bound
    )


def _is_main_test(node: ast.If) -> bool:
    """Whether the statement is ``if __name__ == "__main__":`` without an else."""
    match node.test:
        case ast.Compare(
            left=ast.Name(id="__name__"), ops=[ast.Eq()], comparators=[ast.Constant(value="__main__")]
        ):
            return not node.orelse
        case _:
            return False


def _result(source: ValueSource, value: ast.expr, origin: ast.AST) -> ast.Return:
    pair = ast.Tuple([hidden.constant(source, origin), value], ast.Load())
    return hidden.place(ast.Return(hidden.place(pair, origin)), origin)


def _start() -> ast.AST:
    return ast.Pass(lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
