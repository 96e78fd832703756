"""The API's operations about policy, grants, tools, the audit table, and whoever asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from starlette.responses import Response, StreamingResponse

from bascule.bridge.audit_check import export_entry, verify
from bascule.bridge.audit_key import AuditKey
from bascule.bridge.decide import describe_demand
from bascule.bridge.errors import PolicyError
from bascule.bridge.grants import revoke_grant
from bascule.bridge.matching import Facts, User, is_about
from bascule.bridge.policy import Policy
from bascule.bridge.spending import MILLIONTHS
from bascule.bridge.store import AuditEntry
from bascule.bridge.tool_stats import collect_stats
from bascule.console.approval_views import live_grants
from bascule.console.operation import Call, Operation
from bascule.console.problems import Problem
from bascule.console.schemas import (
    AuditQuery,
    AuditReply,
    BudgetReply,
    BudgetsQuery,
    BudgetsReply,
    DefinitionBody,
    DefinitionReply,
    DefinitionsReply,
    DoneReply,
    ExplainBody,
    ExplainReply,
    ExplanationReply,
    GrantsReply,
    LintBody,
    LintReply,
    MeReply,
    PolicyReply,
    RuleReply,
    ToolReply,
    ToolsReply,
)
from bascule.console.state import Console
from bascule.tools import ArgumentsInvalid, render_stubs
from bascule.tools.imported.review import Review

_RIGHTS: Final = ("submit", "read", "decide", "administer")


async def who_am_i(call: Call) -> MeReply:
    """Say whose token this is."""
    principal = call.principal
    return MeReply(
        name=principal.name,
        groups=sorted(principal.groups),
        scope=principal.scope,
        rights=[right for right in _RIGHTS if principal.may(right)],
    )


async def get_policy(call: Call) -> PolicyReply:
    """Show the rules."""
    return policy_reply(call.console)


def policy_reply(console: Console) -> PolicyReply:
    """Return the rules of all layers."""
    rules = [
        RuleReply(
            name=name,
            effect=rule.effect,
            rule=rule.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True),
        )
        for name, rule in console.policy.named_rules
    ]
    return PolicyReply(digest=console.policy.digest, rules=rules)


async def lint(call: Call) -> LintReply:
    """Check a rule file against the tools; nothing is put in force."""
    return lint_text(call.console, call.given(LintBody).text)


def lint_text(console: Console, text: str) -> LintReply:
    """Return what is wrong with a rule file."""
    try:
        Policy.parse(text, where="this text").check(console.executor.registry)
    except PolicyError as error:
        return LintReply(problems=list(error.problems))
    return LintReply(problems=[])


async def explain(call: Call) -> ExplainReply:
    """Hold every rule against one call."""
    return explain_call(call.console, call.given(ExplainBody))


def explain_call(console: Console, body: ExplainBody) -> ExplainReply:
    """Return what policy says about a call, and why."""

    def unanswered(problem: str) -> ExplainReply:
        return ExplainReply(effect=None, rules=[], explanations=[], charges=[], approvers=[], problem=problem)

    tool = console.executor.registry.get(body.tool)
    if tool is None:
        return unanswered(f"there is no tool {body.tool}, so every call of it is denied")
    try:
        valid = tool.validate(body.arguments)
    except ArgumentsInvalid as error:
        return unanswered(f"these arguments never reach policy: {error.message}")
    policy = console.policy
    user = None if body.user is None else User(name=body.user, groups=frozenset(body.groups))
    day = time.strftime("%Y-%m-%d", time.gmtime())
    facts = Facts(user=policy.identify(user), labels=frozenset(body.run_labels), day=day)
    verdict = policy.decide(tool, valid.plain, facts, read=console.store.counter)
    demands = () if verdict.requirement is None else verdict.requirement.demands
    return ExplainReply(
        effect=verdict.effect,
        rules=list(verdict.rules),
        explanations=[
            ExplanationReply(rule=each.rule, effect=each.effect, matches=each.matches, why=each.why)
            for each in policy.explain(tool, valid.plain, facts)
        ],
        charges=[f"{each.rule}: {each.text}" for each in verdict.charges],
        approvers=[describe_demand(demand) for demand in demands],
        problem=None,
    )


async def get_budgets(call: Call) -> BudgetsReply:
    """Show what is left today."""
    user = call.given(BudgetsQuery).user
    return BudgetsReply(budgets=await asyncio.to_thread(list_budgets, call.console, user))


def list_budgets(console: Console, user: str | None) -> list[BudgetReply]:
    """Return the daily budgets of all rules as they stand for a user. Blocks."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    found: list[BudgetReply] = []
    for name, rule in console.policy.named_rules:
        budget = rule.budget
        if budget is None or budget.key == "run" or (budget.key == "user" and user is None):
            continue
        scope = f"day {day}" if budget.key == "tool" else f"day {day} user {user}"
        whose = user if budget.key == "user" else None
        for tool in console.executor.registry:
            if not is_about(rule, tool):
                continue
            if budget.calls_per_day is not None:
                used = console.store.counter(f"budget {name} {tool.name} calls {scope}")
                found.append(
                    BudgetReply(
                        rule=name, tool=tool.name, user=whose, text="calls per day", used=used,
                        limit=budget.calls_per_day,
                    )
                )  # fmt: skip
            if budget.sum is not None and budget.sum.per == "day":
                counter = f"budget {name} {tool.name} sum {budget.sum.arg} {scope}"
                found.append(
                    BudgetReply(
                        rule=name, tool=tool.name, user=whose, text=f"sum of {budget.sum.arg} per day",
                        used=console.store.counter(counter) / MILLIONTHS, limit=float(budget.sum.max),
                    )
                )  # fmt: skip
    return found


