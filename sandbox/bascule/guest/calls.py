"""The tools as a script holds them. Decides which argument goes to which parameter; the host does the rest.

A tool and its pending call are opaque: no attributes, no internals. A call that is used as if it were its
result says so, with the line and the word ``await``.
"""

from __future__ import annotations

from collections.abc import Generator
from types import CoroutineType
from typing import TYPE_CHECKING, NoReturn, cast

import msgspec

from bascule.guest.errors import ToolArgumentError
from bascule.guest.futures import Future, HostFuture, current_loop
from bascule.guest.position import calling_line
from bascule.guest.signature import describe_parameters
from bascule.guest.values import to_plain
from bascule.wire import ToolStub

if TYPE_CHECKING:
    from bascule.guest.environment import Environment

_MAX_INT = 1 << 53

_encode = msgspec.json.Encoder().encode


def _is_plain(arguments: dict[str, object]) -> bool:
    """Return whether all arguments are texts, small numbers or flags: nothing to convert then."""
    for value in arguments.values():
        kind = type(value)
        if kind is str or kind is bool or value is None:
            continue
        if kind is not int or not -_MAX_INT <= cast("int", value) <= _MAX_INT:
            return False
    return True


class Tool:
    """A callable that asks the host.

    Args:
        stub: name and parameters.
        environment: the run it belongs to.
        awaitable: whether a call gives an awaitable (scripts that use async) or blocks and gives the value.
    """

    __slots__ = ("_awaitable", "_environment", "_name", "_names", "_required", "_stub")

    def __init__(self, stub: ToolStub, *, environment: Environment, awaitable: bool) -> None:
        self._stub = stub
        self._name = stub.name
        self._environment = environment
        self._awaitable = awaitable
        self._names: dict[str, object] = dict(stub.parameters.get("properties", {}))
        self._required: frozenset[str] = frozenset(stub.parameters.get("required", ()))

    def __hash__(self) -> int:
        # By name: sets of tools iterate the same way in every run.
        return hash(self._name)

    def __repr__(self) -> str:
        return f"<tool {self._name}>"

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        """Call the tool with keywords, positionals or one dict of arguments.

        Raises:
            ToolArgumentError: the arguments do not fit the parameters.
            ToolError: what the host reports, when the call blocks.
        """
        loop = self._environment.loop
        line = calling_line()
        if self._awaitable and loop.threads.current is None:
            return ToolCall(self, self._bind(args, kwargs), line)
        return loop.block(loop.issue(self._name, self._bind(args, kwargs), line))

    def issue(self, args: tuple[object, ...], kwargs: dict[str, object]) -> HostFuture:
        """Start a call at once, without waiting for it."""
        return self._environment.loop.issue(self._name, self._bind(args, kwargs), calling_line())

    @property
    def tool_name(self) -> str:
        """Name under which the host knows it."""
        return self._name

    @property
    def gives_awaitable(self) -> bool:
        """Whether a call has to be awaited."""
        return self._awaitable

    def _bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> msgspec.Raw:
        bound = kwargs
        if args:
            bound = self._place(args, kwargs)
        if not (bound.keys() <= self._names.keys() and self._required <= bound.keys()):
            self._explain(bound)
        try:
            plain = bound if _is_plain(bound) else to_plain(bound, notes=self._environment.notes)
            return msgspec.Raw(_encode(plain))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise self._unfit(bound, error) from None

    def _place(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        if len(args) == 1 and not kwargs and type(args[0]) is dict:
            only = cast("dict[object, object]", args[0])
            if only.keys() <= self._names.keys() and self._required <= only.keys():
                return cast("dict[str, object]", dict(only))
        if len(args) > len(self._names):
            raise self._wrong([f"it takes {len(self._names)} arguments at most, {len(args)} were given"])
        bound = dict(zip(self._names, args, strict=False))
        twice = [name for name in bound if name in kwargs]
        if twice:
            raise self._wrong([f"{name!r} is given twice" for name in twice])
        return bound | kwargs

    def _explain(self, bound: dict[str, object]) -> NoReturn:
        problems: list[str] = []
        for name in bound:
            if name not in self._names:
                from difflib import get_close_matches  # only mistakes pay for the import

                near = get_close_matches(name, list(self._names), 1)
                problems.append(
                    f"it has no parameter {name!r}" + (f", did you mean {near[0]!r}?" if near else "")
                )
        problems += [f"{name!r} is missing" for name in self._names if name in self._required - bound.keys()]
        raise self._wrong(problems)

    def _wrong(self, problems: list[str]) -> ToolArgumentError:
        signature = describe_parameters(self._name, self._stub.parameters)
        return ToolArgumentError(
            f"{self._name}(): {'; '.join(problems)}. Parameters: {signature}",
            suggestion=f"Call it as {signature}.",
        )

    def _unfit(self, bound: dict[str, object], error: Exception) -> ToolArgumentError:
        for name, value in bound.items():
            if isinstance(value, ToolCall):
                return ToolArgumentError(f"{self._name}(): argument {name!r}: {value.missing_await()}")
            if isinstance(value, CoroutineType | Future):
                return ToolArgumentError(
                    f"{self._name}(): argument {name!r} is not awaited yet: write `await` before it"
                )
        return ToolArgumentError(f"{self._name}(): {error}")


class ToolCall:
    """A call that starts when it is first awaited or scheduled, and gives its result once."""

    __slots__ = ("_args", "_line", "_number", "_started", "_tool")

    def __init__(self, tool: Tool, args: msgspec.Raw, line: int | None) -> None:
        self._tool = tool
        self._args = args
        self._line = line
        self._started = False
        loop = current_loop()
        self._number = loop.next_number()
        loop.unstarted[self._number] = self

    def __hash__(self) -> int:
        return self._number

    def __await__(self) -> Generator[Future, None, object]:
        if self._started:
            raise RuntimeError(
                f"cannot await the same call of {self._tool.tool_name}() twice; keep its result"
            )
        self._started = True
        loop = current_loop()
        loop.unstarted.pop(self._number, None)
        future = loop.issue(self._tool.tool_name, self._args, self._line)
        return (yield from future.__await__())

    @property
    def tool_name(self) -> str:
        """Name of the tool."""
        return self._tool.tool_name

    @property
    def line(self) -> int | None:
        """The line that made the call."""
        return self._line

    def missing_await(self) -> str:
        """Return what to say to somebody who uses the call as its result."""
        name = self._tool.tool_name
        where = "" if self._line is None else f" (line {self._line})"
        return f"{name}(...) is not awaited: write `await {name}(...)`{where}"

    def refuse(self, *_: object, **__: object) -> NoReturn:
        """Refuse every use but await.

        Raises:
            TypeError: always; says where the await is missing.
        """
        # Said once is enough: no note at the end that the call never started.
        current_loop().unstarted.pop(self._number, None)
        raise TypeError(self.missing_await())


_USES = (
    "abs add aenter aexit aiter and anext bool bytes call complex contains delitem divmod enter eq exit "
    "float floordiv format ge getitem gt index int invert iter le len lshift lt matmul mod mul ne neg next "
    "or pos pow radd rand rdivmod repr reversed rfloordiv rlshift rmatmul rmod rmul ror round rpow rrshift "
    "rshift rsub rtruediv rxor setitem str sub truediv xor"
)
for _use in _USES.split():  # a table of names reads better as text
    setattr(ToolCall, f"__{_use}__", ToolCall.refuse)


def is_coroutine_like(value: object) -> bool:
    """Return whether scripts should take ``value`` for a coroutine."""
    return isinstance(value, CoroutineType | ToolCall)
