"""Expressions: where the guards of names, attributes, calls and texts stand.

``x.name`` becomes ``(x if type(x) in <ok:name> else <check>(x, "name")).name``: no call for objects whose
exact type is known to give the name, and plain Python does the reading itself.
"""

from __future__ import annotations

import ast

from bascule.guest import hidden
from bascule.guest.formatting import reads_nothing
from bascule.guest.rules.attributes import ATTRIBUTES, REPLACED
from bascule.guest.rules.syntax import (
    READ_ONLY_SPECIALS,
    READABLE_SPECIALS,
    SPECIAL_METHODS,
    attribute_problem,
    is_special,
)
from bascule.guest.walker import Visited, Walker

_LITERALS: dict[type[ast.expr], type] = {
    ast.JoinedStr: str,
    ast.List: list,
    ast.ListComp: list,
    ast.Dict: dict,
    ast.DictComp: dict,
    ast.Set: set,
    ast.SetComp: set,
    ast.Tuple: tuple,
}
"""Expressions whose exact type is known before anything runs."""

_ABOUT_HINTS = {
    "__class__": "use `type(x)`",
    "__dict__": "use dataclasses.asdict, or name the fields",
    "__file__": "there is no file system",
}

_SUPER_HINTS = {"_missing_": "write `return None`: Enum then raises its ValueError"}

_WRITERS = frozenset({"update", "setdefault", "pop", "popitem", "clear"})
"""Methods of a dict that change it."""

_BUILTIN_CLASSES = frozenset(
    kind.__name__
    for kind in (str, bytes, int, float, dict, list, set, tuple, frozenset, bool, complex, object)
)


def literal_type(node: ast.expr) -> type | None:
    """Return the exact type of what a literal evaluates to, or None when it is no literal."""
    if isinstance(node, ast.Constant):
        return type(node.value)
    return _LITERALS.get(type(node))


