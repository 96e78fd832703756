"""Rules: what they match, which wins, and what a file may not say."""

from __future__ import annotations

import re
import time
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from bascule.bridge import Policy, PolicyError
from bascule.bridge.conditions import glob_matches
from bascule.tools import AnyTool, tool


class Address(BaseModel):
    """Where somebody lives."""

    city: str
    zip: str | None = None


@tool(effects="once", name="billing.refund")
def refund(amount: float, currency: str = "EUR", note: str | None = None, to: Address | None = None) -> None:
    """Refund."""


@tool(effects="read")
def look(what: str) -> None:
    """Look."""


TOOLS: list[AnyTool] = [refund, look]


def decide(rules: str, **arguments: Any) -> str:
    policy = Policy.parse(f"version: 1\nrules:\n{rules}")
    return policy.decide(refund, refund.validate(arguments).plain).effect


def rule(effect: str, args: str = "{}", tool: str = "billing.refund", name: str = "r") -> str:
    return f"- {{id: {name}, effect: {effect}, match: {{tool: '{tool}', args: {args}}}}}\n"


def test_without_rules_reads_are_allowed_and_everything_else_asks() -> None:
    policy = Policy.default()
    assert policy.decide(look, {"what": "x"}).effect == "allow"
    assert policy.decide(refund, {"amount": 1}).effect == "ask"
    assert policy.decide(refund, {"amount": 1}).rules == ("default:effect",)


@pytest.mark.parametrize(
    ("condition", "arguments", "matches"),
    [
        ("{amount: {lte: 50}}", {"amount": 50}, True),
        ("{amount: {lt: 50}}", {"amount": 50}, False),
        ("{amount: {gte: 50}}", {"amount": 50.0}, True),
        ("{amount: {gt: 49.99}}", {"amount": 50}, True),
        ("{amount: {gt: 1, lt: 5}}", {"amount": 7}, False),
        ("{currency: {eq: EUR}}", {"amount": 1}, True),
        ("{currency: {ne: EUR}}", {"amount": 1}, False),
        ("{currency: {in: [EUR, USD]}}", {"amount": 1, "currency": "USD"}, True),
        ("{currency: {not_in: [EUR, USD]}}", {"amount": 1, "currency": "GBP"}, True),
        ("{currency: {glob: 'E*'}}", {"amount": 1}, True),
        ("{currency: {glob: 'E'}}", {"amount": 1}, False),
        ("{currency: {glob: 'E?R'}}", {"amount": 1}, True),
        ("{currency: {len_lte: 3}}", {"amount": 1}, True),
        ("{currency: {len_lte: 2}}", {"amount": 1}, False),
        ("{note: {exists: true}}", {"amount": 1}, False),
        ("{note: {exists: false}}", {"amount": 1}, True),
        ("{note: {eq: null}}", {"amount": 1}, True),
        ("{to.city: {eq: Paris}}", {"amount": 1, "to": {"city": "Paris"}}, True),
        ("{to.city: {eq: Paris}}", {"amount": 1, "to": {"city": "Rome"}}, False),
        ("{amount: {lte: 50}, currency: {eq: EUR}}", {"amount": 1, "currency": "USD"}, False),
    ],
)
def test_a_condition_that_can_be_told_matches_alike_for_every_effect(
    condition: str, arguments: dict[str, Any], matches: bool
) -> None:
    assert (decide(rule("allow", condition), **arguments) == "allow") is matches
    assert (decide(rule("deny", condition), **arguments) == "deny") is matches


