"""An engine that is absent, silent or refuses is an ordinary error that says what to do."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from bascule.sandbox.engine import Engine, find_engine
from bascule.sandbox.errors import SandboxError

VERSION = b'{"ApiVersion":"1.41","MinAPIVersion":"1.12"}'


class FakeEngine:
    """Answers the version question, then whatever it was told to, or nothing."""

    def __init__(self, path: Path, answer: bytes | None) -> None:
        self.host = f"unix://{path}"
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._connections: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._threads[0].join()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join()
        for each in (*self._connections, self._listener):
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._connections.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while request := connection.recv(65536):
                answer = VERSION_RESPONSE if b"/version " in request else self._answer
                if answer is not None:
                    connection.sendall(answer)


def response(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


VERSION_RESPONSE = response("200 OK", VERSION)


@pytest.fixture
def fake(tmp_path: Path, request: pytest.FixtureRequest) -> Generator[FakeEngine]:
    answer: bytes | None = request.param
    engine = FakeEngine(tmp_path / "engine.sock", answer)
    yield engine
    engine.close()


def test_no_engine_names_the_socket_and_a_command(tmp_path: Path) -> None:
    with pytest.raises(SandboxError) as caught:
        find_engine(f"unix://{tmp_path}/absent.sock")
    assert caught.value.code == "engine_unavailable"
    assert f"unix://{tmp_path}/absent.sock" in caught.value.message
    assert "dockerd" in caught.value.message or "apt-get install" in caught.value.message


def test_an_unreachable_remote_engine_points_at_docker_host() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        host = f"tcp://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(SandboxError) as caught:
            find_engine(host)
    assert caught.value.code == "engine_unavailable"
    assert "DOCKER_HOST" in caught.value.message


@pytest.mark.parametrize("fake", [None], indirect=True)
def test_a_silent_engine_is_a_timeout(fake: FakeEngine) -> None:
    engine = Engine(docker_host=fake.host, timeout_s=0.2)
    with pytest.raises(SandboxError) as caught:
        engine.call_now(engine.api.info)
    engine.close()
    assert caught.value.code == "engine_timeout"
    assert "info" in caught.value.message


@pytest.mark.parametrize(
    "fake", [response("500 Internal Server Error", b'{"message":"no space"}')], indirect=True
)
def test_a_refusal_carries_the_engines_words(fake: FakeEngine) -> None:
    engine = Engine(docker_host=fake.host)
    with pytest.raises(SandboxError) as caught:
        engine.call_now(engine.api.start, "container")
    engine.close()
    assert caught.value.code == "engine_failed"
    assert "no space" in caught.value.message


def test_errors_of_sandboxes_tell_a_script_nothing_but_their_code(tmp_path: Path) -> None:
    with pytest.raises(SandboxError) as caught:
        find_engine(f"unix://{tmp_path}/absent.sock")
    assert caught.value.for_script() == "engine unavailable"
