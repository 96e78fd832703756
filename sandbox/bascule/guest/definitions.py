"""Functions and classes: parameters, decorators, bases and the registration of script classes."""

from __future__ import annotations

import ast

from bascule.guest import hidden
from bascule.guest.bindings import Bindings, bound_in
from bascule.guest.nested import parameter_names
from bascule.guest.rules.syntax import ENUM_HOOKS, SPECIAL_METHODS
from bascule.guest.source import Source
from bascule.guest.statements import StatementRules
from bascule.guest.walker import Scope, Visited

_Function = ast.FunctionDef | ast.AsyncFunctionDef

_CLASS_KEYWORDS = frozenset({"total"})
"""Class keywords that are plain data to the metaclass that reads them (TypedDict)."""


_READERS = ("__annotations__", "singledispatch")
"""Words without which no script reads the annotations of a function."""

_FIELDS = "use a property for each name, or a dict as a field"
_INSTEAD: dict[str, str] = {
    "__await__": "write an `async def` method and await its call",
    "__class_getitem__": "inherit from Generic",
    "__del__": "use a context manager",
    "__delattr__": _FIELDS,
    "__get__": "use a property",
    "__getattr__": _FIELDS,
    "__getattribute__": _FIELDS,
    "__init_subclass__": "use a class decorator that registers the class",
    "__instancecheck__": "inherit from the class, or from ABC",
    "__new__": "use an ordinary method, or a function that makes the object",
    "__set__": "use a property",
    "__set_name__": "use a property",
    "__setattr__": _FIELDS,
}
"""What to write instead of a special method that classes may not define."""


class DefinitionRules(StatementRules):
    """Visits functions and classes."""

    def __init__(self, source: Source, bindings: Bindings) -> None:
        super().__init__(source, bindings)
        self._plain_names = {"object", "ABC"}
        self._keeps_annotations = any(word in line for line in source.lines for word in _READERS)

    def _visit_function(self, node: _Function) -> Visited:
        is_method = self.scope.kind == "class"
        if node.name not in SPECIAL_METHODS and not (is_method and node.name in ENUM_HOOKS):
            self._check_function_name(node)
        if getattr(node, "type_params", None):  # pragma: no cover - from Python 3.12 on
            self._refuse_type_parameters(node)
        node.decorator_list = self.expressions(node.decorator_list)
        self._visit_annotations(node)
        self.visit_arguments(node.args)
        node.type_comment = None
        is_async = isinstance(node, ast.AsyncFunctionDef)
        self.uses_async = self.uses_async or is_async
        own = frozenset({*parameter_names(node.args), *bound_in(node.body)}) - self.bindings.shared
        first = self._first(node) if is_method else None
        receiver = first if self.scope.looks_plain else None
        scope = Scope(
            "function",
            self.scope.class_name,
            is_async,
            name=node.name,
            own=own,
            first=first,
            receiver=receiver,
        )
        with self.inside(scope):
            body = self.statements(node.body)
        if receiver is not None:
            # Asked once for each call: the class of an object never changes, and plain stays plain.
            parameter = node.args.posonlyargs[0] if node.args.posonlyargs else node.args.args[0]
            test = hidden.type_in(hidden.load(receiver, parameter), hidden.PLAIN)
            flag = hidden.place(ast.Assign([hidden.store(hidden.RECEIVER, parameter)], test), parameter)
            body.insert(1 if _is_docstring(body[0]) else 0, flag)
        node.body = body
        return node

    def _visit_annotations(self, node: _Function) -> None:
        """Drop the annotations, which cost time and may raise, unless something in the script reads them."""
        arguments = node.args
        named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for parameter in (*named, arguments.vararg, arguments.kwarg):
            if parameter is not None:
                parameter.annotation = self._kept(parameter.annotation)
        node.returns = self._kept(node.returns)

    def _kept(self, annotation: ast.expr | None) -> ast.expr | None:
        return self._annotation(annotation) if annotation is not None and self._keeps_annotations else None

    def _first(self, node: _Function) -> str | None:
        """Return the first parameter of a method, if nothing in the method binds it again."""
        first = [*node.args.posonlyargs, *node.args.args][:1]
        if not first or first[0].arg in self.bindings.shared or first[0].arg in bound_in(node.body):
            return None
        return first[0].arg

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function

    def _check_function_name(self, node: _Function) -> None:
        if self.scope.kind == "class" and node.name.startswith("__") and node.name.endswith("__"):
            self.refuse(
                node,
                f"a class may not define `{node.name}`",
                kind="refused_name",
                suggestion=_INSTEAD.get(node.name, "use an ordinary method"),
            )
            return
        self.check_bound_name(node, node.name)

    def _refuse_type_parameters(self, node: ast.AST) -> None:  # pragma: no cover - from Python 3.12 on
        self.refuse(
            node,
            "type parameters in brackets are not available",
            suggestion='use `T = TypeVar("T")` and `Generic[T]`',
        )

    def visit_ClassDef(self, node: ast.ClassDef) -> Visited:
        """Check name, bases and keywords; register the class before any other decorator sees it."""
        self.check_bound_name(node, node.name)
        if getattr(node, "type_params", None):  # pragma: no cover - from Python 3.12 on
            self._refuse_type_parameters(node)
        for keyword in node.keywords:
            self._check_class_keyword(keyword)
        decorators = self.expressions(node.decorator_list)
        first, last = hidden.load(hidden.FINISH, node), hidden.load(hidden.CLASS, node)
        node.decorator_list = [first, *decorators, last]
        bases = node.bases
        node.bases = [self._checked_base(base) for base in bases]
        looks_plain = all(isinstance(base, ast.Name) and base.id in self._plain_names for base in bases)
        if looks_plain:
            self._plain_names.add(node.name)
        with self.inside(Scope("class", node.name, looks_plain=looks_plain)):
            node.body = self.statements(node.body)
        return node

    def _checked_base(self, base: ast.expr) -> ast.expr:
        if isinstance(base, ast.Starred):
            self.refuse(base, "bases must be named one by one")
            return base
        return hidden.call(hidden.BASE, base, self.expression(base))

    def _check_class_keyword(self, keyword: ast.keyword) -> None:
        if keyword.arg in _CLASS_KEYWORDS and isinstance(keyword.value, ast.Constant):
            return
        if keyword.arg == "metaclass":
            hint = "inherit from ABC or Enum; use a class decorator for anything else"
        else:
            hint = "leave it out"
        self.refuse(keyword, f"the class keyword `{keyword.arg or '**'}` is not available", suggestion=hint)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