@pytest.mark.parametrize(
    "condition",
    [
        "{to.city: {eq: Paris}}",
        "{to.city: {ne: Paris}}",
        "{to.city: {not_in: [Paris]}}",
        "{note: {glob: '*'}}",
        "{note: {eq: x}}",
        "{note: {len_lte: 5}}",
        "{amount: {glob: '*'}}",
        "{amount: {eq: 'one'}}",
        "{currency: {lte: 50}}",
        "{amount: {len_lte: 5}}",
    ],
)
def test_a_missing_or_wrong_typed_value_matches_deny_and_ask_and_never_allow(condition: str) -> None:
    assert decide(rule("deny", condition), amount=1) == "deny"
    assert decide(rule("ask", condition) + rule("allow", name="a"), amount=1) == "ask"
    assert decide(rule("allow", condition), amount=1) == "ask"


def test_a_decimal_in_text_compares_as_a_number() -> None:
    assert decide(rule("allow", "{note: {lte: 50}}"), amount=1, note="49.99") == "allow"
    assert decide(rule("allow", "{note: {lte: 50}}"), amount=1, note="50.01") == "ask"
    assert decide(rule("allow", "{note: {lte: 50}}"), amount=1, note="1e1") == "ask"


def test_deny_beats_ask_beats_allow_in_every_order() -> None:
    rules = [rule("allow", name="a"), rule("ask", name="b"), rule("deny", name="c", args="{amount: {gt: 5}}")]
    for order in permutations(rules):
        assert decide("".join(order), amount=9) == "deny"
        assert decide("".join(order), amount=1) == "ask"


def test_a_glob_of_tools_is_anchored_and_dots_are_nothing_special() -> None:
    assert decide(rule("allow", tool="billing.*"), amount=1) == "allow"
    assert decide(rule("allow", tool="billing"), amount=1) == "ask"
    assert decide(rule("allow", tool="*.refund"), amount=1) == "allow"
    assert decide(rule("allow", tool="refund"), amount=1) == "ask"
    assert decide(rule("allow", tool="[bB]illing.refund"), amount=1) == "ask"


def test_explain_names_every_rule_and_why() -> None:
    policy = Policy.parse(
        "version: 1\nrules:\n"
        + rule("allow", "{amount: {lte: 5}}", name="small")
        + rule("ask", "{note: {eq: x}}", name="noted")
        + rule("deny", tool="look", name="blind")
    )
    told = policy.explain(refund, refund.validate({"amount": 9}).plain)
    assert [(each.rule, each.matches) for each in told] == [
        ("small", False),
        ("noted", True),
        ("blind", False),
        ("default:effect", False),
    ]
    assert told[0].why == "amount {'lte': 5}: does not hold"
    assert "cannot be told" in told[1].why
    assert told[2].why == "it is about look"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("version: 2", "version"),
        ("version: 1\nrule: []", "rule"),
        ("version: 1\nrules: [{id: a, effect: maybe, match: {tool: look}}]", "rules.0.effect"),
        ("version: 1\nrules: [{id: a, effect: allow, match: {tool: look, arg: {}}}]", "match.arg"),
        ("version: 1\nrules: [{id: a, effect: allow, match: {tool: look, args: {x: {regex: a}}}}]", "regex"),
        ("version: 1\nrules: [{id: a, effect: allow, match: {tool: look, args: {x: {lte: '5'}}}}]", "lte"),
        (
            "version: 1\nrules: [{id: a, effect: allow, match: {tool: look, args: {x: {}}}}]",
            "needs an operator",
        ),
        (
            "version: 1\nrules: [{id: a, effect: allow, match: {tool: look, args: {x: {lte: null}}}}]",
            "lte must",
        ),
        ("version: 1\nrules: [{id: a b, effect: allow, match: {tool: look}}]", "rules.0.id"),
        (
            "version: 1\nrules: [{id: a, effect: ask, match: {tool: look}}, "
            "{id: a, effect: deny, match: {tool: look}}]",
            "two rules have the id 'a'",
        ),
        ("- a list", "valid dictionary"),
        (
            "version: 1\nrules: [{id: a, effect: allow, match: {tol: look}}]",
            "match.tol (rule 'a'): unknown key; did you mean tool? it may have tool, label, args",
        ),
        (
            "version: 1\nrules: [{id: a, effect: allow, match: {tool: look, args: {user: {gtt: 1}}}}]",
            "did you mean gt? it may have eq, ne, in, not_in",
        ),
        ("version: 1\nrule: []", "rule: unknown key; did you mean rules?"),
        ("version: 1\nrules: [7, {idd: x}]", "rules.1.idd: unknown key; did you mean id?"),
        ("a: [", "not valid YAML: line 1, column 5: expected"),
        ("!!python/object/apply:os.system [id]", "not valid YAML"),
    ],
)
def test_a_file_that_says_what_it_may_not_is_refused_with_the_place(text: str, problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(text, where="policy.yaml")
    assert problem in str(caught.value)
    assert str(caught.value).startswith("policy.yaml cannot be used:")


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (
            rule("ask", tool="billing.refnd"),
            "no tool matches 'billing.refnd' (did you mean 'billing.refund'?)",
        ),
        (rule("ask", "{amont: {lte: 5}}"), "no tool it is about has an argument 'amont'"),
        (rule("ask", "{to.street: {eq: x}}"), "no tool it is about has an argument 'to.street'"),
        (
            rule("allow") + rule("deny", tool="*", name="all"),
            "it never lets anything through: all always denies that",
        ),
    ],
)
def test_a_rule_that_can_never_match_is_an_error(rules: str, problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        Policy.parse(f"version: 1\nrules:\n{rules}").check(TOOLS)
    assert problem in str(caught.value)


def test_rules_about_nested_and_optional_arguments_pass_the_lint() -> None:
    rules = rule("ask", "{to.city: {eq: x}, to.zip: {exists: true}, note: {glob: '*x*'}}")
    Policy.parse(f"version: 1\nrules:\n{rules}").check(TOOLS)


def test_a_file_that_is_not_there_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="nowhere"):
        Policy.load(tmp_path / "nowhere.yaml")
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nrules:\n" + rule("deny"))
    assert Policy.load(file).rules[0].effect == "deny"


