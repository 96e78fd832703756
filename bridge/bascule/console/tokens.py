"""Bearer tokens: random, shown once, kept hashed, with one scope each, and expiring."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from typing import Any, Final, cast

from bascule.console.database import Database
from bascule.console.principal import Scope

PREFIX: Final = "bsc_"
MAX_NAME_CHARS: Final = 100
DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 3660


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """What is known of a token; times in seconds since the epoch, ``expires_at`` None means never."""

    id: str
    name: str
    groups: frozenset[str]
    scope: Scope
    created_at: float
    expires_at: float | None
    revoked_at: float | None = None

    def is_valid(self, now: float) -> bool:
        """Tell whether it still opens anything."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class Tokens:
    """The tokens of a console."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self, name: str, scope: Scope, *, groups: frozenset[str] = frozenset(), lasts_s: float | None
    ) -> tuple[str, Token]:
        """Return a new token's secret, which is kept nowhere, and what is known of it.

        Raises:
            ValueError: the name is empty or too long.
        """
        if not name.strip() or len(name) > MAX_NAME_CHARS or not name.isprintable():
            raise ValueError(f"a token needs a printable name of at most {MAX_NAME_CHARS} characters")
        now = time.time()
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(
            id=f"tok-{secrets.token_hex(4)}",
            name=name,
            groups=groups,
            scope=scope,
            created_at=now,
            expires_at=None if lasts_s is None else now + lasts_s,
        )
        self._database.write(
            "INSERT INTO tokens VALUES (?, ?, ?, ?, ?, ?, ?, NULL)",
            *(token.id, hash_secret(secret), name, json.dumps(sorted(groups)), scope, now, token.expires_at),
        )
        return secret, token

    def find(self, secret: str) -> Token | None:
        """Return the valid token of a secret."""
        if not secret.startswith(PREFIX):
            return None
        return self._valid("hash = ?", hash_secret(secret))

    def get(self, token_id: str) -> Token | None:
        """Return a valid token by its id."""
        return self._valid("id = ?", token_id)

    def all(self) -> list[Token]:
        """Return all tokens, those that are revoked or expired included, oldest first."""
        return [
            _read(row) for row in self._database.read(f"SELECT {_COLUMNS} FROM tokens ORDER BY created_at")
        ]

    def revoke(self, token_id: str) -> bool:
        """Revoke a token and the browser sessions made with it; False when there is no valid one."""
        self._database.write("DELETE FROM sessions WHERE token_id = ?", token_id)
        statement = "UPDATE tokens SET revoked_at = ? WHERE id = ? AND revoked_at IS NULL"
        return self._database.write(statement, time.time(), token_id) == 1

    def _valid(self, condition: str, value: str) -> Token | None:
        rows = self._database.read(f"SELECT {_COLUMNS} FROM tokens WHERE {condition}", value)
        token = _read(rows[0]) if rows else None
        return token if token is not None and token.is_valid(time.time()) else None


def hash_secret(secret: str) -> str:
    """Return what is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


_COLUMNS: Final = "id, name, groups, scope, created_at, expires_at, revoked_at"


def _read(row: tuple[Any, ...]) -> Token:
    return Token(
        id=row[0],
        name=row[1],
        groups=frozenset(json.loads(row[2])),
        scope=cast("Scope", row[3]),
        created_at=row[4],
        expires_at=row[5],
        revoked_at=row[6],
    )
