"""History, policy, tools and audit: what was decided, what would be, what can be called, what is recorded."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from bascule.bridge.approval_card import read_card
from bascule.bridge.grants import revoke_grant
from bascule.console.api_approvals import find_decided
from bascule.console.api_deployment import (
    audit_export,
    audit_reply,
    explain_call,
    lint_text,
    list_budgets,
    policy_reply,
    tools_reply,
)
from bascule.console.approval_views import live_grants
from bascule.console.pages import Visit, back, page
from bascule.console.reading import parse_json, parse_model
from bascule.console.schemas import ApprovalsQuery, Body, DefinitionBody, ExplainBody, LintReply
from bascule.console.state import Console

ENTRIES_SHOWN = 100


async def history(visit: Visit) -> Response:
    """Show what was decided, the newest first."""
    query = visit.query(ApprovalsQuery)
    if "state" not in visit.request.query_params or query.state == "pending":
        query = query.model_copy(update={"state": "decided"})
    records = await asyncio.to_thread(find_decided, visit.console, query, visit.principal, query.limit + 1)
    page_ = records[: query.limit]
    return visit.page(
        "history.html",
        rows=[(record, read_card(record)) for record in page_],
        query=query,
        more=page_[-1].id if len(records) > query.limit else None,
    )


async def policy(visit: Visit) -> Response:
    """Show rules, budgets and grants."""
    return await _show_policy(visit)


async def _show_policy(visit: Visit, **more: Any) -> Response:
    console = visit.console
    user = visit.request.query_params.get("user", "") or visit.principal.name
    values: dict[str, Any] = {
        "explained": None,
        "asked": {"tool": "", "arguments": "{}", "user": "", "groups": "", "labels": ""},
        "linted": None,
        "lint_text": "",
        **more,
    }
    return visit.page(
        "policy.html",
        policy=policy_reply(console),
        budgets=await asyncio.to_thread(list_budgets, console, user),
        budget_user=user,
        grants=await asyncio.to_thread(live_grants, console.store),
        tools=sorted(tool.name for tool in console.executor.registry),
        **values,
    )


async def explain(visit: Visit) -> Response:
    """Hold the rules against a call somebody typed in; changes nothing."""
    form = visit.form
    asked = {name: form.get(name, "") for name in ("tool", "arguments", "user", "groups", "labels")}
    body = parse_model(
        ExplainBody,
        {
            "tool": asked["tool"],
            "arguments": parse_json((asked["arguments"] or "{}").encode()),
            "user": asked["user"] or None,
            "groups": _words(asked["groups"]),
            "run_labels": _words(asked["labels"]),
        },
    )
    return await _show_policy(visit, explained=explain_call(visit.console, body), asked=asked)


async def lint(visit: Visit) -> Response:
    """Check a rule file somebody typed in; changes nothing."""
    text = visit.form.get("text", "").replace("\r\n", "\n")
    linted: LintReply = lint_text(visit.console, text)
    return await _show_policy(visit, linted=linted, lint_text=text)


async def revoke(visit: Visit) -> Response:
    """Take a grant back."""
    await asyncio.to_thread(
        lambda: revoke_grant(
            visit.console.store.approvals,
            visit.path("approval"),
            by=visit.principal.name,
            channel=visit.principal.channel,
        )
    )
    return back("/policy#grants")


def _words(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


async def tools(visit: Visit) -> Response:
    """Show what scripts may call, how it goes, and what waits to be confirmed."""
    reply = await asyncio.to_thread(tools_reply, visit.console)
    return visit.page(
        "tools.html", reply=reply, reviews=await asyncio.to_thread(visit.console.definitions.all)
    )


class DefinitionQuery(Body):
    """Which definition."""

    server: str
    tool: str


async def definition(visit: Visit) -> Response:
    """Show one definition that nobody has confirmed, and what changed in it."""
    query = visit.query(DefinitionQuery)
    review = await asyncio.to_thread(visit.console.definitions.find, query.server, query.tool)
    return visit.page("definition.html", review=review)


async def decide_definition(visit: Visit) -> Response:
    """Confirm or refuse the definition that was displayed."""
    form = visit.form
    body = parse_model(
        DefinitionBody,
        {
            **{name: form.get(name, "") for name in ("server", "tool", "digest", "verdict", "reason")},
            "effects": form.get("effects") or None,
        },
    )
    await asyncio.to_thread(
        lambda: visit.console.definitions.settle(
            visit.principal,
            body.server,
            body.tool,
            body.digest,
            confirm=body.verdict == "confirm",
            effects=body.effects,
            reason=body.reason,
        )
    )
    return back("/tools")


class AuditQuery(Body):
    """Where to look."""

    before: int | None = None


async def audit(visit: Visit) -> Response:
    """Check the chain and show its newest entries."""
    console = visit.console
    state = await asyncio.to_thread(audit_reply, console)
    before = visit.query(AuditQuery).before
    end = state.entries if before is None else max(0, min(before, state.entries))
    first = max(0, end - ENTRIES_SHOWN)
    entries = await asyncio.to_thread(_read_entries, console, first, end)
    return visit.page("audit.html", state=state, entries=entries, first=first)


def _read_entries(console: Console, first: int, end: int) -> list[Any]:
    found: list[Any] = []
    for entry in console.store.audit_entries(after=first - 1):
        if entry.index >= end:
            break
        found.append(entry)
    return found[::-1]


async def export(visit: Visit) -> Response:
    """Download the audit table."""
    return audit_export(visit.console, -1)


ROUTES = (
    page("/history", history),
    page("/policy", policy),
    page("/policy/explain", explain, method="POST"),
    page("/policy/lint", lint, method="POST"),
    page("/grants/{approval}/revoke", revoke, "decide", method="POST"),
    page("/tools", tools),
    page("/tools/definition", definition),
    page("/tools/definition", decide_definition, "administer", method="POST"),
    page("/audit", audit),
    page("/audit/export", export, "administer"),
)