def is_number(node: ast.expr) -> bool:
    """Whether the expression is a number as written."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


class ExpressionRules(Walker):
    """Visits expressions."""

    # ------------------------------------------------------------ names

    def visit_Name(self, node: ast.Name) -> Visited:
        """Check a name; ``__name__`` is the constant it is in a script."""
        if node.id == "__name__" and isinstance(node.ctx, ast.Load):
            return hidden.constant("__main__", node)
        if node.id == "super" and isinstance(node.ctx, ast.Load):
            self._refuse_super(node)
            return node
        if node.id not in SPECIAL_METHODS:
            # A function called __init__ is a function; in a class it is what the class could define.
            self.check_bound_name(node, node.id)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Visited:
        """Check the bound name as any other."""
        return self.node_contents_visit(node)

    # ------------------------------------------------------------ attributes

    def visit_Attribute(self, node: ast.Attribute) -> Visited:
        """Put the guard in front of an attribute."""
        node.attr = self.mangled(node.attr)
        if isinstance(node.ctx, ast.Load):
            return self._visit_read(node)
        return self.visit_target(node, hidden.DELETE if isinstance(node.ctx, ast.Del) else hidden.WRITE)

    def visit_target(self, node: ast.Attribute, guard: str) -> ast.Attribute:
        """Put ``guard`` in front of an attribute that is stored or deleted."""
        is_set = node.attr in SPECIAL_METHODS and guard is hidden.WRITE
        if not is_set and (problem := attribute_problem(node.attr)):
            self.refuse(node, problem, kind="refused_attribute")
        elif _is_super(node.value):
            self._refuse_super(node)
        node.value = self._guarded(self.expression(node.value), node, hidden.PLAIN, guard)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Visited:
        """Keep it; ``obj.__dict__`` is a copy, so storing into it would be lost."""
        if not isinstance(node.ctx, ast.Load):
            self._check_fields_kept(node.value)
        return self.node_contents_visit(node)

    def _check_fields_kept(self, node: ast.expr) -> None:
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            self.refuse(
                node,
                "`__dict__` is a copy here and cannot be written to",
                kind="refused_attribute",
                suggestion="write `setattr(obj, name, value)`",
            )

    def _visit_read(self, node: ast.Attribute) -> ast.expr:
        name = node.attr
        if name in _WRITERS:
            self._check_fields_kept(node.value)
        if _is_super(node.value):
            return self._visit_super(node)
        if name in READABLE_SPECIALS:
            value = self.expression(node.value)
            return hidden.call(hidden.ABOUT, node, value, hidden.constant(name, node))
        if name in SPECIAL_METHODS or name in READ_ONLY_SPECIALS:
            value = self.expression(node.value)
            return hidden.call(hidden.SPECIAL, node, value, hidden.constant(name, node))
        if problem := attribute_problem(name):
            self.refuse(node, problem, kind="refused_attribute", suggestion=_ABOUT_HINTS.get(name))
            return node
        receiver = node.value
        kind = literal_type(receiver)
        node.value = self.expression(receiver)
        if kind is not None and name in ATTRIBUTES.get(kind, ()) and (kind, name) not in REPLACED:
            return node
        self.attribute_names.add(name)
        node.value = self._guarded(node.value, node, hidden.allowed_set(name), hidden.CHECK)
        return node

    def _guarded(self, value: ast.expr, node: ast.Attribute, types: str, guard: str) -> ast.expr:
        """Build ``value if type(value) in types else guard(value, name)`` with one evaluation.

        The test and the use must see the same object. Variables that other code could change in between
        (a generator that is collected just then may run code of the script) are kept in a hidden one first.
        """
        scope = self.scope
        name = hidden.constant(node.attr, node)
        if isinstance(value, ast.Name) and self._is_own(value.id):
            guarded = hidden.call(guard, node, value, name)
            if value.id == scope.receiver and not scope.comprehensions:
                return hidden.choice(hidden.load(hidden.RECEIVER, value), value, guarded)
            return hidden.choice(hidden.type_in(value, types), value, guarded)
        temporary = self.temporary()
        if temporary is None:
            return hidden.call(guard, node, value, name)
        again = hidden.load(temporary, value)
        bound = hidden.place(ast.NamedExpr(hidden.store(temporary, value), value), value)
        guarded = hidden.call(guard, node, again, name)
        if guard is hidden.CHECK and isinstance(value, ast.Name) and self._is_class_name(value.id):
            self.class_names.add(node.attr)
            test = hidden.both(
                hidden.type_in(bound, hidden.METACLASSES), hidden.is_in(again, hidden.class_set(node.attr))
            )
            return hidden.choice(test, again, guarded)
        return hidden.choice(hidden.type_in(bound, types), again, guarded)

    def _is_own(self, name: str) -> bool:
        """Whether nothing but the code being compiled can change the variable while an expression runs."""
        scope = self.scope
        if scope.comprehensions:
            return name in scope.comprehensions[-1].own
        return name in scope.own

    def _is_class_name(self, name: str) -> bool:
        """Whether a variable most likely holds a class: the guard is laid out for that."""
        return name in self.bindings.classes or (name in _BUILTIN_CLASSES and name not in self.bound)

    def temporary(self) -> str | None:
        """Return the hidden variable to keep a value in here, or None where none is safe.

        Class bodies would keep it as an attribute, a walrus may not stand in the iterable of a comprehension,
        and a generator expression would share it with code that runs in between.
        """
        scope = self.scope
        if scope.kind == "class" or scope.iterables:
            return None
        if not scope.comprehensions:
            return hidden.TEMPORARY
        return None if any(part.is_generator for part in scope.comprehensions) else hidden.INNER_TEMPORARY

    # ------------------------------------------------------------ super()

    def _visit_super(self, node: ast.Attribute) -> ast.expr:
        call = node.value
        assert isinstance(call, ast.Call)
        names = [argument for argument in call.args if isinstance(argument, ast.Name)]
        if call.keywords or len(names) != len(call.args) or len(names) not in (0, 2) or "super" in self.bound:
            self._refuse_super(node)
        call.args = self.expressions(call.args)
        if is_special(node.attr) and node.attr not in SPECIAL_METHODS:
            self.refuse(
                node,
                f"`super().{node.attr}` is not available",
                kind="refused_attribute",
                suggestion=_SUPER_HINTS.get(node.attr),
            )
        node.value = hidden.call(hidden.SUPER, node, call, hidden.constant(node.attr, node))
        scope = self.scope
        if scope.first is not None and not call.args and not scope.comprehensions:
            self.super_names.add(node.attr)
            test = hidden.type_in(hidden.load(scope.first, call), hidden.super_set(node.attr))
            node.value = hidden.choice(test, call, node.value)
        return node

    def _refuse_super(self, node: ast.AST) -> None:
        self.refuse(
            node,
            "`super` is available only as `super().name` inside a method",
            kind="refused_name",
            suggestion="write `super().method(...)`",
        )

    # ------------------------------------------------------------ calls and texts

    def visit_Call(self, node: ast.Call) -> Visited:
        """Show objects without addresses in ``str(x)``; everything else is a plain call."""
        if _is_super(node):
            self._refuse_super(node)
            return node
        if self._is_plain_format(node):
            node.args = [self.shown(self.expression(part), part) for part in node.args]
            for keyword in node.keywords:
                keyword.value = self.shown(self.expression(keyword.value), keyword.value)
            return node
        is_text = isinstance(node.func, ast.Name) and node.func.id == "str" and "str" not in self.bound
        if (
            is_text
            and len(node.args) == 1
            and not node.keywords
            and not isinstance(node.args[0], ast.Starred)
        ):
            node.args = [self.shown(self.expression(node.args[0]), node)]
            return node
        return self.node_contents_visit(node)

    @staticmethod
    def _is_plain_format(node: ast.Call) -> bool:
        """Whether this is ``"...".format(...)`` with a template that reads no attribute and no item."""
        function = node.func
        return (
            isinstance(function, ast.Attribute)
            and function.attr == "format"
            and isinstance(function.value, ast.Constant)
            and type(function.value.value) is str
            and not any(isinstance(part, ast.Starred) for part in node.args)
            and not any(keyword.arg is None for keyword in node.keywords)
            and reads_nothing(function.value.value)
        )

    def shown(self, value: ast.expr, node: ast.AST) -> ast.expr:
        """Build what ``value`` is shown as: itself for plain data, else a stand-in without addresses."""
        if isinstance(value, (ast.Constant, ast.JoinedStr)):
            return value
        if isinstance(value, ast.Name) and self._is_own(value.id):
            stand_in = hidden.call(hidden.SHOWN, node, value)
            return hidden.choice(hidden.type_in(value, hidden.EXACT), value, stand_in)
        temporary = self.temporary()
        if temporary is None:
            return hidden.call(hidden.SHOWN, node, value)
        bound = hidden.place(ast.NamedExpr(hidden.store(temporary, value), value), value)
        again = hidden.load(temporary, value)
        stand_in = hidden.call(hidden.SHOWN, node, again)
        return hidden.choice(hidden.type_in(bound, hidden.EXACT), again, stand_in)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Visited:
        """Show the value without addresses; the format spec is a text like any other."""
        node.value = self.shown(self.expression(node.value), node.value)
        if node.format_spec is not None:
            node.format_spec = self.expression(node.format_spec)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Visited:
        """Show values without addresses in ``text % values``; numbers go by unguarded or with a look."""
        node = self.node_contents_visit(node)
        if not isinstance(node.op, ast.Mod):
            return node
        left, right = node.left, node.right
        kind = literal_type(left)
        if is_number(right) or kind not in (None, str):
            return node
        shown = hidden.call(hidden.PERCENT, node, left, right)
        if (
            isinstance(left, ast.Name)
            and self._is_own(left.id)
            and isinstance(right, ast.Name)
            and self._is_own(right.id)
        ):
            return hidden.choice(hidden.type_in(left, hidden.TEXT), shown, node)
        return shown


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
