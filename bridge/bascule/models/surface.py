"""The tool surface: everything a model can do, as functions with a name, a description and a schema.

Every call of the operator's tools, from a script or made directly, is a run of the executor: validated,
allowed by policy, approved, journaled. Names and arguments come from a model and may be anything; what is
wrong with them becomes the answer, never an exception. Only the host's own troubles are raised.

What earlier runs of a surface have read counts for later ones: the labels of the tools it called go along, so
a policy's ``run_labels`` hold over a whole conversation and not only within one script.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final, Literal, cast

import msgspec

from bascule.bridge import Executor, Result
from bascule.bridge.errors import ResumeError, RunBusy, RunNotFound
from bascule.bridge.matching import User
from bascule.bridge.outputs import read_output
from bascule.bridge.result import JsonValue
from bascule.bridge.runs import read_result
from bascule.bridge.shaping import shape
from bascule.bridge.store import RunRecord
from bascule.bridge.waking import is_due
from bascule.models.definitions import (
    DESCRIBE_TOOL,
    GET_RUN,
    READ_OUTPUT,
    RESUME_RUN,
    RUN_SCRIPT,
    SEARCH_TOOLS,
    Caller,
    SurfaceTool,
    direct_tools,
)
from bascule.models.direct import is_direct, write_script
from bascule.models.own_arguments import (
    CodeArguments,
    NamedArguments,
    PartArguments,
    RunArguments,
    SearchArguments,
    read_arguments,
)
from bascule.models.rendering import MIN_RESULT_BYTES, STARTED, SurfaceResult, refuse, render_part, render_run
from bascule.models.run_account import script_of
from bascule.models.run_tokens import Meter
from bascule.models.tokens import CountTokens
from bascule.tools import render_stubs
from bascule.tools.canonical import check_plain
from bascule.tools.safe_text import clean_line
from bascule.tools.search import ToolIndex
from bascule.tools.stubs import bound_tokens

MAX_RESULT_BYTES: Final = 16_000
"""Bytes of an answer to the model, some 4,000 tokens; the rest is read by its handle."""

BUDGET_TOKENS: Final = 4_000
"""Tokens for what the model is told of the tools."""

MAX_CODE_CHARS: Final = 256 << 10
"""Longer scripts are refused by the guest anyway."""

Direct = Literal["fit", "all", "none"] | Collection[str]


class ToolSurface:
    """The functions of one model conversation.

    Args:
        executor: runs the scripts; its registry is what can be called.
        callers: who may call a tool, by name: ``direct`` (never from a script), ``script`` (never directly)
            or ``both``, which is what the others are.
        direct: which of the tools that may be called directly are offered as functions: by name; ``all``;
            ``none``; or ``fit``, all of them when their definitions fit half of ``budget_tokens``. Tools that
            only may be called directly are always offered.
        budget_tokens: for all that the model is told of tools.
        count_tokens: of a text, for its model; by default three bytes are one token.
        pinned: tools whose stubs are shown before others when not all fit.
        wait: True waits for people as long as it takes; False answers with a run that waits.
        max_result_bytes: of an answer, at least 1,000; what is left out can be read on.
        user: on whose behalf, where one executor serves many; None takes the executor's own.

    Raises:
        ValueError: ``callers`` or ``direct`` name a tool that does not exist, or answers have no room.
    """

    def __init__(
        self,
        executor: Executor,
        *,
        callers: Mapping[str, Caller] | None = None,
        direct: Direct = "fit",
        budget_tokens: int = BUDGET_TOKENS,
        count_tokens: CountTokens = bound_tokens,
        pinned: Collection[str] = (),
        wait: bool = False,
        max_result_bytes: int = MAX_RESULT_BYTES,
        user: User | None = None,
    ) -> None:
        if max_result_bytes < MIN_RESULT_BYTES:
            raise ValueError(f"max_result_bytes must be at least {MIN_RESULT_BYTES}, got {max_result_bytes}")
        self.executor = executor
        self.user = user or executor.user
        self.budget_tokens = budget_tokens
        self.count_tokens = count_tokens
        self.wait = wait
        self.max_result_bytes = max_result_bytes
        self._callers: dict[str, Caller] = dict(callers or {})
        _check_names(executor, self._callers)
        self.direct = self._choose(direct)
        self.scriptable = tuple(
            each for each in executor.registry if self._callers.get(each.name, "both") != "direct"
        )
        self.pinned = tuple(pinned)
        self._index: ToolIndex | None = None
        own = [GET_RUN, RESUME_RUN, READ_OUTPUT]
        if self.scriptable:
            own = [RUN_SCRIPT, SEARCH_TOOLS, DESCRIBE_TOOL, *own]
        self.tools: tuple[SurfaceTool, ...] = (*own, *self.direct)
        self._labels: frozenset[str] = frozenset()
        self.meter = Meter(self, count_tokens)
        self._direct_by_name = {each.name: each for each in self.direct}

    @property
    def labels(self) -> frozenset[str]:
        """Labels of all tools called so far; give them to a surface that goes on in another process."""
        return self._labels

    def add_labels(self, labels: Collection[str]) -> None:
        """Count labels as read, for every later run."""
        self._labels |= frozenset(labels)

    async def call(self, name: str, arguments: object, *, run_id: str | None = None) -> SurfaceResult:
        """Make one call for the model.

        Args:
            name: of one of `tools`. Untrusted.
            arguments: decoded JSON by name. Untrusted.
            run_id: for the run that the call may start, for who follows its events; see `Executor.run`.

        Raises:
            BasculeError: the host cannot run anything now (no engine, no store); see `Executor.run`.
        """
        if not isinstance(arguments, dict):
            return refuse("the arguments must be a JSON object", code="invalid_arguments")
        try:
            check_plain(cast("object", arguments), path="arguments")
        except ValueError as error:
            return refuse(f"{error}"[:1000], code="invalid_arguments")
        given = cast("dict[str, JsonValue]", arguments)
        direct = self._direct_by_name.get(name)
        if direct is not None and direct.tool is not None:
            return await self._call_direct(direct.tool, given, run_id)
        own = next((each for each in self.tools if each.name == name and each.tool is None), None)
        if own is None:
            return self._unknown(name)
        try:
            return await self._call_own(own, given, run_id)
        except msgspec.ValidationError as error:
            wanted = ", ".join(own.parameters["properties"])  # type: ignore[arg-type]
            text = f"{own.name}: {clean_line(str(error))}. Parameters: {wanted}"
            return refuse(text[:1000], code="invalid_arguments")

    # ------------------------------------------------------------ the calls

    async def _call_own(
        self, own: SurfaceTool, given: dict[str, JsonValue], run_id: str | None
    ) -> SurfaceResult:
        if own is RUN_SCRIPT:
            return await self._run_script(read_arguments(given, CodeArguments).code, run_id)
        if own is SEARCH_TOOLS:
            search = read_arguments(given, SearchArguments)
            return self._search(search.query, search.limit)
        if own is DESCRIBE_TOOL:
            return self._describe(read_arguments(given, NamedArguments).name)
        if own is READ_OUTPUT:
            part = read_arguments(given, PartArguments)
            return self._read_output(part)
        if own is GET_RUN:
            return self._get_run(read_arguments(given, RunArguments).run_id)
        return await self._resume_run(read_arguments(given, RunArguments).run_id)

    async def _run_script(self, code: str, run_id: str | None) -> SurfaceResult:
        if len(code) > MAX_CODE_CHARS:
            return refuse(
                f"the script has {len(code)} characters, at most {MAX_CODE_CHARS} are accepted",
                code="script_too_long",
            )
        only = (
            None
            if len(self.scriptable) == len(self.executor.registry)
            else {each.name for each in self.scriptable}
        )
        result = await self.executor.run(
            code, wait=self.wait, only=only, labels=self._labels, run_id=run_id, user=self.user
        )
        return self._answer(result, code, direct=False)

    async def _call_direct(
        self, tool: str, arguments: dict[str, JsonValue], run_id: str | None
    ) -> SurfaceResult:
        try:
            script = write_script(tool, arguments)
        except ValueError as error:
            return refuse(f"{tool}: {error}"[:1000], code="invalid_arguments")
        result = await self.executor.run(
            script, wait=self.wait, only={tool}, labels=self._labels, run_id=run_id, user=self.user
        )
        return self._answer(result, script, direct=True)

    def _answer(self, result: Result, script: str, *, direct: bool) -> SurfaceResult:
        for receipt in result.calls:
            tool = self.executor.registry.get(receipt.tool)
            if tool is not None and receipt.state in STARTED:
                self._labels |= tool.labels
        answer = render_run(result, max_bytes=self.max_result_bytes, direct=direct)
        if not script:  # retention dropped it: half an account would be a wrong one
            return answer
        return replace(answer, tokens=self.meter.measure(result, script, text=answer.text, direct=direct))

    def _answer_again(self, result: Result) -> SurfaceResult:
        script = script_of(self.executor.store, result.run_id)
        return self._answer(result, script, direct=is_direct(script))

    def _get_run(self, run_id: str) -> SurfaceResult:
        row = self._find_run(run_id)
        if row is None:
            return _no_run(run_id)
        result = read_result(self.executor.store, run_id)
        if result is not None:
            return self._answer_again(result)
        if row.status == "finished":
            return refuse(f"run {run_id} ended as {row.outcome}; no more of it is kept", code="run_pruned")
        return self._standing(row)

    async def _resume_run(self, run_id: str) -> SurfaceResult:
        row = self._find_run(run_id)
        if row is None:
            return _no_run(run_id)
        if row.status == "suspended" and not self.wait and not is_due(self.executor.store, row):
            return self._standing(row)
        try:
            result = await self.executor.resume(run_id, wait=self.wait)
        except (RunBusy, RunNotFound):  # it is finished, or somebody else carries it on
            return self._get_run(run_id)
        except ResumeError as error:
            return refuse(
                f"run {run_id} cannot go on: {error.for_script()}. An operator has to look at it.",
                code=error.code,
            )
        return self._answer_again(result)

    def _read_output(self, wanted: PartArguments) -> SurfaceResult:
        try:
            part = read_output(
                self.executor.store,
                wanted.handle,
                path=wanted.path,
                offset=wanted.offset,
                limit=wanted.limit,
                owner="" if self.user is None else self.user.name,
                max_bytes=self.max_result_bytes,
            )
        except LookupError as error:
            return refuse(str(error), code="output_not_found")
        except ValueError as error:
            return refuse(str(error), code="invalid_arguments")
        return render_part(part, handle=wanted.handle, path=wanted.path, max_bytes=self.max_result_bytes)

    def _search(self, query: str, limit: int) -> SurfaceResult:
        if self._index is None:
            self._index = ToolIndex(self.scriptable)
        found = self._index.search(query, limit)
        if not found:
            return SurfaceResult(text="No tool matches. Try other words.", data={"tools": []})
        names: list[JsonValue] = [each.name for each in found]
        tools = [each for each in self.scriptable if each.name in set(names)]
        text = shape(render_stubs(tools), max_bytes=self.max_result_bytes).text
        return SurfaceResult(text=text, data={"tools": names})

    def _describe(self, name: str) -> SurfaceResult:
        tool = self.executor.registry.get(name)
        if tool is None:
            return self._unknown(name)
        stub = render_stubs([tool], detail="full")
        if tool not in self.scriptable:
            stub = f"# a function of its own, not for scripts\n{stub}"
        text = shape(stub, max_bytes=self.max_result_bytes).text
        return SurfaceResult(text=text, data={"name": tool.name, "effects": tool.effects, "stub": text})

    # ------------------------------------------------------------ what they need

    def _standing(self, row: RunRecord) -> SurfaceResult:
        if row.status == "running":
            text = f"Run {row.run_id} is running."
        elif is_due(self.executor.store, row):
            text = f"Run {row.run_id} can go on: resume_run returns its result."
        else:
            text = (
                f"Run {row.run_id} still waits: {row.reason or 'for people'}. Go on with something else, or"
                " stop and tell the user that it waits."
            )
        status: JsonValue = row.status
        return SurfaceResult(
            text=text,
            data={"run_id": row.run_id, "status": status, "reason": row.reason},
            run_id=row.run_id,
            status="suspended",
        )

    def _find_run(self, run_id: str) -> RunRecord | None:
        """Return a run of the same user; those of others do not exist."""
        row = self.executor.store.run(run_id[:200])
        user = self.user
        return row if row is not None and row.user == (None if user is None else user.name) else None

    def _unknown(self, name: str) -> SurfaceResult:
        registry = self.executor.registry
        asked = name[:100]
        if asked in registry and RUN_SCRIPT in self.tools:
            return refuse(f"{asked} is called from a script: use run_script", code="not_direct")
        near = [each for each in registry.nearest(asked) if each in self._direct_by_name]
        offered = [each.name for each in self.tools if each.tool is None]
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(offered)}"
        return refuse(f"there is no tool named {asked!r}; {hint}", code="unknown_tool")

    def _choose(self, direct: Direct) -> tuple[SurfaceTool, ...]:
        able = direct_tools(self.executor.registry, self._callers)
        if direct == "all":
            return able
        forced = {name for name, caller in self._callers.items() if caller == "direct"}
        if direct == "none":
            wanted: set[str] = set()
        elif direct == "fit":
            text = msgspec.json.encode([[each.name, each.description, each.parameters] for each in able])
            fits = self.count_tokens(text.decode()) <= self.budget_tokens // 2
            wanted = {each.tool or "" for each in able} if fits else set()
        else:
            wanted = {direct} if isinstance(direct, str) else set(direct)
            _check_names(self.executor, wanted)
        return tuple(each for each in able if each.tool in wanted | forced)


def _no_run(run_id: str) -> SurfaceResult:
    return refuse(f"there is no run {run_id[:80]!r}", code="run_not_found")


def _check_names(executor: Executor, names: Collection[str]) -> None:
    unknown = sorted(name for name in names if name not in executor.registry)
    if unknown:
        raise ValueError(f"there are no tools named {', '.join(unknown)}")
