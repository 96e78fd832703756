"""The deployment's audit key: 32 random bytes in a file of their own beside the store, for its owner only.

It keys the hashes of arguments and signs checkpoints of the audit chain. Whoever wants checkpoints to prove
something against the machine's own administrators keeps a copy of it, or of the checkpoints, elsewhere.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from bascule.bridge.errors import StoreError

KEY_BYTES: Final = 32


class AuditKey:
    """Hashes and signs.

    Args:
        key: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def beside(cls, store: Path) -> AuditKey:
        """Read the key of a store, making it when there is none.

        Raises:
            StoreError: it cannot be read, or is not a key.
        """
        path = store.with_name(store.name + ".key")
        try:
            with contextlib.suppress(FileExistsError):
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                with os.fdopen(descriptor, "wb") as file:
                    file.write(secrets.token_bytes(KEY_BYTES))
                    file.flush()
                    os.fsync(file.fileno())
            key = path.read_bytes()
        except OSError as error:
            raise StoreError("store_unavailable", f"the audit key {path} cannot be used: {error}") from error
        if len(key) != KEY_BYTES:
            raise StoreError("store_invalid", f"{path} is not an audit key: it has {len(key)} bytes, not 32")
        return cls(key)

    def hash(self, data: bytes) -> str:
        """Return the HMAC-SHA256 of data, in hex."""
        return hmac.digest(self._key, data, "sha256").hex()
