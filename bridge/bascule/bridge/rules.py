"""The rule file as data: what an operator may write, checked key by key.

Unknown keys are errors, because a rule that is silently ignored is worse than none. The file comes from the
operator and is trusted once it is valid.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

from bascule.bridge.hosts import find_host

_Float = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Scalar = StrictBool | StrictInt | _Float | StrictStr | None
Number = StrictInt | _Float
Effect = Literal["allow", "ask", "deny"]
Layer = Literal["organisation", "project", "run"]
Move = Literal["approve", "edit", "reject", "respond", "terminate"]
Rung = Literal["args_in_run", "tool_in_run", "script"]
Words = Annotated[tuple[Annotated[StrictStr, Field(min_length=1)], ...], Field(strict=False)]

MAX_QUORUM: Final = 20
MAX_EXPIRY: Final = timedelta(days=366)
ALL_MOVES: Final[tuple[Move, ...]] = ("approve", "edit", "reject", "respond", "terminate")

_DURATION = re.compile(r"([1-9][0-9]{0,5})(s|m|h|d)")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def read_duration(value: object) -> timedelta:
    """Read ``90s``, ``15m``, ``24h`` or ``7d``.

    Raises:
        ValueError: it is something else, or too long.
    """
    found = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError("write a whole number with s, m, h or d, for example 24h; null is for ever")
    length = timedelta(**{_UNITS[found.group(2)]: int(found.group(1))})
    if length > MAX_EXPIRY:
        raise ValueError(f"at most {MAX_EXPIRY.days}d")
    return length


Duration = Annotated[timedelta, BeforeValidator(read_duration)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Condition(_Strict):
    """What one argument must be; all operators given must hold."""

    eq: Scalar = None
    ne: Scalar = None
    in_: Annotated[tuple[Scalar, ...] | None, Field(alias="in", strict=False)] = None
    not_in: Annotated[tuple[Scalar, ...] | None, Field(strict=False)] = None
    lt: Number | None = None
    lte: Number | None = None
    gt: Number | None = None
    gte: Number | None = None
    glob: StrictStr | None = None
    host_in: Words | None = None
    len_lte: Annotated[StrictInt, Field(ge=0)] | None = None
    exists: StrictBool | None = None

    @model_validator(mode="after")
    def _refuse_empty(self) -> Condition:
        if not self.model_fields_set:
            raise ValueError("a condition needs an operator, for example {lte: 50}")
        nulls = [name for name in self.model_fields_set - {"eq", "ne"} if getattr(self, name) is None]
        if nulls:
            raise ValueError(f"{', '.join(sorted(nulls))} must have a value")
        for host in self.host_in or ():
            if find_host(host.removeprefix("*.")) != host.removeprefix("*.").lower():
                raise ValueError(f"host_in: {host!r} is no host name; write api.example.com or *.example.com")
        return self


class RunLabels(_Strict):
    """What the labels gathered by the run so far must be: all of these, any of these, none of these."""

    all: Words = ()
    any: Words = ()
    none: Words = ()

    @model_validator(mode="after")
    def _refuse_empty(self) -> RunLabels:
        if not (self.all or self.any or self.none):
            raise ValueError("run_labels needs all, any or none, for example {all: [private, untrusted]}")
        return self


class UserMatch(_Strict):
    """For whom the run is made: a name, a group, or both. A run for nobody is never matched by allow."""

    name: StrictStr | None = None
    group: StrictStr | None = None

    @model_validator(mode="after")
    def _refuse_empty(self) -> UserMatch:
        if self.name is None and self.group is None:
            raise ValueError("user needs a name or a group, for example {group: support}")
        return self


class Match(_Strict):
    """Which calls a rule is about; everything given must hold.

    ``tool`` is an exact name or an anchored glob (``*`` any text, ``?`` one character), ``label`` a label of
    the tool; one of them is needed. ``args`` maps argument paths (``amount``, ``address.city``) to
    conditions.
    """

    tool: Annotated[StrictStr, Field(min_length=1)] | None = None
    label: Annotated[StrictStr, Field(min_length=1)] | None = None
    args: dict[str, Condition] = Field(default_factory=dict[str, Condition])
    run_labels: RunLabels | None = None
    user: UserMatch | None = None

    @model_validator(mode="after")
    def _needs_a_subject(self) -> Match:
        if self.tool is None and self.label is None:
            raise ValueError('match needs a tool or a label; for every tool write tool: "*"')
        return self


class Sum(_Strict):
    """A bound on the sum of one argument."""

    arg: Annotated[StrictStr, Field(min_length=1)]
    per: Literal["run", "day"]
    max: Annotated[Number, Field(ge=0)]


class BudgetSection(_Strict):
    """How much a rule lets through before it says ``on_exhausted``; counted when a tool is dispatched.

    ``key`` says who shares what is counted by day: all (``tool``, each tool by itself), each ``user``, or
    each ``run``. Days are UTC.
    """

    calls_per_run: Annotated[StrictInt, Field(ge=0)] | None = None
    calls_per_day: Annotated[StrictInt, Field(ge=0)] | None = None
    sum: Sum | None = None
    key: Literal["user", "tool", "run"] = "tool"
    on_exhausted: Literal["ask", "deny"] = "deny"

    @model_validator(mode="after")
    def _refuse_empty(self) -> BudgetSection:
        if self.calls_per_run is None and self.calls_per_day is None and self.sum is None:
            raise ValueError("a budget needs calls_per_run, calls_per_day or sum")
        return self


class Approvers(_Strict):
    """Who may decide: members of one of the groups, or one of the users."""

    groups: Words = ()
    users: Words = ()

    @model_validator(mode="after")
    def _refuse_empty(self) -> Approvers:
        if not (self.groups or self.users):
            raise ValueError("approvers needs groups or users; leave it out when anybody may decide")
        return self


class ApprovalSection(_Strict):
    """How people decide about the calls a rule asks about; docs/approvals.md explains each key."""

    approvers: Approvers | None = None
    quorum: Annotated[StrictInt, Field(ge=1, le=MAX_QUORUM)] = 1
    self_approval: StrictBool = False
    expires_in: Duration | None = timedelta(hours=24)
    on_expiry: Literal["deny", "terminate"] = "deny"
    may: Annotated[tuple[Move, ...], Field(strict=False, min_length=1)] = ("approve", "reject", "terminate")
    editable: Words = ()
    grantable: Annotated[tuple[Rung, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> ApprovalSection:
        if "edit" in self.may and not self.editable:
            raise ValueError("may has edit, but nothing is editable")
        if self.editable and "edit" not in self.may:
            raise ValueError("editable names arguments, but may does not have edit")
        if self.grantable and "approve" not in self.may:
            raise ValueError("grantable needs approve in may")
        return self


class Rule(_Strict):
    """One rule. Its place in the file never matters: deny beats ask beats allow."""

    id: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    effect: Effect
    match: Match
    budget: BudgetSection | None = None
    approval: ApprovalSection | None = None

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> Rule:
        if self.approval is not None and self.effect != "ask":
            raise ValueError("approval belongs to rules with effect ask")
        if self.budget is not None and self.effect == "deny":
            raise ValueError("a deny rule lets nothing through, so it has no budget")
        if self.budget is not None and self.effect == "ask" and self.budget.on_exhausted == "ask":
            raise ValueError("the rule asks anyway, so on_exhausted: ask changes nothing; write deny")
        return self


class RuleFile(_Strict):
    """A whole file.

    Attributes:
        layer: who wrote it; rules of all layers are evaluated together.
        groups: members of groups, for ``user: {group: ...}`` and ``approvers: {groups: ...}``.
    """

    version: Literal[1]
    layer: Layer | None = None
    groups: dict[str, Words] = Field(default_factory=dict[str, Words])
    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> RuleFile:
        seen: set[str] = set()
        for rule in self.rules:
            if rule.id in seen:
                raise ValueError(f"two rules have the id {rule.id!r}")
            seen.add(rule.id)
        return self
