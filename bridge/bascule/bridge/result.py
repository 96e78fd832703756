"""Result: everything one run gave, and how it is put into words and into JSON.

Value, output, errors and notes come from an untrusted guest: their types are exact and their sizes bounded,
their text is whatever the script wanted it to be.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
from msgspec.structs import asdict

from bascule.bridge.receipt import Receipt
from bascule.wire import Note, ScriptError

Status = Literal["ok", "failed", "refused", "limit", "suspended", "cancelled", "diverged"]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
ValueSource = Literal["return", "last_expression", "last_assignment", "none"]

MAX_ERRORS: Final = 50
MAX_NOTES: Final = 100
MAX_TEXT_CHARS: Final = 4000
"""Bounds on what a guest may say about itself; the rest is left out, and the result says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run used.

    Attributes:
        wall_s: seconds from the order to run to the end, people included.
        active_s: seconds of these in which the guest was running, not waiting.
        cpu_s, peak_memory_bytes: as the sandbox measured, else as the guest said, else 0.
        calls: calls issued.
        result_bytes: bytes of results delivered to the script; they stayed out of the model's context.
        returned_bytes: bytes of output and value; they came back.
    """

    wall_s: float = 0.0
    active_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory_bytes: int = 0
    calls: int = 0
    result_bytes: int = 0
    returned_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a script.

    Attributes:
        run_id: names the run in journals and logs.
        status: ``ok``; ``failed`` (an exception left the script, or the guest broke); ``refused`` (nothing
            ran); ``limit``; ``suspended``, ``cancelled`` and ``diverged`` concern runs that outlive a
            process.
        value: plain data, by the rule that ``value_source`` names.
        output: what the script printed, bounded by `Limits.output_bytes`.
        error: why the status is not ok; the first of ``errors``.
        errors: all findings; more than one only when the script was refused before it ran.
        notes: what the script's author should know although it is no error.
        calls: one receipt per call, in issue order.
    """

    run_id: str
    status: Status
    value: JsonValue = None
    value_source: ValueSource = "none"
    output: str = ""
    errors: tuple[ScriptError, ...] = ()
    notes: tuple[Note, ...] = ()
    calls: tuple[Receipt, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def error(self) -> ScriptError | None:
        return self.errors[0] if self.errors else None

    @property
    def happened(self) -> tuple[str, ...]:
        """One line for each call with effects that did or may have run, for whoever repairs the script."""
        return tuple(
            f"call {call.seq} {call.tool} (line {call.line}): {_OUTCOMES[call.state]}"
            for call in self.calls
            if call.effects in ("once", "idempotent") and call.state in _OUTCOMES
        )

    def for_model(self) -> str:
        """Return what the model needs of a run that did not end well, or of one that did: one text."""
        parts: list[str] = []
        if self.output:
            parts.append(self.output.rstrip("\n"))
        if self.has_value:
            parts.append(msgspec.json.encode(self.value).decode())
        return "\n".join([*parts, *self.remarks])

    @property
    def has_value(self) -> bool:
        """Whether the script ended with a value of its own, be it None."""
        return self.status == "ok" and self.value_source != "none"

    @property
    def remarks(self) -> list[str]:
        """What the model is told beside output and value: errors, what was done by then, notes."""
        parts = [describe_error(error) for error in self.errors]
        if self.status != "ok" and self.happened:
            parts.append("These calls were made before the script ended; do not repeat what is done:")
            parts.extend(f"- {line}" for line in self.happened)
        parts.extend(f"note: {note.message}" for note in self.notes)
        return parts

    def to_json(self, **more: JsonValue) -> bytes:
        """Return the documented JSON form (docs/cli.md), one line of UTF-8.

        Args:
            more: further members, which come last.
        """
        return msgspec.json.encode(
            {
                "run_id": self.run_id,
                "status": self.status,
                "value": self.value,
                "value_source": self.value_source,
                "output": self.output,
                "error": self.error and asdict(self.error),
                "errors": [asdict(error) for error in self.errors],
                "notes": [asdict(note) for note in self.notes],
                "calls": [receipt_json(call) for call in self.calls],
                "happened": self.happened,
                "usage": self.usage,
                **more,
            }
        )


_OUTCOMES: Final = {
    "done": "done",
    "failed": "the tool raised an error; it may have changed something",
    "running": "was running when the script ended",
    "unknown": "started, outcome unknown",
}


def describe_error(error: ScriptError) -> str:
    """Return one error as text: what, where with a caret, what to write instead."""
    place = f" (line {error.line})" if error.line is not None else ""
    name = error.exception or error.kind
    lines = [f"{name}{place}: {error.message.removeprefix(f'{name}: ')}"]
    if error.source:
        lines.append(error.source)
    if error.suggestion:
        lines.append(f"hint: {error.suggestion}")
    return "\n".join(lines)


def bound_errors(errors: tuple[ScriptError, ...]) -> tuple[ScriptError, ...]:
    """Return a guest's errors with every text cut to `MAX_TEXT_CHARS` and at most `MAX_ERRORS` of them."""
    return tuple(
        ScriptError(
            kind=error.kind[:64],
            message=cut(error.message),
            exception=None if error.exception is None else error.exception[:200],
            line=error.line,
            column=error.column,
            source=None if error.source is None else cut(error.source),
            suggestion=None if error.suggestion is None else cut(error.suggestion),
        )
        for error in errors[:MAX_ERRORS]
    )


def bound_notes(notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """Return a guest's notes, cut likewise."""
    return tuple(
        Note(code=note.code[:64], message=cut(note.message), line=note.line) for note in notes[:MAX_NOTES]
    )


def cut(text: str) -> str:
    """Return ``text``, or its beginning with the number of characters left out."""
    if len(text) <= MAX_TEXT_CHARS:
        return text
    return f"{text[:MAX_TEXT_CHARS]} [... {len(text) - MAX_TEXT_CHARS} characters left out]"


def receipt_json(call: Receipt) -> dict[str, object]:
    """Return the documented JSON form of a receipt, as plain data."""
    return {
        "seq": call.seq,
        "tool": call.tool,
        "effects": call.effects,
        "arguments": msgspec.Raw(call.arguments),
        "line": call.line,
        "state": call.state,
        "duration_s": call.duration_s,
        "result_bytes": call.result_bytes,
        "error": call.error,
        "approved_by": call.approved_by,
        "edited_by": call.edited_by,
        "answered_by": call.answered_by,
        "duplicate": call.duplicate,
        "cancelled": call.cancelled,
    }
