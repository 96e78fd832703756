"""Whatever script comes: it is refused with findings or runs; it reaches nothing unlisted; it never lies.

Scripts without hostile names are compared with plain CPython: the same output, or an error that says so.
"""

from __future__ import annotations

import io
import os
import re
import types
import warnings
from contextlib import suppress
from typing import Any, cast

from hypothesis import HealthCheck, event, given, settings

from bascule.guest.compiler import ScriptRefused, compile_script
from bascule.guest.ending import RunEnded
from bascule.guest.guards import Guards
from bascule.guest.namespace import build_namespace
from bascule.guest.run import Run
from bascule.wire import Finish, Start
from tests.escape.test_reachability import FORBIDDEN_BUILTINS, FORBIDDEN_TYPES, OPAQUE
from tests.property.script_grammar import scripts
from tests.unit.guest.harness import NOW, MemoryHost, guest_limits, run

EXAMPLES = int(os.environ.get("BASCULE_GRAMMAR_EXAMPLES", "60"))
"""Scripts per property; `make escape` asks for more by the variable."""

_SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
_MAX_DEPTH = 5
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")

STATUSES = {"ok", "failed", "refused", "limit"}


@_SETTINGS
@given(scripts(hostile=True))
def test_any_script_is_refused_with_findings_or_runs_the_same_twice(script: str) -> None:
    first, second = run(script), run(script)
    event(first.status)
    assert first.status in STATUSES
    assert bool(first.errors) == (first.status != "ok")
    assert (first.output, first.status, first.errors, first.notes, first.value) == (
        *(second.output, second.status, second.errors, second.notes, second.value),
    )
    assert "0x7f" not in first.output


def _end(finish: Finish) -> Any:
    raise RunEnded(finish)


def _fields(value: Any) -> list[object]:
    return [*cast("dict[str, object]", getattr(value, "__dict__", {})).values()]


def _outside(value: object, guards: Guards, seen: set[int], depth: int = 0) -> str | None:
    """Say what can be reached from a variable of the script that no table lists."""
    if id(value) in seen or depth > _MAX_DEPTH:
        return None
    seen.add(id(value))
    kind = type(value)
    fields = _fields(value)
    if isinstance(value, FORBIDDEN_TYPES) or id(value) in FORBIDDEN_BUILTINS:
        return f"{value!r}"
    if isinstance(value, type):
        nameable = guards.classes.is_nameable(value) or value in guards.tables.instances
        return None if nameable else f"class {value!r}"
    if not (kind in guards.tables.instances or guards.classes.is_known(kind) or isinstance(value, OPAQUE)):
        return f"{kind!r}"
    inside: list[object] = []
    if isinstance(value, dict):
        inside = [*cast("dict[object, object]", value), *cast("dict[object, object]", value).values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inside = list(cast("list[object]", value))
    if guards.classes.is_known(kind):
        inside += fields
    return next((bad for item in inside if (bad := _outside(item, guards, seen, depth + 1))), None)


@_SETTINGS
@given(scripts(hostile=True))
def test_no_script_holds_anything_unlisted(script: str) -> None:
    try:
        compiled = compile_script(script, tool_names=())
    except ScriptRefused:
        event("refused")
        return
    start = Start(script=script, tools=(), seed=0, now=NOW, limits=guest_limits())
    part = Run(start, MemoryHost(tools={}), _end)
    namespace = build_namespace(compiled, part.environment, {})
    guards = cast(Guards, cast(Any, namespace["<check>"]).__self__)
    exec(compiled.code, namespace)
    result: object = None
    with suppress(Exception, RunEnded):
        result = cast(Any, namespace["<script>"])()
    if isinstance(result, types.CoroutineType):
        result.close()
        result = None
    held = {name: value for name, value in namespace.items() if not name.startswith(("<", "__"))}
    event("ran")
    for name, value in {**held, "the result": result}.items():
        assert _outside(value, guards, set()) is None, name
    part.loop.close()


def _by_cpython(script: str) -> tuple[str, str | None]:
    """Run a script of ours, which uses nothing but values of its own, without any guard."""
    output = io.StringIO()

    def show(*values: object) -> None:
        print(*values, file=output)

    namespace: dict[str, Any] = {"__name__": "__main__", "print": show}
    error: str | None = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(script, "<plain>", "exec"), namespace)
    except Exception as failure:  # whatever a script raises is its outcome
        error = type(failure).__name__
    return _ADDRESS.sub("", output.getvalue()), error


@_SETTINGS
@given(scripts(hostile=False))
def test_a_script_prints_what_cpython_prints_or_fails(script: str) -> None:
    outcome = run(script)
    event(outcome.status)
    if outcome.status == "refused":
        return
    output, error = _by_cpython(script)
    if outcome.status == "ok":
        assert (outcome.output, error) == (output, None)
    else:
        assert output.startswith(outcome.output)
