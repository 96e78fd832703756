"""Everything that is certainly wrong with a script, found before anything of it runs.

One list, so that the model can fix all of it at once and no side effect happens for a script that cannot
work. Only certainties count: a doubtful case is left to the run.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from bascule.guest.await_checks import check_awaits
from bascule.guest.call_checks import check_tool_calls
from bascule.guest.compiler import CompiledScript, ParsedScript, ScriptRefused, parse_script, try_compile
from bascule.guest.field_checks import check_fields
from bascule.guest.name_checks import check_imports, check_module_attributes, check_names
from bascule.guest.survey import Survey
from bascule.wire import ScriptError, ToolStub

MAX_FINDINGS = 25
"""Findings reported at once; the first ones are the ones to fix first."""

_CHECKS = (check_imports, check_names, check_module_attributes, check_tool_calls, check_awaits, check_fields)


def check_script(
    text: str, stubs: Sequence[ToolStub], known: Collection[str] = (), *, rehearsal: bool = False
) -> CompiledScript:
    """Compile a script and check it against its tools.

    Args:
        known: names that earlier scripts of the session have left.
        rehearsal: it is only rehearsed; see `bascule.guest.identity`.

    Raises:
        ScriptRefused: with all findings of compiler and checks in one list, by line.
    """
    parsed = parse_script(text, tool_names=[stub.name for stub in stubs])
    findings = check_calls(parsed, stubs, known)
    compiled, errors = try_compile(parsed, rehearsal=rehearsal)
    found = ordered([*errors, *findings])
    if compiled is None or found:
        raise ScriptRefused(tuple(found))
    return compiled


def check_calls(
    parsed: ParsedScript, stubs: Sequence[ToolStub], known: Collection[str] = ()
) -> list[ScriptError]:
    """Return what is certainly wrong with names, imports, tool calls, awaits and fields, by line."""
    survey = Survey(parsed.source, parsed.outline, stubs, known)
    for check in _CHECKS:
        check(survey)
    return ordered(survey.findings)


def ordered(findings: Iterable[ScriptError]) -> list[ScriptError]:
    """Sort findings by place, keep one for each place and kind, and not more than can be read.

    What Python itself cannot compile comes first: it decides whether the rest was understood at all.
    """
    unique: dict[tuple[int, int, str, str], ScriptError] = {}
    for finding in findings:
        message = finding.message if finding.kind == "invalid_arguments" else ""
        unique.setdefault((finding.line or 0, finding.column or 0, finding.kind, message), finding)
    places = sorted(unique, key=lambda key: (key[2] != "syntax_error", *key[:2]))
    return [unique[key] for key in places][:MAX_FINDINGS]
