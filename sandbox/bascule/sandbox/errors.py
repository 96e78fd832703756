"""The errors of sandboxes. Every one says what the operator can do; none of their text may reach a script."""

from __future__ import annotations

from bascule.wire import BasculeError


class SandboxError(BasculeError):
    """A sandbox could not be had or kept; nothing is known about the script from it.

    Codes:
        engine_unavailable: no container engine answers; the message names the socket and the command.
        engine_timeout: the engine took longer than the deadline of one call.
        engine_failed: the engine refused a call; the message carries its words.
        image_missing: the engine does not have the guest image; build it.
        image_mismatch: the guest says it runs from another image than this installation's; rebuild.
        image_build_failed: a step of the build failed; the message names the step and the remedy.
        isolation_unsupported: this host cannot give the isolation that was asked for by name.
        cache_unusable: the user's cache folder cannot be made; the message says what to set.
        start_timeout: the sandbox did not start in ``SandboxLimits.start_timeout_s``.
        guest_not_started: the guest ended, or stayed silent, before its Hello; its last words are told.
        protocol_mismatch: the guest speaks another version of the protocol; rebuild the image.
        pool_exhausted: too many runs wait for a sandbox, or this one waited too long; try later.
        pool_closed: the pool is shutting down.
    """


class NotThere(SandboxError):
    """The engine has no container of that name (any more). Those who remove or end one are done then."""

    def __init__(self, message: str) -> None:
        super().__init__("engine_failed", message)


class SandboxClosed(BasculeError):
    """The guest's stream ended: it exited, was killed, or the connection broke.

    Raised by ``send`` and ``receive``. ``Sandbox.close()`` tells why. Not an error when a finish frame
    came before it.
    """

    def __init__(self, message: str = "the guest's stream has ended") -> None:
        super().__init__("sandbox_closed", message)


def image_mismatch(*, expected: str, found: str) -> SandboxError:
    """Return the error for a Hello that carries another image hash than the backend's."""
    return SandboxError(
        "image_mismatch",
        f"the guest runs from image {found[:12]!r} but this installation needs {expected[:12]!r}; "
        "run `bascule image build`",
    )
