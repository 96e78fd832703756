"""Cards as text: what people are shown before they decide, the same on every channel.

Everything goes through `show`, because arguments, source and descriptions come from an untrusted script or
its tools. Nothing is left out of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from bascule.bridge.approval import ApprovalRequest
from bascule.bridge.display import show, show_json

ARGUMENT_CHARS: Final = 4000
PREVIEW_LINES: Final = 60
_MARGIN: Final = "\n" + " " * 13 + "| "


def describe_request(request: ApprovalRequest) -> str:
    """Return the card: what would run, where it comes from, which rule asks, who may decide what."""
    rows = [
        ("call", f"{request.seq} of {request.run_id}"),
        ("tool", f"{show(request.tool)} ({request.effects})"),
        ("about", show(request.description.partition("\n")[0], max_chars=200)),
        ("arguments", show_json(request.spelled, max_chars=ARGUMENT_CHARS)),
        ("script", f"line {request.line}: {show(request.source, max_chars=200)}"),
        ("asked by", show(", ".join(request.why))),
    ]
    if request.requester is not None:
        rows.append(("run for", show(request.requester, max_chars=100)))
    rows += [("approvers", show(line)) for line in request.approvers]
    rows += [("decided", show(line, max_chars=300)) for line in request.decided]
    rows += [("seen", show(line, max_chars=300)) for line in request.evidence]
    if request.preview:
        rows.append(("preview", _show_preview(request.preview)))
    if request.editable:
        rows.append(("editable", show(", ".join(request.editable))))
    if request.expires_at is not None:
        rows.append(("expires", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(request.expires_at))))
    if request.id:
        rows.append(("approval", request.id))
    rows.append(("digest", request.digest[:16]))
    if request.note:
        rows.append(("note", show(request.note, max_chars=500)))
    if request.duplicate:
        rows.append(("beware", "the same call with the same arguments was already made in this run"))
    return "\n" + "".join(f"  {name:<10} {text}\n" for name, text in rows)


def _show_preview(preview: str) -> str:
    """Show a tool's own words line by line, behind a mark, so that they cannot pass for rows of the card."""
    lines = preview.rstrip("\n").split("\n")
    shown = [show(line, max_chars=300) for line in lines[:PREVIEW_LINES]]
    if len(lines) > PREVIEW_LINES:
        shown.append(f"[... {len(lines) - PREVIEW_LINES} lines left out]")
    return "".join(f"{_MARGIN}{line}" for line in shown)[len(_MARGIN) - 2 :]


def describe_batch(requests: Sequence[ApprovalRequest]) -> str:
    """Return one card for calls that were issued together: every call in full, numbered."""
    parts = [f"\n{len(requests)} calls were issued together:\n"]
    parts += [f"\n[{number}]{describe_request(request)}" for number, request in enumerate(requests, 1)]
    return "".join(parts)
