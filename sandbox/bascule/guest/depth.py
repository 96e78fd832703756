"""How deep calls stand: decides whether there is room left for an exchange with the host."""

from __future__ import annotations

import sys

EXCHANGE_FRAMES = 120
"""Depth that one exchange with the host may take: our frames, and a result as deep as one may be."""

_SHALLOW_FRAMES = 40
"""Depth up to which there is always room for an exchange, whatever the limit."""


def check_depth() -> None:
    """Raise RecursionError here, where nothing has been sent, rather than in the middle of an exchange.

    An exchange that breaks off would leave host and guest out of step, and the script could catch the error.
    """
    try:
        # There is no public way to ask how deep a call stands.
        sys._getframe(_SHALLOW_FRAMES)  # pyright: ignore[reportPrivateUsage]
    except ValueError:
        return
    _descend(EXCHANGE_FRAMES)


def _descend(frames: int) -> None:
    if frames:
        _descend(frames - 1)