async def list_grants(call: Call) -> GrantsReply:
    """List grants in force."""
    return GrantsReply(grants=await asyncio.to_thread(live_grants, call.console.store))


async def revoke(call: Call) -> DoneReply:
    """Take a grant back; the call it was given with stays approved."""
    principal = call.principal
    await asyncio.to_thread(
        lambda: revoke_grant(
            call.console.store.approvals, call.path("approval"), by=principal.name, channel=principal.channel
        )
    )
    return DoneReply(done=True)


async def list_tools(call: Call) -> ToolsReply:
    """List what scripts may call, and what the audit table says of it."""
    return await asyncio.to_thread(tools_reply, call.console)


def tools_reply(console: Console) -> ToolsReply:
    """Return the tools and their statistics. Blocks."""
    registry = console.executor.registry
    names = [tool.name for tool in registry]
    stats = {each.tool: each.summary() for each in collect_stats(console.store.audit_entries(), names)}
    tools = [
        ToolReply(
            name=tool.name,
            summary=tool.summary,
            description=tool.description,
            effects=tool.effects,
            labels=sorted(tool.labels),
            timeout_s=tool.timeout_s,
            digest=tool.digest,
            parameters=dict(tool.parameters),
            returns=None if tool.returns is None else dict(tool.returns),
            stub=render_stubs([tool], detail="full"),
            stats=stats[tool.name],
        )
        for tool in registry
    ]
    return ToolsReply(tools=tools, unknown=[row for name, row in stats.items() if name not in names])


async def get_tool(call: Call) -> ToolReply:
    """Show one tool."""
    found = (await asyncio.to_thread(tools_reply, call.console)).tools
    for tool in found:
        if tool.name == call.path("tool"):
            return tool
    raise Problem(404, "tool_not_found", f"there is no tool {call.path('tool')}")


async def list_definitions(call: Call) -> DefinitionsReply:
    """List definitions of tools that nobody has confirmed."""
    found = await asyncio.to_thread(call.console.definitions.all)
    return DefinitionsReply(definitions=[definition_reply(each) for each in found])


def definition_reply(review: Review) -> DefinitionReply:
    """Return a definition for a program."""
    return DefinitionReply.model_validate(asdict(review))


