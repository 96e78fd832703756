"""Real OpenAPI documents, chosen by hash from a package that ships two thousand, and well-known ones.

`make test` reads a handful; `BASCULE_OPENAPI_DOCUMENTS=50 make conformance` reads as many as it says.
"""

from __future__ import annotations

import os

import pytest

from bascule.tools import Registry
from tests.conformance.openapi_documents import choose_documents, load_tools_of

COUNT = int(os.environ.get("BASCULE_OPENAPI_DOCUMENTS", "6"))


def test_documents_that_others_wrote_give_unique_valid_names_and_stubs() -> None:
    chosen = choose_documents(COUNT, famous=COUNT >= 50)
    assert len(chosen) >= COUNT
    for name, text in chosen.items():
        tools = load_tools_of(name, text)
        registry = Registry(tools)
        assert len(registry.names()) == len(tools), name
        compile(registry.render_stubs(), name, "exec")
    print(f"{len(chosen)} documents")


def test_a_large_document_loads() -> None:
    [(name, text)] = choose_documents(0, famous=True, only="stripe.com.json").items()
    tools = load_tools_of(name, text)
    assert len(tools) > 400
    assert len({tool.name for tool in tools}) == len(tools)


@pytest.mark.parametrize("name", ["stripe.com.json"])
def test_a_tool_of_a_large_document_is_small_enough_for_a_prompt(name: str) -> None:
    [(_, text)] = choose_documents(0, famous=True, only=name).items()
    registry = Registry(load_tools_of(name, text)[:20])
    assert len(registry.render_stubs()) / 20 < 4000
