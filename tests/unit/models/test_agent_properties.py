"""Whatever turns a model makes up, no request of ours is refused and every call is answered.

The real SDKs, the real loop, servers that check their protocols strictly; only the model is random.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bascule.bridge import Executor, approve_all
from bascule.models import Agent, Budget, ModelClient
from tests.forks.backend import ForkBackend
from tests.models.apis import APIS, make_adapter, scripted
from tests.models.servers import ScriptedServer, WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

EXAMPLES = int(os.environ.get("BASCULE_AGENT_EXAMPLES", "8"))
"""Conversations for each API; `make conformance` plays more."""

GOOD = (
    ("add", {"a": 1, "b": 2}),
    ("add", {"a": "x"}),
    ("crm-orders", {"customer": "Ann", "status": None}),
    ("search_tools", {"query": "mail", "limit": None}),
    ("describe_tool", {"name": "refund"}),
    ("run_script", {"code": "print(add(a=1))\n[1][5]"}),
    ("mail-send", {"to": "ann", "text": "hi"}),
    ("get_run", {"run_id": "run-1"}),
    ("read_output", {"handle": "é" * 50, "offset": -3}),
)
IDS = st.sampled_from(["a1", "a2", "a3", "", "call 4", "é", "x" * 100, "../..", "null"]) | st.text(max_size=6)
NAMES = st.sampled_from(
    ["add", "run_script", "no.such", "", "ünï", "x" * 200, "multi_tool_use.parallel", "a b"]
)
TEXTS = st.sampled_from(
    ["", "{", "null", "[]", '"{}"', "{} {}", '{"a":NaN}', '{"a":1,"a":2}', "[" * 5000, "\ud7ff"]
)
CALLS = st.one_of(
    st.tuples(IDS, st.sampled_from(GOOD)).map(
        lambda made: WrittenCall(id=made[0], name=made[1][0], arguments=json.dumps(made[1][1]))
    ),
    st.builds(WrittenCall, id=IDS, name=NAMES, arguments=TEXTS | st.text(max_size=30)),
    st.builds(WrittenCall, id=IDS, name=NAMES, arguments=st.just(json.dumps({"code": "x" * 600_000}))),
)
USAGE = st.none() | st.tuples(st.integers(-5, 5000), st.integers(-5, 5000))
TURNS = st.lists(
    st.one_of(
        st.builds(
            WrittenTurn,
            text=st.sampled_from(["", "Let me see.", "  "]),
            calls=st.lists(CALLS, min_size=1, max_size=4).map(tuple),
            ending=st.sampled_from(["calls", "calls", "calls", "end", "length", "refusal", "pause"]),
            usage=USAGE,
        ),
        st.builds(
            WrittenTurn,
            text=st.text(max_size=20),
            ending=st.sampled_from(["end", "end", "length", "refusal", "pause", "malformed", "context_full"]),
            usage=USAGE,
        ),
    ),
    min_size=1,
    max_size=5,
)


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One API with all that is made once for its conversations."""

    executor: Executor
    server: ScriptedServer
    whole: ModelClient
    streaming: ModelClient


@pytest.fixture(scope="module", params=APIS)
async def stage(request: pytest.FixtureRequest, forks: ForkBackend) -> AsyncIterator[Stage]:
    """Give the stage of an API; at its end the server must have had nothing to complain about."""
    api = str(request.param)
    options: dict[str, Any] = {"strict": True} if api == "anthropic" else {}  # the others are by default
    async with (
        open_executor(forks, Shop(), approver=approve_all) as executor,
        scripted(api, [], **options) as (whole, server),
    ):
        streaming = make_adapter(api, server.url, stream=True)
        yield Stage(executor=executor, server=server, whole=whole, streaming=streaming)
        await streaming.close()


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(turns=TURNS, stream=st.booleans(), seed=st.integers(0, 99))
async def test_no_turn_of_a_model_gets_a_request_of_ours_refused(
    stage: Stage, turns: list[WrittenTurn], stream: bool, seed: int
) -> None:
    server = stage.server
    server.play(turns, seed=seed)
    before = len(server.requests)
    client = stage.streaming if stream else stage.whole
    agent = Agent(client, stage.executor, budget=Budget(max_rounds=12))
    result = await agent.run("go")
    for _ in range(3):  # whatever ended it, the conversation can be gone on with
        assert result.state.pending == []
        result = await agent.resume(result.state.to_json(), say="go on")
    assert len(server.requests) > before
    assert server.violations == []
