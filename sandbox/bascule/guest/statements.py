"""Statements other than definitions and match: imports, assignments with annotations, handlers, scopes."""

from __future__ import annotations
import __future__

import ast
from collections.abc import Iterable
from typing import cast

from bascule.guest import hidden
from bascule.guest.expressions import is_number
from bascule.guest.nested import NestedRules
from bascule.guest.rules.syntax import CLASS_VARIABLES, SPECIAL_METHODS, attribute_problem
from bascule.guest.walker import Visited

_FUTURES = frozenset(__future__.all_feature_names) - {"barry_as_FLUFL"}
_SAFE_ANNOTATIONS = frozenset(
    kind.__name__ for kind in (int, str, float, bool, bytes, list, dict, set, tuple, frozenset, object)
)


class StatementRules(NestedRules):
    """Visits statements."""

    # ------------------------------------------------------------ assignments

    def visit_Assign(self, node: ast.Assign) -> Visited:
        """Allow the three special class variables where they are data; keep everything else as it is."""
        target = node.targets[0]
        if (
            self.scope.kind == "class"
            and len(node.targets) == 1
            and isinstance(target, ast.Name)
            and (target.id in CLASS_VARIABLES or target.id in SPECIAL_METHODS)
            and _is_data(target.id, node.value)
        ):
            return node
        node.value = self.expression(node.value)
        node.targets = self.expressions(node.targets)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Visited:
        """Keep it: Python evaluates the target once. An attribute target is read as well as stored."""
        if isinstance(node.target, ast.Attribute):
            node.target.attr = self.mangled(node.target.attr)
            node.target = self.visit_target(node.target, hidden.UPDATE)
            node.value = self.expression(node.value)
        else:
            node = self.node_contents_visit(node)
        # In a class body, a hidden variable would stay as an attribute.
        if isinstance(node.op, ast.Mod) and not is_number(node.value) and self.scope.kind != "class":
            return self._percent_in_place(node)
        return node

    def _percent_in_place(self, node: ast.AugAssign) -> Visited:
        """Show values without addresses in ``text %= values``, evaluating the target once."""
        target = node.target
        if isinstance(target, ast.Name):
            made = self._in_place(target, ast.Name(target.id, ast.Load()), node)
            is_text = hidden.type_in(hidden.place(ast.Name(target.id, ast.Load()), target), hidden.TEXT)
            return hidden.place(ast.If(is_text, [made], [node]), node)
        if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
            return node  # what a slice gives is not formatted into anything
        keep = [hidden.place(ast.Assign([hidden.store(hidden.TARGET, target)], target.value), node)]
        target.value = hidden.load(hidden.TARGET, target)
        if isinstance(target, ast.Attribute):
            before: ast.expr = ast.Attribute(target.value, target.attr, ast.Load())
        else:
            keep.append(hidden.place(ast.Assign([hidden.store(hidden.KEY, target)], target.slice), node))
            target.slice = hidden.load(hidden.KEY, target)
            before = ast.Subscript(target.value, target.slice, ast.Load())
        return [*keep, self._in_place(target, before, node)]

    @staticmethod
    def _in_place(target: ast.expr, before: ast.expr, node: ast.AugAssign) -> ast.Assign:
        made = hidden.call(hidden.PERCENT_IN_PLACE, node, hidden.place(before, target), node.value)
        return hidden.place(ast.Assign([target], made), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Visited:
        """Drop the annotation, except in class bodies, where dataclasses and their kin read it."""
        if self.scope.kind == "class" and isinstance(node.target, ast.Name):
            self.check_bound_name(node.target, node.target.id)
            node.annotation = self._annotation(node.annotation)
            node.value = None if node.value is None else self.expression(node.value)
            return node
        target = self.expression(node.target)
        if node.value is not None:
            return hidden.place(ast.Assign([target], self.expression(node.value)), node)
        if isinstance(target, ast.Name):
            # Never runs, but makes the name a variable of this scope, as the declaration did.
            binding = hidden.place(ast.Assign([target], hidden.constant(None, node)), node)
            return hidden.place(ast.If(hidden.constant(0, node), [binding], []), node)
        return hidden.place(ast.Pass(), node)

    def _annotation(self, node: ast.expr) -> ast.expr:
        """Make an annotation that cannot raise: forward references and mistakes become their text."""
        if self.annotations_are_text:
            return hidden.constant(ast.unparse(node), node)
        if isinstance(node, ast.Constant):
            return node
        if isinstance(node, ast.Name) and node.id in _SAFE_ANNOTATIONS - self.bound:
            return node
        text = hidden.constant(ast.unparse(node), node)
        wrapper = hidden.place(ast.Lambda(_no_arguments(), node), node)
        made = self.expression(wrapper)
        return hidden.call(hidden.ANNOTATION, node, made, text)

    # ------------------------------------------------------------ scopes

    def visit_Global(self, node: ast.Global) -> Visited:
        """Check the names; at module level everything is global already."""
        for name in node.names:
            self.check_bound_name(node, name)
        return hidden.place(ast.Pass(), node) if self.in_module else node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Visited:
        """Check the names."""
        for name in node.names:
            self.check_bound_name(node, name)
        if self.in_module:
            self.refuse(node, "nonlocal is only allowed inside a nested function", kind="syntax_error")
        return node

    # ------------------------------------------------------------ flow

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> Visited:
        """Check the bound name; a bare except catches what ``except Exception`` does."""
        self.check_bound_name(node, node.name)
        node.type = hidden.load(hidden.EXCEPTION, node) if node.type is None else self.expression(node.type)
        node.body = self.statements(node.body)
        return node

    def visit_For(self, node: ast.For) -> Visited:
        """Keep it: the target is checked as a name, attribute or item."""
        node.type_comment = None
        return self.node_contents_visit(node)

    def visit_AsyncFor(self, node: ast.AsyncFor) -> Visited:
        """Note that the script is asynchronous."""
        self.check_await(node, "async for")
        return self.node_contents_visit(node)

    def visit_With(self, node: ast.With) -> Visited:
        """Keep it: targets are checked as names, attributes or items."""
        node.type_comment = None
        return self.node_contents_visit(node)

    def visit_AsyncWith(self, node: ast.AsyncWith) -> Visited:
        """Note that the script is asynchronous."""
        self.check_await(node, "async with")
        return self.node_contents_visit(node)

    # ------------------------------------------------------------ imports

    def visit_Import(self, node: ast.Import) -> Visited:
        """Bind facades: ``import a.b`` binds a, ``import a.b as c`` binds a.b."""
        made: list[ast.stmt] = []
        for alias in node.names:
            if getattr(node, "is_lazy", 0):
                self.refuse(node, "lazy imports are not available", suggestion=f"write `import {alias.name}`")
            bound = alias.asname or alias.name.partition(".")[0]
            self.check_bound_name(alias, bound)
            path = hidden.constant(alias.name, alias)
            helper = hidden.IMPORT if alias.asname is None else hidden.IMPORT_FROM
            made.append(_assignment(bound, hidden.call(helper, alias, path), alias))
        return made

    def visit_ImportFrom(self, node: ast.ImportFrom) -> Visited:
        """Bind attributes of facades; of ``from __future__`` only ``annotations`` has an effect."""
        if node.level or node.module is None:
            self.refuse(
                node, "relative imports are not available: a script is one file", kind="refused_import"
            )
            return node
        if node.module == "__future__":
            if not all(alias.name in _FUTURES for alias in node.names):
                self.refuse(node, "this future feature is not defined", kind="syntax_error")
            self.annotations_are_text |= any(alias.name == "annotations" for alias in node.names)
            return hidden.place(ast.Pass(), node)
        made: list[ast.stmt] = []
        for alias in node.names:
            if alias.name == "*":
                self.refuse(
                    node,
                    f"`from {node.module} import *` is not available",
                    kind="refused_import",
                    suggestion=f"name what you use: `from {node.module} import ...`",
                )
                continue
            bound = alias.asname or alias.name
            self.check_bound_name(alias, bound)
            self.check_bound_name(alias, alias.name)
            path, name = hidden.constant(node.module, alias), hidden.constant(alias.name, alias)
            made.append(_assignment(bound, hidden.call(hidden.IMPORT_FROM, alias, path, name), alias))
        return made


def _assignment(name: str, value: ast.expr, origin: ast.AST) -> ast.Assign:
    target = hidden.place(ast.Name(name, ast.Store()), origin)
    return hidden.place(ast.Assign([target], value), origin)


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])


def _is_data(name: str, value: ast.expr) -> bool:
    """Whether a special class variable gets what CPython may read: names, or None for ``__hash__``."""
    try:
        data: object = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    if name in SPECIAL_METHODS:
        return data is None  # the class opts out of what its bases can do
    if name == "__doc__":
        return isinstance(data, str)
    if not isinstance(data, (str, tuple, list, set)):
        return False
    names = [data] if isinstance(data, str) else cast("Iterable[object]", data)
    return all(
        isinstance(item, str) and item.isidentifier() and not attribute_problem(item) for item in names
    )
