"""contextlib: closing reads .close through the guard, redirect_stdout turns the script's own output."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from typing import Any, cast

from bascule.guest.facade import FacadeContext, Members
from bascule.guest.facades.callables import copy_name
from bascule.guest.facades.streams import Stream


class ContextDecorator:
    """Makes a context manager of the script's a decorator too."""

    __slots__ = ()

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        def inner(*args: object, **keywords: object) -> Any:
            with cast("AbstractContextManager[object]", self):
                return func(*args, **keywords)

        return copy_name(inner, func)


def contextlib_module(context: FacadeContext) -> Members:
    """Give contextlib."""
    read, output = context.guards.read, context.environment.output

    @contextmanager
    def closing(thing: object) -> Generator[object]:
        try:
            yield thing
        finally:
            read(thing, "close")()

    @asynccontextmanager
    async def aclosing(thing: object) -> AsyncGenerator[object]:
        try:
            yield thing
        finally:
            await read(thing, "aclose")()

    def sink(target: object) -> Callable[[str], object]:
        if isinstance(target, Stream):
            # Where that stream goes now: it would come round to this redirection otherwise.
            return output.sink(errors=Stream.is_errors(target))
        return cast("Callable[[str], object]", read(target, "write"))

    @contextmanager
    def redirect_stdout(new_target: object) -> Generator[Any]:
        with output.redirected(sink(new_target)):
            yield new_target

    @contextmanager
    def redirect_stderr(new_target: object) -> Generator[Any]:
        with output.redirected(sink(new_target), errors=True):
            yield new_target

    return {
        "ContextDecorator": ContextDecorator,
        "aclosing": aclosing,
        "closing": closing,
        "redirect_stderr": redirect_stderr,
        "redirect_stdout": redirect_stdout,
    }
