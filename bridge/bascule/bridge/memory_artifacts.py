"""Artifacts of `MemoryStore`: they end with the process."""

from __future__ import annotations

import threading
import time

from bascule.bridge.artifacts import Artifact, check_quotas


class MemoryArtifacts:
    """See `bascule.bridge.artifacts.ArtifactTable`. Tools use it from threads of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Artifact] = {}

    def put(self, artifact: Artifact) -> None:
        """See `ArtifactTable.put`."""
        now = time.time()
        with self._lock:
            self._kept = {handle: each for handle, each in self._kept.items() if each.expires_at > now}
            if artifact.handle in self._kept:
                return
            own = [
                (each.run_id, len(each.data)) for each in self._kept.values() if each.owner == artifact.owner
            ]
            check_quotas(artifact, own)
            self._kept[artifact.handle] = artifact

    def get(self, handle: str, *, owner: str) -> Artifact | None:
        """See `ArtifactTable.get`."""
        with self._lock:
            found = self._kept.get(handle)
        if found is None or found.owner != owner or found.expires_at <= time.time():
            return None
        return found
