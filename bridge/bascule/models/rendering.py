"""What a model is told of a run: one bounded text, and the same as bounded data for hosts that take both.

Output, values and messages come from scripts and tools: untrusted text, already free of the host's secrets.
What is too long is cut by `bascule.bridge.shaping`: values keep their shape, texts both ends, and a note says
what is missing and how `read_output` gives it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from bascule.bridge.outputs import Part
from bascule.bridge.result import JsonValue, Result, Status
from bascule.bridge.shaping import MIN_BYTES, shape
from bascule.models.definitions import JsonObject
from bascule.models.run_tokens import RunTokens
from bascule.wire import ScriptError

MIN_RESULT_BYTES: Final = 1_000
"""Room for a value, an output and remarks at once, each cut to what can still be said of it."""

MAX_CALLS_SHOWN: Final = 50
STARTED: Final = ("done", "failed", "running", "unknown")
"""States of calls that reached their tool."""

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


def render_run(result: Result, *, max_bytes: int, direct: bool = False) -> SurfaceResult:
    """Return what a model is told of a run.

    Args:
        max_bytes: of the text, at least `MIN_RESULT_BYTES`.
        direct: the run made one call that the model wrote as a function call, not as a script.
    """
    if result.status == "suspended":
        text = shape(_suspended_text(result), max_bytes=max_bytes).text
    else:
        text = _ended_text(result, max_bytes, direct=direct)
    return SurfaceResult(
        text=text,
        data=_data(result, max_bytes),
        is_error=result.status not in ("ok", "suspended"),
        run_id=result.run_id,
        status=result.status,
        result=result,
    )


def render_part(part: Part, *, handle: str, path: str, max_bytes: int) -> SurfaceResult:
    """Return what a model is told when it reads on in something that was cut.

    Args:
        max_bytes: of the part's text; a line that says where to go on is added.
    """
    shown = part.value if isinstance(part.value, str) else _json(part.value)
    if _size(shown) > max_bytes:  # one item or member that is too large by itself
        shown = shape(part.value, max_bytes=max_bytes).text
    text = shown
    if part.offset >= part.total > 0:
        text = f"[there are {part.total} {part.unit}; offset {part.offset} is behind the last]"
    elif part.next_offset is not None:
        ends = f"{part.unit} {part.offset} to {part.next_offset - 1} of {part.total}"
        text = f"{shown}\n[{ends}; go on with offset={part.next_offset}]"
    return SurfaceResult(
        text=text,
        data={
            "handle": handle,
            "path": path,
            "text": shown,
            "unit": part.unit,
            "offset": part.offset,
            "next_offset": part.next_offset,
            "total": part.total,
        },
    )


def _ended_text(result: Result, max_bytes: int, *, direct: bool) -> str:
    """Return output, value and remarks; where they are too long together, each cut to a share of the room."""
    value, output = result.value, "" if direct else result.output.rstrip("\n")
    has_value = result.has_value or (direct and result.status == "ok")
    shown = "" if not has_value else value if direct and isinstance(value, str) else _json(value)
    remarks = "\n".join(_direct_remarks(result) if direct else result.remarks)
    whole = "\n".join(part for part in (output, shown, remarks) if part)
    if not whole and not (has_value or direct):
        return _NOTHING if result.status == "ok" else result.status
    if _size(whole) <= max_bytes:
        return whole
    if remarks:
        remarks = shape(remarks, max_bytes=max(max_bytes // 4, MIN_BYTES)).text
    room = max_bytes - _size(remarks) - 2  # the line ends between
    value_room = max(room // 2, room - _size(output)) if output else room
    if _size(shown) > value_room:
        shown = shape(value, max_bytes=value_room, handle=result.run_id, path="value").text
    output_room = room - _size(shown)
    if _size(output) > output_room:
        output = shape(output, max_bytes=output_room, handle=result.run_id, path="output").text
    return "\n".join(part for part in (output, shown, remarks) if part)


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


def _direct_remarks(result: Result) -> list[str]:
    if result.status == "ok":
        return [f"note: {note.message}" for note in result.notes if note.code == "call_edited"]
    return [_direct_error(error) for error in result.errors] or [result.status]


def _direct_error(error: ScriptError) -> str:
    name = error.exception or error.kind
    text = f"{name}: {error.message.removeprefix(f'{name}: ')}"
    return f"{text}\nhint: {error.suggestion}" if error.suggestion else text


def _data(result: Result, max_bytes: int) -> JsonObject:
    cut_value = _size(_json(result.value)) > max_bytes
    output = shape(result.output, max_bytes=max_bytes, handle=result.run_id, path="output")
    data: JsonObject = {
        "run_id": result.run_id,
        "status": result.status,
        "value": None if cut_value else result.value,
        "value_source": result.value_source,
        "output": output.text,
        "cut": cut_value or output.omitted_bytes > 0,
        "errors": [_error_data(each) for each in result.errors[:10]],
        "notes": [note.message for note in result.notes[:10]],
        "calls": [
            {"seq": call.seq, "tool": call.tool[:200], "state": call.state}
            for call in result.calls[:MAX_CALLS_SHOWN]
        ],
        "calls_made": sum(call.state in STARTED for call in result.calls),
    }
    return data


def _error_data(error: ScriptError) -> JsonObject:
    return {
        "kind": error.kind,
        "message": error.message,
        "line": error.line,
        "suggestion": error.suggestion,
    }


def _json(value: JsonValue) -> str:
    return msgspec.json.encode(value).decode()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
