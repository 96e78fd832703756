"""Reading on in what was cut: the whole behind a handle, part by part, for models and for scripts.

A handle names an artifact, or a finished run (its value and output). It is untrusted text: what is not the
asking user's own is not found. A part is bounded by its number of items and its bytes.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from typing import Final, Literal, cast

import msgspec
from pydantic import JsonValue

from bascule.bridge.artifacts import KEPT_S, Artifact, new_handle
from bascule.bridge.store import Store

MAX_LIMIT: Final = 1_000_000
MAX_PART_BYTES: Final = 4 << 20
"""JSON of one part; a longer one ends earlier, and says where to go on."""

MAX_PATH_CHARS: Final = 1000
_HANDLE = re.compile(r"(?:art|run|session)-[0-9a-z.]{1,80}")
_STEP = re.compile(r'\.?([^.\[\]"]+)|\[([0-9]{1,12})\]|\["((?:[^"\\]|\\.)*)"\]')

Unit = Literal["items", "members", "characters", "value"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of something that is kept.

    Attributes:
        value: items of a list, members of an object, characters of a text; anything else whole.
        unit: what offset and total count.
        offset: where the part begins.
        total: how many there are.
        next_offset: where the next part begins, None after the last.
    """

    value: JsonValue
    unit: Unit
    offset: int
    total: int
    next_offset: int | None


def keep(
    store: Store, value: JsonValue, *, owner: str = "", run_id: str = "", idempotency_key: str = ""
) -> str:
    """Keep a value in the store, for `KEPT_S`, and return its handle.

    Args:
        owner: the user who can read it.
        run_id: the run it counts for; empty for the host's own.
        idempotency_key: the same key gives the same handle, and the value is kept once.

    Raises:
        ArtifactRefused, StoreError: nothing was kept.
    """
    now = time.time()
    handle = new_handle()
    if idempotency_key:
        handle = f"art-{hashlib.sha256(f'artifact|{idempotency_key}'.encode()).hexdigest()[:32]}"
    store.artifacts.put(
        Artifact(
            handle=handle,
            owner=owner,
            run_id=run_id,
            created_at=now,
            expires_at=now + KEPT_S,
            data=msgspec.json.encode(value),
        )
    )
    return handle


def read_output(
    store: Store,
    handle: str,
    *,
    offset: int = 0,
    limit: int = 100,
    path: str | None = None,
    owner: str = "",
    max_bytes: int = MAX_PART_BYTES,
) -> Part:
    """Return a part of an artifact, or of the value and output of a finished run.

    Args:
        handle: ``art-…`` as a note or ``store.put`` gave it, or the id of a run, whose parts are ``value``,
            ``output`` and ``error``.
        offset, limit: items of a list, members of an object or characters of a text; limit from 1 to
            `MAX_LIMIT`.
        path: the way to what is wanted, like ``rows[3].name``; the whole when None or empty.
        owner: the user who asks.
        max_bytes: of the part; it holds one item or member at least, however large that is.

    Raises:
        LookupError: there is nothing under the handle for this user (any more), or nothing at the path.
        ValueError: offset, limit or path is not usable.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise ValueError(f"limit must be 1 to {MAX_LIMIT}, got {limit}")
    if offset < 0:
        raise ValueError(f"offset must not be negative, got {offset}")
    return _cut_part(find_at(read_kept(store, handle, owner=owner), path or ""), offset, limit, max_bytes)


def read_kept(store: Store, handle: str, *, owner: str = "") -> JsonValue:
    """Return everything behind a handle; see `read_output`.

    Raises:
        LookupError: there is nothing.
    """
    if len(handle) <= 100 and _HANDLE.fullmatch(handle):
        if handle.startswith("art-"):
            found = store.artifacts.get(handle, owner=owner)
            if found is not None:
                return cast("JsonValue", msgspec.json.decode(found.data))
        else:
            return _read_run(store, handle, owner)
    raise LookupError(
        f"nothing is kept under {handle!r:.100}; handles go {KEPT_S / 3600:g} hours after they were made"
    )


def _read_run(store: Store, run_id: str, owner: str) -> JsonValue:
    row, journal = store.run(run_id), store.journal(run_id)
    if row is None or journal is None or (row.user or "") != owner:
        raise LookupError(f"there is no run {run_id!r:.100}")
    if row.status != "finished":
        raise LookupError(f"{run_id} is not finished: {row.status}")
    payload = journal.entries[-1].payload
    if payload is None:
        raise LookupError(f"what {run_id} returned is not kept any more")
    result = cast("dict[str, JsonValue]", msgspec.json.decode(payload))
    return {name: result[name] for name in ("value", "output", "error")}


def find_at(value: JsonValue, path: str) -> JsonValue:
    """Return what stands at a path like ``rows[3].name``; names with other characters as ``["a b"]``.

    Raises:
        LookupError: nothing stands there; the message says how far the path leads.
        ValueError: it is no path.
    """
    if len(path) > MAX_PATH_CHARS:
        raise ValueError(f"the path is longer than {MAX_PATH_CHARS} characters")
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise ValueError(f"{path[position:][:40]!r} is no step of a path; write rows[3].name")
        name, index, quoted = step.groups()
        so_far = path[:position] or "the whole"
        if index is not None:
            if not isinstance(value, list) or int(index) >= len(value):
                raise LookupError(f"{so_far} is {_describe(value)}; it has no [{index}]")
            value = value[int(index)]
        else:
            key = name if name is not None else _unquote(quoted)
            if not isinstance(value, dict) or key not in value:
                raise LookupError(f"{so_far} is {_describe(value)}; it has no {key!r:.60}")
            value = value[key]
        position = step.end()
    return value


def _unquote(text: str) -> str:
    try:
        return msgspec.json.decode(f'"{text}"', type=str)
    except msgspec.DecodeError as error:
        raise ValueError(f"{text!r:.60} in the path is no JSON text") from error


def _describe(value: JsonValue) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)} items"
    if isinstance(value, dict):
        names = ", ".join(f"{name:.40}" for name in list(value)[:10])
        return f"an object with {names}{' …' if len(value) > 10 else ''}" if value else "an empty object"
    return "text" if isinstance(value, str) else f"{msgspec.json.encode(value).decode():.40}"


def _cut_part(value: JsonValue, offset: int, limit: int, max_bytes: int) -> Part:
    if isinstance(value, str):
        text = value[offset : offset + min(limit, MAX_PART_BYTES // 6)]
        text = text.encode("utf-8", "replace")[:max_bytes].decode("utf-8", "ignore")
        return _part(text, "characters", offset, len(text), len(value))
    if isinstance(value, list):
        items = value[offset : offset + limit]
        items = items[: _fitting(items, max_bytes)]
        return _part(items, "items", offset, len(items), len(value))
    if isinstance(value, dict):
        members = list(value.items())[offset : offset + limit]
        members = members[: _fitting([[name, item] for name, item in members], max_bytes)]
        return _part(dict(members), "members", offset, len(members), len(value))
    return Part(value=value, unit="value", offset=0, total=1, next_offset=None)


def _fitting(items: list[JsonValue], max_bytes: int) -> int:
    """Return how many items fit into a part, at least one: it can be read further with a longer path."""
    size = 2  # the brackets around them
    for number, item in enumerate(items):
        size += len(msgspec.json.encode(item)) + 1
        if size > max_bytes and number:
            return number
    return len(items)


def _part(value: JsonValue, unit: Unit, offset: int, count: int, total: int) -> Part:
    end = offset + count
    return Part(value=value, unit=unit, offset=offset, total=total, next_offset=end if end < total else None)
