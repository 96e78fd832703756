"""The examples of docs/models are run as they stand, with the real SDKs, against scripted servers."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bascule.models
from bascule.bridge import Decision
from bascule.bridge.decide import decide
from bascule.bridge.sqlite_store import SqliteStore
from bascule.sandbox import ensure_image
from tests.forks.backend import ForkBackend
from tests.models.apis import PROTOCOLS
from tests.models.chat_server import ChatProtocol
from tests.models.servers import ScriptedServer, WrittenCall, WrittenTurn
from tests.models.world import Shop, open_executor

PAGES = Path(__file__).parents[2] / "docs" / "models"
SCRIPT = "len([each for each in orders(customer='Ann') if each['status'] == 'open'])"


@pytest.mark.engine
@pytest.mark.parametrize(
    ("page", "api"),
    [
        ("openai-chat", "chat"),
        ("openai-responses", "responses"),
        ("anthropic", "anthropic"),
        ("gemini", "gemini"),
        ("compatible", "chat"),
    ],
)
def test_the_example_of_a_page_runs(
    page: str, api: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    ensure_image()

    def answer(body: object) -> WrittenTurn:
        return WrittenTurn(text="20 are open." if "'20'" in str(body) else "I do not know.")

    asked = WrittenCall(id="a1", name="run_script", arguments=f'{{"code": "{SCRIPT}"}}')
    with ScriptedServer(PROTOCOLS[api](), [WrittenTurn(calls=(asked,), ending="calls"), answer]) as server:
        for maker, path in (("OPENAI", "/v1"), ("ANTHROPIC", ""), ("GOOGLE_GEMINI", "")):
            monkeypatch.setenv(f"{maker}_BASE_URL", f"{server.url}{path}")
        for maker in ("OPENAI", "ANTHROPIC", "GEMINI"):
            monkeypatch.setenv(f"{maker}_API_KEY", "key")
        exec(compile(example[1], f"{page}.md", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == "20 are open.\n"
    assert server.violations == []


@pytest.mark.anyio
async def test_the_example_of_the_loop_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    example = re.search(r"```python\n(.*?)```", (PAGES / "agent.md").read_text(encoding="utf-8"), re.DOTALL)
    assert example is not None
    shop, backend = Shop(), ForkBackend()
    asked = WrittenCall(id="a1", name="refund", arguments='{"order": 40, "amount": 10.5}')
    monkeypatch.chdir(tmp_path)
    with ScriptedServer(ChatProtocol(), [WrittenTurn(calls=(asked,), ending="calls")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        async with open_executor(backend, shop) as executor:

            async def decision_on(waiting: tuple[str, ...]) -> None:
                assert len(waiting) == 1
                for record in executor.store.approvals.find(states=["pending"]):
                    executor.decide(record.id, Decision(verdict="approve", by="kim"), digest=record.digest)

            given = {name: getattr(bascule.models, name) for name in ("Agent", "Budget", "OpenAIChat")}
            names: dict[str, Any] = {**given, "executor": executor, "decision_on": decision_on}
            code = compile(example[1], "agent.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            await eval(code, names)
            await names["client"].close()
    await backend.close()
    assert shop.refunds == [(40, 10.5)]
    assert server.violations == []
    assert (tmp_path / "talk.jsonl").exists()


@pytest.mark.anyio
async def test_the_readmes_lines_with_a_model_run(monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (PAGES.parents[1] / "README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", readme.split("## With a model")[1], re.DOTALL)
    assert example is not None
    backend = ForkBackend()
    with ScriptedServer(ChatProtocol(), [WrittenTurn(text="20")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        async with open_executor(backend, Shop()) as executor:
            names: dict[str, Any] = {"executor": executor}
            await eval(compile(example[1], "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
            await names["client"].close()
    await backend.close()
    assert names["result"].text == "20"
    assert server.violations == []


def test_every_status_is_on_the_page() -> None:
    from typing import get_args

    from bascule.models.agent_state import AgentStatus

    table = (PAGES / "agent.md").read_text(encoding="utf-8").split("## How it ends")[1].split("\n## ")[0]
    assert set(re.findall(r"`(\w+)`(?=[^|]*\|)", table)) >= set(get_args(AgentStatus))


@pytest.mark.parametrize(
    ("arguments", "key", "said", "status"),
    [
        ((), "key", "nothing is saved to go on with", 2),
        (("Hello",), "", "set OPENAI_API_KEY", 2),
        pytest.param(("Hello",), "key", "cannot be reached", 1, marks=pytest.mark.engine),
    ],
)
def test_the_example_agent_says_what_it_lacks_in_one_line(
    tmp_path: Path, arguments: tuple[str, ...], key: str, said: str, status: int
) -> None:
    program = PAGES.parents[1] / "examples" / "agent" / "agent.py"
    environment = {**os.environ, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": key}
    command = [sys.executable, str(program), *arguments]
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.returncode == status


@pytest.mark.engine
def test_the_example_agent_waits_for_a_decision_and_goes_on(tmp_path: Path) -> None:
    ensure_image()
    program = PAGES.parents[1] / "examples" / "agent" / "agent.py"
    code = "last = orders(customer='Ann')[-1]\nrefund(order=last['id'], amount=last['total'])"
    asked = WrittenCall(id="a1", name="run_script", arguments=json.dumps({"code": code}))
    turns = [WrittenTurn(calls=(asked,), ending="calls"), WrittenTurn(text="Order 4 is refunded.")]
    with ScriptedServer(ChatProtocol(), turns) as server:
        environment = {**os.environ, "OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "key"}

        def start(*arguments: str) -> str:
            command = [sys.executable, str(program), *arguments]
            return subprocess.run(
                command,
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=120,
            ).stdout

        assert "waits: bascule approvals list" in start("Refund Ann's last order.")
        store = SqliteStore(tmp_path / "runs.db")
        (record,) = store.approvals.find(states=["pending"])
        decide(
            store.approvals,
            record.id,
            Decision(verdict="approve", by="kim"),
            digest=record.digest,
            channel="api",
        )
        store.close()
        assert start() == "Order 4 is refunded.\n"
    assert (tmp_path / "refunds.log").read_text(encoding="utf-8") == "4 40.00\n"
    assert server.violations == []
