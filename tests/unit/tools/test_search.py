"""Finding tools by what somebody wants to do; the proof with 500 tools is in tests/conformance."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from bascule.tools import AnyTool, ToolDefinitionError, tool
from bascule.tools.discovery import SearchableTools, discovery_tools
from bascule.tools.embeddings import WordEmbedder
from bascule.tools.search import MAX_LIMIT, ToolIndex
from bascule.tools.source import KeepsSecrets
from bascule.tools.words import query_words, split_words

pytestmark = pytest.mark.anyio


def make(name: str, text: str, *parameters: str) -> AnyTool:
    source = f"def do({', '.join(f'{each}: str' for each in parameters)}) -> str: ..."
    scope: dict[str, object] = {}
    exec(source, scope)
    function = scope["do"]
    function.__doc__ = text
    return tool(name=name, effects="read")(function)  # type: ignore[arg-type]


TOOLS = [
    make("crm.findContact", "Find a person by name.", "name"),
    make("crm.delete_contact", "Delete a person for good.", "contact_id"),
    make("orders.refund_order", "Pay the money of an order back.", "order_id"),
    make("orders.list_orders", "List the orders of a customer.", "customer_id"),
    make("mail.send", "Send an e-mail.", "to", "subject", "body"),
    make("weather", "The forecast for a city.", "city"),
    make("kb.search", "在知识库中搜索文章。", "text"),
]


@pytest.fixture(scope="module")
def index() -> ToolIndex:
    return ToolIndex(TOOLS, pinned=("mail.send",))


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("find contact", "crm.findContact"),
        ("remove a person", "crm.delete_contact"),
        ("give the customer his money back", "orders.refund_order"),
        ("reimburse purchase", "orders.refund_order"),
        ("refnud ordr", "orders.refund_order"),
        ("退款", "orders.refund_order"),
        ("给客户发邮件", "mail.send"),
        ("知识库", "kb.search"),
        ("will it rain in Paris?", "weather"),
        ("order_id", "orders.refund_order"),
        ("sending emails", "mail.send"),
    ],
)
def test_words_names_synonyms_slips_and_chinese_find_the_tool(
    index: ToolIndex, query: str, wanted: str
) -> None:
    assert wanted in [match.name for match in index.search(query, 2)]


def test_a_match_says_what_is_needed_to_call_the_tool(index: ToolIndex) -> None:
    match = index.search("refund")[0]
    assert (match.name, match.summary) == ("orders.refund_order", "Pay the money of an order back.")
    assert match.signature == "orders.refund_order(order_id: str) -> str"
    assert match.score > 0


@pytest.mark.parametrize(
    "query",
    [
        '"',
        "'; DROP TABLE tools; --",
        "name:*",
        "NEAR(a b)",
        "a AND",
        "\x00\ud800",
        "(" * 900,
        "x" * 100_000,
        "^col",
    ],
)
def test_hostile_questions_are_only_words(index: ToolIndex, query: str) -> None:
    index.search(query)
    assert index.search("find contact")[0].name == "crm.findContact"


def test_a_question_without_words_gives_the_pinned_tools(index: ToolIndex) -> None:
    assert [match.name for match in index.search("?!")] == ["mail.send"]
    assert index.pinned == ("mail.send",)
    assert index.search("xyzzy plugh") == []


def test_limits_and_pins_are_checked(index: ToolIndex) -> None:
    for limit in (0, MAX_LIMIT + 1):
        with pytest.raises(ValueError, match="limit must be 1"):
            index.search("a", limit)
    with pytest.raises(ToolDefinitionError, match="there is no tool of this name"):
        ToolIndex(TOOLS, pinned=("mail.sned",))


def test_namespaces_are_counted(index: ToolIndex) -> None:
    assert index.namespaces() == {"crm": 2, "orders": 2, "mail": 1, "": 1, "kb": 1}
    assert len(index) == 7
    assert ToolIndex([]).search("anything") == []


def test_a_description_is_the_full_stub_and_an_unknown_name_gets_the_nearest(index: ToolIndex) -> None:
    assert index.describe("weather") == 'def weather(city: str) -> str: """The forecast for a city."""\n'
    with pytest.raises(LookupError, match=r"there is no tool 'mail\.sned'; did you mean mail\.send\?"):
        index.describe("mail.sned")


def test_an_index_serves_several_threads(index: ToolIndex) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(index.search, ["refund order"] * 200))
    assert {matches[0].name for matches in found} == {"orders.refund_order"}


def test_vectors_of_a_model_inside_a_package_find_what_words_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr("socket.socket.connect", refuse)
    embedded = ToolIndex(TOOLS, embedder=WordEmbedder())
    assert ToolIndex(TOOLS).search("umbrella") == []
    assert embedded.search("umbrella sunshine")[0].name == "weather"
    assert embedded.search("find contact")[0].name == "crm.findContact"


async def test_scripts_get_the_same_through_tools(index: ToolIndex) -> None:
    search, describe = discovery_tools(index)
    assert (search.name, search.effects, describe.name) == ("search_tools", "read", "describe_tool")
    found = search.call(search.validate({"query": "refund", "limit": 1}).values)
    assert b'"name":"orders.refund_order"' in search.dump_result(found)
    assert "def weather" in describe.call({"name": "weather"})


async def test_searchable_tools_are_a_source_of_all_they_hold() -> None:
    class Other:
        name = "other"
        closed = False

        async def open(self) -> list[AnyTool]:
            return [make("far.away", "From far away.")]

        async def close(self) -> None:
            self.closed = True

    other = Other()
    source = SearchableTools([*TOOLS, other], pinned=("far.away",))
    tools = {each.name: each for each in await source.open()}
    assert tools["search_tools"].call({"query": "far", "limit": 5})[0].name == "far.away"
    await source.close()
    assert other.closed
    assert source.secrets == frozenset()


async def test_what_sources_keep_secret_is_still_told_by_the_searchable_source() -> None:
    class Keeper:
        name = "keeper"
        secrets = frozenset({"key-of-the-keeper"})

        async def open(self) -> list[AnyTool]:
            return [make("far.leak", "Say what must not be said.")]

        async def close(self) -> None: ...

    source = SearchableTools([SearchableTools([Keeper()]), *TOOLS])
    assert isinstance(source, KeepsSecrets)
    assert source.secrets == {"key-of-the-keeper"}


def test_words_are_taken_apart_and_folded() -> None:
    assert split_words("crm.findContact getHTTPServer2 Müller_é") == [
        "crm", "find", "contact", "get", "http", "server", "2", "muller", "e",
    ]  # fmt: skip
    assert split_words("查找客户 x 你") == ["查找", "找客", "客户", "x", "你"]
    assert query_words("how do I get the the weather") == ["weather"]
    assert query_words("how to") == ["how", "to"]
