"""Bodies and replies of the API as models; the OpenAPI document is made from them.

Requests are untrusted: unknown keys are faults, texts and numbers are bounded. Texts in replies are data and
go out as they are; whoever shows them makes them safe to show.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from bascule.bridge.approval_card import DEFAULT_GRANTED_CALLS, MAX_GRANTED_CALLS, Grade
from bascule.bridge.decide import MAX_REASON_CHARS
from bascule.bridge.rules import Move
from bascule.bridge.store import AnswerKind, RunStatus
from bascule.tools.imported.review import ReviewState

MAX_SCRIPT_CHARS: Final = 1 << 20
MAX_WAIT_S: Final = 60
MAX_PAGE: Final = 500
MAX_BATCH: Final = 1000
MAX_DEFINITION_REASON_CHARS: Final = 2000

Id = Annotated[str, Field(min_length=1, max_length=200)]
Page = Annotated[int, Field(ge=1, le=MAX_PAGE)]
EffectsName = Literal["read", "idempotent", "once"]
ApprovalStateName = Literal[
    "pending", "approved", "rejected", "responded", "expired", "cancelled", "invalidated", "consumed"
]


class Body(BaseModel):
    """What a client sends."""

    model_config = ConfigDict(extra="forbid")


class Reply(BaseModel):
    """What we answer."""

    model_config = ConfigDict(extra="forbid")


# ------------------------------------------------------------ runs


class RunBody(Body):
    """A script to be run; on behalf of the token's user."""

    script: Annotated[str, Field(min_length=1, max_length=MAX_SCRIPT_CHARS)]
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] | None = None
    session: Id | None = None


class WaitQuery(Body):
    """How long an answer may take, in seconds; it comes as soon as the run is finished or suspended."""

    wait: Annotated[int, Field(ge=0, le=MAX_WAIT_S)] = 0


class RunsQuery(Body):
    """Which runs, the newest first."""

    status: RunStatus | None = None
    user: Id | None = None
    session: Id | None = None
    limit: Page = 50
    cursor: Id | None = None


class RunReply(Reply):
    """One run; ``result`` when it is finished (docs/cli.md)."""

    id: str
    status: RunStatus
    outcome: str | None
    reason: str
    user: str | None
    created_at: float
    updated_at: float
    wake_at: float | None
    session: str | None
    cancel_requested: bool
    script_sha256: str
    image: str
    waits: Annotated[list[str], Field(description="What ends its waiting.")]
    title: Annotated[str | None, Field(description="First line of its script; null when dropped.")] = None
    result: dict[str, Any] | None = None
    waiting: Annotated[list[str], Field(description="Ids of approvals that are pending.")] = Field(
        default_factory=list[str]
    )
    unknown: Annotated[list[UnknownReply], Field(description="Calls whose outcome is unknown.")] = Field(
        default_factory=list["UnknownReply"]
    )


class RunsReply(Reply):
    """A page of runs; ``cursor`` gives the next one."""

    runs: list[RunReply]
    cursor: str | None


class SessionReply(Reply):
    """A session and its runs, in their order."""

    id: str
    runs: list[RunReply] = Field(default_factory=list[RunReply])


class DoneReply(Reply):
    """Whether something was done; False when there was nothing left to do."""

    done: bool


# ------------------------------------------------------------ approvals


class VoiceReply(Reply):
    """One decision."""

    by: str
    channel: str
    verdict: Move
    reason: str
    at: float


class GrantReply(Reply):
    """A grant in force, in words, and how often it can still be used."""

    approval: str
    run_id: str
    rung: Grade
    text: str
    tools: list[str]
    count: int
    left: int
    by: str


class ApprovalReply(Reply):
    """One approval. ``arguments`` are exactly what runs; a decision names ``digest``."""

    id: str
    state: ApprovalStateName
    run_id: str
    seq: int
    batch: str
    tool: str
    description: str
    effects: str
    tool_digest: str
    arguments: dict[str, Any]
    arguments_json: Annotated[str, Field(description="The canonical JSON (RFC 8785) that is executed.")]
    original_json: Annotated[str | None, Field(description="What was asked before it was edited.")]
    digest: str
    rules: list[str]
    approvers: list[str]
    requester: str | None
    line: int
    source: str
    duplicate: bool
    evidence: list[str]
    note: str
    may: list[Move]
    editable: list[str]
    grantable: list[Grade]
    decisions: list[VoiceReply]
    created_at: float
    updated_at: float
    expires_at: float | None
    version: int
    card: Annotated[str, Field(description="All of it as the store keeps it, as JSON.")]


class ApprovalsQuery(Body):
    """Which approvals: pending ones soonest to expire first, others the newest first."""

    state: ApprovalStateName | Literal["decided"] = "pending"
    run: Id | None = None
    tool: Id | None = None
    user: Id | None = None
    rule: Id | None = None
    mine: Annotated[bool, Field(description="Only those that this token may decide.")] = False
    limit: Page = 50
    cursor: Id | None = None


class ApprovalsReply(Reply):
    """A page of approvals; ``cursor`` gives the next one."""

    approvals: list[ApprovalReply]
    cursor: str | None
    pending: Annotated[int, Field(description="How many are pending in all.")]


class DecisionBody(Body):
    """One decision about what was displayed under ``digest``."""

    verdict: Move
    digest: Annotated[str, Field(min_length=64, max_length=64, pattern="^[0-9a-f]{64}$")]
    reason: Annotated[str, Field(max_length=MAX_REASON_CHARS)] = ""
    arguments: Annotated[dict[str, Any] | None, Field(description="All arguments, for edit.")] = None
    response: Annotated[Any, Field(description="The result in the tool's place, for respond.")] = None
    grant: Grade = "once"
    grant_count: Annotated[int, Field(ge=1, le=MAX_GRANTED_CALLS)] = DEFAULT_GRANTED_CALLS


