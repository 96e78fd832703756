"""What the bridge tells a tool about the call, and what a tool may say instead of giving its result.

A parameter annotated with `ToolContext` gets it; scripts and models never see that parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

Progress = Callable[[float, float | None, str], None]
"""Takes how far a call is, of how much (None when that is not known), and words; never waits."""


def _tell_nobody(done: float, total: float | None, text: str) -> None: ...


class OutcomeUnknown(Exception):
    """Raised by a ``once`` tool that was sent off and whose end nobody can know; the text says why.

    The call is then not repeated by itself, and its receipt says ``unknown``.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The call a tool is executed for.

    Attributes:
        idempotency_key: the same for every attempt of one call, also after a crash of the host; give it to
            services that take one. Empty when the tool is called by plain Python.
        run_id, seq: the call.
        attempt: 1, or more when an earlier attempt failed or its host died.
        user, tenant: for whom the run is made, as the host vouches for it; None when that is not known.
        secrets: values of the secrets that the tool declares, by name; never shown, not even by ``repr``.
        progress: tells whoever watches the run how far the call is.
    """

    idempotency_key: str = ""
    run_id: str = ""
    seq: int = 0
    attempt: int = 1
    user: str | None = None
    tenant: str | None = None
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    progress: Progress = _tell_nobody


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """Returned by a tool whose job goes on elsewhere; its ``check_back`` function is asked for the result.

    The run may be suspended meanwhile, and another process may do the asking.

    Attributes:
        check_after_s: seconds until the first question.
        token: what ``check_back`` needs to find the job; kept in the journal.
    """

    check_after_s: float
    token: JsonValue


@dataclass(frozen=True, slots=True)
class Happened:
    """Answer of a ``reconcile`` function: the call took effect, and this is its result."""

    value: Any = field(default=None)


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """Answer of a ``reconcile`` function: the call certainly did not take effect and may be made again."""
