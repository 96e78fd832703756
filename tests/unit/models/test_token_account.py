"""The token account: formulas against cases computed by hand, and against runs of the real bridge."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from bascule.bridge import Executor, Result
from bascule.bridge.errors import ResumeError
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.recording import make_recording, write_recording
from bascule.bridge.sqlite_store import SqliteStore
from bascule.cli.main import app
from bascule.models.counting import ByteEstimate, O200kCounter, estimate_tokens, open_counter
from bascule.models.exchange import FRAMING_TOKENS, CallTokens, Exchange, cost_of
from bascule.models.run_account import Definitions, account_journal, account_result
from bascule.models.transcript import Transcript
from bascule.tools import tool
from tests.forks.backend import ForkBackend

THREE = Exchange(
    id="by-hand",
    origin="test",
    question=10,
    direct_definitions=90,
    script_definitions=150,
    calls=(
        CallTokens(arguments=5, result=100, result_bytes=330, round=1),
        CallTokens(arguments=7, result=200, result_bytes=660, round=1),
        CallTokens(arguments=9, result=300, result_bytes=990, round=2),
    ),
    script=40,
    returned=20,
)


@tool(effects="read")
def list_people(team: str) -> list[dict[str, str]]:
    """List the people of a team."""
    return [{"id": f"person-{team}-{number}", "note": "x" * 500} for number in range(3)]


@tool(effects="read")
def get_age(person: str) -> int:
    """Tell a person's age."""
    if person == "person-none":
        raise ValueError("there is no such person")
    return 30 + len(person)


AGES = """
people = list_people(team="blue")
total = sum(get_age(person=each["id"]) for each in people)
print(total)
"""


@pytest.fixture
async def forked(anyio_backend: str) -> AsyncIterator[ForkBackend]:
    """Give guests without walls."""
    backend = ForkBackend()
    yield backend
    await backend.close()


async def run_counted(
    backend: ForkBackend, script: str, *, keep_values: bool = True
) -> tuple[Result, Exchange]:
    """Run a script on the people's tools and count it from its journal."""
    store = MemoryStore(keep_values=keep_values)
    async with Executor([list_people, get_age], backend=backend, store=store) as executor:
        result = await executor.run(script, seed=1)
    journal = store.journal(result.run_id)
    assert journal is not None
    definitions = Definitions(direct=100, script=200)
    return result, account_journal(
        result.run_id, journal.entries, O200kCounter(), definitions=definitions, question="How old?"
    )


def test_one_call_a_round_reads_everything_before_it_again_in_every_round() -> None:
    cost = cost_of(THREE, "one_by_one")
    # Rounds read 100; 100+113; 100+113+215; 100+113+215+317.
    assert FRAMING_TOKENS == 8
    assert cost.input == 100 + 213 + 428 + 745
    assert cost.fresh == 745
    assert cost.output == 5 + 7 + 9
    assert cost.rounds == 4


def test_parallel_rounds_make_each_call_as_soon_as_its_arguments_are_known() -> None:
    cost = cost_of(THREE, "parallel")
    # Rounds read 100; 100+113+215; 100+113+215+317.
    assert cost.input == 100 + 428 + 745
    assert cost.fresh == 745
    assert cost.output == 21
    assert cost.rounds == 3


def test_a_script_reads_its_prompt_twice_and_what_it_gives_back_once() -> None:
    cost = cost_of(THREE, "script")
    assert cost.input == 160 + (160 + 40 + 20 + 8)
    assert cost.fresh == 228
    assert cost.output == 40
    assert cost.rounds == 2
    assert THREE.kept_out == 600 - 20


def test_rounds_with_a_gap_in_their_numbers_count_once() -> None:
    calls = tuple(CallTokens(arguments=1, result=1, result_bytes=1, round=number) for number in (2, 5, 5))
    gaps = Exchange(
        id="gaps", origin="test", question=0, direct_definitions=0, script_definitions=0, calls=calls,
        script=1, returned=1,
    )  # fmt: skip
    assert cost_of(gaps, "parallel").rounds == 3


def test_an_exchange_without_calls_is_one_round() -> None:
    nothing = Exchange(
        id="none", origin="test", question=3, direct_definitions=4, script_definitions=0, calls=(), script=0,
        returned=0,
    )  # fmt: skip
    assert cost_of(nothing, "one_by_one") == cost_of(nothing, "parallel")
    assert cost_of(nothing, "parallel").input == 7


