"""Tools of the licence audit: they read the installed distributions of the Python that runs them.

Nothing here is sample data. `save_report` is the one tool with an effect: it writes one file into the folder
that BASCULE_DEMO_FOLDER names, by default ``artifacts``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bascule.tools import tool


@dataclass
class Distribution:
    """One installed distribution."""

    name: str
    version: str


@dataclass
class Metadata:
    """What a distribution says of itself; absent fields are None or empty."""

    name: str
    version: str
    license_expression: str | None
    license: str | None
    classifiers: list[str]
    requires: list[str]
    description: str


@dataclass
class InstalledFile:
    """One row of a RECORD file."""

    path: str
    bytes: int | None
    hash: str | None


@tool(effects="read")
def list_distributions() -> list[Distribution]:
    """List the installed distributions, sorted by name."""
    found = {each.name: each.version for each in metadata.distributions()}
    return [Distribution(name, found[name]) for name in sorted(found, key=str.lower)]


@tool(effects="read")
def read_metadata(name: str) -> Metadata:
    """Read the metadata of one distribution."""
    distribution = _find(name)
    fields = distribution.metadata.json
    return Metadata(
        name=distribution.name,
        version=distribution.version,
        license_expression=_text(fields.get("license_expression")),
        license=_text(fields.get("license")),
        classifiers=list(fields.get("classifier", [])),
        requires=distribution.requires or [],
        description=_text(fields.get("description")) or "",
    )


@tool(effects="read")
def read_record(name: str) -> list[InstalledFile]:
    """Read the RECORD of one distribution: every installed file with size and hash."""
    return [
        InstalledFile(
            str(file), file.size, None if file.hash is None else f"{file.hash.mode}={file.hash.value}"
        )
        for file in _find(name).files or []
    ]


@tool(effects="once")
def save_report(text: Annotated[str, Field(min_length=1, max_length=100_000)]) -> int:
    """Save the report as licence-audit.md; returns the number of bytes written."""
    folder = Path(os.environ.get("BASCULE_DEMO_FOLDER", "artifacts"))
    folder.mkdir(parents=True, exist_ok=True)
    return (folder / "licence-audit.md").write_bytes(text.encode())


def _text(value: str | list[str] | None) -> str | None:
    return value if isinstance(value, str) else None


def _find(name: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise LookupError(f"no distribution named {name!r} is installed") from None
