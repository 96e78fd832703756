"""The console's API over HTTP against a real server: runs, approvals, access, restarts."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import requests
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from bascule.cli.main import app
from tests.integration.console_server import Server, make_server, wait_until

MAIL = 'mail.send(to="ada@example.com", subject="Hello", body="one\\ntwo")'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = make_server(tmp_path_factory.mktemp("console"))
    yield made
    made.stop()


def ask_one(server: Server, script: str = f"r = {MAIL}\nprint(r)") -> tuple[str, dict[str, Any]]:
    """Submit a script that asks once and return its run and approval."""
    run = server.submit(script)["id"]
    (approval,) = server.pending(1, run=run)
    return run, approval


def test_a_run_waits_for_its_approval_and_ends(server: Server) -> None:
    run, approval = ask_one(server)
    assert approval["arguments"] == {"body": "one\ntwo", "subject": "Hello", "to": "ada@example.com"}
    assert approval["requester"] == "app"
    answer = server.decide("olga", approval, "approve", reason="fine")
    assert answer.status_code == 200
    assert answer.json()["state"] in ("approved", "consumed")
    result = server.finished(run, "app")["result"]
    assert result["output"] == "sent\n"
    assert result["calls"][0]["approved_by"] == "olga"


def test_a_result_comes_with_the_answer_when_it_is_waited_for(server: Server) -> None:
    done = server.submit("crm.find(name='Ada')['id']", wait=30)
    assert (done["status"], done["outcome"], done["result"]["value"]) == ("finished", "ok", "C-1042")


def test_a_submission_is_one_run_however_often_it_is_sent(server: Server) -> None:
    sent = {"script": "40 + 2"}
    answers = [
        server.api("app", "POST", "/v1/runs?wait=30", sent, **{"Idempotency-Key": "k-1"}) for _ in range(3)
    ]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert "Idempotent-Replayed" not in answers[0].headers
    assert answers[2].headers["Idempotent-Replayed"] == "true"
    other = server.api("app", "POST", "/v1/runs", {"script": "43"}, **{"Idempotency-Key": "k-1"})
    assert (other.status_code, other.json()["code"]) == (422, "key_reused")


def test_a_rejection_reaches_the_script_with_its_reason(server: Server) -> None:
    script = f"try:\n    {MAIL}\nexcept ToolDenied as e:\n    print(e)"
    run, approval = ask_one(server, script)
    assert server.decide("olga", approval, "reject", reason="not to Ada").status_code == 200
    assert "not to Ada" in server.finished(run)["result"]["output"]


def test_an_edit_runs_and_a_locked_argument_is_refused(server: Server) -> None:
    run, approval = ask_one(server)
    locked = {**approval["arguments"], "to": "eve@example.com"}
    refused = server.decide("olga", approval, "edit", arguments=locked)
    assert (refused.status_code, refused.json()["code"]) == (422, "edit_not_allowed")
    edited = {**approval["arguments"], "subject": "Edited"}
    assert server.decide("olga", approval, "edit", arguments=edited).status_code == 200
    server.finished(run)
    assert "ada@example.com Edited" in (server.folder / "sent.txt").read_text("utf-8")


def test_an_answer_in_the_tools_place_and_an_end_of_the_run(server: Server) -> None:
    run, approval = ask_one(server)
    assert server.decide("olga", approval, "respond", response="noted").status_code == 200
    assert server.finished(run)["result"]["output"] == "noted\n"
    run, approval = ask_one(server)
    assert server.decide("olga", approval, "terminate", reason="stop").status_code == 200
    assert server.finished(run)["outcome"] != "ok"


def test_a_decision_needs_the_digest_that_was_shown(server: Server) -> None:
    run, approval = ask_one(server)
    stale = {**approval, "digest": "0" * 64}
    answer = server.decide("olga", stale, "approve")
    assert (answer.status_code, answer.json()["code"]) == (409, "digest_mismatch")
    assert server.api("olga", "POST", f"/v1/runs/{run}/cancel").json() == {"done": True}


def test_two_people_must_agree_and_nobody_counts_twice(server: Server) -> None:
    run, approval = ask_one(server, 'print(billing.refund(customer="C-1", amount=5))')
    assert server.decide("olga", approval, "approve").json()["state"] == "pending"
    again = server.decide("olga", approval, "approve")
    assert (again.status_code, again.json()["code"]) == (409, "already_decided")
    assert server.decide("otto", approval, "approve").json()["state"] in ("approved", "consumed")
    server.finished(run)


def test_whoever_a_run_is_for_does_not_approve_it(server: Server) -> None:
    server.add_token("olga", "run", key="olga-run")
    run = server.submit(MAIL, "olga-run")["id"]
    (approval,) = server.pending(1, run=run)
    answer = server.decide("olga", approval, "approve")
    assert (answer.status_code, answer.json()["code"]) == (403, "self_approval")
    assert server.decide("otto", approval, "approve").status_code == 200
    server.finished(run)


def test_somebody_who_is_no_approver_is_refused(server: Server) -> None:
    server.add_token("eve", "approve")
    run, approval = ask_one(server)
    answer = server.decide("eve", approval, "approve")
    assert (answer.status_code, answer.json()["code"]) == (403, "not_an_approver")
    server.api("olga", "POST", f"/v1/runs/{run}/cancel")


def test_a_submitter_sees_runs_of_its_own_only(server: Server) -> None:
    server.add_token("other", "run")
    run = server.submit("1", wait=30)["id"]
    assert server.api("app", "GET", f"/v1/runs/{run}").status_code == 200
    for path in (f"/v1/runs/{run}", f"/v1/runs/{run}/events", f"/v1/runs/{run}/journal"):
        assert server.api("other", "GET", path).status_code == 404
    assert server.api("other", "GET", "/v1/runs").json()["runs"] == []
    assert server.api("other", "GET", "/v1/runs?user=app").status_code == 403
    assert server.api("other", "GET", "/v1/approvals").status_code == 403
    assert server.api("vera", "GET", f"/v1/runs/{run}").status_code == 200
    assert server.api("vera", "POST", "/v1/runs", {"script": "1"}).status_code == 403


def test_tokens_expire_and_are_revoked(server: Server) -> None:
    server.add_token("brief", "view", lasts_s=-1)
    assert server.api("brief", "GET", "/v1/me").status_code == 401
    assert requests.get(f"{server.url}/v1/me", timeout=10).status_code == 401


def test_events_resume_after_the_last_one_seen(server: Server) -> None:
    run = server.submit("print('a')\ncrm.find(name='x')\nprint('b')", wait=30)["id"]
    whole = read_events(server, run)
    assert whole[0]["event"] == "run_started"
    assert whole[-1]["event"] == "finished"
    rest = read_events(server, run, **{"Last-Event-ID": whole[2]["id"]})
    assert rest == whole[3:]


def read_events(server: Server, run: str, **headers: str) -> list[dict[str, str]]:
    """Return the events of a finished run as a client reads them."""
    answer = server.api("app", "GET", f"/v1/runs/{run}/events", **headers)
    assert answer.headers["content-type"].startswith("text/event-stream")
    blocks = answer.text.replace("\r\n", "\n").strip().split("\n\n")
    found = [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]
    return [event for event in found if "event" in event]


def test_a_batch_is_decided_item_by_item(server: Server) -> None:
    script = (
        "import asyncio\n"
        "r = await asyncio.gather(*[mail.send(to='a@b.de', subject=s) for s in ('x', 'y', 'z')],"
        " return_exceptions=True)\nprint([type(e).__name__ for e in r])"
    )
    run = server.submit(script)["id"]
    items = sorted(server.pending(3, run=run), key=lambda each: each["seq"])
    (batch,) = {each["batch"] for each in items}
    decisions = [
        {"id": items[0]["id"], "digest": items[0]["digest"], "verdict": "approve"},
        {"id": items[1]["id"], "digest": "0" * 64, "verdict": "approve"},
        {"id": items[2]["id"], "digest": items[2]["digest"], "verdict": "reject", "reason": "no z"},
        {"id": "apr-of-another-run", "digest": "0" * 64, "verdict": "approve"},
    ]
    answer = server.api("olga", "POST", f"/v1/batches/{batch}/decisions", {"decisions": decisions}).json()
    assert [each["code"] for each in answer["results"]] == [None, "digest_mismatch", None, "not_in_batch"]
    assert server.decide("otto", items[1], "approve").status_code == 200
    assert server.finished(run)["result"]["output"] == "['str', 'str', 'ToolDenied']\n"


def test_a_grant_is_listed_used_and_taken_back(server: Server) -> None:
    script = "for n in range(3):\n    print(mail.send(to='a@b.de', subject=f's{n}'))"
    run, approval = ask_one(server, script)
    server.decide("olga", approval, "approve", grant="tool_in_run", grant_count=1)
    (second,) = wait_until(lambda: other_approvals(server, run, approval), within_s=60)
    (grant,) = [
        each for each in server.api("vera", "GET", "/v1/grants").json()["grants"] if each["run_id"] == run
    ]
    assert (grant["left"], grant["count"], grant["rung"]) == (0, 1, "tool_in_run")
    assert server.api("olga", "POST", f"/v1/grants/{approval['id']}/revoke").json() == {"done": True}
    assert server.api("olga", "POST", f"/v1/grants/{approval['id']}/revoke").status_code == 404
    server.decide("olga", second, "approve")
    assert server.finished(run)["result"]["output"] == "sent\nsent\nsent\n"


def test_a_grant_that_was_taken_back_lets_nothing_through(server: Server) -> None:
    # The refund asks in between, so that the second mail cannot come before the grant is taken back.
    mails = [f"mail.send(to='a@b.de', subject='s{n}')" for n in range(2)]
    script = f"{mails[0]}\nbilling.refund(customer='C-1', amount=5)\n{mails[1]}"
    run, mail = ask_one(server, script)
    server.decide("olga", mail, "approve", grant="tool_in_run", grant_count=5)
    (between,) = wait_until(lambda: other_approvals(server, run, mail), within_s=60)
    assert server.api("olga", "POST", f"/v1/grants/{mail['id']}/revoke").status_code == 200
    for decider in ("olga", "otto"):
        assert server.decide(decider, between, "approve").status_code == 200
    (second,) = wait_until(lambda: other_approvals(server, run, mail, between), within_s=60)
    assert second["tool"] == "mail.send"
    assert server.decide("olga", second, "approve").status_code == 200
    server.finished(run)


def other_approvals(server: Server, run: str, *seen: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pending approvals of a run without those already seen."""
    found = server.api("olga", "GET", f"/v1/approvals?run={run}").json()["approvals"]
    return [each for each in found if each["id"] not in {one["id"] for one in seen}]


