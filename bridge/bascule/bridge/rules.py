"""The rule file as data: what an operator may write, checked key by key.

Unknown keys are errors; so are keys of the full grammar that this version does not enforce yet, because a
rule that is silently ignored is worse than none. The file comes from the operator and is trusted once it is
valid.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    model_validator,
)

_Float = Annotated[StrictFloat, Field(allow_inf_nan=False)]
Scalar = StrictBool | StrictInt | _Float | StrictStr | None
Number = StrictInt | _Float
Effect = Literal["allow", "ask", "deny"]

LATER_RULE_KEYS: Final = frozenset({"budget", "approval"})
LATER_MATCH_KEYS: Final = frozenset({"label", "run_labels", "user"})
LATER_OPERATORS: Final = frozenset({"host_in"})


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
    len_lte: Annotated[StrictInt, Field(ge=0)] | None = None
    exists: StrictBool | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_later(cls, data: object) -> object:
        return _without_later(data, LATER_OPERATORS, "operator")

    @model_validator(mode="after")
    def _refuse_empty(self) -> Condition:
        if not self.model_fields_set:
            raise ValueError("a condition needs an operator, for example {lte: 50}")
        nulls = [name for name in self.model_fields_set - {"eq", "ne"} if getattr(self, name) is None]
        if nulls:
            raise ValueError(f"{', '.join(sorted(nulls))} must have a value")
        return self


class Match(_Strict):
    """Which calls a rule is about. ``tool`` is an exact name or an anchored glob (``*`` any text, ``?`` one
    character); ``args`` maps argument paths (``amount``, ``address.city``) to conditions."""

    tool: Annotated[StrictStr, Field(min_length=1)]
    args: dict[str, Condition] = Field(default_factory=dict[str, Condition])

    @model_validator(mode="before")
    @classmethod
    def _refuse_later(cls, data: object) -> object:
        return _without_later(data, LATER_MATCH_KEYS, "match key")


class Rule(_Strict):
    """One rule. Its place in the file never matters: deny beats ask beats allow."""

    id: Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    effect: Effect
    match: Match

    @model_validator(mode="before")
    @classmethod
    def _refuse_later(cls, data: object) -> object:
        return _without_later(data, LATER_RULE_KEYS, "rule key")


class RuleFile(_Strict):
    """A whole file."""

    version: Literal[1]
    rules: Annotated[tuple[Rule, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _refuse_duplicates(self) -> RuleFile:
        seen: set[str] = set()
        for rule in self.rules:
            if rule.id in seen:
                raise ValueError(f"two rules have the id {rule.id!r}")
            seen.add(rule.id)
        return self


def _without_later(data: object, later: frozenset[str], what: str) -> object:
    if isinstance(data, dict):
        for key in data:  # pyright: ignore[reportUnknownVariableType]  # raw YAML
            if key in later:
                raise ValueError(f"{what} {key!r} is not supported yet; remove it, nothing would enforce it")
    return data  # pyright: ignore[reportUnknownVariableType]
