"""Small repairs of what models write around a script, each one reported in a note.

Decides only about the wrapping: Markdown fences, a common indent, a ``main`` that nobody calls, a forgotten
``await`` in front of it. Line numbers stay those of the submitted text: removed lines are left empty.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Collection

from bascule.guest.bindings import bound_by
from bascule.guest.outline import Outline
from bascule.guest.source import Source
from bascule.wire import Note

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*[\w+.-]*\s*$")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


# -------------------------------------------------------------------- text


def clean_text(text: str) -> tuple[Source, str, list[Note]]:
    """Return the submitted lines, the text to parse with the same line numbers, and what was changed."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    kept, notes = _without_fence(lines)
    indent = _common_indent(kept)
    if indent:
        notes.append(
            Note(code="dedented", message="the script was indented as a whole: the indent was removed")
        )
    parsed = [line[indent:] if line.strip() else "" for line in kept] if indent else kept
    return Source(lines=tuple(lines), indent=indent), "\n".join(parsed), notes


def _without_fence(lines: list[str]) -> tuple[list[str], list[Note]]:
    fences = [index for index, line in enumerate(lines) if _FENCE.match(line)]
    if not fences or _parses(lines):
        return lines, []
    opening = fences[0]
    closing = next((index for index in fences[1:] if lines[index].strip().strip("`~") == ""), len(lines))
    if any(index > closing for index in fences):
        return lines, []  # several blocks: nobody can say which is meant
    outside = [index for index in range(len(lines)) if not opening < index < closing]
    prose = any(lines[index].strip() for index in outside if index not in (opening, closing))
    message = "the Markdown fence around the script was removed"
    if prose:
        message += ", with the text outside it"
    kept = ["" if index in set(outside) else line for index, line in enumerate(lines)]
    return kept, [Note(code="fence_removed", message=message, line=opening + 1)]


def _parses(lines: list[str]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _common_indent(lines: list[str]) -> int:
    """Return the width of the whitespace that all lines with text begin with."""
    filled = [line for line in lines if line.strip()]
    if not filled:
        return 0
    first = filled[0]
    prefix = first[: len(first) - len(first.lstrip(" \t"))]
    while prefix and not all(line.startswith(prefix) for line in filled):
        prefix = prefix[:-1]
    return len(prefix) if first[: len(prefix) + 1].strip() else 0


# -------------------------------------------------------------------- tree


def clean_tree(tree: ast.Module, whole: Outline, tool_names: Collection[str]) -> list[Note]:
    """Repair the tree in place and return what was changed."""
    functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
    notes = _call_main(tree, whole, functions)
    asynchronous = {name for name, node in functions.items() if isinstance(node, ast.AsyncFunctionDef)}
    if whole.has_async and tree.body:
        asynchronous |= set(tool_names) - {name for node in whole.nodes for name in bound_by(node)}
        notes += _await_last(tree.body, asynchronous)
    return notes


def _call_main(tree: ast.Module, whole: Outline, functions: dict[str, _Function]) -> list[Note]:
    main = functions.get("main")
    if main is None or _required(main.args):
        return []
    if any(isinstance(node, ast.Name) and node.id == "main" for node in whole.nodes):
        return []
    call: ast.expr = _at(ast.Call(_at(ast.Name("main", ast.Load()), main), [], []), main)
    is_async = isinstance(main, ast.AsyncFunctionDef)
    if is_async:
        call = _at(ast.Await(call), main)
    tree.body.append(ast.copy_location(ast.Expr(call), main))
    how = "await main()" if is_async else "main()"
    message = f"main() was defined and never called: `{how}` was added"
    return [Note(code="main_called", message=message, line=main.lineno)]


def _required(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults)
    return positional > 0 or any(default is None for default in arguments.kw_defaults)


def _await_last(body: list[ast.stmt], asynchronous: set[str]) -> list[Note]:
    """Await an asynchronous call that ends the script, which could have no other meaning."""
    last = body[-1]
    if isinstance(last, ast.If) and not last.orelse and isinstance(last.test, ast.Compare):
        left = last.test.left
        is_main = isinstance(left, ast.Name) and left.id == "__name__"
        return _await_last(last.body, asynchronous) if is_main else []
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return []
    function = last.value.func
    if not (isinstance(function, ast.Name) and function.id in asynchronous):
        return []
    last.value = _at(ast.Await(last.value), last.value)
    message = f"`await` was added in front of {function.id}(...)"
    return [Note(code="await_added", message=message, line=last.lineno)]


def _at(node: ast.expr, origin: ast.AST) -> ast.expr:
    return ast.copy_location(node, origin)