_RULE = "{id: a, effect: deny, match: {tool: echo}}"


@pytest.mark.parametrize(
    "text",
    [
        f"version: 1\nrules: [{_RULE}]\nrules: []\n",
        "version: 1\nrules: [{id: a, effect: deny, effect: allow, match: {tool: echo}}]\n",
        "version: 1\nrules: [{id: a, effect: allow, match: {tool: t, args: {a: {lte: 5}, a: {lte: 9}}}}]\n",
        f"version: 1\nrules: [&x {_RULE}, *x]\n",
        "version: 1\nrules: [{id: a, effect: deny, match: {tool: t, args: {a: {lte: .nan}}}}]\n",
        "version: 1\nrules: [{id: a, effect: deny, match: {tool: t, args: {a: {eq: .inf}}}}]\n",
        "version: !!float ''\n",
        "version: !!timestamp x\n",
        "version: !!bool x\n",
        "version: !!map [1]\n",
    ],
)
def test_what_yaml_would_let_slip_is_refused(text: str) -> None:
    with pytest.raises(PolicyError):
        Policy.parse(text)


@pytest.mark.parametrize(
    "pattern", ["*aaaaab*", "*@example.com", "*a?a?b", "*" + "a" * 60 + "b*", "*a*a*a*a*b"]
)
def test_a_glob_takes_no_time_for_a_hostile_text(pattern: str) -> None:
    begun = time.process_time()
    assert not glob_matches(pattern, "a" * 1_000_000)
    assert time.process_time() - begun < 2.0


@given(st.text("ab*?", max_size=8), st.text("ab\n", max_size=10))
def test_a_glob_means_what_the_slow_way_says(pattern: str, text: str) -> None:
    slow = "".join({"*": ".*", "?": "."}.get(char, char) for char in pattern)
    assert glob_matches(pattern, text) == (re.fullmatch(slow, text, re.DOTALL) is not None)
