"""Named secrets in configuration: ``${NAME}`` stands for a value that the file does not hold.

Decides which values are secrets. They go to the service and to whoever keeps them out of everything else
(`ToolSource.secrets`); no message here ever holds one.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, quote_plus

from bascule.tools.errors import ToolLoadError

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_SECRET_KEY = re.compile(r"(?i)key|token|secret|passw|credential|auth|cookie|session")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey)\s+")
MIN_SECRET_CHARS: Final = 6
"""Shorter values cannot be told apart in text, and are not kept out of it."""


def spell_secrets(secrets: Iterable[str]) -> list[str]:
    """Return every spelling of some secrets that services may repeat: plain, in an address, in base64."""
    found: set[str] = set()
    for secret in secrets:
        encoded = base64.b64encode(secret.encode()).decode()
        found |= {secret, quote(secret, safe=""), quote_plus(secret), encoded, encoded.rstrip("=")}
    return sorted(found, key=len, reverse=True)


class SecretBook:
    """Looks up the secrets of one source and remembers which of them it gave out.

    Args:
        named: values by name; what is not there is looked up in the environment.
        environment: None for that of the process.
    """

    def __init__(
        self, named: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._named = named or {}
        self._environment = os.environ if environment is None else environment
        self._given: set[str] = set()

    def __repr__(self) -> str:
        return f"<SecretBook of {len(self._given)} secrets>"

    @property
    def given(self) -> frozenset[str]:
        """Every value that must be kept out of scripts, journals and logs."""
        return frozenset(self._given)

    def get(self, name: str, *, where: str) -> str:
        """Return a secret by its name.

        Raises:
            ToolLoadError: ``secret_missing`` or ``tool_source_invalid``; the message holds the name only.
        """
        if not _NAME.fullmatch(name):
            raise ToolLoadError(
                "tool_source_invalid", f"{where}: {name!r:.60} is no name of a secret; write ${{NAME}}"
            )
        value = self._named.get(name, self._environment.get(name))
        if not value:
            raise ToolLoadError(
                "secret_missing", f"{where}: there is no secret {name}; set it in the environment"
            )
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            raise ToolLoadError("secret_invalid", f"{where}: the secret {name} holds control characters")
        self.keep(value)
        return value

    def expand(self, text: str, *, where: str) -> str:
        """Return a text with every ``${NAME}`` replaced.

        Raises:
            ToolLoadError: see `get`.
        """
        return _REFERENCE.sub(lambda found: self.get(found.group(1), where=where), text)

    def note_literal(self, key: str, value: str) -> None:
        """Keep a value that stands in the file itself where its key says that it is a credential."""
        if _SECRET_KEY.search(key):
            self.keep(_SCHEME.sub("", value, count=1))

    def keep(self, value: str) -> None:
        """Keep a value out of everything, unless it is too short or a path."""
        if len(value) >= MIN_SECRET_CHARS and not value.startswith(("/", "./", "~/")):  # paths are no secrets
            self._given.add(value)