class BatchItemBody(DecisionBody):
    """One decision of a batch."""

    id: Id


class BatchBody(Body):
    """Decisions about calls that were issued together; each is written by itself."""

    decisions: Annotated[list[BatchItemBody], Field(min_length=1, max_length=MAX_BATCH)]


class BatchItemReply(Reply):
    """What became of one decision: the state after it, or why it was not written."""

    id: str
    state: ApprovalStateName | None
    code: str | None = None
    detail: str | None = None


class BatchReply(Reply):
    """One result per decision, in order."""

    results: list[BatchItemReply]


class UnknownReply(Reply):
    """A call that was started and whose end nobody saw."""

    run_id: str
    seq: int
    attempt: int
    tool: str
    line: int
    arguments_json: str
    started_at: float
    user: str | None


class UnknownsReply(Reply):
    """The queue of unknown outcomes."""

    unknown: list[UnknownReply]


class OutcomeBody(Body):
    """What became of one start of a call; ``value`` is its result when it happened."""

    answer: AnswerKind
    attempt: Annotated[int, Field(ge=1, description="As displayed.")]
    value: Any = None


# ------------------------------------------------------------ policy, tools, audit


class RuleReply(Reply):
    """One rule as it was written."""

    name: str
    effect: str
    rule: dict[str, Any]


class PolicyReply(Reply):
    """The rules of all layers."""

    digest: str
    rules: list[RuleReply]


class LintBody(Body):
    """A rule file to be checked against the tools; nothing is put in force."""

    text: Annotated[str, Field(max_length=1 << 20)]


class LintReply(Reply):
    """What is wrong with it; nothing when it can be used."""

    problems: list[str]


class ExplainBody(Body):
    """A call to hold every rule against."""

    tool: Id
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    user: Id | None = None
    groups: Annotated[list[Id], Field(max_length=100)] = Field(default_factory=list[str])
    run_labels: Annotated[list[Id], Field(max_length=100)] = Field(default_factory=list[str])


class ExplanationReply(Reply):
    """One rule held against it."""

    rule: str
    effect: str
    matches: bool
    why: str


class ExplainReply(Reply):
    """What policy says and why; ``problem`` when the call never reaches policy."""

    effect: str | None
    rules: list[str]
    explanations: list[ExplanationReply]
    charges: list[str]
    approvers: list[str]
    problem: str | None


class BudgetReply(Reply):
    """What is left today of one budget, for one tool and user."""

    rule: str
    tool: str
    user: str | None
    text: str
    used: float
    limit: float


class BudgetsQuery(Body):
    """Whose budgets."""

    user: Id | None = None


class BudgetsReply(Reply):
    """Budgets per day; those per run end with their run."""

    budgets: list[BudgetReply]


class GrantsReply(Reply):
    """Grants of runs that are not finished."""

    grants: list[GrantReply]


class ToolReply(Reply):
    """One tool as scripts may call it, and what the audit table says of it."""

    name: str
    summary: str
    description: str
    effects: str
    labels: list[str]
    timeout_s: float
    digest: str
    parameters: dict[str, Any]
    returns: dict[str, Any] | None
    stub: str
    stats: dict[str, Any]


class ToolsReply(Reply):
    """Everything a script may call."""

    tools: list[ToolReply]
    unknown: Annotated[list[dict[str, Any]], Field(description="Names that scripts called in vain.")]


class DefinitionReply(Reply):
    """A definition of a tool that is not in force; all but the decision is its server's word."""

    server: str
    tool: str
    reason: str
    note: str
    name: Annotated[str, Field(description="What scripts would call it; empty when it cannot be confirmed.")]
    digest: Annotated[str | None, Field(description="What a decision names; null: it cannot be confirmed.")]
    suggested: Annotated[EffectsName | None, Field(description="Effects that the server suggests.")]
    definition: dict[str, Any] | None
    before: Annotated[dict[str, Any] | None, Field(description="As it was confirmed, when it changed.")]
    before_effects: EffectsName | None
    state: Annotated[ReviewState, Field(description="Confirmed ones are in force from the next start on.")]
    by: str
    said: str
    effects: EffectsName | None


class DefinitionsReply(Reply):
    """Definitions that are not in force."""

    definitions: list[DefinitionReply]


class DefinitionBody(Body):
    """A decision about a definition that was displayed under ``digest``."""

    server: Annotated[str, Field(min_length=1, max_length=1000)]
    tool: Annotated[str, Field(min_length=1, max_length=1000)]
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    verdict: Literal["confirm", "refuse"]
    effects: Annotated[EffectsName | None, Field(description="Null: as before, once for a new one.")] = None
    reason: Annotated[str, Field(max_length=MAX_DEFINITION_REASON_CHARS)] = ""


class AuditReply(Reply):
    """The state of the audit chain."""

    entries: int
    last_at: float | None
    last_hash: str | None
    problems: list[str]


class AuditQuery(Body):
    """Only entries after this index."""

    after: Annotated[int, Field(ge=-1)] = -1


class MeReply(Reply):
    """Whose token this is and what it may do."""

    name: str
    groups: list[str]
    scope: str
    rights: list[str]


class ProblemReply(BaseModel):
    """An error (RFC 9457); ``code`` is stable, ``detail`` is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str


RunReply.model_rebuild()
