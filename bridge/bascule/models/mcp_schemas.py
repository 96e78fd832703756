"""Output schemas of the surface's functions as MCP tools, and the data of a run that is not over."""

from __future__ import annotations

from typing import Final

from bascule.bridge.approval_card import read_card
from bascule.bridge.display import show
from bascule.bridge.result import JsonValue
from bascule.bridge.store import Store
from bascule.bridge.waking import PENDING, is_due
from bascule.models.definitions import JsonObject, SurfaceTool

MAX_APPROVALS_SHOWN: Final = 20

_TEXT: Final[JsonObject] = {"type": "string"}
_NUMBER: Final[JsonObject] = {"type": "integer"}

RUN_STATUSES: Final[list[JsonValue]] = [
    *("ok", "failed", "refused", "limit", "cancelled", "diverged"),
    *("pending_approval", "waiting", "ready", "running"),
]
"""How a run stands. ``pending_approval``: people must decide. ``waiting``: for time, or an operator's answer.
``ready``: it can go on, `resume_run` takes it up. ``running``: somebody works on it."""


def _object(*required: str, **properties: JsonValue) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required)}


def _list(items: JsonValue) -> JsonObject:
    return {"type": "array", "items": items}


_APPROVAL: Final = _object(
    "id", "tool", id=_TEXT, seq=_NUMBER, tool=_TEXT, expires_at={"type": ["number", "null"]}
)

RUN: Final = _object(
    "run_id",
    "status",
    run_id=_TEXT,
    status={"type": "string", "enum": RUN_STATUSES},
    value={"description": "what the script returned, null when there is none or it is too large"},
    value_source=_TEXT,
    output={"type": "string", "description": "what the script printed; a long one loses its middle"},
    cut={"type": "boolean", "description": "whether read_output has more"},
    errors=_list(_object("kind", "message", kind=_TEXT, message=_TEXT)),
    notes=_list(_TEXT),
    calls=_list(_object("seq", "tool", "state", seq=_NUMBER, tool=_TEXT, state=_TEXT)),
    calls_made=_NUMBER,
    reason={"type": "string", "description": "what a run that is not over waits for"},
    approvals=_list(_APPROVAL),
    url={"type": "string", "description": "where people decide"},
)

_OWN: Final[dict[str, JsonObject]] = {
    "run_script": RUN,
    "get_run": RUN,
    "resume_run": RUN,
    "search_tools": _object("tools", tools=_list(_TEXT)),
    "describe_tool": _object("name", "stub", name=_TEXT, effects=_TEXT, stub=_TEXT),
    "read_output": _object(
        "text",
        "unit",
        "offset",
        "total",
        handle=_TEXT,
        path=_TEXT,
        text=_TEXT,
        unit=_TEXT,
        offset=_NUMBER,
        next_offset={"type": ["integer", "null"], "description": "where the next part begins"},
        total=_NUMBER,
    ),
}


def output_schema(tool: SurfaceTool) -> JsonObject:
    """Return what a tool's structured result looks like; errors are marked and have ``error`` instead."""
    return _OWN[tool.name] if tool.tool is None else RUN


def describe_wait(store: Store, run_id: str, console_url: str | None) -> JsonObject:
    """Return how a run stands that has no result yet.

    Args:
        console_url: of the console in which people decide, without a slash at its end.
    """
    row = store.run(run_id)
    assert row is not None
    pending = store.approvals.find(run_id=run_id, states=[PENDING], limit=MAX_APPROVALS_SHOWN)
    if row.status == "running":
        status = "running"
    elif is_due(store, row):
        status = "ready"
    else:
        status = "pending_approval" if pending else "waiting"
    described: JsonObject = {
        "run_id": run_id,
        "status": status,
        "reason": show(row.reason, max_chars=500),
        "approvals": [
            {"id": each.id, "seq": each.seq, "tool": read_card(each).tool, "expires_at": each.expires_at}
            for each in pending
        ],
    }
    if console_url is not None:
        described["url"] = f"{console_url}/runs/{run_id}"
    return described
