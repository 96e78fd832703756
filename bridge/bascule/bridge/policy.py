"""Policy: for each call allow, ask or deny, from rules and from the declared effects of the tool.

All rules of all layers are evaluated and the strictest matching one wins: deny over ask over allow. Where
none matches, a ``read`` tool is allowed and every other one asks. Rules are the operator's, effects those
of the registry; names and arguments come from an untrusted script.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from bascule.bridge.errors import PolicyError
from bascule.bridge.lint import lint_rules
from bascule.bridge.matching import Facts, User, explain_rule, is_about, rule_matches
from bascule.bridge.requirement import Requirement, combine
from bascule.bridge.result import JsonValue
from bascule.bridge.rule_problems import describe_problem
from bascule.bridge.rules import ApprovalSection, Effect, Layer, Rule, RuleFile
from bascule.bridge.spending import Charge, ReadCounter, find_exhausted, list_charges
from bascule.tools import AnyTool

_STRICTNESS: Final[Mapping[Effect, int]] = {"allow": 0, "ask": 1, "deny": 2}
MAX_FILE_BYTES: Final = 1 << 20
"""Largest policy file that is read."""

_NOBODY: Final = Facts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What policy says about one call.

    Attributes:
        rules: names of the rules that say so (``default:read``, ``default:effect`` when none does).
        requirement: what an approval needs; only with effect ``ask``.
        charges: what the call charges to the budgets of matching rules when its tool is started.
        exhausted: those that do not fit any more; they led to this verdict.
    """

    effect: Effect
    rules: tuple[str, ...]
    requirement: Requirement | None = None
    charges: tuple[Charge, ...] = ()
    exhausted: tuple[Charge, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One rule held against one call: whether it matches and why (not), in words for the operator."""

    rule: str
    effect: Effect
    matches: bool
    why: str


@dataclass(frozen=True, slots=True)
class _Named:
    """A rule under the name it has among the rules of all layers."""

    name: str
    rule: Rule


class Policy:
    """An immutable set of rules.

    Args:
        layer: who wrote them; rules of a layer are named ``layer/id``.
        groups: members of groups, by group.
    """

    def __init__(
        self,
        rules: Sequence[Rule] = (),
        *,
        layer: Layer | None = None,
        groups: Mapping[str, Sequence[str]] | None = None,
        where: str = "the policy",
    ) -> None:
        prefix = "" if layer is None else f"{layer}/"
        self._rules = tuple(_Named(f"{prefix}{rule.id}", rule) for rule in rules)
        self._groups = {group: frozenset(members) for group, members in (groups or {}).items()}
        self._where = where
        self._for_tool: dict[tuple[str, frozenset[str]], tuple[_Named, ...]] = {}

    @classmethod
    def default(cls) -> Policy:
        """Return the policy without rules: reads are allowed, everything else asks."""
        return cls()

    @classmethod
    def load(cls, *paths: str | Path) -> Policy:
        """Read YAML rule files, the layers of one policy.

        Raises:
            PolicyError: a file cannot be read or breaks the grammar; every finding is listed.
        """
        layers: list[Policy] = []
        for path in paths:
            try:
                with open(path, "rb") as file:
                    data = file.read(MAX_FILE_BYTES + 1)
            except OSError as error:
                raise PolicyError(str(path), [error.strerror or "cannot be read"]) from error
            layers.append(cls.parse(data, where=str(path)))
        return layers[0] if len(layers) == 1 else cls.layered(*layers)

    @classmethod
    def parse(cls, text: bytes | str, *, where: str = "the policy") -> Policy:
        """Make a policy from YAML text.

        Raises:
            PolicyError: as `load`.
        """
        from bascule.bridge.plain_yaml import parse_yaml  # only those who have a rule file pay for the import

        if len(text) > MAX_FILE_BYTES:
            raise PolicyError(where, [f"it is larger than {MAX_FILE_BYTES} bytes"])
        data: object = None
        try:
            data = parse_yaml(text)
            file = RuleFile.model_validate(data)
        except ValidationError as error:
            raise PolicyError(where, [describe_problem(each, data) for each in error.errors()]) from error
        except ValueError as error:
            raise PolicyError(where, [f"not valid YAML: {error}"]) from error
        return cls(file.rules, layer=file.layer, groups=file.groups, where=where)

    @classmethod
    def layered(cls, *policies: Policy) -> Policy:
        """Put layers together; all their rules are evaluated and their order never matters.

        Raises:
            PolicyError: two rules have the same name, or a group is defined twice.
        """
        whole = cls(where=", ".join(policy._where for policy in policies))
        rules = [named for policy in policies for named in policy._rules]
        names = [named.name for named in rules]
        problems = [
            f"two rules have the name {name!r}" for name in sorted(set(names)) if names.count(name) > 1
        ]
        for policy in policies:
            twice = sorted(whole._groups.keys() & policy._groups.keys())
            problems += [f"group {group!r} is defined in two layers" for group in twice]
            whole._groups |= policy._groups
        if problems:
            raise PolicyError(whole._where, problems)
        whole._rules = tuple(rules)
        return whole

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(named.rule for named in self._rules)

    @property
    def named_rules(self) -> tuple[tuple[str, Rule], ...]:
        """The rules with the names they have among those of all layers."""
        return tuple((named.name, named.rule) for named in self._rules)

    @property
    def digest(self) -> str:
        """SHA-256 in hex of all rules and groups, whatever their order."""
        rules = sorted(f"{named.name} {named.rule.model_dump_json()}" for named in self._rules)
        groups = sorted(f"{group} {sorted(members)}" for group, members in self._groups.items())
        return hashlib.sha256("\n".join([*rules, *groups]).encode()).hexdigest()

    def check(self, tools: Iterable[AnyTool]) -> None:
        """Refuse rules that can never match these tools.

        Raises:
            PolicyError: unknown tool, label or argument, conditions that contradict each other or the types
                of the tool, an allow that a deny always beats, or a misspelt group.
        """
        problems = lint_rules(
            [(named.name, named.rule) for named in self._rules], tuple(tools), self._groups.keys()
        )
        if problems:
            raise PolicyError(self._where, problems)

    def identify(self, user: User | None) -> User | None:
        """Return somebody with the groups this policy puts them into."""
        if user is None:
            return None
        own = {group for group, members in self._groups.items() if user.name in members}
        return replace(user, groups=user.groups | own)

    def speaks_of(self, tool: AnyTool) -> bool:
        """Tell whether any rule is about a tool; without one its effects alone decide."""
        return bool(self._candidates(tool))

    def decide(
        self, tool: AnyTool, arguments: Mapping[str, JsonValue], facts: Facts = _NOBODY, *,
        read: ReadCounter | None = None,
    ) -> Verdict:  # fmt: skip
        """Decide about a call of ``tool`` with these arguments, decoded from their canonical form.

        Args:
            read: how much of a budget is used; without it nothing is exhausted.
        """
        candidates = self._candidates(tool)
        matching = [named for named in candidates if rule_matches(named.rule, arguments, facts)]
        if not matching:
            return _DEFAULT_READ if tool.effects == "read" else _DEFAULT_EFFECT
        charges = tuple(
            charge
            for named in matching
            if named.rule.budget is not None
            for charge in list_charges(named.name, named.rule.budget, tool.name, arguments, facts)
        )
        exhausted = find_exhausted(charges, read) if read is not None and charges else ()
        effects: list[tuple[str, Effect, ApprovalSection | None]] = [
            (named.name, named.rule.effect, named.rule.approval) for named in matching
        ]
        for charge in exhausted:
            effects.append((f"{charge.rule}#budget", charge.on_exhausted, None))
        effect: Effect = max((each[1] for each in effects), key=lambda own: _STRICTNESS[own])
        deciding = {name: section for name, own, section in effects if own == effect}
        return Verdict(
            effect=effect,
            rules=tuple(deciding),
            requirement=combine(tuple(deciding.items())) if effect == "ask" else None,
            charges=charges,
            exhausted=exhausted,
        )

    def explain(
        self, tool: AnyTool, arguments: Mapping[str, JsonValue], facts: Facts = _NOBODY
    ) -> tuple[Explanation, ...]:
        """Hold every rule, and last the default, against one call."""
        found = [
            Explanation(rule=named.name, effect=named.rule.effect, matches=matches, why=why)
            for named in self._rules
            for matches, why in [explain_rule(named.rule, tool, arguments, facts)]
        ]
        verdict = _DEFAULT_READ if tool.effects == "read" else _DEFAULT_EFFECT
        applies = not any(explanation.matches for explanation in found)
        why = f"the tool's effects are {tool.effects!r}" if applies else "a rule matches"
        return (*found, Explanation(rule=verdict.rules[0], effect=verdict.effect, matches=applies, why=why))

    def _candidates(self, tool: AnyTool) -> tuple[_Named, ...]:
        key = (tool.name, tool.labels)
        candidates = self._for_tool.get(key)
        if candidates is None:
            candidates = tuple(named for named in self._rules if is_about(named.rule, tool))
            self._for_tool[key] = candidates
        return candidates


_DEFAULT_READ: Final = Verdict(effect="allow", rules=("default:read",))
_DEFAULT_EFFECT: Final = Verdict(
    effect="ask", rules=("default:effect",), requirement=combine((("default:effect", None),))
)
