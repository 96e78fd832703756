"""What calls to services elsewhere raise, in the words the bridge classifies by."""

from __future__ import annotations

from bascule.tools.context import OutcomeUnknown
from bascule.tools.options import Effects


class ServiceFailed(Exception):
    """The service answered that the call failed; the text is its own, for the script to read."""


class ServiceUnreachable(ConnectionError):
    """The service could not be reached, or was lost before it answered; the call itself may be right."""


def lost_call(service: str, reason: str, *, sent: bool, effects: Effects) -> Exception:
    """Return what to raise for a call whose answer will never come.

    Args:
        sent: whether the service may have received it. Then a ``once`` call may have happened.
    """
    if sent and effects == "once":
        return OutcomeUnknown(f"{service} {reason}")
    return ServiceUnreachable(f"{service} {reason}")
