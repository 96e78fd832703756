"""A value that is there later. Decides in which order waiters learn of it; trusts its own loop only.

Semantics are those of ``asyncio.Future``: callbacks run from the loop's queue in the order they were added.
Scripts see these objects through the attribute table; the slots are out of their reach.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bascule.guest.loop import Loop

State = Literal["PENDING", "CANCELLED", "FINISHED"]


class CancelledError(BaseException):
    """The future or task was cancelled. Not an Exception: ``except Exception`` lets it through."""


class InvalidStateError(Exception):
    """The future is not in a state that allows this."""


_loops: list[Loop] = []


def activate(loop: Loop) -> None:
    """Make ``loop`` the one that futures belong to from now on."""
    _loops[:] = [loop]


def current_loop() -> Loop:
    """Return the loop of this run.

    Raises:
        RuntimeError: no run is under way.
    """
    if not _loops:
        raise RuntimeError("no script is running")
    return _loops[0]


class Future:
    """A result that arrives later, awaitable any number of times.

    Hashes by creation order, so sets of futures iterate the same way in every run.
    """

    __slots__ = (
        "_callbacks",
        "_exception",
        "_listeners",
        "_loop",
        "_message",
        "_number",
        "_result",
        "_retrieved",
        "_state",
    )

    def __init__(self) -> None:
        self._loop = loop = current_loop()
        self._number = loop.next_number()
        self._state: State = "PENDING"
        self._result: object = None
        self._exception: BaseException | None = None
        self._message: str | None = None
        self._callbacks: list[Callable[[Future], object]] = []
        self._listeners: list[Callable[[Future], object]] | None = None
        self._retrieved = True

    def __hash__(self) -> int:
        return self._number

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._describe()}>"

    def _describe(self) -> str:
        if self._state != "FINISHED":
            return self._state.lower()
        if self._exception is not None:
            return f"finished exception={self._exception!r}"
        return f"finished result={self._result!r}"

    def done(self) -> bool:
        """Return whether a result, an exception or a cancellation is there."""
        return self._state != "PENDING"

    def cancelled(self) -> bool:
        """Return whether the future was cancelled."""
        return self._state == "CANCELLED"

    def result(self) -> object:
        """Return the result.

        Raises:
            CancelledError: it was cancelled.
            InvalidStateError: it is not done yet.
            BaseException: what the work behind it raised.
        """
        if self._state == "FINISHED":
            if self._exception is None:
                return self._result
            self._retrieved = True
            raise self._exception
        if self._state == "CANCELLED":
            raise self.cancellation()
        raise InvalidStateError("Result is not set.")

    def exception(self) -> BaseException | None:
        """Return what the work behind it raised, or None.

        Raises:
            CancelledError: it was cancelled.
            InvalidStateError: it is not done yet.
        """
        if self._state == "CANCELLED":
            raise self.cancellation()
        if self._state == "PENDING":
            raise InvalidStateError("Exception is not set.")
        self._retrieved = True
        return self._exception

    def failed(self) -> bool:
        """Return whether it ended with an exception."""
        return self._exception is not None

    def cancellation(self) -> CancelledError:
        """Return a fresh exception that says this was cancelled, with the message given to cancel()."""
        return CancelledError() if self._message is None else CancelledError(self._message)

    def set_result(self, result: object) -> None:
        """Complete with a value.

        Raises:
            InvalidStateError: it is done already.
        """
        self._check_pending()
        self._result = result
        self._finish("FINISHED")

    def set_exception(self, exception: BaseException | type[BaseException]) -> None:
        """Complete with an exception.

        Raises:
            InvalidStateError: it is done already.
            TypeError: StopIteration, which would end the waiting coroutine instead of failing it.
        """
        self._check_pending()
        if isinstance(exception, type):
            exception = exception()
        if type(exception) is StopIteration:
            raise TypeError(
                "StopIteration interacts badly with generators and cannot be raised into a Future"
            )
        self._exception = exception
        self._retrieved = False
        self._finish("FINISHED")

    def cancel(self, msg: str | None = None) -> bool:
        """Cancel; return False when it is done already."""
        if self._state != "PENDING":
            return False
        self._message = msg
        self._finish("CANCELLED")
        return True

    def add_done_callback(self, fn: Callable[[Future], object], *, context: object = None) -> None:
        """Have ``fn(self)`` called from the loop once this is done; at its next turn if it is already."""
        if self._state == "PENDING":
            self._callbacks.append(fn)
        else:
            self._loop.call_soon(fn, self)

    def remove_done_callback(self, fn: Callable[[Future], object]) -> int:
        """Take back every registration of ``fn``; return how many there were."""
        kept = [callback for callback in self._callbacks if callback != fn]
        removed = len(self._callbacks) - len(kept)
        self._callbacks[:] = kept
        return removed

    def on_done(self, listener: Callable[[Future], object]) -> None:
        """Have ``listener(self)`` called the moment this is done, without going through the loop's queue."""
        if self._listeners is None:
            self._listeners = []
        self._listeners.append(listener)

    def _check_pending(self) -> None:
        if self._state != "PENDING":
            raise InvalidStateError(f"{self._state}: {self!r}")

    def _finish(self, state: State) -> None:
        self._state = state
        callbacks = self._callbacks
        if callbacks:
            self._callbacks = []
            for callback in callbacks:
                self._loop.call_soon(callback, self)
        listeners, self._listeners = self._listeners, None
        if listeners:
            for listener in listeners:
                listener(self)

    def __await__(self) -> Generator[Future, None, object]:
        if self._state == "PENDING":
            yield self
        return self.result()

    __iter__ = None


class HostFuture(Future):
    """A future that the host completes: a tool call or a sleep.

    Attributes:
        seq: the command whose delivery completes it.
    """

    __slots__ = ("seq",)

    def __init__(self, seq: int) -> None:
        super().__init__()
        self.seq = seq

    def cancel(self, msg: str | None = None) -> bool:
        """Cancel and tell the host that nobody waits any longer."""
        if not super().cancel(msg):
            return False
        self._loop.abandon(self.seq)
        return True
