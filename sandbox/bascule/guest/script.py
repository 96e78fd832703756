"""One run: the script goes in, the last frame comes out. Decides the outcome; trusts nothing the script does.

Nothing runs before the whole script is compiled and checked. Afterwards every way out ends here: a value, an
exception, a limit. Limits end the run without coming back; see ``ending.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from bascule.guest.aio.runner import run_to_end
from bascule.guest.compiler import CompiledScript, ScriptRefused
from bascule.guest.ending import RunEnded
from bascule.guest.leftovers import Leftovers
from bascule.guest.namespace import build_namespace, extend_namespace, names_left
from bascule.guest.preflight import check_script
from bascule.guest.report import describe_exception, position
from bascule.guest.run import Run, ValueSource
from bascule.guest.tasks import is_awaitable
from bascule.guest.values import render_result
from bascule.wire import Finish

Ending = Callable[[], Finish]
"""Makes the last frame once everything that still belongs to the run is known."""


def run_script(run: Run) -> Finish:
    """Run a script from its first check to its last frame.

    Limits end the run through ``run`` and do not come back, unless its ending raises RunEnded.
    """
    known = names_left(run.namespace) if run.namespace is not None else ()
    try:
        compiled = check_script(run.start.script, run.start.tools, known, rehearsal=run.start.rehearsal)
    except ScriptRefused as refused:
        return run.finish("refused", errors=refused.errors)
    run.compiled = compiled
    run.environment.notes.extend(compiled.notes)
    namespace, tools = run.namespace, run.tools(awaitable=compiled.uses_async)
    if namespace is None:
        namespace = build_namespace(compiled, run.environment, tools)
    else:
        extend_namespace(namespace, compiled, tools)
    if run.start.session:
        run.namespace = namespace
    try:
        return _execute(run, compiled, namespace)
    except RunEnded as ended:
        return ended.finish
    finally:
        run.loop.close()


def _execute(run: Run, compiled: CompiledScript, namespace: dict[str, object]) -> Finish:
    leftovers = Leftovers(run.environment.notes, run.loop)
    with leftovers.watching_coroutines():
        value: object = None
        source: ValueSource = "none"
        failure: BaseException | None = None
        try:
            exec(compiled.code, namespace)
            source, value = _call(run, compiled, cast("Callable[[], Any]", namespace["<script>"]))
            run.loop.finish_workers()
        except RunEnded:
            raise
        except BaseException as error:
            # Everything that leaves the script ends here, whatever its class: reported, never re-raised.
            failure = error
        ending = _ended_well(run, source, value) if failure is None else _failed(run, compiled, failure)
        value = failure = None
        run.loop.closed = True
        leftovers.close()
        if compiled.uses_async and not run.start.session:
            # Coroutines that are still held by a name are found when the name goes.
            namespace.clear()
    return ending()


def _call(run: Run, compiled: CompiledScript, function: Callable[[], Any]) -> tuple[ValueSource, object]:
    if compiled.is_async:
        return cast("tuple[ValueSource, object]", run_to_end(run.loop, _main(function)))
    source, value = function()
    return source, run_to_end(run.loop, value) if is_awaitable(value) else value


async def _main(function: Callable[[], Any]) -> tuple[ValueSource, object]:
    source, value = await function()
    return source, await value if is_awaitable(value) else value


def _ended_well(run: Run, source: ValueSource, value: object) -> Ending:
    plain, notes = render_result(value)
    run.environment.notes.extend(notes)
    return partial(run.finish, "ok", value=plain, value_source=source)


def _is_zero(code: object) -> bool:
    # Of another type, it may compare as it likes.
    return type(code) in (int, bool) and not code


def _failed(run: Run, compiled: CompiledScript, failure: BaseException) -> Ending:
    if isinstance(failure, SystemExit) and (failure.code is None or _is_zero(failure.code)):
        return partial(run.finish, "ok")
    if isinstance(failure, MemoryError):
        line, _ = position(failure, compiled.source)
        failure.__traceback__ = None
        return partial(run.out_of_memory, line)
    described = describe_exception(failure, compiled.source)
    if isinstance(failure, RecursionError):
        described = replace(described, message=run.recursion_message(described.line))
        return partial(run.finish, "limit", errors=(described,))
    return partial(run.finish, "failed", errors=(described,))
