"""Policy: for each call allow, ask or deny, from rules and from the declared effects of the tool.

All rules are evaluated and the strictest matching one wins: deny over ask over allow. Where none matches, a
``read`` tool is allowed and every other one asks. Rules are the operator's, effects those of the registry;
names and arguments come from an untrusted script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from bascule.bridge.conditions import find_argument, glob_matches, holds
from bascule.bridge.errors import PolicyError
from bascule.bridge.lint import lint_rules
from bascule.bridge.result import JsonValue
from bascule.bridge.rules import Effect, Rule, RuleFile
from bascule.tools import AnyTool

_STRICTNESS: Final[Mapping[Effect, int]] = {"allow": 0, "ask": 1, "deny": 2}
MAX_FILE_BYTES: Final = 1 << 20
"""Largest policy file that is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What policy says about one call, and which rules say so (``default:read`` when none does)."""

    effect: Effect
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One rule held against one call: whether it matches and why (not), in words for the operator."""

    rule: str
    effect: Effect
    matches: bool
    why: str


class Policy:
    """An immutable set of rules."""

    def __init__(self, rules: Sequence[Rule] = (), *, where: str = "the policy") -> None:
        self._rules = tuple(rules)
        self._where = where
        self._for_tool: dict[str, tuple[Rule, ...]] = {}

    @classmethod
    def default(cls) -> Policy:
        """Return the policy without rules: reads are allowed, everything else asks."""
        return cls()

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """Read a YAML rule file.

        Raises:
            PolicyError: the file cannot be read or breaks the grammar; every finding is listed.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise PolicyError(str(path), [error.strerror or "cannot be read"]) from error
        return cls.parse(data, where=str(path))

    @classmethod
    def parse(cls, text: bytes | str, *, where: str = "the policy") -> Policy:
        """Make a policy from YAML text.

        Raises:
            PolicyError: as `load`.
        """
        from bascule.bridge.plain_yaml import parse_yaml  # only those who have a rule file pay for YAML

        if len(text) > MAX_FILE_BYTES:
            raise PolicyError(where, [f"it is larger than {MAX_FILE_BYTES} bytes"])
        try:
            data = parse_yaml(text)
        except ValueError as error:
            raise PolicyError(where, [f"not valid YAML: {error}"]) from error
        try:
            file = RuleFile.model_validate(data)
        except ValidationError as error:
            raise PolicyError(where, [_describe(problem) for problem in error.errors()]) from error
        return cls(file.rules, where=where)

    @property
    def rules(self) -> tuple[Rule, ...]:
        return self._rules

    def check(self, tools: Iterable[AnyTool]) -> None:
        """Refuse rules that can never match these tools.

        Raises:
            PolicyError: unknown tool, unknown argument path, or an allow that a deny always beats.
        """
        problems = lint_rules(self._rules, tuple(tools))
        if problems:
            raise PolicyError(self._where, problems)

    def decide(self, tool: AnyTool, arguments: Mapping[str, JsonValue]) -> Verdict:
        """Decide about a call of ``tool`` with these arguments, decoded from their canonical form."""
        candidates = self._for_tool.get(tool.name)
        if candidates is None:
            candidates = tuple(rule for rule in self._rules if glob_matches(rule.match.tool, tool.name))
            self._for_tool[tool.name] = candidates
        if not candidates:
            return _DEFAULT_READ if tool.effects == "read" else _DEFAULT_EFFECT
        matching = [rule for rule in candidates if _matches(rule, arguments)]
        if not matching:
            return _DEFAULT_READ if tool.effects == "read" else _DEFAULT_EFFECT
        effect = max(matching, key=lambda rule: _STRICTNESS[rule.effect]).effect
        return Verdict(effect=effect, rules=tuple(rule.id for rule in matching if rule.effect == effect))

    def explain(self, tool: AnyTool, arguments: Mapping[str, JsonValue]) -> tuple[Explanation, ...]:
        """Hold every rule, and last the default, against one call."""
        found = [
            Explanation(rule=rule.id, effect=rule.effect, matches=matches, why=why)
            for rule in self._rules
            for matches, why in [_explain_rule(rule, tool, arguments)]
        ]
        verdict = _DEFAULT_READ if tool.effects == "read" else _DEFAULT_EFFECT
        applies = not any(explanation.matches for explanation in found)
        why = f"the tool's effects are {tool.effects!r}" if applies else "a rule matches"
        return (*found, Explanation(rule=verdict.rules[0], effect=verdict.effect, matches=applies, why=why))


_DEFAULT_READ: Final = Verdict(effect="allow", rules=("default:read",))
_DEFAULT_EFFECT: Final = Verdict(effect="ask", rules=("default:effect",))


def _matches(rule: Rule, arguments: Mapping[str, JsonValue]) -> bool:
    answers = [
        holds(condition, find_argument(arguments, path)) for path, condition in rule.match.args.items()
    ]
    if False in answers:
        return False
    return None not in answers or rule.effect != "allow"


def _explain_rule(rule: Rule, tool: AnyTool, arguments: Mapping[str, JsonValue]) -> tuple[bool, str]:
    if not glob_matches(rule.match.tool, tool.name):
        return False, f"it is about {rule.match.tool}"
    reasons: list[str] = []
    for path, condition in rule.match.args.items():
        answer = holds(condition, find_argument(arguments, path))
        said = {True: "holds", False: "does not hold", None: "cannot be told: missing or of another type"}[
            answer
        ]
        wanted = condition.model_dump(include=condition.model_fields_set, by_alias=True)
        reasons.append(f"{path} {wanted}: {said}")
    return _matches(rule, arguments), "; ".join(reasons) or "it has no conditions"


def _describe(problem: ErrorDetails) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    text = str(problem["msg"]).removeprefix("Value error, ")
    return f"{where}: {text}" if where else text
