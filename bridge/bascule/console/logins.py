"""Browser sessions: a random cookie that stands for a token, kept hashed.

The cookie's name begins with ``__Host-``: browsers take it only with Secure, for this very host and path
``/``, so no other host or port's page can set one. They treat 127.0.0.1 and localhost as
secure without https.
"""

from __future__ import annotations

import secrets
import time
from typing import Final

from bascule.console.database import Database
from bascule.console.tokens import Token, Tokens, hash_secret

COOKIE: Final = "__Host-bascule"


class Logins:
    """The browser sessions of a console; each ends with its token.

    Args:
        lasts_s: seconds until somebody must log in again.
    """

    def __init__(self, database: Database, tokens: Tokens, *, lasts_s: float) -> None:
        self._database = database
        self._tokens = tokens
        self._lasts_s = lasts_s

    def begin(self, token: Token) -> str:
        """Return the cookie of a new session. It is always a new one: what a browser brought is not taken."""
        now = time.time()
        self._database.write("DELETE FROM sessions WHERE expires_at < ?", now)
        secret = secrets.token_urlsafe(32)
        self._database.write(
            "INSERT INTO sessions VALUES (?, ?, ?, ?)",
            hash_secret(secret),
            token.id,
            now,
            now + self._lasts_s,
        )
        return secret

    def find(self, secret: str) -> Token | None:
        """Return the valid token a cookie stands for."""
        rows = self._database.read(
            "SELECT token_id FROM sessions WHERE hash = ? AND expires_at > ?",
            hash_secret(secret),
            time.time(),
        )
        return self._tokens.get(rows[0][0]) if rows else None

    def end(self, secret: str) -> None:
        """End a session."""
        self._database.write("DELETE FROM sessions WHERE hash = ?", hash_secret(secret))

    def set_cookie(self, secret: str) -> str:
        """Return the header that gives a browser its cookie."""
        return f"{COOKIE}={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={int(self._lasts_s)}"


FORGET_COOKIE: Final = f"{COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0"
