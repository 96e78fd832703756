"""``eval`` for scripts: one expression, compiled as the script itself was, with the same guards in it.

The text is parsed, checked and transformed by the same code as a script, so what a script may not write, it
may not evaluate; the result runs with the script's own globals and hidden helpers. Length and depth are
bounded far below a script's, because it can be called at any depth of the C stack. There is no ``exec``:
statements bind names, and what is bound where is decided for the whole script before it runs.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Mapping
from types import CodeType, FrameType

from bascule.guest import hidden
from bascule.guest.bindings import Bindings
from bascule.guest.compiler import deep_recursion, named_as_in_a_module
from bascule.guest.guards import Guards
from bascule.guest.hidden import GuardedNames
from bascule.guest.outline import outline, too_many_blocks
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.source import RAISES, Source
from bascule.guest.transformer import ScriptTransformer

MAX_CHARACTERS = 1_000
"""Longest expression."""

MAX_DEPTH = 100
"""Deepest nesting of an expression."""

EVAL_FILE = "<eval>"
"""File name of evaluated code: errors in it are reported at the line of the script that called."""

_KEPT = 256
"""Expressions whose code is kept, for scripts that evaluate one in a loop."""

_Compiled = tuple[CodeType, GuardedNames, tuple[str, ...]]


def build_eval(namespace: dict[str, object], guards: Guards) -> Callable[[str], object]:
    """Return the ``eval`` of one run.

    Args:
        namespace: the globals of the script; hidden sets of attribute names are added to it.
        guards: those of the script.
    """
    kept: dict[tuple[str, frozenset[str]], _Compiled] = {}

    def eval(source: str, /, *namespaces: object) -> object:
        if namespaces:
            raise TypeError("eval() takes one argument here: it sees the variables around the call")
        # A str subclass could be another text each time it is looked at.
        if type(source) is not str:
            raise TypeError("eval() arg 1 must be a string")
        around = _variables()
        key = (source, frozenset(around))
        compiled = kept.get(key)
        if compiled is None:
            compiled = _compile(source, around, namespace)
            if len(kept) < _KEPT:
                kept[key] = compiled
            namespace.update(guards.globals(compiled[1]))
        code, _, names = compiled
        made: dict[str, Callable[..., tuple[str, object]]] = {}
        exec(code, namespace, made)
        return made[hidden.SCRIPT](*[around[name] for name in names])[1]

    return eval


def _variables() -> dict[str, object]:
    """Return the variables of the function of the script that called, without what is hidden."""
    # There is no public way to the caller's frame.
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_code.co_filename not in (SCRIPT_FILE, EVAL_FILE):
        frame = frame.f_back
    found = {} if frame is None else frame.f_locals
    return {name: value for name, value in found.items() if name.isidentifier()}


def _compile(text: str, around: Mapping[str, object], namespace: Mapping[str, object]) -> _Compiled:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"eval() takes at most {MAX_CHARACTERS} characters here, this text has {len(text)}")
    with deep_recursion(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body = ast.parse(text.lstrip(" \t"), EVAL_FILE, "eval").body
        module = ast.Module([hidden.place(ast.Return(body), body)], [])
        whole = outline(module)
        if whole.too_deep or too_many_blocks(whole) or _height(module) > MAX_DEPTH:
            raise ValueError("the text given to eval() is nested too deeply")
        used = {node.id for node in whole.nodes if isinstance(node, ast.Name)}
        # Another eval in the text sees what is around this one.
        names = tuple(sorted(around if "eval" in used else used & around.keys()))
        bound = frozenset(name for name in (*namespace, *around) if name.isidentifier())
        bindings = Bindings(anywhere=bound, classes=frozenset(), shared=bound)
        transformer = ScriptTransformer(Source(lines=(text,)), bindings)
        made = transformer.visit_Module(module)
        _refuse(transformer, whole.nodes)
        (function,) = made.body
        assert isinstance(function, ast.FunctionDef)
        function.args.args = [hidden.place(ast.arg(name), function) for name in names]
        code = named_as_in_a_module(compile(made, EVAL_FILE, "exec", dont_inherit=True))
    guarded = GuardedNames(
        attributes=frozenset(transformer.attribute_names),
        classes=frozenset(transformer.class_names),
        supers=frozenset(transformer.super_names),
    )
    return code, guarded, names


def _refuse(transformer: ScriptTransformer, nodes: list[ast.AST]) -> None:
    """Raise what plain Python would, for the first thing that is wrong."""
    for finding in transformer.findings:
        error = _ERRORS.get(RAISES.get(finding.kind, ""), SyntaxError)
        raise error(f"in the text given to eval(): {finding.message}")
    if transformer.uses_async:
        raise SyntaxError("in the text given to eval(): `await` is not available there")
    if any(isinstance(node, ast.NamedExpr) for node in nodes):
        raise SyntaxError("in the text given to eval(): `:=` is not available there")


_ERRORS: dict[str, type[Exception]] = {"NameError": NameError, "AttributeError": AttributeError}


def _height(tree: ast.AST) -> int:
    height, level = 0, [tree]
    while level:
        height += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return height
