"""What the model tests share: a fork server for a module, and clients that are made quickly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import certifi
import pytest

from tests.forks.backend import ForkBackend

_END = "-----END CERTIFICATE-----\n"


@pytest.fixture(scope="module", autouse=True)
def one_certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let SDKs trust one authority: the servers here speak plain HTTP, and each client reads all of them."""
    with open(certifi.where(), encoding="utf-8") as bundle:
        first, end, _ = bundle.read().partition(_END)
    path = tmp_path_factory.mktemp("trust") / "one.pem"
    path.write_text(first + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture(scope="module")
async def forks(anyio_backend: str) -> AsyncIterator[ForkBackend]:
    """Give a backend whose guests are forked from one warm parent: it starts slowly, its guests do not."""
    backend = ForkBackend()
    yield backend
    await backend.close()
