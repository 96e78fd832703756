"""The file that says which operations of a document become tools, where they go, and with which secrets.

It is the operator's and is trusted; the document is not. What the file does not name is not offered, not sent
to, and not authenticated with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bascule.tools.errors import ToolLoadError
from bascule.tools.imported.globs import matches_any
from bascule.tools.imported.secrets import SecretBook
from bascule.tools.openapi.document import parse_yaml
from bascule.tools.options import DEFAULT_TIMEOUT_S, MAX_TIMEOUT_S, Effects

MAX_SELECTION_BYTES: Final = 1 << 20
SUFFIX: Final = ".tools.yaml"

Pattern = Annotated[str, Field(min_length=1, max_length=300)]
DeclaredEffects = Literal["read", "idempotent", "once", "suggested"]


class Choice(BaseModel):
    """Operations chosen by any of their tags, paths or ids; ``*`` stands for any characters."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    tags: list[Pattern] = []
    paths: list[Pattern] = []
    operations: list[Pattern] = []

    def takes(self, *, tags: list[str], path: str, operation: str) -> bool:
        """Tell whether an operation is chosen."""
        return (
            matches_any(operation, self.operations)
            or matches_any(path, self.paths)
            or any(matches_any(tag, self.tags) for tag in tags)
        )


class Selection(BaseModel):
    """What the file says; see docs/openapi.md for every key."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    document: str
    namespace: str | None = None
    servers: Annotated[list[Pattern], Field(min_length=1)]
    private_hosts: list[Pattern] = []
    include: Choice = Choice(operations=["*"])
    exclude: Choice = Choice()
    effects: dict[Pattern, DeclaredEffects] = {}
    labels: list[str] = []
    auth: dict[str, str] | Literal["none"] = {}
    headers: dict[str, str] = {}
    timeout_s: Annotated[float, Field(gt=0, le=MAX_TIMEOUT_S)] = DEFAULT_TIMEOUT_S
    max_response_bytes: Annotated[int, Field(gt=0, le=64 << 20)] = 8 << 20
    idempotency_header: str | None = "Idempotency-Key"
    check_responses: bool = False

    def chooses(self, *, tags: list[str], path: str, operation: str) -> bool:
        """Tell whether an operation becomes a tool."""
        wanted = self.include.takes(tags=tags, path=path, operation=operation)
        return wanted and not self.exclude.takes(tags=tags, path=path, operation=operation)

    def effects_of(self, operation: str, suggested: Effects) -> Effects:
        """Return the effects of an operation: ``once`` unless the file says otherwise."""
        fitting = [pattern for pattern in self.effects if matches_any(operation, (pattern,))]
        if not fitting:
            return "once"
        declared = self.effects[max(fitting, key=lambda each: (each == operation, len(each)))]
        return suggested if declared == "suggested" else declared


def read_selection(spec: str, path: Path, book: SecretBook) -> Selection:
    """Read a selection file; its secrets are filled in.

    Raises:
        ToolLoadError: naming file and key.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SELECTION_BYTES + 1)
        if len(raw) > MAX_SELECTION_BYTES:
            raise ToolLoadError("tool_source_invalid", f"{spec}: larger than {MAX_SELECTION_BYTES} bytes")
        text = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolLoadError("tool_source_invalid", f"{spec}: {error}") from error
    try:
        found = Selection.model_validate(parse_yaml(spec, text))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ToolLoadError("tool_source_invalid", f"{spec}: {place}: {first['msg']}") from None
    for server in found.servers:
        check_server(spec, server)
    for key, value in found.headers.items():
        book.note_literal(key, value)
    return found.model_copy(
        update={
            "headers": _expand(spec, "headers", found.headers, book),
            "auth": found.auth
            if found.auth == "none"
            else _expand(spec, "auth", found.auth, book, secret=True),
        }
    )


def check_server(spec: str, url: str) -> None:
    """Check the address of a service.

    Raises:
        ToolLoadError: it is none that requests can be sent to.
    """
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        _ = parts.port
    except ValueError:
        fine = False
    if (
        not fine
        or "?" in url
        or "#" in url
        or "{" in url
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        raise ToolLoadError(
            "tool_source_invalid",
            f"{spec}: servers: {url!r:.200} is no address; write https://host/base, nothing more",
        )


def _expand(
    spec: str, key: str, values: Mapping[str, str], book: SecretBook, *, secret: bool = False
) -> dict[str, str]:
    found = {name: book.expand(value, where=f"{spec}: {key}.{name}") for name, value in values.items()}
    if secret:
        for name, value in found.items():
            if values[name] == value:
                raise ToolLoadError(
                    "tool_source_invalid",
                    f"{spec}: {key}.{name}: write the name of a secret, ${{NAME}}, not its value",
                )
            book.keep(value)
    for name, value in found.items():
        if not value.isprintable() or not value.isascii():
            raise ToolLoadError(
                "tool_source_invalid", f"{spec}: {key}.{name}: only printable ASCII can be sent"
            )
    return found
