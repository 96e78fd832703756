"""A model API on localhost: plays a script of turns, and refuses every request the real one would refuse.

A protocol knows one API: what it accepts, and how its turns look whole and streamed. What it refuses is
noted in `violations`, so that no test can overlook it.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Protocol, Self

JsonObject = dict[str, Any]
Ending = Literal["end", "calls", "length", "refusal", "pause", "context_full", "malformed"]


class Refused(Exception):
    """The request breaks the protocol; the text is what the API would say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenCall:
    """A call as a model writes it: the arguments are text that may be no JSON."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenTurn:
    """One turn of the scripted model.

    Attributes:
        items: further items of the API's own (reasoning, programs), before text and calls.
        usage: input and output tokens; None when the server says nothing.
    """

    text: str = ""
    calls: tuple[WrittenCall, ...] = ()
    ending: Ending = "end"
    items: tuple[JsonObject, ...] = ()
    usage: tuple[int, int] | None = (100, 20)
    carry: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ApiProtocol(Protocol):
    """One API."""

    def check(self, path: str, headers: Mapping[str, str], body: JsonObject) -> None:
        """Refuse a request that the API would refuse.

        Raises:
            Refused: with the API's own words.
        """
        ...

    def whole(self, turn: WrittenTurn) -> JsonObject:
        """Return the answer as one JSON object."""
        ...

    def streamed(self, turn: WrittenTurn, rng: random.Random) -> Iterable[str]:
        """Return the answer as server-sent events, with the pieces of random sizes."""
        ...

    def is_stream(self, path: str, body: JsonObject) -> bool:
        """Tell whether a request asks for a stream."""
        ...

    def error(self, status: int, message: str) -> JsonObject:
        """Return an error in the API's own shape."""
        ...


Raw = tuple[int, str, bytes]
"""A raw answer: status, content type, body."""


class ScriptedServer:
    """Serves one API on a free port. Use it as ``with``.

    Args:
        turns: what the model does, one a request; a `Raw` is sent as it is, a function makes a turn from the
            request. When they are used up the model says ``done``.

    Attributes:
        requests: bodies, in order.
        violations: why requests were refused.
    """

    def __init__(
        self,
        protocol: ApiProtocol,
        turns: Iterable[WrittenTurn | Raw | Callable[[JsonObject], WrittenTurn]],
        *,
        seed: int = 0,
    ) -> None:
        self.protocol = protocol
        self.requests: list[JsonObject] = []
        self.violations: list[str] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.play(turns, seed=seed)

    @property
    def url(self) -> str:
        """Address without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def play(
        self, turns: Iterable[WrittenTurn | Raw | Callable[[JsonObject], WrittenTurn]], *, seed: int = 0
    ) -> None:
        """Begin with other turns; no request may be on its way."""
        self._turns = iter(turns)
        self._rng = random.Random(seed)

    def answer(self, path: str, headers: Mapping[str, str], data: bytes) -> tuple[int, str, list[bytes]]:
        """Return status, content type and the pieces of the body."""
        body = json.loads(data)
        with self._lock:
            self.requests.append(body)
            try:
                self.protocol.check(path, headers, body)
            except (KeyError, TypeError, AttributeError, IndexError) as odd:  # a shape nobody checked for
                self.violations.append(repr(odd))
                return 500, "application/json", [json.dumps(self.protocol.error(500, repr(odd))).encode()]
            except Refused as refused:
                self.violations.append(str(refused))
                return 400, "application/json", [json.dumps(self.protocol.error(400, str(refused))).encode()]
            turn = next(self._turns, WrittenTurn(text="done"))
            if callable(turn):
                turn = turn(body)
            if isinstance(turn, tuple):
                status, kind, raw = turn
                return status, kind, [raw]
            if self.protocol.is_stream(path, body):
                text = "".join(self.protocol.streamed(turn, self._rng)).encode()
                return 200, "text/event-stream", list(_pieces(text, self._rng))
            return 200, "application/json", [json.dumps(self.protocol.whole(turn)).encode()]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("content-length", "0")))
                status, kind, pieces = server.answer(
                    self.path, {k.lower(): v for k, v in self.headers.items()}, data
                )
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("transfer-encoding", "chunked")
                # A kept connection that is dropped just as the next request leaves tests nothing of ours.
                self.send_header("Connection", "close")
                self.end_headers()
                for piece in pieces:
                    if piece:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        return Handler


def _pieces(data: bytes, rng: random.Random) -> Iterable[bytes]:
    position = 0
    while position < len(data):
        size = rng.choice((1, 7, 100, 4000, 100_000))
        yield data[position : position + size]
        position += size


def split_text(text: str, rng: random.Random) -> list[str]:
    """Return a text in up to some pieces, as models stream it."""
    pieces: list[str] = []
    while text and len(pieces) < 40:
        size = rng.choice((1, 2, 5, 20, 400))
        pieces.append(text[:size])
        text = text[size:]
    return [*pieces, text] if text else pieces


def event(data: JsonObject, *, name: str | None = None) -> str:
    """Return one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"


def require(condition: object, message: str) -> None:
    """Refuse the request unless a condition holds."""
    if not condition:
        raise Refused(message)