def test_sessions_keep_variables(server: Server) -> None:
    session = server.api("app", "POST", "/v1/sessions").json()["id"]
    first = server.api("app", "POST", "/v1/runs?wait=30", {"script": "n = 41", "session": session}).json()
    second = server.api("app", "POST", "/v1/runs?wait=30", {"script": "n + 1", "session": session}).json()
    assert second["result"]["value"] == 42
    seen = server.api("app", "GET", f"/v1/sessions/{session}").json()
    assert [each["id"] for each in seen["runs"]] == [first["id"], second["id"]]
    assert server.api("app", "DELETE", f"/v1/sessions/{session}").json() == {"done": True}
    third = server.api("app", "POST", "/v1/runs?wait=30", {"script": "n + 2", "session": session}).json()
    assert third["result"]["value"] == 43


def test_policy_tools_and_audit_can_be_asked(server: Server) -> None:
    explained = server.api(
        "vera", "POST", "/v1/policy/explain", {"tool": "mail.send", "arguments": {"to": "a", "subject": "b"}}
    ).json()
    assert (explained["effect"], explained["rules"]) == ("ask", ["mail"])
    assert server.api("vera", "POST", "/v1/policy/lint", {"text": "version: 1\nrules: [{id: x}]"}).json()[
        "problems"
    ]
    assert {rule["name"] for rule in server.api("vera", "GET", "/v1/policy").json()["rules"]} >= {
        "mail",
        "money",
    }
    assert server.api("vera", "GET", "/v1/policy/budgets").json()["budgets"][0]["tool"] == "billing.refund"
    tools = server.api("app", "GET", "/v1/tools").json()["tools"]
    assert {tool["name"] for tool in tools} >= {"crm.find", "mail.send"}
    state = server.api("vera", "GET", "/v1/audit").json()
    assert (state["problems"], state["entries"] > 0) == ([], True)
    assert server.api("vera", "GET", "/v1/audit/export").status_code == 403
    lines = server.api("ada", "GET", "/v1/audit/export").text.splitlines()
    assert json.loads(lines[0])["index"] == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "json_invalid"),
        (b'{"script": "1", "script": "2"}', "json_invalid"),
        (b'{"script": "\\ud800"}', "json_invalid"),
        (b'{"script": "1", "seed": NaN}', "json_invalid"),
        (b'{"script": ' + b"[" * 100 + b"]" * 100 + b"}", "json_out_of_bounds"),
        (b'{"script": "1", "admin": true}', "body_invalid"),
        (b'{"script": 1}', "body_invalid"),
        (b'{"script": ""}', "body_invalid"),
    ],
)
def test_bodies_out_of_bounds_are_refused_in_words(server: Server, body: bytes, code: str) -> None:
    answer = requests.post(
        f"{server.url}/v1/runs",
        data=body,
        headers={"authorization": f"Bearer {server.tokens['app']}", "content-type": "application/json"},
        timeout=10,
    )
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == code


