"""From the submitted text to code that may run: clean, parse, transform, compile.

The text is the model's and may be hostile. Everything that can go wrong with it, syntax errors, bytes that
are no text, nesting that exhausts the compiler, ends in ScriptRefused with findings; nothing else leaves.
Runs in the guest only: CPython's compiler can be crashed or stalled by hostile text.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Collection, Generator
from contextlib import contextmanager
from types import CodeType

import msgspec

from bascule.guest import hidden
from bascule.guest.bindings import survey_bindings
from bascule.guest.cleanup import clean_text, clean_tree
from bascule.guest.hidden import GuardedNames
from bascule.guest.identity import IdentityWatch
from bascule.guest.outline import MAX_BLOCKS, Outline, outline, too_many_blocks
from bascule.guest.position import SCRIPT_FILE
from bascule.guest.source import Source
from bascule.guest.syntax_errors import syntax_error
from bascule.guest.transformer import ScriptTransformer
from bascule.wire import Note, ScriptError

MAX_SOURCE_BYTES = 256 << 10
"""Longest script, in UTF-8 bytes."""

_RECURSION = 20_000
_WRAPPER = f"{hidden.SCRIPT}.<locals>."


class CompiledScript(msgspec.Struct, frozen=True, kw_only=True):
    """A script that may run.

    Attributes:
        code: running it defines ``<script>``; ``<script>()`` returns, or as a coroutine gives, the pair
            ``(value_source, value)``.
        is_async: whether ``<script>`` is a coroutine function.
        uses_async: whether tool calls give awaitables.
        source: the submitted lines.
        text: the script as it was parsed, with the line numbers of the submitted text.
        notes: what clean-up changed.
        names: the attribute names for which the code reads sets of types.
    """

    code: CodeType
    is_async: bool
    uses_async: bool
    source: Source
    text: str
    notes: tuple[Note, ...]
    names: GuardedNames

    @property
    def tree(self) -> ast.Module:
        """The script as parsed, made anew: the one that was compiled has the guards in it."""
        return ast.parse(self.text, SCRIPT_FILE)


class ParsedScript(msgspec.Struct, frozen=True, kw_only=True):
    """A script whose text is Python."""

    text: str
    source: Source
    tree: ast.Module
    outline: Outline
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
    with deep_recursion():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(parsed, SCRIPT_FILE, "exec")
        except SyntaxError as error:
            raise ScriptRefused((syntax_error(error, source),)) from None
        except (RecursionError, MemoryError, ValueError):
            raise ScriptRefused((_too_deep(source, None),)) from None
    whole = outline(tree)
    if whole.too_deep is not None:
        raise ScriptRefused((_too_deep(source, whole.too_deep),))
    if (node := too_many_blocks(whole)) is not None:
        raise ScriptRefused((_too_many_blocks(source, node),))
    if repairs := clean_tree(tree, whole, tool_names):
        whole = outline(tree)
        notes += repairs
    return ParsedScript(text=parsed, source=source, tree=tree, outline=whole, notes=tuple(notes))


def try_compile(
    parsed: ParsedScript, *, force_async: bool | None = None, rehearsal: bool = False
) -> tuple[CompiledScript | None, list[ScriptError]]:
    """Compile a parsed script, or return what is wrong with it; one of the two is empty.

    The tree of ``parsed`` is used up: guards are put into it.
    """
    source = parsed.source
    with deep_recursion():
        try:
            transformer = ScriptTransformer(source, survey_bindings(parsed.outline.nodes))
            made = transformer.visit_Module(parsed.tree)
            if transformer.findings:
                return None, transformer.findings
            if rehearsal:
                made = IdentityWatch().visit(made)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                code = named_as_in_a_module(compile(made, SCRIPT_FILE, "exec", dont_inherit=True))
        except SyntaxError as error:
            return None, [syntax_error(error, source)]
        except (RecursionError, MemoryError, ValueError):
            return None, [_too_deep(source, None)]
    return (
        CompiledScript(
            code=code,
            is_async=transformer.top_level_async,
            uses_async=transformer.uses_async if force_async is None else force_async,
            source=source,
            text=parsed.text,
            notes=parsed.notes,
            names=GuardedNames(
                attributes=frozenset(transformer.attribute_names),
                classes=frozenset(transformer.class_names),
                supers=frozenset(transformer.super_names),
            ),
        ),
        [],
    )


def named_as_in_a_module(code: CodeType) -> CodeType:
    """Take the script function out of the qualified names: ``repr`` of a lambda shows them."""
    inner = [named_as_in_a_module(item) if isinstance(item, CodeType) else item for item in code.co_consts]
    name = code.co_qualname.removeprefix(_WRAPPER)
    return code.replace(co_consts=tuple(inner), co_qualname=name)


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


def _too_many_blocks(source: Source, node: ast.AST) -> ScriptError:
    message = f"too many nested blocks and comprehensions, at most {MAX_BLOCKS} are accepted"
    hint = "move the inner ones into a function"
    return source.error_at(node, "too_deep", message, suggestion=hint)


def _too_deep(source: Source, node: ast.AST | None) -> ScriptError:
    message = "the script is nested too deeply or has too long a chain of operators or attributes"
    hint = "split the expression into several statements"
    if node is None:
        return source.error("too_deep", message, suggestion=hint)
    return source.error_at(node, "too_deep", message, suggestion=hint)


@contextmanager
def deep_recursion() -> Generator[None]:
    """Let the compiler's walks go as deep as the outline allows; they hold little C stack each."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
