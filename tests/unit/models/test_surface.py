"""The functions a model is offered, over real guests: what each gives, whatever it is given."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bascule.bridge import Decision, Executor, Policy, Result, User, approve_all, deny_all
from bascule.bridge.result import JsonValue
from bascule.models import ToolSurface
from bascule.models.rendering import MIN_RESULT_BYTES, render_run
from bascule.wire import ScriptError
from tests.forks.backend import ForkBackend
from tests.models.world import Shop, open_executor

pytestmark = pytest.mark.anyio

SEND = {"to": "ann@example.com", "text": "hello"}


def decide_all(executor: Executor, decision: Decision) -> None:
    """Decide every waiting approval of an executor."""
    for record in executor.store.approvals.find(states=["pending"]):
        executor.decide(record.id, decision, digest=record.digest)


async def test_a_script_gives_what_it_prints_and_its_value(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor)
        done = await surface.call(
            "run_script",
            {"code": "rows = crm.orders(customer='Ann')\nprint('found', len(rows))\nrows[0]['id']"},
        )
    assert done.text == "found 40\n1"
    assert not done.is_error
    assert done.status == "ok"
    assert done.result is not None
    assert done.result.usage.result_bytes > 2000


async def test_a_failing_script_says_where_and_what_happened(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop(), approver=approve_all) as executor:
        done = await ToolSurface(executor).call(
            "run_script", {"code": "refund(order=1, amount=2.5)\nbroken()"}
        )
    assert done.is_error
    assert "line 2" in done.text
    assert "closed on Sundays" in done.text
    assert "do not repeat what is done:\n- call 1 refund (line 1): done" in done.text


async def test_a_direct_call_takes_the_same_bridge_as_one_in_a_script(forks: ForkBackend) -> None:
    shop = Shop()
    async with open_executor(forks, shop, approver=approve_all, user="kim") as executor:
        done = await ToolSurface(executor).call("mail.send", SEND)
        assert done.run_id is not None
        row = executor.store.run(done.run_id)
        audit = [entry.action for entry in executor.store.audit_entries() if entry.run_id == done.run_id]
    assert done.text == "sent to ann@example.com"
    assert row is not None
    assert row.user == "kim"
    assert done.result is not None
    (receipt,) = done.result.calls
    assert (receipt.tool, receipt.state, receipt.approved_by) == ("mail.send", "done", "approve_all")
    assert "call.done" in audit or any(action.startswith("call") for action in audit)
    assert shop.sent == ["ann@example.com: hello"]


async def test_a_direct_call_is_denied_by_policy_like_one_in_a_script(
    forks: ForkBackend, tmp_path: Any
) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text("version: 1\nrules:\n  - id: no-mail\n    effect: deny\n    match: {tool: mail.send}\n")
    shop = Shop()
    async with open_executor(forks, shop, approver=approve_all, policy=Policy.load(rules)) as executor:
        done = await ToolSurface(executor).call("mail.send", SEND)
    assert done.is_error
    assert "no-mail" in done.text
    assert "do not try another way" in done.text
    assert shop.sent == []


async def test_a_direct_call_with_wrong_arguments_says_all_that_is_wrong(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        done = await ToolSurface(executor).call("add", {"a": "x", "c": 1})
    assert done.is_error
    assert "it has no parameter 'c'" in done.text
    assert "json.loads" not in done.text
    assert "line" not in done.text


async def test_arguments_of_a_direct_call_are_never_read_as_code(forks: ForkBackend) -> None:
    shop = Shop()
    hostile = "'))\nmail.send(to='eve', text='x')\n('\\''\"\"\"{}\u2028"
    async with open_executor(forks, shop, approver=approve_all) as executor:
        done = await ToolSurface(executor).call("mail.send", {"to": hostile, "text": hostile})
    assert not done.is_error
    assert shop.sent == [f"{hostile}: {hostile}"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("run_script", {}, "code"),
        ("run_script", {"code": 3}, "code"),
        ("run_script", {"code": "1", "extra": 1}, "extra"),
        ("run_script", [], "must be a JSON object"),
        ("run_script", None, "must be a JSON object"),
        ("run_script", {"code": "x" * 300_000}, "at most"),
        ("run_script", {"code": "\ud800"}, "surrogate"),
        ("run_script", {"\ud800": 1}, "surrogate"),
        ("run_script", {1: 2}, "not a string"),
        ("search_tools", {"query": "x", "limit": "\ud800"}, "surrogate"),
        ("get_run", {"\x1b[31m\u202e": 1}, "` [31m `"),
        ("add", {"a": [[1]] * 3}, "add()"),
        ("add", {"a": float("nan")}, "not a JSON number"),
        ("add", {"a": "\ud800"}, "surrogate"),
        ("mail.send", {"to": "x" * 1_000_000, "text": ""}, "at most"),
        ("search_tools", {"query": "x", "limit": "many"}, "limit"),
        ("describe_tool", {"name": "ad"}, "did you mean add?"),
        ("read_output", {"handle": "run-0"}, "there is no run"),
        ("get_run", {"run_id": "run-0"}, "no run"),
        ("resume_run", {"run_id": "../etc"}, "no run"),
        ("ad", {}, "did you mean add?"),
        ("", {}, "there is no tool named ''"),
        ("x" * 100_000, {}, "there is no tool"),
    ],
)
async def test_what_is_wrong_with_a_call_is_its_answer(
    forks: ForkBackend, name: str, arguments: object, said: str
) -> None:
    async with open_executor(forks, Shop()) as executor:
        done = await ToolSurface(executor).call(name, arguments)
    assert done.is_error
    assert said in done.text
    assert len(done.text) < 3000


async def test_a_run_that_waits_for_people_is_answered_and_taken_up_again(forks: ForkBackend) -> None:
    shop = Shop()
    async with open_executor(forks, shop) as executor:
        surface = ToolSurface(executor)
        waiting = await surface.call("run_script", {"code": f"mail.send(**{SEND})"})
        assert waiting.status == "suspended"
        assert not waiting.is_error
        run_id = waiting.run_id
        assert run_id is not None
        assert run_id in waiting.text
        asked = await surface.call("get_run", {"run_id": run_id})
        early = await surface.call("resume_run", {"run_id": run_id})
        assert "still waits" in asked.text
        assert "still waits" in early.text
        assert shop.sent == []
        decide_all(executor, Decision(verdict="approve", by="kim"))
        ready = await surface.call("get_run", {"run_id": run_id})
        assert "can go on" in ready.text
        done = await surface.call("resume_run", {"run_id": run_id})
        again = await surface.call("resume_run", {"run_id": run_id})
        told = await surface.call("get_run", {"run_id": run_id})
    assert done.text == '"sent to ann@example.com"'
    assert again.text == told.text == done.text
    assert shop.sent == ["ann@example.com: hello"]


async def test_runs_of_other_users_do_not_exist(forks: ForkBackend, tmp_path: Any) -> None:
    from bascule.bridge.memory_store import MemoryStore

    store = MemoryStore()
    async with (
        open_executor(forks, Shop(), store=store, user="ann") as hers,
        open_executor(forks, Shop(), store=store, user=User(name="bob")) as his,
    ):
        done = await ToolSurface(hers).call("run_script", {"code": "'secret'"})
        for name in ("get_run", "resume_run"):
            assert (await ToolSurface(his).call(name, {"run_id": done.run_id})).is_error
        assert (await ToolSurface(his).call("read_output", {"handle": done.run_id})).is_error
        waits = await ToolSurface(hers).call("run_script", {"code": f"mail.send(**{SEND})"})
        decide_all(hers, Decision(verdict="approve", by="ann"))
        for executor, user in ((his, None), (hers, User(name="bob"))):
            taken = await ToolSurface(executor, user=user).call("resume_run", {"run_id": waits.run_id})
            assert "there is no run" in taken.text
        mine = await ToolSurface(hers).call("read_output", {"handle": done.run_id, "path": "value"})
        assert mine.text == "secret"


async def read_on(surface: ToolSurface, **where: JsonValue) -> list[str]:
    """Read everything from a place on, part by part."""
    parts: list[str] = []
    offset: JsonValue = where.pop("offset", 0)
    while offset is not None:
        part = await surface.call("read_output", {**where, "offset": offset})
        assert isinstance(part.data, dict), part.text
        assert len(part.text.encode()) <= surface.max_result_bytes + 100
        parts.append(str(part.data["text"]))
        offset = part.data["next_offset"]
    return parts


async def test_a_long_output_is_cut_and_read_on_where_its_note_says(forks: ForkBackend) -> None:
    printed = "".join(f"line {n}\n" for n in range(2000))
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor, max_result_bytes=1000)
        done = await surface.call("run_script", {"code": "for n in range(2000): print('line', n)"})
        assert len(done.text.encode()) <= 1000
        assert done.text.startswith("line 0\n")
        assert "\nline 1999\n[cut from " in done.text
        found = re.search(r'read_output\(handle="(.+?)", path="output", offset=(\d+)\)', done.text)
        assert found is not None
        head = done.text.partition("\n[…")[0] + "\n"
        rest = await read_on(surface, handle=found[1], path="output", offset=int(found[2]))
        beyond = await surface.call("read_output", {"handle": found[1], "path": "output", "offset": 10**9})
    assert head + "".join(rest) == printed
    assert "behind the last" in beyond.text


async def test_a_long_value_keeps_its_shape_and_is_read_on_by_its_path(forks: ForkBackend) -> None:
    code = "{'rows': [{'id': n, 'name': f'customer {n}'} for n in range(500)], 'total': 500}"
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor, max_result_bytes=1000)
        done = await surface.call("run_script", {"code": code})
        assert len(done.text.encode()) <= 1000
        value, note = done.text.split("\n")
        read = json.loads(value)
        assert (read["rows"][0], read["total"]) == ({"id": 0, "name": "customer 0"}, 500)
        kept = len(read["rows"]) - 1
        assert f"value.rows: items {kept} to 499 of 500" in note
        rest = await read_on(surface, handle=done.run_id, path="value.rows", offset=kept)
        wrong = await surface.call("read_output", {"handle": done.run_id, "path": "value.lines"})
    assert [row["id"] for part in rest for row in json.loads(part)] == list(range(kept, 500))
    assert wrong.is_error
    assert "an object with rows, total" in wrong.text


async def test_the_long_result_of_a_direct_call_is_cut_likewise(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor, max_result_bytes=1000)
        done = await surface.call("crm.orders", {"customer": "Ann"})
        rest = await read_on(surface, handle=done.run_id, path="value")
    assert len(done.text.encode()) <= 1000
    assert isinstance(done.data, dict)
    assert (done.data["value"], done.data["cut"]) == (None, True)
    assert json.loads(done.text.split("\n")[0])[0] == json.loads(rest[0])[0]


async def test_an_answer_without_room_is_refused(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        with pytest.raises(ValueError, match="at least 1000"):
            ToolSurface(executor, max_result_bytes=999)


async def test_null_for_an_optional_argument_of_the_surface_is_as_left_out(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        done = await ToolSurface(executor).call("search_tools", {"query": "refund an order", "limit": None})
    assert "def refund(" in done.text


async def test_each_tool_is_for_direct_calls_for_scripts_or_for_both(forks: ForkBackend) -> None:
    shop = Shop()
    async with open_executor(forks, shop, approver=approve_all) as executor:
        surface = ToolSurface(executor, callers={"mail.send": "direct", "refund": "script"}, direct="none")
        names = [each.name for each in surface.tools]
        assert "mail.send" in names
        assert "refund" not in names
        assert "add" not in names
        described = await surface.call("describe_tool", {"name": "mail.send"})
        assert described.text.startswith("# a function of its own, not for scripts\nclass mail:")
        in_script = await surface.call("run_script", {"code": f"mail.send(**{SEND})"})
        directly = await surface.call("refund", {"order": 1, "amount": 1})
        assert in_script.is_error
        assert directly.is_error
        assert "run_script" in directly.text
        assert (shop.sent, shop.refunds) == ([], [])
        assert not (await surface.call("mail.send", SEND)).is_error
        assert not (await surface.call("run_script", {"code": "refund(order=1, amount=1)"})).is_error


async def test_a_guest_that_calls_a_tool_it_was_not_offered_is_refused_by_the_host() -> None:
    from tests.unit.bridge.guests import GuestBackend, Line

    seen: list[object] = []

    async def guest(line: Line) -> None:
        await line.greet()
        line.act([line.call("mail.send", **SEND)])
        done = await line.done()
        seen.append(done.deliveries[0])
        line.finish(None)

    shop = Shop()
    async with Executor(shop.tools, backend=GuestBackend(guest), approver=approve_all) as executor:
        surface = ToolSurface(executor, callers={"mail.send": "direct"})
        done = await surface.call("run_script", {"code": "1"})
    assert "unknown_tool" in repr(seen)
    assert shop.sent == []
    assert done.result is not None
    assert done.result.calls[0].state == "not_started"


async def test_what_one_run_has_read_counts_for_the_next(forks: ForkBackend, tmp_path: Any) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text(
        "version: 1\nrules:\n"
        "  - {id: mail, effect: allow, match: {tool: mail.send}}\n"
        "  - {id: no-leak, effect: deny, match: {label: external, run_labels: {any: [private]}}}\n"
    )
    shop = Shop()
    async with open_executor(forks, shop, policy=Policy.load(rules)) as executor:
        surface = ToolSurface(executor)
        assert not (await surface.call("mail.send", SEND)).is_error
        await surface.call("run_script", {"code": "len(crm.orders(customer='Ann'))"})
        assert (await surface.call("mail.send", SEND)).is_error
        assert (await surface.call("run_script", {"code": f"mail.send(**{SEND})"})).is_error
        assert not (await ToolSurface(executor).call("mail.send", SEND)).is_error
    assert surface.labels >= {"private"}
    assert len(shop.sent) == 2


async def test_labels_of_earlier_runs_outlive_a_suspension(forks: ForkBackend, tmp_path: Any) -> None:
    rules = tmp_path / "policy.yaml"
    rules.write_text(
        "version: 1\nrules:\n"
        "  - {id: mail, effect: allow, match: {tool: mail.send}}\n"
        "  - {id: no-leak, effect: deny, match: {label: external, run_labels: {any: [private]}}}\n"
    )
    shop = Shop()
    code = f"refund(order=1, amount=1)\nmail.send(**{SEND})"
    async with open_executor(forks, shop, policy=Policy.load(rules)) as executor:
        surface = ToolSurface(executor)
        surface.add_labels({"private"})
        waiting = await surface.call("run_script", {"code": code})
        assert waiting.status == "suspended"
        decide_all(executor, Decision(verdict="approve", by="kim"))
        done = await ToolSurface(executor).call("resume_run", {"run_id": waiting.run_id})
    assert done.is_error
    assert "no-leak" in done.text
    assert shop.sent == []


async def test_definitions_that_do_not_fit_are_left_to_scripts(forks: ForkBackend) -> None:
    async with open_executor(forks, Shop()) as executor:
        small = ToolSurface(executor, budget_tokens=50)
        named = ToolSurface(executor, direct=["add"])
        with pytest.raises(ValueError, match="nobody"):
            ToolSurface(executor, direct=["nobody"])
        with pytest.raises(ValueError, match="nobody"):
            ToolSurface(executor, callers={"nobody": "direct"})
    assert small.direct == ()
    assert [each.name for each in named.direct] == ["add"]


async def test_a_tool_called_like_one_of_ours_is_offered_under_another_name(forks: ForkBackend) -> None:
    from bascule.tools import tool

    @tool(effects="read")
    def get_run(run_id: str) -> str:
        """Return how far a marathon run went."""
        return f"ran {run_id}"

    shop = Shop()
    shop.tools = (*shop.tools, get_run)
    async with open_executor(forks, shop) as executor:
        surface = ToolSurface(executor)
        names = [each.name for each in surface.tools]
        done = await surface.call("tool.get_run", {"run_id": "7"})
    assert len(names) == len(set(names))
    assert done.text == "ran 7"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    value=JSON | st.text(max_size=3000) | st.lists(st.text(max_size=80), max_size=200),
    output=st.text(max_size=5000),
    message=st.text(max_size=3000),
    failed=st.booleans(),
    direct=st.booleans(),
    max_bytes=st.integers(MIN_RESULT_BYTES, 2000),
)
def test_every_answer_keeps_its_bound_and_says_when_it_is_cut(
    value: JsonValue, output: str, message: str, failed: bool, direct: bool, max_bytes: int
) -> None:
    errors = (ScriptError(kind="failed", message=message),) if failed else ()
    result = Result(
        run_id="run-1",
        status="failed" if failed else "ok",
        value=value,
        value_source="return",
        output=output,
        errors=errors,
    )
    answer = render_run(result, max_bytes=max_bytes, direct=direct)
    assert len(answer.text.encode("utf-8", "replace")) <= max_bytes
    if not direct:
        whole = result.for_model()
        assert answer.text == whole or "left out" in answer.text


KEYS = st.sampled_from(
    ["a", "b", "code", "query", "name", "run_id", "handle", "", "\ud800", "\x00", "x" * 5000]
)
NAMES = st.sampled_from(
    [
        "add",
        "crm.orders",
        "run_script",
        "search_tools",
        "describe_tool",
        "read_output",
        "get_run",
        "resume_run",
    ]
)


@settings(max_examples=25, deadline=None)
@given(
    calls=st.lists(st.tuples(NAMES | st.text(), JSON | st.dictionaries(KEYS, JSON)), min_size=1, max_size=6)
)
async def test_no_call_of_a_model_raises(forks: ForkBackend, calls: list[tuple[str, Any]]) -> None:
    async with open_executor(forks, Shop()) as executor:
        surface = ToolSurface(executor)
        for name, arguments in calls:
            done = await surface.call(name, arguments)
            assert done.text.encode()
            assert len(done.text) < 20_000


async def test_only_calls_that_reached_their_tool_count_as_made(forks: ForkBackend) -> None:
    code = "add(a=1)\ntry:\n    mail.send(to='ann', text='x')\nexcept ToolDenied:\n    pass"
    async with open_executor(forks, Shop(), approver=deny_all) as executor:
        done = await ToolSurface(executor).call("run_script", {"code": code})
    assert done.result is not None
    assert [call.state for call in done.result.calls] == ["done", "denied"]
    assert isinstance(done.data, dict)
    assert done.data["calls_made"] == 1
