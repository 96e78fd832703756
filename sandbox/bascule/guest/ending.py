"""How a run ends at once. Limits are not exceptions: nothing of the script unwinds, so nothing swallows them.

In its own process the guest sends the last frame and exits. Inside a test's process it cannot, so the same
ending raises RunEnded there; scripts have no name for it.
"""

from __future__ import annotations

from typing import Literal, NoReturn, Protocol

from bascule.wire import Finish


class RunEnded(BaseException):
    """The run is over, with this last frame."""

    def __init__(self, finish: Finish) -> None:
        super().__init__("the run is over")
        self.finish = finish


class Abandoned(BaseException):
    """The run is over; unwinds a worker that is still waiting."""


class Ender(Protocol):
    """Ends the run at once, without unwinding the script."""

    def stop(
        self,
        *,
        status: Literal["failed", "limit"],
        kind: str,
        message: str,
        line: int | None,
        suggestion: str | None = None,
    ) -> NoReturn:
        """End the run with this error."""
        ...