@pytest.mark.anyio
async def test_a_run_is_counted_from_its_journal(forked: ForkBackend) -> None:
    result, counted = await run_counted(forked, AGES)
    count = O200kCounter().count
    assert result.output == "129\n"
    assert [call.round for call in counted.calls] == [1, 2, 2, 2]
    assert [call.result_bytes for call in counted.calls] == [each.result_bytes for each in result.calls]
    assert counted.calls[1].arguments == count('{"name":"get_age","arguments":{"person":"person-blue-0"}}')
    assert counted.calls[1].result == count("43")
    assert counted.returned == count("129")
    assert counted.question == count("How old?")
    assert (counted.direct_definitions, counted.script_definitions) == (100, 200)
    assert counted.script > count(AGES)
    assert counted.exact
    assert cost_of(counted, "one_by_one").rounds == 5
    assert cost_of(counted, "parallel").rounds == 3


@pytest.mark.anyio
async def test_a_value_the_script_spells_out_needs_no_round_before_it(forked: ForkBackend) -> None:
    _, counted = await run_counted(
        forked, 'list_people(team="blue")\nget_age(person="person-blue-0")\nget_age(person="person-red-1")'
    )
    assert [call.round for call in counted.calls] == [1, 1, 1]


@pytest.mark.anyio
async def test_a_failed_call_costs_a_direct_caller_its_message(forked: ForkBackend) -> None:
    _, counted = await run_counted(
        forked, 'try:\n    get_age(person="person-none")\nexcept ValueError:\n    print("none")'
    )
    assert counted.calls[0].result >= O200kCounter().count("there is no such person")
    assert counted.calls[0].result < 30


@pytest.mark.anyio
async def test_a_run_without_its_values_is_estimated_from_its_receipts(forked: ForkBackend) -> None:
    with pytest.raises(ResumeError):
        await run_counted(forked, AGES, keep_values=False)
    async with Executor([list_people, get_age], backend=forked) as executor:
        result = await executor.run(AGES, seed=1)
    counted = account_result(result, AGES, O200kCounter())
    assert not counted.exact
    assert [call.round for call in counted.calls] == [1, 1, 1, 1]
    assert counted.calls[0].result == estimate_tokens(result.calls[0].result_bytes)
    assert counted.returned == O200kCounter().count("129")


@pytest.mark.parametrize("text", ["", "x", "\ud800 lone", "<|endoftext|>", "é€😀\x00", "a" * 2_000_000])
def test_any_text_can_be_counted(text: str) -> None:
    exact, estimated = O200kCounter().count(text), ByteEstimate().count(text)
    assert (exact == 0) == (estimated == 0) == (text == "")
    assert exact >= 0


def test_without_the_extra_tokens_are_estimated_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_counter().exact
    monkeypatch.setitem(sys.modules, "toktok", None)
    counter = open_counter()
    assert not counter.exact
    assert "estimate" in counter.name
    with pytest.raises(ModuleNotFoundError, match=r"bascule\[tokens\]"):
        O200kCounter()


def test_the_estimate_is_near_the_count_for_records_and_code() -> None:
    rows = [
        {"id": f"person-{number}", "city": "San Diego", "note": "booked by phone"} for number in range(200)
    ]
    for text in (str(rows).replace("'", '"'), AGES * 20):
        exact = O200kCounter().count(text)
        assert abs(ByteEstimate().count(text) - exact) < exact / 3


@pytest.mark.anyio
async def test_the_command_counts_stores_recordings_and_the_runs_of_a_transcript(
    forked: ForkBackend, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    async with Executor([list_people, get_age], backend=forked, store=store) as executor:
        first = await executor.run(AGES, seed=1)
        await executor.run("get_age(person='someone')", seed=1)
    journal = store.journal(first.run_id)
    assert journal is not None
    write_recording(make_recording(first.run_id, journal.entries), tmp_path / "run.jsonl")
    store.close()
    talk = Transcript(tmp_path / "talk.jsonl", redact=str)
    talk.add("asked", text="How old?")
    talk.add("finished", runs=[first.run_id, "run-gone"], input_tokens=1234, output_tokens=56)

    def told(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["bench", "tokens", *arguments])

    kept = str(tmp_path / "runs.db")
    assert "2 tasks, 5 calls" in told("--store", kept).stdout
    assert "1 task, 4 calls" in told(str(tmp_path / "run.jsonl")).stdout
    spoken = told(str(tmp_path / "talk.jsonl"), "--store", kept)
    assert "1 task, 4 calls" in spoken.stdout
    assert "the provider counted 1,234 tokens in, 56 out" in spoken.stderr
    assert "1 runs that are not there whole were left out" in spoken.stderr
    assert "needs --store" in told(str(tmp_path / "talk.jsonl")).stderr
    with (tmp_path / "talk.jsonl").open("a") as file:
        file.write("no json\n")
    assert "line 3" in told(str(tmp_path / "talk.jsonl"), "--store", kept).stderr
