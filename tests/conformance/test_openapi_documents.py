"""Real OpenAPI documents, chosen by hash from a package that ships two thousand, and well-known ones.

`make test` reads a handful; `BASCULE_OPENAPI_DOCUMENTS=50 make conformance` reads as many as it says.
"""

from __future__ import annotations

import os

from bascule.tools import Registry
from tests.conformance.openapi_documents import FAMOUS, choose_documents, load_tools_of

COUNT = int(os.environ.get("BASCULE_OPENAPI_DOCUMENTS", "5"))
LARGE = "stripe.com.json"
FAMOUS_HERE = FAMOUS if COUNT >= 50 else (LARGE,)


def test_documents_that_others_wrote_give_unique_valid_names_and_stubs() -> None:
    chosen = choose_documents(COUNT, famous=FAMOUS_HERE)
    assert len(chosen) == COUNT + len(FAMOUS_HERE)
    for name, text in chosen.items():
        tools = load_tools_of(name, text)
        registry = Registry(tools)
        assert len(registry.names()) == len(tools), name
        if name != LARGE:
            compile(registry.render_stubs(), name, "exec")
    print(f"{len(chosen)} documents")


def test_the_tools_of_a_large_document_are_small_enough_for_a_prompt() -> None:
    tools = load_tools_of(LARGE, choose_documents(COUNT, famous=FAMOUS_HERE)[LARGE])
    assert len(tools) > 400
    text = Registry(tools[:20]).render_stubs()
    compile(text, LARGE, "exec")
    assert len(text) / 20 < 4000
