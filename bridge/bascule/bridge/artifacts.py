"""Artifacts: values too large for a model's context, kept in the store under a handle, for a while.

A handle is long and random and only its owner's runs can use it. Quotas are checked in the transaction that
adds an artifact, so that no script and no user fills the store.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

from bascule.wire import BasculeError

MAX_ARTIFACT_BYTES: Final = 16 << 20
MAX_RUN_BYTES: Final = 64 << 20
MAX_OWNER_BYTES: Final = 256 << 20
MAX_OWNER_ARTIFACTS: Final = 2000
"""Quotas of one artifact, of one run, and of one user, in bytes of JSON and in numbers."""

KEPT_S: Final = 86_400.0
"""Seconds an artifact is kept; then it may go at any time."""


class ArtifactRefused(BasculeError):
    """An artifact would break a quota; nothing was kept. Keep less, or wait until older ones expire."""

    def for_script(self) -> str:
        """Return the whole text: it names sizes only."""
        return self.message


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One value that is kept.

    Attributes:
        handle: its name, unguessable.
        owner: name of the user its run was made for; empty when that is not known.
        run_id: the run that made it; empty when the host did.
        created_at, expires_at: seconds since the epoch.
        data: JSON.
    """

    handle: str
    owner: str
    run_id: str
    created_at: float
    expires_at: float
    data: bytes


class ArtifactTable(Protocol):
    """Where artifacts are kept. Calls block shortly."""

    def put(self, artifact: Artifact) -> None:
        """Keep an artifact; once more under its handle changes nothing.

        Raises:
            ArtifactRefused: a quota.
            StoreError: the store cannot be written.
        """
        ...

    def get(self, handle: str, *, owner: str) -> Artifact | None:
        """Return an artifact that is not expired and is this owner's."""
        ...


def new_handle() -> str:
    """Return a random handle."""
    return f"art-{secrets.token_hex(16)}"


def check_quotas(artifact: Artifact, kept: Iterable[tuple[str, int]]) -> None:
    """Check an artifact against the quotas.

    Args:
        kept: run and size of what its owner has already.

    Raises:
        ArtifactRefused: it would break one; the message says which.
    """
    size = len(artifact.data)
    if size > MAX_ARTIFACT_BYTES:
        raise ArtifactRefused(
            "artifact_too_large", f"{size} bytes are more than one artifact may have, {MAX_ARTIFACT_BYTES}"
        )
    others = list(kept)
    total = sum(each for _, each in others)
    of_run = sum(each for run, each in others if run == artifact.run_id)
    if len(others) >= MAX_OWNER_ARTIFACTS or total + size > MAX_OWNER_BYTES:
        raise ArtifactRefused(
            "artifact_quota",
            f"{len(others)} artifacts with {total} bytes are kept; {MAX_OWNER_ARTIFACTS} with "
            f"{MAX_OWNER_BYTES} bytes are allowed. They go {KEPT_S / 3600:g} hours after they were made",
        )
    if artifact.run_id and of_run + size > MAX_RUN_BYTES:
        raise ArtifactRefused(
            "artifact_quota", f"this run keeps {of_run} bytes already; {MAX_RUN_BYTES} are allowed"
        )
