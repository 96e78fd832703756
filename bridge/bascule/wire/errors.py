"""The root of every error Bascule raises, and the errors of the wire.

Two audiences: ``str(error)`` is for the operator, ``error.for_script()`` is all that a model or a
script may ever see of it.
"""

from __future__ import annotations


class BasculeError(Exception):
    """Root of all errors of this distribution.

    Attributes:
        code: stable, lower-case identifier (``frame_too_large``), part of the public contract.
        message: one sentence for the operator; may name host details.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def for_script(self) -> str:
        """Return the text that may cross the wall: the code alone unless a subclass knows better."""
        return self.code.replace("_", " ")


class FrameError(BasculeError):
    """A frame broke the protocol: too large, too deep, not canonical, of an unknown kind.

    The peer that sent it cannot be trusted any further: end the connection. There is nothing to retry.
    """
