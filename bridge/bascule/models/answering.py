"""Answers the calls of one turn, in order, and never more than once.

Reads go side by side, everything else one after the other. A call that cannot be made (broken arguments, made
too often) is answered with why. A run that waits for people leaves its call, and those behind it, open.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from bascule.models.agent_state import AgentState, PendingCall
from bascule.models.definitions import DESCRIBE_TOOL, GET_RUN, READ_OUTPUT, SEARCH_TOOLS
from bascule.models.events import AgentEvent
from bascule.models.rendering import SurfaceResult, refuse
from bascule.models.repetition import is_worn_out, note_result
from bascule.models.surface import ToolSurface
from bascule.models.transcript import Transcript

MAX_SIDE_BY_SIDE: Final = 8
"""Reads of one turn that run at the same time."""

_OWN_READS: Final = frozenset({SEARCH_TOOLS.name, DESCRIBE_TOOL.name, READ_OUTPUT.name, GET_RUN.name})
_INTERRUPTED: Final = (
    "This call was interrupted while it ran; it may or may not have happened. Find out before you repeat it."
)
_NOT_MADE: Final = "This call was not made: the conversation was interrupted before it."


class Answering:
    """Answers the calls that are pending in a state."""

    def __init__(
        self,
        state: AgentState,
        surface: ToolSurface,
        *,
        emit: Callable[[AgentEvent], None],
        transcript: Transcript | None,
    ) -> None:
        self._state = state
        self._surface = surface
        self._emit = emit
        self._transcript = transcript
        self._begun: set[str] = set()

    async def answer_all(self) -> bool:
        """Answer every pending call; return False when one waits for people.

        Raises:
            BasculeError: the host cannot run anything now. `interrupt` then answers what is open.
        """
        pending = self._state.pending
        position = 0
        while position < len(pending):
            group = [pending[position]]
            position += 1
            while self._is_read(group[-1]) and position < len(pending) and self._is_read(pending[position]):
                group.append(pending[position])
                position += 1
            open_calls = [call for call in group if call.text is None]
            await _side_by_side([self._answer(call) for call in open_calls])
            if any(call.text is None for call in group):
                return False
        return True

    def refuse_all(self, text: str) -> None:
        """Answer every open call with why it is not made."""
        for call in self._state.pending:
            if call.text is None:
                self._settle(call, refuse(text, code="not_made"))

    def interrupt(self) -> None:
        """Answer what is open after a cancellation or a failure, unless its run can be resumed."""
        for call in self._state.pending:
            if call.text is None and call.run_id is None:
                begun = call.id in self._begun
                self._settle(call, refuse(_INTERRUPTED if begun else _NOT_MADE, code="interrupted"))

    async def _answer(self, call: PendingCall) -> None:
        if call.run_id is not None:
            result = await self._surface.call("resume_run", {"run_id": call.run_id})
        elif call.arguments is None:
            result = refuse(f"{call.name[:100]} was not called: {call.problem}", code="invalid_arguments")
        elif is_worn_out(self._state, call):
            self._state.refused_repeats += 1
            result = refuse(
                "This call was not made: it gave the same result several times before. Do something else, or"
                " tell the user what you have.",
                code="repeated",
            )
            self._settle(call, result)
            return
        else:
            self._begun.add(call.id)
            self._emit(AgentEvent(name="call.started", call_id=call.id, tool=call.name))
            result = await self._surface.call(call.name, call.arguments)
        if result.run_id is not None and result.run_id not in self._state.runs:
            self._state.runs.append(result.run_id)
        if result.status == "suspended" and call.name != GET_RUN.name:
            call.run_id = result.run_id
            self._count(call, result)
            self._emit(_event("suspended", call, result))
            return
        self._settle(call, result, note=note_result(self._state, call, result.text))

    def _settle(self, call: PendingCall, result: SurfaceResult, *, note: str = "") -> None:
        call.text = f"{result.text}{note}"
        call.is_error = result.is_error
        self._count(call, result)
        if call.caller is not None and result.result is not None and result.status == "ok":
            call.value = json.dumps(result.result.value, ensure_ascii=False)
        self._emit(_event("call.completed", call, result))
        if self._transcript is not None:
            run = result.result
            self._transcript.add(
                "answer",
                call_id=call.id,
                tool=call.name,
                text=call.text,
                is_error=call.is_error,
                run_id=result.run_id,
                status=result.status,
                answer_chars=len(call.text),
                calls=None if run is None else run.usage.calls,
                result_bytes=None if run is None else run.usage.result_bytes,
                returned_bytes=None if run is None else run.usage.returned_bytes,
                tokens=None if result.tokens is None else result.tokens.to_data(),
            )

    def _count(self, call: PendingCall, result: SurfaceResult) -> None:
        """Put an answer into the account; that a run waits is no answer yet."""
        tokens = self._state.tokens
        if result.tokens is not None and result.run_id is not None:
            tokens.note_run(result.run_id, result.tokens, again=call.run_id != result.run_id)
            return
        if call.text is not None:
            meter = self._surface.meter
            written = meter.count_call(call.name, call.arguments)
            tokens.note_answer(written=written, returned=meter.count(call.text))

    def _is_read(self, call: PendingCall) -> bool:
        if call.name in _OWN_READS or call.arguments is None:
            return True
        offered = next((each for each in self._surface.direct if each.name == call.name), None)
        tool = None if offered is None else self._surface.executor.registry.get(offered.tool or "")
        return tool is not None and tool.effects == "read"


def _event(name: str, call: PendingCall, result: SurfaceResult) -> AgentEvent:
    return AgentEvent(
        name=name,  # type: ignore[arg-type]
        call_id=call.id,
        tool=call.name,
        text=result.text,
        run_id=result.run_id,
        is_error=result.is_error,
    )


async def _side_by_side(answers: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all; when one fails or this is cancelled, end the others before going on."""
    places = asyncio.Semaphore(MAX_SIDE_BY_SIDE)

    async def take(answer: Coroutine[Any, Any, None]) -> None:
        async with places:
            await answer

    tasks = [asyncio.ensure_future(take(each)) for each in answers]
    try:
        await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