async def decide_definition(call: Call) -> DefinitionReply:
    """Confirm or refuse a definition as it was displayed."""
    body = call.given(DefinitionBody)
    after = await asyncio.to_thread(
        lambda: call.console.definitions.settle(
            call.principal,
            body.server,
            body.tool,
            body.digest,
            confirm=body.verdict == "confirm",
            effects=body.effects,
            reason=body.reason,
        )
    )
    return definition_reply(after)


async def get_audit(call: Call) -> AuditReply:
    """Check the audit chain from its beginning."""
    return await asyncio.to_thread(audit_reply, call.console)


def audit_reply(console: Console) -> AuditReply:
    """Return the state of the audit chain. Blocks."""
    last: AuditEntry | None = None
    count = 0

    def entries() -> Iterator[AuditEntry]:
        nonlocal last, count
        for entry in console.store.audit_entries():
            last, count = entry, count + 1
            yield entry

    key = getattr(console.store, "key", None)
    problems = verify(entries(), (), key if isinstance(key, AuditKey) else AuditKey(b""))
    return AuditReply(
        entries=count,
        last_at=None if last is None else last.at,
        last_hash=None if last is None else last.hash,
        problems=problems,
    )


async def export_audit(call: Call) -> Response:
    """Download the audit table as JSON lines."""
    return audit_export(call.console, call.given(AuditQuery).after)


def audit_export(console: Console, after: int) -> Response:
    """Return the audit table as a file."""
    return StreamingResponse(
        (export_entry(entry) for entry in console.store.audit_entries(after=after)),
        media_type="application/x-ndjson",
        headers={"content-disposition": 'attachment; filename="audit.jsonl"'},
    )


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        method="GET", path="/v1/me", handler=who_am_i, summary="Whose token this is.", rights=_RIGHTS,
        reply=MeReply,
    ),
    Operation(
        method="GET", path="/v1/policy", handler=get_policy, summary="Show the rules.", rights=("read",),
        reply=PolicyReply,
    ),
    Operation(
        method="POST", path="/v1/policy/lint", handler=lint, summary="Check a rule file.", rights=("read",),
        body=LintBody, reply=LintReply,
    ),
    Operation(
        method="POST", path="/v1/policy/explain", handler=explain, summary="Explain a call.",
        rights=("read",), body=ExplainBody, reply=ExplainReply,
    ),
    Operation(
        method="GET", path="/v1/policy/budgets", handler=get_budgets, summary="Show what budgets are left.",
        rights=("read",), query=BudgetsQuery, reply=BudgetsReply,
    ),
    Operation(
        method="GET", path="/v1/grants", handler=list_grants, summary="List grants in force.",
        rights=("read",), reply=GrantsReply,
    ),
    Operation(
        method="POST", path="/v1/grants/{approval}/revoke", handler=revoke, summary="Take a grant back.",
        rights=("decide",), reply=DoneReply, also=(404,),
    ),
    Operation(
        method="GET", path="/v1/tools", handler=list_tools, summary="List tools.", rights=("read", "submit"),
        reply=ToolsReply,
    ),
    Operation(
        method="GET", path="/v1/tools/{tool}", handler=get_tool, summary="Show a tool.",
        rights=("read", "submit"), reply=ToolReply, also=(404,),
    ),
    Operation(
        method="GET", path="/v1/definitions", handler=list_definitions, rights=("read",),
        summary="List definitions of tools that wait to be confirmed.", reply=DefinitionsReply,
    ),
    Operation(
        method="POST", path="/v1/definitions/decision", handler=decide_definition, rights=("administer",),
        summary="Confirm or refuse the definition of a tool.", body=DefinitionBody, reply=DefinitionReply,
        also=(404, 409),
    ),
    Operation(
        method="GET", path="/v1/audit", handler=get_audit, summary="Check the audit chain.",
        rights=("read",), reply=AuditReply,
    ),
    Operation(
        method="GET", path="/v1/audit/export", handler=export_audit, summary="Download the audit table.",
        rights=("administer",), query=AuditQuery, media_type="application/x-ndjson",
    ),
)  # fmt: skip
"""Everything about the deployment."""
