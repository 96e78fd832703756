"""The four adapters with the real SDKs, each beside the server that checks its protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from bascule.models import AnthropicMessages, Gemini, ModelClient, OpenAIChat, OpenAIResponses
from tests.models.anthropic_server import AnthropicProtocol
from tests.models.chat_server import ChatProtocol
from tests.models.gemini_server import GeminiProtocol
from tests.models.responses_server import ResponsesProtocol
from tests.models.servers import ApiProtocol, JsonObject, Raw, ScriptedServer, WrittenTurn

APIS = ("chat", "responses", "anthropic", "gemini")
Turns = Iterable[WrittenTurn | Raw | Callable[[JsonObject], WrittenTurn]]

PROTOCOLS: dict[str, Callable[[], ApiProtocol]] = {
    "chat": ChatProtocol,
    "responses": ResponsesProtocol,
    "anthropic": AnthropicProtocol,
    "gemini": GeminiProtocol,
}


def make_adapter(api: str, url: str, **options: Any) -> Any:
    """Return an adapter that talks to a scripted server."""
    if api == "chat":
        return OpenAIChat("scripted", base_url=f"{url}/v1", api_key="key", **options)
    if api == "responses":
        return OpenAIResponses("scripted", base_url=f"{url}/v1", api_key="key", **options)
    if api == "anthropic":
        return AnthropicMessages("scripted", base_url=url, api_key="key", **options)
    if "client" in options:
        return Gemini("scripted", **options)
    return Gemini("scripted", base_url=url, api_key="key", **options)


@asynccontextmanager
async def scripted(
    api: str, turns: Turns, *, protocol: ApiProtocol | None = None, seed: int = 0, **options: Any
) -> AsyncGenerator[tuple[ModelClient, ScriptedServer]]:
    """Give an adapter and its server; at the end the server must have had nothing to complain about."""
    with ScriptedServer(protocol or PROTOCOLS[api](), turns, seed=seed) as server:
        adapter = make_adapter(api, server.url, **options)
        try:
            yield adapter, server
        finally:
            await adapter.close()
    assert server.violations == []
