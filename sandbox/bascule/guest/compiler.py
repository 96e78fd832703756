"""From the submitted text to code that may run: clean, parse, transform, compile.

The text is the model's and may be hostile. Everything that can go wrong with it, syntax errors, bytes that
are no text, nesting that exhausts the compiler, ends in ScriptRefused with findings; nothing else leaves.
Runs in the guest only: CPython's compiler can be crashed or stalled by hostile text.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType

from bascule.guest.bindings import bound_anywhere
from bascule.guest.cleanup import clean_text, clean_tree
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.source import Source
from bascule.guest.syntax_errors import syntax_error
from bascule.guest.transformer import ScriptTransformer
from bascule.wire import Note, ScriptError

MAX_SOURCE_BYTES = 256 << 10
"""Longest script, in UTF-8 bytes."""

MAX_DEPTH = 120
"""Deepest nesting of the syntax tree; longer chains of operators or attributes count as nesting."""

_RECURSION = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledScript:
    """A script that may run.

    Attributes:
        code: running it defines ``<script>``; ``<script>()`` returns, or as a coroutine gives, the pair
            ``(value_source, value)``.
        is_async: whether ``<script>`` is a coroutine function.
        uses_async: whether tool calls give awaitables.
        source: the submitted lines.
        tree: the script as parsed and cleaned up, before the guards were put in.
        notes: what clean-up changed.
        attribute_names: names for which the code reads a set of types.
    """

    code: CodeType
    is_async: bool
    uses_async: bool
    source: Source
    tree: ast.Module
    notes: tuple[Note, ...]
    attribute_names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedScript:
    """A script whose text is Python."""

    source: Source
    tree: ast.Module
    notes: tuple[Note, ...]


class ScriptRefused(Exception):
    """Raised when a script cannot run: show ``errors`` to its author."""

    def __init__(self, errors: tuple[ScriptError, ...]) -> None:
        super().__init__(errors[0].message if errors else "refused")
        self.errors = errors


def compile_script(
    text: str, *, tool_names: Collection[str], force_async: bool | None = None
) -> CompiledScript:
    """Compile a script.

    Args:
        text: the submitted text.
        tool_names: names of the tools; only used to know which top-level calls need an await.
        force_async: decides ``uses_async`` instead of the script's syntax.

    Raises:
        ScriptRefused: with everything that is wrong.
    """
    compiled, errors = try_compile(parse_script(text, tool_names=tool_names), force_async=force_async)
    if compiled is None:
        raise ScriptRefused(tuple(errors))
    return compiled


def parse_script(text: str, *, tool_names: Collection[str]) -> ParsedScript:
    """Clean and parse a script.

    Raises:
        ScriptRefused: it is not Python, or too large.
    """
    source, parsed, notes = clean_text(_checked_text(text))
    with _deep_recursion():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(parsed, SCRIPT_FILE, "exec")
        except SyntaxError as error:
            raise ScriptRefused((syntax_error(error, source),)) from None
        except (RecursionError, MemoryError, ValueError) as error:
            raise ScriptRefused((_too_deep(source, None, str(error)),)) from None
    deep = _too_deep_node(tree)
    if deep is not None:
        raise ScriptRefused((_too_deep(source, deep, ""),))
    notes += clean_tree(tree, source, tool_names)
    return ParsedScript(source=source, tree=tree, notes=tuple(notes))


def try_compile(
    parsed: ParsedScript, *, force_async: bool | None = None
) -> tuple[CompiledScript | None, list[ScriptError]]:
    """Compile a parsed script, or return what is wrong with it; one of the two is empty."""
    source = parsed.source
    with _deep_recursion():
        try:
            tree = _copy(parsed.tree)
            transformer = ScriptTransformer(source, frozenset(bound_anywhere(tree)))
            made = transformer.visit_Module(tree)
            if transformer.findings:
                return None, transformer.findings
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = compile(made, SCRIPT_FILE, "exec", dont_inherit=True)
        except SyntaxError as error:
            return None, [syntax_error(error, source)]
        except (RecursionError, MemoryError, ValueError) as error:
            return None, [_too_deep(source, None, str(error))]
    return (
        CompiledScript(
            code=code,
            is_async=transformer.top_level_async,
            uses_async=transformer.uses_async if force_async is None else force_async,
            source=source,
            tree=parsed.tree,
            notes=parsed.notes,
            attribute_names=frozenset(transformer.attribute_names),
        ),
        [],
    )


def _checked_text(text: str) -> str:
    if type(text) is not str:
        raise ScriptRefused((ScriptError(kind="syntax_error", message="a script is text"),))
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise ScriptRefused(
            (ScriptError(kind="syntax_error", message="the script holds surrogates, which are no text"),)
        ) from None
    if size > MAX_SOURCE_BYTES:
        message = f"the script has {size} bytes, at most {MAX_SOURCE_BYTES} are accepted"
        raise ScriptRefused(
            (ScriptError(kind="too_large", message=message, suggestion="fetch data with tools instead"),)
        )
    if "\0" in text:
        raise ScriptRefused((ScriptError(kind="syntax_error", message="the script holds a NUL character"),))
    return text


def _too_deep(source: Source, node: ast.AST | None, detail: str) -> ScriptError:
    message = "the script is nested too deeply or has too long a chain of operators or attributes"
    hint = "split the expression into several statements"
    if node is None:
        return source.error("too_deep", message, suggestion=hint)
    return source.error_at(node, "too_deep", message, suggestion=hint)


def _too_deep_node(tree: ast.AST) -> ast.AST | None:
    """Return the first node that lies too deep, without recursion of our own."""
    level: list[ast.AST] = [tree]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return None
    return next((node for node in level if hasattr(node, "lineno")), tree)


def _copy(tree: ast.Module) -> ast.Module:
    """Copy the tree: the transformer works in place and preflight reads the original."""
    return _copy_node(tree)  # type: ignore[return-value]


def _copy_node(node: ast.AST) -> ast.AST:
    made = node.__class__.__new__(node.__class__)
    fields: dict[str, object] = {}
    for name, value in node.__dict__.items():
        if isinstance(value, ast.AST):
            fields[name] = _copy_node(value) if value._fields or value._attributes else value
        elif type(value) is list:
            fields[name] = [_copy_node(item) if isinstance(item, ast.AST) else item for item in value]
        else:
            fields[name] = value
    made.__dict__.update(fields)
    return made


@contextmanager
def _deep_recursion() -> Iterator[None]:
    """Let the compiler's walks go as deep as MAX_DEPTH allows; they hold little C stack each."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
