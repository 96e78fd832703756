"""Notices a model that makes the same call over and over: told first, then not obeyed, then ended."""

from __future__ import annotations

import hashlib
from typing import Final

from bascule.models.agent_state import AgentState, PendingCall, Repetition
from bascule.tools import canonical_json

TOLD_AT: Final = 3
"""The same result for the same call so often adds a note."""

REFUSED_AT: Final = 5
"""After this many the call is not made again."""

ENDED_AT: Final = 3
"""So many calls that were not made again end the conversation."""


def key_of(call: PendingCall) -> str:
    """Return what identifies a call: name, and arguments or what is wrong with them."""
    what = call.problem if call.arguments is None else canonical_json(call.arguments).decode()
    return hashlib.sha256(f"{call.name}\n{what}".encode("utf-8", "replace")).hexdigest()[:32]


def is_worn_out(state: AgentState, call: PendingCall) -> bool:
    """Tell whether a call has given the same too often to be made again."""
    seen = state.repetitions.get(key_of(call))
    return seen is not None and seen.count >= REFUSED_AT


def note_result(state: AgentState, call: PendingCall, text: str) -> str:
    """Take note of an answer; return what is added to it for the model."""
    key, result = key_of(call), hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
    seen = state.repetitions.get(key)
    if seen is None or seen.result != result:
        state.repetitions[key] = Repetition(1, result)
        return ""
    seen.count += 1
    if seen.count < TOLD_AT:
        return ""
    return f"\n(You have made this same call {seen.count} times, with the same result. Do something else.)"
