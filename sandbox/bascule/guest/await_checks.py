"""Preflight of asynchronous scripts: results used without their await, when that is certain."""

from __future__ import annotations

import ast

from bascule.guest.bindings import children
from bascule.guest.rules.names import NAMES
from bascule.guest.survey import Survey

_USES_VALUES = frozenset(
    kind.__name__
    for kind in (
        *(len, sum, sorted, min, max, any, all, str, int, float, repr, print, round, abs, bool, list, tuple),
        *(set, dict, enumerate, iter, reversed, bytes, format, range),
    )
)
"""Builtins that need the value of every argument."""

_AWAITED = frozenset({"gather", "wait_for", "sleep", "wait"})
"""Functions of asyncio whose result is an awaitable."""

_WRITTEN_OUT: dict[type[ast.expr], str] = {
    ast.List: "a list",
    ast.ListComp: "a list",
    ast.Tuple: "a tuple",
    ast.Dict: "a dict",
    ast.DictComp: "a dict",
    ast.Set: "a set",
    ast.SetComp: "a set",
    ast.GeneratorExp: "a generator",
    ast.Constant: "a constant",
    ast.JoinedStr: "a text",
    ast.Compare: "a comparison",
}

_CALLS_KEY = frozenset({"sorted", "min", "max", "filter"})


def check_awaits(survey: Survey) -> None:
    """Find calls of tools and of the script's own async functions whose await is missing."""
    if not survey.uses_async:
        return
    own = _own_async(survey)
    for node in survey.nodes:
        if isinstance(node, ast.Call) and (name := _async_name(survey, own, node)) is not None:
            _check_call(survey, node, name)
        elif isinstance(node, ast.Await):
            _check_await(survey, node)
        if isinstance(node, ast.Call):
            _check_callbacks(survey, own, node)
            _check_gathered(survey, node)


def _own_async(survey: Survey) -> set[str]:
    return {
        name
        for name, binders in survey.binders.items()
        if len(binders) == 1
        and isinstance(binders[0], ast.AsyncFunctionDef)
        and not _is_generator(binders[0])
        if not binders[0].decorator_list and not isinstance(survey.parents.get(binders[0]), ast.ClassDef)
    }


def _is_generator(node: ast.AST) -> bool:
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, (ast.Yield, ast.YieldFrom)):
            return True
        pending.extend(children(part))
    return False


def _async_name(survey: Survey, own: set[str], call: ast.Call) -> str | None:
    stub = survey.tool_of(call.func)
    if stub is not None:
        return stub.name
    if isinstance(call.func, ast.Attribute) and call.func.attr in _AWAITED and _is_asyncio(survey, call.func):
        # On a line of its own it is no tool call that goes missing: a note at the end of the run is enough.
        is_alone = isinstance(survey.parents.get(call), ast.Expr)
        return None if is_alone else f"asyncio.{call.func.attr}"
    return call.func.id if isinstance(call.func, ast.Name) and call.func.id in own else None


def _is_asyncio(survey: Survey, function: ast.Attribute) -> bool:
    binders = survey.binders.get("asyncio", [])
    is_imported = bool(binders) and all(
        isinstance(binder, ast.alias)
        and isinstance(survey.parents.get(binder), ast.Import)
        and binder.name == "asyncio"
        for binder in binders
    )
    return is_imported and isinstance(function.value, ast.Name) and function.value.id == "asyncio"


def _check_gathered(survey: Survey, call: ast.Call) -> None:
    """Find ``gather([...])``: it takes the awaitables one by one."""
    if not (
        isinstance(call.func, ast.Attribute) and call.func.attr == "gather" and _is_asyncio(survey, call.func)
    ):
        return
    if survey.is_caught(call, "TypeError"):
        return
    for argument in call.args:
        value, is_item = (
            survey.only_value(argument.id) if isinstance(argument, ast.Name) else (argument, False)
        )
        if not is_item and isinstance(
            value, ast.ListComp | ast.List | ast.GeneratorExp | ast.Tuple | ast.SetComp | ast.Set
        ):
            shown = ast.unparse(argument)
            shown = shown if len(shown) <= 60 else "calls"
            message = "asyncio.gather() takes the awaitables one by one, not in a list"
            survey.find(argument, "missing_star", message, f"write `asyncio.gather(*{shown})`")


