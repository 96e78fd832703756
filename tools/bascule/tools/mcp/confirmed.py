"""Which definitions of tools people have confirmed: a file beside the configuration, kept in version control.

A definition that is not in it, or not as it is in it, waits: it is listed and cannot be called. The file is
the operator's and is trusted; it is written whole or not at all.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from bascule.tools.errors import ToolLoadError
from bascule.tools.mcp.definitions import Definition
from bascule.tools.options import Effects

MAX_LOCK_BYTES: Final = 64 << 20


class Confirmation(BaseModel):
    """One confirmed definition: what it was, the effects people gave it, who and when."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    effects: Effects
    confirmed_by: str
    confirmed_at: str
    definition: dict[str, JsonValue]


class Refusal(BaseModel):
    """One definition that people looked at and did not confirm."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    refused_by: str
    refused_at: str
    reason: str


class _LockFile(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: Annotated[int, Field(ge=1, le=1)]
    servers: dict[str, dict[str, Confirmation]]
    refused: dict[str, dict[str, Refusal]] = Field(default_factory=dict[str, dict[str, Refusal]])


class Confirmations:
    """The confirmed definitions of one configuration file.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, config: Path) -> Confirmations:
        """Return those of a configuration file: ``mcp.json`` has ``mcp.lock.json``."""
        return cls(config.with_suffix(".lock.json"))

    def read(self) -> dict[str, dict[str, Confirmation]]:
        """Return the confirmations by server and tool.

        Raises:
            ToolLoadError: the file cannot be read or is not one of ours; nothing counts as confirmed then.
        """
        return self._read().servers

    def refusals(self) -> dict[str, dict[str, Refusal]]:
        """Return the refusals by server and tool.

        Raises:
            ToolLoadError: as `read`.
        """
        return self._read().refused

    def _read(self) -> _LockFile:
        try:
            if self.path.stat().st_size > MAX_LOCK_BYTES:
                raise ToolLoadError("tool_lock_invalid", f"{self.path}: larger than {MAX_LOCK_BYTES} bytes")
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return _LockFile(version=1, servers={})
        except (OSError, UnicodeDecodeError) as error:
            raise ToolLoadError("tool_lock_invalid", f"{self.path}: {error}") from error
        try:
            return _LockFile.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ToolLoadError("tool_lock_invalid", f"{self.path}: {place}: {first['msg']}") from None

    def confirm(self, server: str, definition: Definition, *, effects: Effects, by: str) -> None:
        """Write that a definition is confirmed, in place of an earlier one of the tool.

        Raises:
            ToolLoadError: the file cannot be read.
            OSError: it cannot be written; it is as it was.
        """
        with self._held():
            file = self._read()
            file.servers.setdefault(server, {})[definition.tool] = Confirmation(
                digest=definition.digest,
                effects=effects,
                confirmed_by=by,
                confirmed_at=_now(),
                definition=definition.plain,
            )
            file.refused.get(server, {}).pop(definition.tool, None)
            self._write(file)

    def refuse(self, server: str, definition: Definition, *, by: str, reason: str) -> None:
        """Write that a definition was looked at and refused; one that was confirmed before stays so.

        Raises:
            ToolLoadError, OSError: as `confirm`.
        """
        with self._held():
            file = self._read()
            file.refused.setdefault(server, {})[definition.tool] = Refusal(
                digest=definition.digest, refused_by=by, refused_at=_now(), reason=reason
            )
            self._write(file)

    @contextmanager
    def _held(self) -> Generator[None]:
        """Keep others from changing the file between reading and writing it."""
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _write(self, file: _LockFile) -> None:
        data: dict[str, Any] = file.model_dump(mode="json")
        data["refused"] = {server: known for server, known in data["refused"].items() if known}
        if not data["refused"]:
            del data["refused"]
        handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as stream:
                json.dump(data, stream, indent=1, sort_keys=True)
                stream.write("\n")
            os.chmod(name, 0o644)
            os.replace(name, self.path)
        except BaseException:
            os.unlink(name)
            raise


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
