"""Bounds on what a connection may cost: how long a request takes to arrive, an answer to be read, how many.

Everything from the first byte on is the client's. The server below has no deadline for headers, none for a
body that nobody reads any more, and takes connections without end. A body that is read has a deadline of its
own (`bascule.console.reading`), which is shorter, so that such a client is told why.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

GRACE_S: Final = 5.0
"""For a body, beyond the time its reader gives it."""

UNREAD_S: Final = 60.0
"""How long a client may read nothing of an answer that does not fit into the buffers."""

SPARE: Final = 50
"""Connections beyond those served that are told to come back; further ones are closed without a word."""

# Names of states of h11, which uvicorn is built on: what a client still has to send.
_HEADERS: Final = "IDLE"
_BODY: Final = "SEND_BODY"


def bound_connections(*, arrive_s: float, connections: int) -> type[H11Protocol]:
    """Return the protocol of connections.

    Args:
        arrive_s: seconds for a request's headers, from its first byte or the opening on; again for its body.
        connections: served at once.
    """

    class Bounded(H11Protocol):
        """One connection."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self._arriving: asyncio.TimerHandle | None = None
            self._phase: str | None = None
            self._unread: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as below
            super().connection_made(transport)
            if len(self.connections) > connections + SPARE:
                transport.abort()
                return
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._set(None)
            self.resume_writing()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def on_response_complete(self) -> None:
            self._set(None)  # between two requests the server's own limit for idle connections counts
            super().on_response_complete()
            if self.conn.their_state.__name__ == _BODY:
                self._watch()

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._unread is None:
                self._unread = self.loop.call_later(UNREAD_S, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._unread is not None:
                self._unread.cancel()
                self._unread = None

        def _watch(self) -> None:
            """Give what is still to come of a request its time: once for headers, once for the body."""
            state = self.conn.their_state.__name__
            self._set(state if state in (_HEADERS, _BODY) else None)

        def _set(self, phase: str | None) -> None:
            if phase == self._phase:
                return
            self._phase = phase
            if self._arriving is not None:
                self._arriving.cancel()
                self._arriving = None
            if phase is not None and not self.transport.is_closing():
                wait_s = arrive_s if phase == _HEADERS else arrive_s + GRACE_S
                self._arriving = self.loop.call_later(wait_s, self.transport.abort)

    return Bounded
