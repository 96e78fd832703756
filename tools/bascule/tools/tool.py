"""The `tool` decorator and what it makes: a function with everything the bridge must know of it.

Decides at definition time whether a function can be offered to a script at all. Trusts the function's
author; nothing here runs the function except `Tool.call` and a plain Python call of the tool.
"""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from pydantic import JsonValue, TypeAdapter, ValidationError

from bascule.tools.arguments import Arguments, Parameter, validate_arguments
from bascule.tools.canonical import canonical_json
from bascule.tools.context import ToolContext
from bascule.tools.definition import define
from bascule.tools.docstrings import read_summary
from bascule.tools.errors import ArgumentsInvalid, ResultInvalid, ToolDefinitionError
from bascule.tools.naming import check_name
from bascule.tools.options import (
    DEFAULT_TIMEOUT_S,
    Effects,
    check_options,
    read_inline,
    read_labels,
    read_rate,
    read_resource,
    read_secrets,
    read_version,
)
from bascule.tools.results import encode_plain, to_plain
from bascule.tools.returns import check_result
from bascule.tools.schema import JsonSchema
from bascule.tools.signature import ABSENT, find_location
from bascule.wire import ToolStub

_NO_CONTEXT = ToolContext()

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tool(Generic[P, R]):
    """A function that scripts may call. Still callable as the function it was made of.

    Attributes:
        name: what scripts write; dots make namespaces (``crm.find_contact``).
        description: the docstring; summary: its first sentence.
        parameters: JSON Schema of the arguments, ``properties`` in the order of the signature.
        returns: JSON Schema of the result as `dump_result` writes it, None when none is declared.
        effects, labels, timeout_s, parallel_safe, resource: see `tool`.
        location: ``file.py:12`` of the function, for messages.
        is_async: whether `call` gives an awaitable.
        reconcile, check_back, check, transient, rate, preview, secrets, examples, version: see `tool`.
        inline: whether `call` may run on the event loop; see `tool`.
        observed: JSON Schema of earlier results, where no type is declared; a help for readers of the stub
            that nothing is checked against, and no part of the digest. See `bascule.tools.observed`.
    """

    name: str
    description: str
    summary: str
    parameters: JsonSchema
    returns: JsonSchema | None
    effects: Effects
    labels: frozenset[str]
    timeout_s: float
    parallel_safe: bool
    resource: str | None
    location: str | None
    is_async: bool
    function: Callable[P, R]
    reconcile: Callable[[str], Any] | None
    check_back: Callable[[JsonValue], Any] | None
    check: Callable[[Mapping[str, Any], ToolContext], Any] | None
    transient: tuple[type[Exception], ...]
    rate: str | None
    preview: Callable[[Mapping[str, Any], ToolContext], Any] | None = None
    secrets: tuple[str, ...] = ()
    examples: tuple[Mapping[str, JsonValue], ...] = ()
    version: str | None = None
    observed: JsonSchema | None = None
    inline: bool = False
    _parameters: Mapping[str, Parameter] = field(repr=False)
    _context: str | None = field(repr=False)
    _result_adapter: TypeAdapter[Any] | None = field(repr=False)
    _digest: str = field(default="", init=False, repr=False)
    """Made when it is first asked for: every call notes it, and a definition never changes."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as Python code does: nothing is validated, converted or recorded."""
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name} effects={self.effects}>"

    @property
    def digest(self) -> str:
        """SHA-256 in hex of all that a script, a policy or an operator sees of the definition."""
        if not self._digest:
            object.__setattr__(self, "_digest", self._make_digest())
        return self._digest

    def _make_digest(self) -> str:
        definition: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "parameters": self.parameters,
            "returns": self.returns,
            "effects": self.effects,
            "labels": sorted(self.labels),
            "timeout_s": self.timeout_s,
            "parallel_safe": self.parallel_safe,
            "resource": self.resource,
        }
        newer: dict[str, Any] = {
            "secrets": list(self.secrets),
            "examples": [dict(example) for example in self.examples],
            "version": self.version,
        }
        definition |= {
            key: value for key, value in newer.items() if value
        }  # digests of before stay as they are
        return sha256(canonical_json(definition)).hexdigest()

    @property
    def __wrapped__(self) -> Callable[P, R]:
        """The function, so that `inspect.signature` and `inspect.unwrap` see it."""
        return self.function

    @property
    def __name__(self) -> str:
        return self.name.rsplit(".", 1)[-1]

    def validate(self, args: object) -> Arguments:
        """Validate a call's arguments, given by name as decoded JSON. Untrusted.

        Raises:
            ArgumentsInvalid: with every problem, in words for the script.
            ToolDefinitionError: ``tool_arguments_unstable``: a type of the tool is not fit for arguments.
        """
        return validate_arguments(self.name, self._parameters, self.parameters.get("$defs", {}), args)

    def call(self, values: Mapping[str, Any], context: ToolContext = _NO_CONTEXT) -> R:
        """Call the function with the values of validated arguments; await the outcome if it is awaitable."""
        call = cast("Callable[..., R]", self.function)
        if self._context is None:
            return call(**values)
        return call(**values, **{self._context: context})

    def dump_result(self, value: object) -> bytes:
        """Return what the function gave as JSON bytes, checked against the declared type.

        Raises:
            ResultInvalid: the tool has a bug; the message names the place in the result.
        """
        plain = to_plain(self.name, value)
        encoded = encode_plain(self.name, plain)
        if self._result_adapter is not None:
            check_result(self.name, self._result_adapter, value, encoded)
        return encoded

    def read_response(self, response: bytes) -> bytes:
        """Return JSON that a person gave in the tool's place as the tool itself would have written it.

        Raises:
            ResultInvalid: it is not of the declared type.
        """
        value = json.loads(response)
        if self._result_adapter is None:
            return self.dump_result(value)
        try:
            read = self._result_adapter.validate_json(response)
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, problem['loc'])) or 'the value'}: {problem['msg']}"
                for problem in error.errors(include_url=False, include_input=False)[:5]
            )
            message = f"not what {self.name} returns: {problems}"
            raise ResultInvalid("result_type_mismatch", message, tool=self.name, path="") from error
        return self.dump_result(read)

    def stub(self) -> ToolStub:
        """Return what the guest is told of this tool."""
        return ToolStub(
            name=self.name, parameters=self.parameters, returns=self.returns, summary=self.summary
        )


