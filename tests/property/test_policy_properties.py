"""Policy as a whole: nothing is allowed that nothing names, denies only take away, order is nothing."""

from __future__ import annotations

import itertools
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from bascule.bridge.conditions import find_argument, holds
from bascule.bridge.matching import Facts, User
from bascule.bridge.policy import Policy
from bascule.bridge.rules import Condition, Rule
from bascule.tools import AnyTool, tool

STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}


def _make(name: str, effects: Any, labels: set[str]) -> AnyTool:
    def function(amount: Any = 0, place: Any = "") -> None:
        """Do."""

    return tool(name=name, effects=effects, labels=labels)(function)


TOOLS = (
    _make("bank.pay", "once", {"external"}),
    _make("bank.read", "read", {"private"}),
    _make("mail", "idempotent", set()),
)

scalars = st.sampled_from([None, True, False, 0, 1, 50, 50.5, -3, "EUR", "50", "", "api.example.com"])
values = scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from("ab"), scalars, max_size=2)
arguments = st.dictionaries(st.sampled_from(["amount", "place"]), values)
numbers = st.sampled_from([0, 1, 50, 50.5, -3])
conditions = st.one_of(
    st.fixed_dictionaries({"eq": scalars}),
    st.fixed_dictionaries({"ne": scalars}),
    st.fixed_dictionaries({"in": st.lists(scalars, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"not_in": st.lists(scalars, min_size=1, max_size=3)}),
    st.sampled_from(["lt", "lte", "gt", "gte"]).flatmap(lambda name: st.fixed_dictionaries({name: numbers})),
    st.fixed_dictionaries({"glob": st.sampled_from(["*", "E*", "?UR", "EUR", ""])}),
    st.fixed_dictionaries({"host_in": st.just(["api.example.com"])}),
    st.fixed_dictionaries({"len_lte": st.integers(0, 3)}),
    st.fixed_dictionaries({"exists": st.booleans()}),
)
labels = st.lists(st.sampled_from(["private", "external", "untrusted"]), max_size=2)
matches = st.fixed_dictionaries(
    {},
    optional={
        "args": st.dictionaries(st.sampled_from(["amount", "place", "place.a"]), conditions, max_size=2),
        "run_labels": st.sampled_from([{"all": ["private"]}, {"any": ["untrusted"]}, {"none": ["external"]}]),
        "user": st.sampled_from([{"name": "ada"}, {"group": "ops"}]),
    },
).flatmap(
    lambda rest: st.sampled_from(
        [{"tool": "bank.pay"}, {"tool": "bank.*"}, {"tool": "*"}, {"label": "private"}, {"tool": "mail"}]
    ).map(lambda subject: {**rest, **subject})
)
budgets = st.none() | st.fixed_dictionaries(
    {"calls_per_run": st.integers(0, 2), "on_exhausted": st.just("deny")}
)


@st.composite
def rule_lists(draw: st.DrawFn) -> list[Rule]:
    found: list[Rule] = []
    for index in range(draw(st.integers(0, 5))):
        effect = draw(st.sampled_from(["allow", "ask", "deny"]))
        budget = None if effect == "deny" else draw(budgets)
        found.append(
            Rule.model_validate(
                {"id": f"r{index}", "effect": effect, "match": draw(matches), "budget": budget}
            )
        )
    return found


facts = st.builds(
    Facts,
    user=st.sampled_from([None, User(name="ada"), User(name="bob", groups=frozenset({"ops"}))]),
    labels=labels.map(frozenset),
)
tools = st.sampled_from(TOOLS)


@given(rule_lists(), tools, arguments, facts)
def test_nothing_is_allowed_that_no_rule_and_no_default_names(
    rules: list[Rule], made: AnyTool, args: dict[str, Any], given_facts: Facts
) -> None:
    policy = Policy(rules)
    verdict = policy.decide(made, args, given_facts, read=lambda _: 0)
    if verdict.effect != "allow":
        return
    if verdict.rules == ("default:read",):
        assert made.effects == "read"
        return
    matching = {each.rule for each in policy.explain(made, args, given_facts) if each.matches}
    allowing = {rule.id for rule in rules if rule.effect == "allow"}
    assert verdict.rules
    assert set(verdict.rules) <= matching & allowing
    assert matching <= allowing


@given(rule_lists(), matches, tools, arguments, facts)
def test_adding_a_deny_never_allows_more(
    rules: list[Rule], match: dict[str, Any], made: AnyTool, args: dict[str, Any], given_facts: Facts
) -> None:
    deny = Rule.model_validate({"id": "extra", "effect": "deny", "match": match})
    before = Policy(rules).decide(made, args, given_facts, read=lambda _: 0)
    after = Policy([*rules, deny]).decide(made, args, given_facts, read=lambda _: 0)
    assert STRICTNESS[after.effect] >= STRICTNESS[before.effect]
    if after.effect != "deny":
        assert after == before


@given(rule_lists(), tools, arguments, facts, st.randoms(use_true_random=False))
def test_the_order_of_rules_and_layers_never_matters(
    rules: list[Rule], made: AnyTool, args: dict[str, Any], given_facts: Facts, random: Any
) -> None:
    shuffled = list(rules)
    random.shuffle(shuffled)
    cut = random.randint(0, len(rules))
    expected = Policy(rules).decide(made, args, given_facts, read=lambda _: 0)
    others = [Policy(shuffled), Policy.layered(Policy(shuffled[:cut]), Policy(shuffled[cut:]))]
    for other in others:
        found = other.decide(made, args, given_facts, read=lambda _: 0)
        assert found.effect == expected.effect
        assert set(found.rules) == set(expected.rules)
        assert set(found.charges) == set(expected.charges)
        assert (found.requirement is None) == (expected.requirement is None)
        if found.requirement is not None and expected.requirement is not None:
            assert set(found.requirement.demands) == set(expected.requirement.demands)
            assert set(found.requirement.may) == set(expected.requirement.may)


WRONG: Final[dict[str, list[Any]]] = {
    "lte": [None, "many", True, [], {}],
    "glob": [None, 1, True, [], {}],
    "host_in": [None, 1, "a b", "x@y", []],
    "len_lte": [None, 1, True],
    "eq": [None, 1, True, [], {}],
    "in": [None, 1, True, [], {}],
    "not_in": [None, 1, True, [], {}],
    "ne": [None, 1, True, [], {}],
}
OPERANDS: Final[dict[str, Any]] = {
    "lte": 5,
    "glob": "*",
    "host_in": ["x.example"],
    "len_lte": 5,
    "eq": "EUR",
    "in": ["EUR"],
    "not_in": ["EUR"],
    "ne": "EUR",
}


def test_missing_and_wrong_types_match_deny_and_ask_and_never_allow() -> None:
    for name, effect in itertools.product(OPERANDS, ("allow", "ask", "deny")):
        match = {"tool": "bank.read", "args": {"place": {name: OPERANDS[name]}}}
        policy = Policy([Rule.model_validate({"id": "r", "effect": effect, "match": match})])
        cases: list[dict[str, Any]] = [{}, *({"place": value} for value in WRONG[name])]
        for args in cases:
            verdict = policy.decide(TOOLS[1], args)
            assert verdict.rules == (("default:read",) if effect == "allow" else ("r",)), (name, args)


@given(conditions, arguments)
def test_a_condition_has_one_of_three_answers_for_any_value(
    condition: dict[str, Any], args: dict[str, Any]
) -> None:
    assert holds(Condition.model_validate(condition), find_argument(args, "place")) in (True, False, None)
