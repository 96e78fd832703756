"""What a model is told of a run: one bounded text, and the same as bounded data for hosts that take both.

Output, values and messages come from scripts and tools: untrusted text, already free of the host's secrets.
A text that is too long loses its middle; the handle in its place reads the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from bascule.bridge.result import JsonValue, Result, Status
from bascule.models.definitions import JsonObject
from bascule.models.run_tokens import RunTokens
from bascule.wire import ScriptError

MAX_CALLS_SHOWN: Final = 50
_NOTHING: Final = "The script ended without printing anything and without a value."


@dataclass(frozen=True, slots=True, kw_only=True)
class SurfaceResult:
    """What became of one call of a model.

    Attributes:
        text: for the model; bounded.
        data: the same as plain JSON, bounded as well.
        is_error: the call did not do what was asked.
        run_id, status: of the run behind it, when there is one; ``suspended`` waits for people or time.
        result: all of that run, for hosts; never for the model.
        tokens: what that run cost a model, and what its calls would have cost directly; for hosts as well.
    """

    text: str
    data: JsonValue = None
    is_error: bool = False
    run_id: str | None = None
    status: Status | None = None
    result: Result | None = None
    tokens: RunTokens | None = None


def refuse(text: str, *, code: str) -> SurfaceResult:
    """Return the answer to a call that was not made."""
    return SurfaceResult(text=text, data={"error": {"kind": code, "message": text}}, is_error=True)


def render_run(result: Result, *, max_chars: int, direct: bool = False) -> SurfaceResult:
    """Return what a model is told of a run.

    Args:
        max_chars: longest text; more is cut in the middle.
        direct: the run made one call that the model wrote as a function call, not as a script.
    """
    if result.status == "suspended":
        text = _suspended_text(result)
    elif direct:
        text = _direct_text(result)
    else:
        text = result.for_model() or (_NOTHING if result.status == "ok" else result.status)
    return SurfaceResult(
        text=cut_middle(text, max_chars, handle=result.run_id),
        data=_data(result, max_chars),
        is_error=result.status not in ("ok", "suspended"),
        run_id=result.run_id,
        status=result.status,
        result=result,
    )


def whole_text(result: Result, *, direct: bool) -> str:
    """Return the text that `render_run` cuts, for `read_output`."""
    return _direct_text(result) if direct else result.for_model()


def cut_middle(text: str, max_chars: int, *, handle: str) -> str:
    """Return text with its middle replaced by how to read it, when it is longer than ``max_chars``."""
    if len(text) <= max_chars:
        return text
    head = max_chars * 2 // 3
    tail = max_chars - head
    note = (
        f"\n[... {len(text) - max_chars} of {len(text)} characters left out here;"
        f" read_output(handle={handle!r}, offset={head}) returns them. Print less: filter or sum up in the"
        " script. ...]\n"
    )
    return f"{text[:head]}{note}{text[-tail:]}"


def _suspended_text(result: Result) -> str:
    why = "" if result.error is None else result.error.message.removeprefix("suspended: ")
    lines = [
        f"Run {result.run_id} is not finished: {why or 'it waits'}.",
        "Nothing is wrong; do not send the same again. Until somebody decides, get_run tells how it stands;"
        " after that, resume_run goes on with it and returns its result.",
    ]
    if result.happened:
        lines += ["Made so far:", *(f"- {line}" for line in result.happened)]
    return "\n".join(lines)


def _direct_text(result: Result) -> str:
    if result.status == "ok":
        notes = [f"note: {note.message}" for note in result.notes if note.code == "call_edited"]
        value = result.value
        return "\n".join([value if isinstance(value, str) else msgspec.json.encode(value).decode(), *notes])
    return "\n".join(map(_direct_error, result.errors)) or result.status


def _direct_error(error: ScriptError) -> str:
    name = error.exception or error.kind
    text = f"{name}: {error.message.removeprefix(f'{name}: ')}"
    return f"{text}\nhint: {error.suggestion}" if error.suggestion else text


def _data(result: Result, max_chars: int) -> JsonObject:
    value = result.value
    cut_value = len(msgspec.json.encode(value)) > max_chars
    data: JsonObject = {
        "run_id": result.run_id,
        "status": result.status,
        "value": None if cut_value else value,
        "value_source": result.value_source,
        "output": cut_middle(result.output, max_chars, handle=result.run_id),
        "cut": cut_value or len(result.output) > max_chars,
        "errors": [_error_data(each) for each in result.errors[:10]],
        "notes": [note.message for note in result.notes[:10]],
        "calls": [
            {"seq": call.seq, "tool": call.tool[:200], "state": call.state}
            for call in result.calls[:MAX_CALLS_SHOWN]
        ],
        "calls_made": len(result.calls),
    }
    return data


def _error_data(error: ScriptError) -> JsonObject:
    return {
        "kind": error.kind,
        "message": error.message,
        "line": error.line,
        "suggestion": error.suggestion,
    }
