"""Every hostile script as an operator would run it: whole executor, real container, all walls up.

The container holds a canary in its environment and in the file ``/canary``: the guest image with these added.
Of the scripts that attack the interpreter, all of which run in process as well, `make test` takes every sixth
and `make escape` all.
"""

from __future__ import annotations

import asyncio
import io
import os
import tarfile
from collections.abc import Iterator

import docker
import pytest

from bascule.sandbox import ensure_image, find_engine
from bascule.sandbox.container import ContainerBackend
from bascule.sandbox.engine import Engine
from bascule.sandbox.seccomp import seccomp_profile
from tests.escape.attack import Outcomes, attack_all, prepare_notes
from tests.escape.rows import CANARY, Row, fault, load

pytestmark = pytest.mark.engine

STEP = 1 if os.environ.get("BASCULE_ALL_ATTACKS") == "1" else 6
ROWS = [*load("interpreter")[::STEP], *load("bridge"), *load("legit")]
TAG = "bascule-test-canary:latest"
DOCKERFILE = "FROM {base}\nENV CANARY={canary}\nCOPY canary /canary\n"


@pytest.fixture(scope="module")
def image_hash() -> Iterator[str]:
    """Build the image with the canary and remove it afterwards; gives the hash its guests say."""
    image = ensure_image()
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        for name, text in (
            ("Dockerfile", DOCKERFILE.format(base=image.tag, canary=CANARY)),
            ("canary", CANARY),
        ):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            entry.mode = 0o444
            archive.addfile(entry, io.BytesIO(text.encode()))
    client = docker.DockerClient(base_url=find_engine().host)
    client.images.build(fileobj=io.BytesIO(context.getvalue()), custom_context=True, tag=TAG, rm=True)
    yield image.hash
    client.images.remove(TAG, force=True)
    client.close()


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, image_hash: str) -> Outcomes:
    root = tmp_path_factory.mktemp("host")
    prepare_notes(root)

    async def run() -> Outcomes:
        backend = ContainerBackend(Engine(), image=TAG, image_hash=image_hash, seccomp=seccomp_profile())
        try:
            return await attack_all(backend, ROWS, root / "notes", at_once=4, canary="/canary")
        finally:
            await backend.close()

    return asyncio.run(run())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_script_stays_inside(row: Row, outcomes: Outcomes) -> None:
    seen, ran = outcomes[row.id]
    assert fault(row, seen) is None
    assert ran == [], "a denied call ran"
