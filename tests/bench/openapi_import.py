"""How long well-known OpenAPI documents take to become tools, and how large both are; part of `make bench`.

The documents come from the package registry; where it cannot be reached there is no table but the reason.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest

from bascule.tools import render_stubs
from tests.bench.stub_tokens import count_tokens
from tests.conformance.openapi_documents import FAMOUS, choose_documents, load_tools_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What one document came to.

    Attributes:
        document: its name in the package.
        document_bytes: its size.
        tools: how many operations became tools, all of them chosen.
        cpu_s: CPU seconds from text to tools, reading included.
        names_tokens, signatures_tokens: what the stubs of all tools cost at these levels of detail.
    """

    document: str
    document_bytes: int
    tools: int
    cpu_s: float
    names_tokens: int
    signatures_tokens: int


def measure_import(name: str, text: str) -> Imported:
    """Return the figures of one document."""
    before = time.process_time()
    tools = load_tools_of(name, text)
    spent = time.process_time() - before
    return Imported(
        document=name,
        document_bytes=len(text.encode()),
        tools=len(tools),
        cpu_s=spent,
        names_tokens=count_tokens(render_stubs(tools, detail="names")),
        signatures_tokens=count_tokens(render_stubs(tools, detail="signatures")),
    )


def render_head() -> str:
    """Return the head of the Markdown table."""
    titles = ["document", "MB", "tools", "CPU s", "ms per tool", "tokens, names", "tokens, signatures"]
    return f"| {' | '.join(titles)} |\n|" + " --- |" * len(titles)


def render_row(row: Imported) -> str:
    """Return one row of it."""
    return (
        f"| {row.document} | {row.document_bytes / 1e6:.2f} | {row.tools:,} | {row.cpu_s:.2f} "
        f"| {1000 * row.cpu_s / max(row.tools, 1):.2f} | {row.names_tokens:,} | {row.signatures_tokens:,} |"
    )


def main() -> None:
    """Print the table, row by row, or why there is none."""
    try:
        documents = choose_documents(0, famous=FAMOUS)
    except pytest.skip.Exception as skipped:
        print(f"OpenAPI import: skipped: {skipped}")
        return
    print(f"OpenAPI import, all operations chosen\n\n{render_head()}")
    for name in sorted(documents):
        print(render_row(measure_import(name, documents[name])), flush=True)


if __name__ == "__main__":
    main()
