"""The first frame of a guest, checked before its sandbox is promised to anybody. Untrusted all along."""

from __future__ import annotations

import asyncio

from bascule.sandbox.errors import SandboxClosed, SandboxError, image_mismatch
from bascule.sandbox.sandbox import Sandbox
from bascule.wire import PROTOCOL, FrameError, Hello, decode_guest_frame


async def await_hello(sandbox: Sandbox, *, image_hash: str, timeout_s: float) -> bytes:
    """Return the payload of the guest's Hello once it proved to come from the right program.

    Raises:
        SandboxError: ``guest_not_started``, ``protocol_mismatch`` or ``image_mismatch``; close the sandbox.
    """
    try:
        payload = await asyncio.wait_for(sandbox.receive(), timeout_s)
        hello = decode_guest_frame(payload)
    except TimeoutError as error:
        raise SandboxError(
            "guest_not_started", f"the guest said nothing within {timeout_s:g} s; raise start_s"
        ) from error
    except (SandboxClosed, FrameError) as error:
        await sandbox.kill()
        ending = await sandbox.close()
        raise SandboxError(
            "guest_not_started",
            f"the guest ended before it said hello: {error} (exit {ending.exit_code});"
            f" its last words: {ending.stderr_tail[-2000:]!r}",
        ) from error
    if not isinstance(hello, Hello) or hello.protocol != PROTOCOL:
        raise SandboxError(
            "protocol_mismatch", "the guest does not speak this host's protocol; run `bascule image build`"
        )
    if hello.image != image_hash:
        raise image_mismatch(expected=image_hash, found=hello.image)
    return payload