def test_a_body_that_is_too_large_is_not_read(server: Server) -> None:
    answer = server.api("app", "POST", "/v1/runs", {"script": "x" * (5 << 20)})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


def test_a_server_that_ends_leaves_runs_that_the_next_one_takes_up(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    try:
        run, approval = ask_one(server)
        assert server.stop() in (0, -signal.SIGTERM)
        server.start()
        assert server.decide("olga", approval, "approve").status_code == 200
        assert server.finished(run)["result"]["output"] == "sent\n"
        assert (tmp_path / "sent.txt").read_text("utf-8").count("\n") == 1
    finally:
        server.stop()


def test_a_killed_server_leaves_an_unknown_outcome_that_an_operator_settles(tmp_path: Path) -> None:
    server = make_server(tmp_path)
    try:
        run = server.submit('print(slow.job(name="nightly"))')["id"]
        wait_until((tmp_path / "job.started").exists, within_s=60)
        server.stop(signal.SIGKILL)
        server.start()
        (unknown,) = wait_until(
            lambda: server.api("vera", "GET", "/v1/unknown").json()["unknown"], within_s=60
        )
        assert (unknown["run_id"], unknown["tool"], unknown["attempt"]) == (run, "slow.job", 1)
        path = f"/v1/runs/{run}/calls/{unknown['seq']}/outcome"
        stale = server.api("olga", "POST", path, {"answer": "did_not_happen", "attempt": 2})
        assert stale.status_code == 409
        said = CliRunner().invoke(
            app,
            [
                *("runs", "resolve", run, str(unknown["seq"]), "--happened", '"it was done"'),
                *("--server", server.url),
            ],
            env={"BASCULE_TOKEN": server.tokens["olga"]},
        )
        assert said.exit_code == 0, said.output
        assert server.finished(run)["result"]["output"] == "it was done\n"
    finally:
        server.stop()


def test_the_tools_are_an_mcp_server_for_whoever_may_submit(server: Server) -> None:
    """Spoken to by the MCP package's own client, over HTTP, with a token."""

    async def speak() -> tuple[set[str], str]:
        http = httpx2.AsyncClient(headers={"authorization": f"Bearer {server.tokens['app']}"}, timeout=60)
        async with http, Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            code = (
                "handle = store.put(value=crm.find(name='Ada'))\n"
                "print(store.get(handle=handle)['id'], [each['name'] for each in search_tools(query='find')])"
            )
            answer = await client.call_tool("run_script", {"code": code})
            return tools, str(answer.content)

    tools, said = asyncio.run(speak())
    assert "run_script" in tools
    assert not any(name.startswith("tool-") for name in tools)
    assert "C-1042" in said
    assert "crm.find" in said
    assert server.api("app", "GET", "/v1/runs?limit=1").json()["runs"][0]["user"] == "app"
    for who, status in (("olga", 403), ("vera", 403), ("ada", 403)):
        assert server.api(who, "POST", "/mcp", {}).status_code == status
    assert requests.post(f"{server.url}/mcp", json={}, timeout=20).status_code == 401
