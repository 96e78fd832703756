"""The examples of docs/models/frameworks.md are run as they stand, with the real frameworks."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import agents
import pytest
from langchain_core.tools import tool as langchain_tool
from pydantic_ai import Tool

from bascule.bridge import Executor, ask_elsewhere
from bascule.bridge.memory_store import MemoryStore
from bascule.models import ToolSurface, build_prompt
from tests.forks.backend import ForkBackend
from tests.models.apis import PROTOCOLS
from tests.models.servers import ScriptedServer, WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[2] / "docs" / "models" / "frameworks.md"
SCRIPT = {"code": "len(crm.orders(customer='Ann'))"}
ASKED = WrittenCall(id="a1", name="run_script", arguments=json.dumps(SCRIPT))
ASKING = WrittenTurn(calls=(ASKED,), ending="calls")


@pytest.fixture(scope="module")
async def forks(anyio_backend: str) -> AsyncIterator[ForkBackend]:
    """Give a backend whose guests are forked from one warm parent."""
    backend = ForkBackend()
    yield backend
    await backend.close()


def example_of(heading: str) -> str:
    """Return the first code block below a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"(?:^ {4}.*\n|^\n(?= {4}))+", section, re.MULTILINE)
    assert found is not None
    return textwrap.dedent(found[0])


async def run_example(heading: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Run a code block with names it does not define itself; return all names after it."""
    names = dict(given)
    code = compile(example_of(heading), PAGE.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    waits = eval(code, names)
    if inspect.isawaitable(waits):
        await waits
    return names


def answer(body: dict[str, Any]) -> WrittenTurn:
    """End the conversation, with what the script gave when it came back."""
    return WrittenTurn(text="Ann has 40." if "'40'" in str(body) else "I do not know.")


async def test_pydantic_ai(forks: ForkBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore(keep_values=True)

    def open_it(*args: Any, **options: Any) -> Executor:
        return Executor(*args, backend=forks, **options)

    with ScriptedServer(PROTOCOLS["responses"](), [ASKING, answer]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        given = {"Executor": open_it, "tools": Shop().tools, "policy": None, "store": store}
        await run_example("pydantic-ai", {**given, "ask_elsewhere": ask_elsewhere})
    assert server.violations == []
    assert [run.outcome for run in store.runs()] == ["ok"]


async def test_langchain(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        made = await run_example("LangChain and LangGraph", {"executor": executor})
        offered = {each.name: each for each in made["tools"]}
        assert await offered["run_script"].ainvoke(SCRIPT) == "40"
    assert "run_script(code)" in made["system"]


async def test_the_openai_agents_sdk(forks: ForkBackend) -> None:
    from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
    from openai import AsyncOpenAI

    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor)
        given = {"Agent": agents.Agent, "surface": surface, "build_prompt": build_prompt}
        made = await run_example("OpenAI Agents SDK", given)
        with ScriptedServer(PROTOCOLS["chat"](), [ASKING, answer]) as server:
            async with AsyncOpenAI(api_key="key", base_url=f"{server.url}/v1") as client:
                model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
                config = agents.RunConfig(model=model, tracing_disabled=True)
                ended = await agents.Runner.run(made["agent"], "How many?", run_config=config)
    assert server.violations == []
    assert ended.final_output == "Ann has 40."


async def test_the_other_direction(forks: ForkBackend) -> None:
    opened: list[Executor] = []

    def open_it(tools: Any) -> None:
        opened.append(Executor(tools, backend=forks))

    @langchain_tool
    def search(text: str) -> str:
        """Search for a text."""
        return f"found {text}"

    def area(width: float) -> float:
        """Return the area of a square."""
        return width * width

    await run_example(
        "The other direction", {"Executor": open_it, "Tool": Tool, "search": search, "area": area}
    )
    (executor,) = opened
    async with executor:
        done = await executor.run("search(text='x') + str(area(width=3))")
    assert done.value == "found x9.0"