AnyTool = Tool[..., Any]
"""A tool of any signature: what registries and the bridge handle."""


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(
    *,
    effects: Effects = "once",
    labels: Collection[str] = (),
    timeout_s: float = DEFAULT_TIMEOUT_S,
    parallel_safe: bool = False,
    resource: str | None = None,
    name: str | None = None,
    returns: object = ABSENT,
    reconcile: Callable[[str], Any] | None = None,
    check_back: Callable[[JsonValue], Any] | None = None,
    check: Callable[[Mapping[str, Any], ToolContext], Any] | None = None,
    transient: tuple[type[Exception], ...] = (),
    rate: str | None = None,
    preview: Callable[[Mapping[str, Any], ToolContext], Any] | None = None,
    secrets: Collection[str] = (),
    examples: Sequence[Mapping[str, JsonValue]] = (),
    version: str | None = None,
    inline: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    effects: Effects = "once",
    labels: Collection[str] = (),
    timeout_s: float = DEFAULT_TIMEOUT_S,
    parallel_safe: bool = False,
    resource: str | None = None,
    name: str | None = None,
    returns: object = ABSENT,
    reconcile: Callable[[str], Any] | None = None,
    check_back: Callable[[JsonValue], Any] | None = None,
    check: Callable[[Mapping[str, Any], ToolContext], Any] | None = None,
    transient: tuple[type[Exception], ...] = (),
    rate: str | None = None,
    preview: Callable[[Mapping[str, Any], ToolContext], Any] | None = None,
    secrets: Collection[str] = (),
    examples: Sequence[Mapping[str, JsonValue]] = (),
    version: str | None = None,
    inline: bool = False,
) -> Tool[P, R] | Callable[[Callable[P, R]], Tool[P, R]]:
    """Make a tool of a sync or async function; usable with and without parentheses.

    Args:
        effects: ``read``, ``idempotent`` or ``once``; decides policy defaults, retries and parallelism.
        labels: ``untrusted`` or ``private`` sources, ``external`` sinks, or your own words for policy rules.
        timeout_s: seconds one call may take, above 0 and at most 3600.
        parallel_safe: whether calls with effects may overlap.
        resource: calls of tools with the same resource never overlap.
        name: what scripts write, by default the function's name.
        returns: the type of the result, where the annotation is missing or less precise; or a JSON Schema, as
            a dict: of it, types, enum, properties, items, unions, bounds and patterns are checked.
        reconcile: for ``once``: asked with the idempotency key whether a call took effect whose host died;
            returns Happened(value), DidNotHappen(), or None when it cannot tell. Sync or async.
        check_back: for tools that return Pending: asked with its token; returns the result, or Pending again.
        check: a business check of ``(arguments, context)`` before policy is asked; raises what is wrong,
            PermissionError for what must not be tried again. Sync or async.
        transient: exceptions after which ``read`` and ``idempotent`` calls are made again, beside the
            network's own connection errors, status 429 and 5xx.
        rate: how often a call of the tool is started at most, for example ``10/minute``: in all runs of all
            executors and processes that share a store. Attempts of one call count once.
        preview: a dry run of ``(arguments, context)`` that changes nothing: what the call would do, as text
            or plain data, for the people who are asked about it. Sync or async.
        secrets: names of secrets the function reads from its context; the executor must be given them.
        examples: arguments of good calls, for the documentation that models read; they must be valid.
        version: of the definition, for people; part of the digest.
        inline: a synchronous function that only computes, for microseconds, and waits for nothing: it is
            called on the event loop, without a thread. All runs of the host wait for it meanwhile, and no
            timeout can end it.

    Raises:
        ToolDefinitionError: the function cannot be offered as it is written; the message says why.
    """

    def make(function: Callable[P, R]) -> Tool[P, R]:
        location = find_location(function)
        own_name = str(getattr(function, "__name__", "")) if name is None else name
        definition = define(own_name, function, returns=returns)
        check_name(own_name, location=location)
        check_options(own_name, effects, timeout_s, location)
        made: Tool[P, R] = Tool(
            name=own_name,
            description=definition.description,
            summary=read_summary(definition.description),
            parameters=definition.schema,
            returns=definition.returns,
            effects=effects,
            labels=read_labels(own_name, labels, location),
            timeout_s=float(timeout_s),
            parallel_safe=parallel_safe,
            resource=read_resource(resource, location),
            location=location,
            is_async=inspect.iscoroutinefunction(function),
            function=function,
            reconcile=reconcile,
            check_back=check_back,
            check=check,
            transient=transient,
            rate=read_rate(own_name, rate, location),
            preview=preview,
            secrets=read_secrets(own_name, secrets, definition.context, location),
            examples=tuple(copy.deepcopy(dict(example)) for example in examples),
            version=read_version(version, location),
            inline=read_inline(own_name, function, location, inline=inline),
            _parameters=definition.parameters,
            _context=definition.context,
            _result_adapter=definition.result_adapter,
        )
        _check_examples(made)
        return made

    return make if function is None else make(function)


def _check_examples(made: AnyTool) -> None:
    for number, example in enumerate(made.examples, 1):
        try:
            made.validate(dict(example))
        except ArgumentsInvalid as error:
            raise ToolDefinitionError(
                "tool_example_invalid",
                f"{made.name}(): example {number} is no valid call: {'; '.join(map(str, error.problems))}",
                location=made.location,
            ) from error
