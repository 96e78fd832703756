"""Keeps registered secrets of the host away from guest, model, log, console and store.

Values and patterns are the operator's. Everything that tools return or raise, that a script passes, prints,
returns or raises, and what operators answer passes here before it goes on or is kept, in plain, JSON-escaped,
URL-quoted and base64 form. A secret that is cut up or encrypted is not found, nor one that was registered
after it passed.
"""

from __future__ import annotations

import base64
import logging
import re
import threading
import traceback
import weakref
from collections.abc import Iterable
from typing import Any, Final, cast
from urllib.parse import quote

import msgspec

from bascule.bridge.result import JsonValue
from bascule.wire import Note, ScriptError, ToolFailure

_encode = msgspec.json.Encoder().encode
_Error: Final = msgspec.json.Decoder(ScriptError)

REDACTED: Final = "[redacted]"
MIN_SECRET_CHARS: Final = 6
"""Shorter values are refused: they would be found everywhere."""


class Redactor:
    """Finds and replaces the secrets of one executor.

    Args:
        secrets: exact values.
        patterns: regular expressions for values that are not known beforehand.

    Raises:
        ValueError: a secret is too short, or a pattern is no regular expression.
    """

    def __init__(self, secrets: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._patterns = [pattern for pattern in patterns if re.compile(pattern)]
        self._find: re.Pattern[str] | None = None
        self.register(*secrets)
        _redactors.add(self)

    def register(self, *secrets: str) -> None:
        """Add secrets; they count from now on.

        Raises:
            ValueError: one is shorter than `MIN_SECRET_CHARS`.
        """
        for secret in secrets:
            if len(secret) < MIN_SECRET_CHARS:
                raise ValueError(f"a secret of less than {MIN_SECRET_CHARS} characters cannot be told apart")
        with self._lock:
            for secret in secrets:
                for encode in (base64.b64encode, base64.urlsafe_b64encode):
                    self._forms.add(encode(secret.encode()).decode().rstrip("="))
                self._forms |= {secret, quote(secret, safe="")}
            known = sorted(map(re.escape, self._forms), key=len, reverse=True)
            parts = [*known, *(f"(?:{pattern})" for pattern in self._patterns)]
            self._find = re.compile("|".join(parts)) if parts else None

    def text(self, text: str) -> str:
        """Return text without secrets."""
        return text if self._find is None else self._find.sub(REDACTED, text)

    def find(self, text: str) -> int | None:
        """Return where the first secret begins, None when there is none."""
        found = None if self._find is None else self._find.search(text)
        return None if found is None else found.start()

    def json(self, data: bytes) -> bytes:
        """Return JSON whose texts, keys included, are without secrets."""
        if self._find is None:
            return data
        value = msgspec.json.decode(data)
        cleaned, found = self._clean(value)
        return msgspec.json.encode(cleaned) if found else data

    def plain(self, value: JsonValue) -> JsonValue:
        """Return plain data whose texts, keys included, are without secrets."""
        if self._find is None:
            return value
        cleaned, found = self._clean(value)
        return cast("JsonValue", cleaned) if found else value

    def errors(self, errors: tuple[ScriptError, ...]) -> tuple[ScriptError, ...]:
        """Return errors of a script whose words are without secrets."""
        if self._find is None:
            return errors
        return tuple(_Error.decode(self.json(_encode(error))) for error in errors)

    def notes(self, notes: tuple[Note, ...]) -> tuple[Note, ...]:
        """Return notes about a script whose words are without secrets."""
        if self._find is None:
            return notes
        return tuple(msgspec.structs.replace(note, message=self.text(note.message)) for note in notes)

    def failure(self, failure: ToolFailure) -> ToolFailure:
        """Return a failure whose words are without secrets."""
        if self._find is None:
            return failure
        suggestion = failure.suggestion
        return msgspec.structs.replace(
            failure,
            message=self.text(failure.message),
            suggestion=None if suggestion is None else self.text(suggestion),
        )

    def holds_secret(self, value: object) -> bool:
        """Tell whether a secret stands anywhere in JSON data."""
        return self._find is not None and self._clean(value)[1]

    def _clean(self, value: Any) -> tuple[Any, bool]:
        assert self._find is not None
        if isinstance(value, str):
            cleaned, count = self._find.subn(REDACTED, value)
            return cleaned, count > 0
        if isinstance(value, list):
            items = [self._clean(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
            return [item for item, _ in items], any(found for _, found in items)
        if isinstance(value, dict):
            members = [(self._clean(key), self._clean(item)) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType]
            found = any(key[1] or item[1] for key, item in members)
            return {key[0]: item[0] for key, item in members}, found
        return value, False


_redactors: weakref.WeakSet[Redactor] = weakref.WeakSet()


class _LogFilter(logging.Filter):
    """Takes the secrets of all executors out of the bridge's log."""

    def filter(self, record: logging.LogRecord) -> bool:
        redactors = list(_redactors)
        if not redactors:
            return True
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            message = f"{message}\n{''.join(traceback.format_exception(record.exc_info[1])).rstrip()}"
        for redactor in redactors:
            message = redactor.text(message)
        record.msg, record.args = message, None
        record.exc_info = record.exc_text = None
        return True


def keep_log_clean() -> None:
    """Have the bridge's log pass through all redactors; done once per process."""
    log = logging.getLogger("bascule.bridge")
    if not any(isinstance(each, _LogFilter) for each in log.filters):
        log.addFilter(_LogFilter())
