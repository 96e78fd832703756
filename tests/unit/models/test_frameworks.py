"""The surface in other frameworks, each driven by the real framework: by its own test model, or by its own
loop against a local scripted model server. The examples of docs/models/frameworks.md run as they stand.

In one file, because importing the frameworks takes longer than all that is done with them here.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as OpenAIAgent
from agents import FunctionTool, RunConfig, Runner, function_tool
from agents.models.interface import Model
from agents.models.openai_chatcompletions import OpenAIChatCompletionsModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.graph import (  # pyright: ignore[reportMissingTypeStubs]  # it has none
    END,
    START,
    MessagesState,
    StateGraph,
)
from langgraph.prebuilt import ToolNode, tools_condition
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from bascule.bridge import Decision, Executor, ask_elsewhere
from bascule.bridge.memory_store import MemoryStore
from bascule.models import ToolSurface, build_prompt
from bascule.models.langchain_tools import import_langchain, make_langchain_tools
from bascule.models.openai_agents_tools import import_agents_tool, make_agents_tools
from bascule.models.pydantic_ai_toolset import SurfaceToolset, import_pydantic_ai
from tests.forks.backend import ForkBackend
from tests.models.apis import PROTOCOLS
from tests.models.servers import ScriptedServer, WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

PAGE = Path(__file__).parents[3] / "docs" / "models" / "frameworks.md"
SCRIPT = {"code": "len(crm.orders(customer='Ann'))"}
ASKED = WrittenCall(id="a1", name="run_script", arguments=json.dumps(SCRIPT))
ASKING = WrittenTurn(calls=(ASKED,), ending="calls")


def decide(executor: Executor) -> None:
    """Approve what waits, as a person would."""
    (record,) = executor.store.approvals.find(states=["pending"])
    executor.decide(record.id, Decision(verdict="approve", by="olga"), digest=record.digest)


# ------------------------------------------------------------ pydantic-ai


async def test_a_pydantic_ai_agent_runs_scripts_and_takes_up_what_waited(forks: ForkBackend) -> None:
    shop = Shop()
    seen: list[str] = []
    offered: list[AgentInfo] = []

    async with open_executor(forks, shop) as executor:

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            offered.append(info)
            last = messages[-1].parts[-1]
            if not isinstance(last, ToolReturnPart):
                return ModelResponse(parts=[ToolCallPart("run_script", SCRIPT)])
            seen.append(str(last.content))
            if len(seen) == 1:
                return ModelResponse(parts=[ToolCallPart("run_script", {"code": "broken()"})])
            if len(seen) == 2:
                return ModelResponse(parts=[ToolCallPart("mail-send", {"to": "ann", "text": "40"})])
            if len(seen) == 3:
                run_id = seen[-1].split()[1]
                decide(executor)
                return ModelResponse(parts=[ToolCallPart("resume_run", {"run_id": run_id})])
            return ModelResponse(parts=[TextPart("done")])

        agent = Agent(FunctionModel(answer), toolsets=[SurfaceToolset(ToolSurface(executor))])
        result = await agent.run("How many orders has Ann?")
    assert result.output == "done"
    assert seen[0] == "40"
    assert "closed on Sundays" in seen[1]
    assert seen[2].startswith("Run run-")
    assert seen[3] == "sent to ann"
    assert shop.sent == ["ann: 40"]
    assert "crm-orders" in {each.name for each in offered[0].function_tools}
    assert "run_script(code)" in str(offered[0].instructions)


async def test_functions_of_pydantic_ai_are_called_from_scripts(forks: ForkBackend) -> None:
    def area(width: float, height: float = 2.0) -> dict[str, float]:
        """Return an area."""
        return {"area": width * height}

    def with_context(ctx: RunContext[None], a: int) -> int:
        return a

    with pytest.raises(ValueError, match="takes a RunContext"):
        import_pydantic_ai(Tool(with_context))
    ours = import_pydantic_ai(Tool(area), effects="read")
    async with Executor([ours], backend=forks) as executor:
        done = await executor.run("area(width=3)['area'] + area(width=1, height=1)['area']")
        wrong = await executor.run("area(width='wide')")
    assert done.value == 7
    assert wrong.status != "ok"
    assert "width" in wrong.for_model()


# ------------------------------------------------------------ LangChain and LangGraph


async def test_a_langgraph_agent_calls_the_surface_in_its_own_loop(forks: ForkBackend) -> None:
    turns = [
        AIMessage("", tool_calls=[{"name": "run_script", "args": SCRIPT, "id": "1"}]),
        AIMessage("", tool_calls=[{"name": "broken", "args": {}, "id": "2"}]),
        AIMessage("Ann has 40 orders."),
    ]
    model = GenericFakeChatModel(messages=iter(turns))

    async def call_model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    async with open_executor(forks, Shop()) as executor:
        graph: Any = StateGraph(MessagesState)  # its types are unknown to strict checkers
        graph.add_node("model", call_model)
        graph.add_node("tools", ToolNode(make_langchain_tools(ToolSurface(executor))))
        graph.add_edge(START, "model")
        graph.add_conditional_edges("model", tools_condition, {"tools": "tools", END: END})
        graph.add_edge("tools", "model")
        ended = await graph.compile().ainvoke({"messages": [HumanMessage("How many orders has Ann?")]})
    answers = [each for each in ended["messages"] if isinstance(each, ToolMessage)]
    assert answers[0].content == "40"
    assert answers[0].artifact.result.usage.calls == 1
    assert answers[1].status == "error"
    assert "closed on Sundays" in str(answers[1].content)
    assert ended["messages"][-1].content == "Ann has 40 orders."


async def test_tools_of_langchain_are_called_from_scripts(forks: ForkBackend) -> None:
    @langchain_tool
    def count_letters(text: str, letter: str = "a") -> int:
        """Count a letter in a text."""
        return text.count(letter)

    async with Executor([import_langchain(count_letters, effects="read")], backend=forks) as executor:
        done = await executor.run("count_letters(text='banana') * count_letters(text='bob', letter='b')")
        wrong = await executor.run("count_letters(text=5)")
    assert done.value == 6
    assert wrong.status != "ok"


# ------------------------------------------------------------ OpenAI Agents SDK


def chat_turn(**message: Any) -> dict[str, Any]:
    """Return one answer of a Chat Completions server."""
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                "message": {"role": "assistant", "content": None, **message},
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def chat_call(number: int, name: str, arguments: str) -> dict[str, Any]:
    """Return a turn that calls one function."""
    call = {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    return chat_turn(tool_calls=[call])


async def test_an_agent_of_the_openai_sdk_runs_scripts_over_http(forks: ForkBackend) -> None:
    import httpx2
    from openai import AsyncOpenAI

    turns = [
        chat_call(1, "run_script", json.dumps(SCRIPT)),
        chat_call(2, "run_script", '{"code": '),
        chat_call(3, "mail-send", '{"to": "ann", "text": "x"}'),
        chat_turn(content="done"),
    ]
    asked: list[dict[str, Any]] = []

    async def serve(request: httpx2.Request) -> httpx2.Response:
        asked.append(json.loads(request.content))
        return httpx2.Response(200, json=turns[len(asked) - 1])

    async with (
        open_executor(forks, Shop()) as executor,
        httpx2.AsyncClient(transport=httpx2.MockTransport(serve)) as http,
    ):
        client = AsyncOpenAI(api_key="none", base_url="http://scripted.example/v1", http_client=http)
        model: Model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
        agent = OpenAIAgent(name="a", model=model, tools=make_agents_tools(ToolSurface(executor)))
        result = await Runner.run(agent, "How many?", run_config=RunConfig(tracing_disabled=True))
    answers = [each["content"] for each in asked[-1]["messages"] if each["role"] == "tool"]
    assert result.final_output == "done"
    assert answers[0] == "40"
    assert "no JSON" in answers[1]
    assert answers[2].startswith("Run run-")


async def test_function_tools_of_the_openai_sdk_are_called_from_scripts(forks: ForkBackend) -> None:
    @function_tool
    def double(number: int) -> int:
        """Double a number."""
        return number * 2

    assert isinstance(double, FunctionTool)
    async with Executor([import_agents_tool(double, effects="read")], backend=forks) as executor:
        done = await executor.run("int(double(number=4)) + 1")
    assert done.value == 9


# ------------------------------------------------------------ the examples of the page


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


async def test_the_example_with_pydantic_ai_runs(
    forks: ForkBackend, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert capsys.readouterr().out == "Ann has 40.\n"


async def test_the_example_with_langchain_runs(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        made = await run_example("LangChain and LangGraph", {"executor": executor})
        offered = {each.name: each for each in made["tools"]}
        assert await offered["run_script"].ainvoke(SCRIPT) == "40"
    assert "run_script(code)" in made["system"]


async def test_the_example_with_the_openai_agents_sdk_runs(forks: ForkBackend) -> None:
    from openai import AsyncOpenAI

    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor)
        given = {"Agent": OpenAIAgent, "surface": surface, "build_prompt": build_prompt}
        made = await run_example("OpenAI Agents SDK", given)
        with ScriptedServer(PROTOCOLS["chat"](), [ASKING, answer]) as server:
            async with AsyncOpenAI(api_key="key", base_url=f"{server.url}/v1") as client:
                model = OpenAIChatCompletionsModel(model="scripted", openai_client=client)
                config = RunConfig(model=model, tracing_disabled=True)
                ended = await Runner.run(made["agent"], "How many?", run_config=config)
    assert server.violations == []
    assert ended.final_output == "Ann has 40."


async def test_the_example_of_the_other_direction_runs(forks: ForkBackend) -> None:
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
