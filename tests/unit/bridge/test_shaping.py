"""Values and texts cut in their own shape, and reading on in the whole."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bascule.bridge import artifacts
from bascule.bridge.artifact_tools import artifact_tools
from bascule.bridge.artifacts import Artifact, ArtifactRefused
from bascule.bridge.memory_store import MemoryStore
from bascule.bridge.outputs import Part, find_at, keep
from bascule.bridge.result import JsonValue
from bascule.bridge.shaping import MIN_BYTES, read_output, shape, shape_and_keep
from bascule.bridge.sqlite_store import SqliteStore
from bascule.bridge.store import Store
from bascule.tools import AnyTool, ToolContext

ROWS: JsonValue = {
    "rows": [{"id": number, "name": f"name {number}", "tags": ["a", "b"]} for number in range(1000)],
    "total": 1000,
    "cursor": None,
}
ANN = ToolContext(user="ann", run_id="run-1", idempotency_key="key-1")


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "runs.db")
    yield made
    made.close()


def test_what_fits_is_whole() -> None:
    shaped = shape(ROWS, max_bytes=1 << 20)
    assert json.loads(shaped.text) == ROWS
    assert (shaped.omitted_bytes, shaped.omitted) == (0, ())
    assert shape("text\n", max_bytes=MIN_BYTES).text == "text\n"


def test_json_keeps_its_structure_keys_first_items_and_counts() -> None:
    shaped = shape(ROWS, max_bytes=2000, handle="art-1")
    value, note = shaped.text.split("\n")
    read = json.loads(value)
    assert list(read) == ["rows", "total", "cursor"]
    assert read["rows"][0] == {"id": 0, "name": "name 0", "tags": ["a", "b"]}
    kept = len(read["rows"]) - 1
    assert read["rows"][-1] == f"… {1000 - kept} more of 1000 items"
    assert (read["total"], read["cursor"]) == (1000, None)
    assert shaped.omitted == (f"rows: items {kept} to 999 of 1000",)
    assert shaped.omitted_bytes == len(json.dumps(ROWS, separators=(",", ":"))) - len(value.encode())
    assert 'read_output(handle="art-1"' in note
    assert "art-1" not in shape(ROWS, max_bytes=2000).text


def test_of_bytes_in_base64_hardly_anything_is_shown() -> None:
    picture = base64.b64encode(bytes(range(256)) * 400).decode()
    image: dict[str, JsonValue] = {"type": "image", "size_bytes": 102_400, "base64": picture}
    shaped = shape([image, {"text": "x " * 8000}], max_bytes=8000, handle="run-1")
    kept: Any = json.loads(shaped.text.partition("\n")[0])
    assert kept[0] == {**image, "base64": f"{picture[:32]}… {len(picture) - 32} more characters"}
    assert len(kept[1]["text"]) > 2000
    assert f"[0].base64: {len(picture) - 32} of {len(picture)} characters" in shaped.text


def test_a_text_keeps_beginning_and_end_in_whole_lines() -> None:
    text = "".join(f"line {number} é\n" for number in range(5000))
    shaped = shape(text, max_bytes=1000)
    lines = shaped.text.splitlines()
    assert (lines[0], lines[-2]) == ("line 0 é", "line 4999 é")
    assert set(lines[1:-2]) - {f"line {number} é" for number in range(5000)} == {
        f"[… {shaped.omitted_bytes} bytes left out …]"
    }


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=40) | st.dictionaries(st.text(max_size=30), inner, max_size=20),
    max_leaves=300,
)


@settings(max_examples=40, deadline=None)
@given(value=JSON, max_bytes=st.integers(MIN_BYTES, 5000))
def test_the_bound_holds_whatever_goes_in(value: JsonValue, max_bytes: int) -> None:
    shaped = shape(value, max_bytes=max_bytes, handle="art-" + "0" * 32)
    assert len(shaped.text.encode()) <= max_bytes
    if not shaped.omitted_bytes and not isinstance(value, str):
        assert json.loads(shaped.text) == value
    assert bool(shaped.omitted) == bool(shaped.omitted_bytes)


@pytest.mark.parametrize(
    "value",
    [
        [[[[1] * 50] * 50] * 50] * 10,
        {f"key {number}" * 50: 1 for number in range(5000)},
        ["x" * 1_000_000] * 3,
        {"a": {"b": {"c": {"d": {"e": "y" * 100_000}}}}},
        [10**299] * 1000,
        "z" * 1_000_000,
        "\u202e\n" * 100_000,
    ],
)
def test_large_values_of_every_shape_are_cut(value: JsonValue) -> None:
    for max_bytes in (MIN_BYTES, 1000, 20_000):
        shaped = shape(value, max_bytes=max_bytes, handle="art-" + "0" * 32)
        assert len(shaped.text.encode()) <= max_bytes
        assert shaped.omitted_bytes > 0
        if max_bytes == 20_000:
            assert len(shaped.text.encode()) > 1000


def test_a_bound_below_the_least_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 256"):
        shape(ROWS, max_bytes=10)


# ------------------------------------------------------------ reading on


def test_the_whole_can_be_paged_through_by_the_handle_in_the_note(store: Store) -> None:
    shaped = shape_and_keep(store, ROWS, max_bytes=1000, owner="ann")
    assert shaped.handle is not None
    assert shaped.handle in shaped.text
    offset: int | None = 0
    seen: list[JsonValue] = []
    while offset is not None:
        part = read_output(store, shaped.handle, path="rows", offset=offset, limit=300, owner="ann")
        assert (part.unit, part.total, part.offset) == ("items", 1000, offset)
        assert isinstance(part.value, list)
        seen += part.value
        offset = part.next_offset
    assert isinstance(ROWS, dict)
    assert seen == ROWS["rows"]


def test_texts_objects_and_single_values_have_parts_too(store: Store) -> None:
    handle = keep(store, {"log": "abcdef", "n": 5, "sub": {"a": 1, "b": 2}})
    assert read_output(store, handle, path="log", offset=2, limit=3) == Part(
        value="cde", unit="characters", offset=2, total=6, next_offset=5
    )
    assert read_output(store, handle, path="sub", limit=1).value == {"a": 1}
    assert read_output(store, handle, path="n").value == 5
    assert read_output(store, handle).next_offset is None


def test_nobody_reads_what_is_kept_for_others(store: Store) -> None:
    handle = keep(store, [1], owner="ann")
    for owner in ("", "bob", "ANN"):
        with pytest.raises(LookupError, match="nothing is kept under"):
            read_output(store, handle, owner=owner)


@pytest.mark.parametrize(
    "handle", ["", "art-0", "art-" + "0" * 32, "art-' OR 1=1 --", "run-" + "x" * 500, "\x00"]
)
def test_unknown_and_odd_handles_find_nothing(store: Store, handle: str) -> None:
    with pytest.raises(LookupError):
        read_output(store, handle)


def test_a_part_ends_where_it_would_become_too_large(store: Store) -> None:
    rows: list[JsonValue] = ["x" * 400] * 10
    handle = keep(store, rows)
    part = read_output(store, handle, max_bytes=1000)
    assert (part.next_offset, part.total) == (2, 10)
    rows = ["x" * 4000] * 2
    huge = keep(store, rows)
    assert read_output(store, huge, max_bytes=1000).next_offset == 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("", {"a": [{"b c": 1}]}),
        ("a", [{"b c": 1}]),
        ("a[0]", {"b c": 1}),
        ('a[0]["b c"]', 1),
        ("a[0].b c", 1),
    ],
)
def test_paths_lead_into_values(path: str, value: JsonValue) -> None:
    assert find_at({"a": [{"b c": 1}]}, path) == value


@pytest.mark.parametrize(
    ("path", "error", "message"),
    [
        ("b", LookupError, "the whole is an object with a; it has no 'b'"),
        ("a[7]", LookupError, r"a is a list of 1 items; it has no \[7\]"),
        ("a.b", LookupError, "a is a list of 1 items; it has no 'b'"),
        ("a[-1]", ValueError, "is no step of a path"),
        ("a[0", ValueError, "is no step of a path"),
        ("." * 2000, ValueError, "longer than 1000"),
        ('["\\q"]', ValueError, "no JSON text"),
    ],
)
def test_wrong_paths_say_how_far_they_lead(path: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        find_at({"a": [1]}, path)


def test_offsets_and_limits_are_checked(store: Store) -> None:
    handle = keep(store, [1])
    for offset, limit in ((0, 0), (0, 10**9), (-1, 1)):
        with pytest.raises(ValueError, match="must"):
            read_output(store, handle, offset=offset, limit=limit)


# ------------------------------------------------------------ quotas and expiry


def artifact(handle: str, size: int, **changes: str | float) -> Artifact:
    made = Artifact(
        handle=handle, owner="ann", run_id="run-1", created_at=0.0, expires_at=4e9, data=b"1" * size
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_quotas_hold_for_one_artifact_a_run_and_a_user(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_ARTIFACT_BYTES", 100)
    monkeypatch.setattr(artifacts, "MAX_RUN_BYTES", 150)
    monkeypatch.setattr(artifacts, "MAX_OWNER_BYTES", 250)
    monkeypatch.setattr(artifacts, "MAX_OWNER_ARTIFACTS", 4)
    with pytest.raises(ArtifactRefused, match="101 bytes are more than one artifact"):
        store.artifacts.put(artifact("art-0", 101))
    store.artifacts.put(artifact("art-1", 100))
    with pytest.raises(ArtifactRefused, match="this run keeps 100 bytes"):
        store.artifacts.put(artifact("art-2", 100))
    store.artifacts.put(artifact("art-2", 100, run_id="run-2"))
    with pytest.raises(ArtifactRefused, match="2 artifacts with 200 bytes"):
        store.artifacts.put(artifact("art-3", 100, run_id="run-3"))
    store.artifacts.put(artifact("art-3", 100, run_id="run-3", owner="bob"))
    for number in (4, 5):
        store.artifacts.put(artifact(f"art-{number}", 1, run_id="run-4"))
    with pytest.raises(ArtifactRefused, match="4 artifacts"):
        store.artifacts.put(artifact("art-6", 1, run_id="run-5"))


def test_an_expired_artifact_is_gone_and_makes_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_OWNER_ARTIFACTS", 1)
    store.artifacts.put(artifact("art-1", 1, expires_at=1.0))
    assert store.artifacts.get("art-1", owner="ann") is None
    store.artifacts.put(artifact("art-2", 1))
    store.artifacts.put(artifact("art-2", 1))
    assert store.artifacts.get("art-2", owner="ann") is not None


def test_a_file_of_an_older_version_gets_the_table(tmp_path: Path) -> None:
    first = SqliteStore(tmp_path / "runs.db")
    first.write(lambda connection: connection.execute("DROP TABLE artifacts"))
    first.close()
    second = SqliteStore(tmp_path / "runs.db")
    handle = keep(second, [1, 2])
    second.close()
    third = SqliteStore(tmp_path / "runs.db")
    assert read_output(third, handle).value == [1, 2]
    third.close()


# ------------------------------------------------------------ the tools


def call(made: AnyTool, context: ToolContext = ANN, **arguments: object) -> object:
    return made.call(made.validate(arguments).values, context)


def test_scripts_keep_get_and_slice_for_their_user_only(store: Store) -> None:
    tools = {each.name: each for each in artifact_tools(store)}
    assert list(tools) == ["store.put", "store.get", "store.slice", "read_output"]
    assert {each.effects for each in tools.values()} == {"read"}
    handle = call(tools["store.put"], value=ROWS)
    assert call(tools["store.put"], value=ROWS) == handle  # an attempt after a crash keeps nothing twice
    assert call(tools["store.get"], handle=handle, path="rows[1].id") == 1
    part = call(tools["store.slice"], handle=handle, path="rows", offset=998)
    assert isinstance(part, Part)
    assert (part.total, part.next_offset) == (1000, None)
    assert call(tools["read_output"], handle=handle, path="total") == Part(
        value=1000, unit="value", offset=0, total=1, next_offset=None
    )
    with pytest.raises(LookupError):
        call(tools["store.get"], replace(ANN, user="bob"), handle=handle)


def test_a_value_beyond_the_quota_is_an_error_of_the_script(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(artifacts, "MAX_ARTIFACT_BYTES", 10)
    put = artifact_tools(store)[0]
    with pytest.raises(ValueError, match="more than one artifact may have"):
        call(put, value="x" * 100)
    assert shape_and_keep(store, "x" * 1000, max_bytes=300).handle is None