def _check_call(survey: Survey, call: ast.Call, name: str) -> None:
    if survey.is_caught(call, "TypeError"):
        return
    if isinstance(survey.parents.get(call), ast.withitem) and survey.tool_of(call.func) is not None:
        message = f"{name}(...) gives a value, no context manager"
        survey.find(call, "needless_with", message, f"write `result = await {name}(...)`, without `with`")
        return
    use = _use(survey, call)
    if use is None and isinstance(survey.parents.get(call), (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
        use = _use_of_name(survey, call)
    if use is None:
        return
    where = f" (line {call.lineno})"
    parent = survey.parents.get(call)
    around = survey.parents.get(parent) if parent is not None else None
    if isinstance(parent, (ast.Subscript, ast.Attribute)) and isinstance(around, ast.Await):
        hint = f"put the await in brackets: `(await {name}(...)){_tail(parent)}`"
    else:
        hint = f"write `await {name}(...)`"
    message = f"{name}(...) returned an awaitable: write `await {name}(...)`{where} before {use}"
    survey.find(call, "missing_await", message, hint)


def _tail(node: ast.Subscript | ast.Attribute) -> str:
    return f".{node.attr}" if isinstance(node, ast.Attribute) else f"[{ast.unparse(node.slice)}]"


def _use_of_name(survey: Survey, call: ast.Call) -> str | None:
    """Return how a variable that only ever holds the awaitable is used, when every use needs the value."""
    parent = survey.parents[call]
    target = parent.targets[0] if isinstance(parent, ast.Assign) else getattr(parent, "target", None)
    if not isinstance(target, ast.Name) or survey.only_value(target.id)[0] is not call:
        return None
    uses = [_use(survey, node) for node in survey.loads.get(target.id, [])]
    return uses[-1] if uses and all(use is not None for use in uses) else None


def _use(survey: Survey, node: ast.expr) -> str | None:
    """Return in words how the value of an expression is used, when that certainly needs the value."""
    parent = survey.parents.get(node)
    match parent:
        case ast.Subscript(value=value) if value is node:
            return "indexing it"
        case ast.Attribute(value=value) if value is node:
            return f"reading .{parent.attr}"
        case ast.BinOp() | ast.UnaryOp():
            return "calculating with it"
        case ast.Compare(ops=ops) if not all(isinstance(op, (ast.Is, ast.IsNot)) for op in ops):
            return "comparing it"
        case ast.FormattedValue():
            return "printing it"
        case ast.For(iter=source) | ast.AsyncFor(iter=source) | ast.comprehension(iter=source) if (
            source is node
        ):
            return "looping over it"
        case ast.Starred():
            return "unpacking it"
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if test is node:
            return "testing it"
        case ast.Expr():
            return "going on: as written, the call is never made"
        case ast.Call(func=ast.Name(id=name)) if name in _USES_VALUES and name not in survey.binders:
            return f"passing it to {name}()" if node in parent.args else None
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            return "unpacking it"
        case _:
            return None


def _check_await(survey: Survey, node: ast.Await) -> None:
    """Find ``await`` on a built-in function or on something written out: neither is an awaitable."""
    call = node.value
    if type(call) in _WRITTEN_OUT:
        hint = "leave `await` out; for several calls write `await asyncio.gather(*calls)`"
        survey.find(node, "needless_await", f"{_WRITTEN_OUT[type(call)]} is no awaitable", hint)
        return
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
        name = call.func.id
        if name in _USES_VALUES and name in NAMES and name not in survey.binders:
            survey.find(
                node, "needless_await", f"{name}(...) gives no awaitable", f"leave `await` out: `{name}(...)`"
            )


def _check_callbacks(survey: Survey, own: set[str], call: ast.Call) -> None:
    """Find async functions given to ``sorted(key=...)`` or ``filter(...)``, which cannot await."""
    is_sort = isinstance(call.func, ast.Attribute) and call.func.attr == "sort"
    if isinstance(call.func, ast.Name) and call.func.id in _CALLS_KEY and call.func.id not in survey.binders:
        caller = call.func.id
    elif is_sort:
        caller = "sort"
    else:
        return
    callbacks = [keyword.value for keyword in call.keywords if keyword.arg == "key"]
    if caller == "filter":
        callbacks = call.args[:1]
    what = "predicate" if caller == "filter" else "key"
    for node in callbacks:
        inner = node.body if isinstance(node, ast.Lambda) else node
        target = inner.func if isinstance(inner, ast.Call) else inner
        is_lambda = isinstance(node, ast.Lambda)
        stub = survey.tool_of(target)
        name = stub.name if stub is not None else target.id if isinstance(target, ast.Name) else None
        if name is None or (stub is None and name not in own) or is_lambda is not isinstance(inner, ast.Call):
            continue
        if caller == "filter":
            message = f"{name}() returns an awaitable, which is always true: filter() cannot await it"
            hint = "use a comprehension: `[x for x in rows if await f(x)]`"
        else:
            message = (
                f"the {what} of {caller}() returned an awaitable: {name}() has to be awaited, a {what} cannot"
            )
            gather = f"await asyncio.gather(*[{name}(...) for x in rows])"
            hint = f"fetch the values first, `values = {gather}`, then sort"
        survey.find(inner, "missing_await", message, hint)
