"""Rules as data: what a file may say, what it decides, and what is refused when it is loaded."""

from __future__ import annotations

from typing import Any

import pytest

from bascule.bridge.errors import PolicyError
from bascule.bridge.matching import Facts, User
from bascule.bridge.plain_yaml import parse_yaml
from bascule.bridge.policy import Policy
from bascule.tools import AnyTool, tool


@tool(effects="once", name="billing.refund")
def refund(customer: str, amount: float, currency: str = "EUR") -> None:
    """Refund."""


@tool(effects="once", name="mail.send", labels={"external"})
def send(to: str, subject: str, body: str, url: str = "") -> None:
    """Send."""


@tool(effects="read", name="crm.find", labels={"private", "untrusted"})
def find(name: str) -> str:
    """Find."""
    return name


TOOLS: tuple[AnyTool, ...] = (refund, send, find)
SUPPORT = User(name="ada", groups=frozenset({"support"}))

EXAMPLE = """
version: 1
groups: {ops: [olga, otto]}
rules:
  - id: small-refund
    effect: allow
    match: {tool: billing.refund, args: {amount: {lte: 50}, currency: {eq: EUR}}, user: {group: support}}
    budget: {calls_per_run: 3, sum: {arg: amount, per: day, max: 500}, key: user, on_exhausted: ask}
  - id: no-exfiltration
    effect: deny
    match: {label: external, run_labels: {all: [private, untrusted]}}
  - id: mail
    effect: ask
    match: {tool: mail.send}
    approval:
      approvers: {groups: [ops]}
      quorum: 2
      expires_in: 24h
      on_expiry: terminate
      may: [approve, edit, reject, respond]
      editable: [subject, body]
      grantable: [args_in_run, tool_in_run]
"""


def rule(text: str) -> Policy:
    return Policy.parse(f"version: 1\nrules: [{text}]")


def effect(policy: Policy, made: AnyTool, facts: Facts | None = None, /, **args: Any) -> str:
    return policy.decide(made, args, facts or Facts()).effect


def test_the_example_of_the_documentation_is_valid_and_fits_its_tools() -> None:
    Policy.parse(EXAMPLE).check(TOOLS)


def test_all_conditions_of_a_rule_must_hold() -> None:
    policy = Policy.parse(EXAMPLE)
    facts = Facts(user=SUPPORT)
    assert effect(policy, refund, facts, amount=50, currency="EUR") == "allow"
    assert effect(policy, refund, facts, amount=50.01, currency="EUR") == "ask"
    assert effect(policy, refund, facts, amount=50, currency="USD") == "ask"
    assert effect(policy, refund, Facts(user=User(name="eve")), amount=50, currency="EUR") == "ask"


def test_a_run_for_nobody_is_not_allowed_what_a_group_is_allowed() -> None:
    assert effect(Policy.parse(EXAMPLE), refund, Facts(), amount=1, currency="EUR") == "ask"
    deny = rule("{id: a, effect: deny, match: {tool: crm.find, user: {group: interns}}}")
    assert effect(deny, find, Facts(), name="x") == "deny"
    assert effect(deny, find, Facts(user=SUPPORT), name="x") == "allow"


def test_labels_gathered_by_the_run_decide_about_sinks() -> None:
    policy = Policy.parse(EXAMPLE)
    assert effect(policy, send, Facts(labels=frozenset({"private"})), to="x") == "ask"
    assert effect(policy, send, Facts(labels=frozenset({"private", "untrusted"})), to="x") == "deny"


def test_requirements_come_from_the_rule_that_asks() -> None:
    requirement = Policy.parse(EXAMPLE).decide(send, {"to": "x"}).requirement
    assert requirement is not None
    demand = requirement.demands[0]
    assert (demand.rule, demand.groups, demand.quorum, demand.self_approval) == ("mail", ("ops",), 2, False)
    assert (requirement.expires_in_s, requirement.on_expiry) == (86_400.0, "terminate")
    assert requirement.may == ("approve", "edit", "reject", "respond")
    assert requirement.editable == ("subject", "body")


def test_when_several_rules_ask_the_strictest_of_each_demand_counts() -> None:
    policy = Policy.parse(
        """
version: 1
rules:
  - {id: a, effect: ask, match: {tool: mail.send}, approval: {approvers: {users: [ada]}, expires_in: 1h,
     may: [approve, edit, reject], editable: [subject], grantable: [args_in_run, script]}}
  - {id: b, effect: ask, match: {label: external}, approval: {quorum: 2, expires_in: 10m,
     on_expiry: terminate, may: [approve, edit, reject, respond], editable: [subject, body],
     grantable: [args_in_run]}}
"""
    )
    requirement = policy.decide(send, {}).requirement
    assert requirement is not None
    assert [(demand.rule, demand.users, demand.quorum) for demand in requirement.demands] == [
        ("a", ("ada",), 1),
        ("b", (), 2),
    ]
    assert requirement.expires_in_s == 600.0
    assert requirement.on_expiry == "terminate"
    assert requirement.may == ("approve", "edit", "reject")
    assert requirement.editable == ("subject",)
    assert requirement.grantable == ("args_in_run",)


def test_layers_are_evaluated_together_and_named() -> None:
    organisation = Policy.parse(
        "version: 1\nlayer: organisation\nrules: [{id: r, effect: deny, match: {tool: mail.send}}]"
    )
    run = Policy.parse("version: 1\nlayer: run\nrules: [{id: r, effect: allow, match: {tool: mail.send}}]")
    for layers in ((organisation, run), (run, organisation)):
        verdict = Policy.layered(*layers).decide(send, {})
        assert (verdict.effect, verdict.rules) == ("deny", ("organisation/r",))


def test_rules_of_two_layers_may_not_have_the_same_name() -> None:
    one = rule("{id: r, effect: deny, match: {tool: mail.send}}")
    with pytest.raises(PolicyError, match="two rules have the name 'r'"):
        Policy.layered(one, one)


def test_a_budget_that_is_used_up_asks_or_denies() -> None:
    policy = Policy.parse(EXAMPLE)
    facts = Facts(run_id="run-1", user=SUPPORT, day="2026-11-29")
    used: dict[str, int] = {}

    def decide(amount: float) -> tuple[str, tuple[str, ...]]:
        verdict = policy.decide(
            refund, {"amount": amount, "currency": "EUR"}, facts, read=lambda key: used.get(key, 0)
        )
        for charge in verdict.charges:
            used[charge.counter] = used.get(charge.counter, 0) + charge.amount
        return verdict.effect, verdict.rules

    assert decide(50) == ("allow", ("small-refund",))
    assert decide(50) == ("allow", ("small-refund",))
    assert decide(50) == ("allow", ("small-refund",))
    assert decide(1) == ("ask", ("small-refund#budget",))


@pytest.mark.parametrize("amount", [None, "many", True, -1, [1]])
def test_an_amount_that_cannot_be_counted_uses_up_the_budget(amount: Any) -> None:
    policy = rule(
        "{id: s, effect: allow, match: {tool: billing.refund},"
        " budget: {sum: {arg: amount, per: run, max: 9}}}"
    )
    verdict = policy.decide(refund, {"amount": amount}, read=lambda _: 0)
    assert (verdict.effect, verdict.rules) == ("deny", ("s#budget",))


def test_daily_budgets_are_kept_apart_by_their_key() -> None:
    def counter(key: str, facts: Facts) -> str:
        policy = rule(
            f"{{id: b, effect: allow, match: {{tool: crm.find}}, budget: {{calls_per_day: 1, key: {key}}}}}"
        )
        return policy.decide(find, {"name": "x"}, facts).charges[0].counter

    ada, bob = Facts(run_id="1", user=User(name="ada")), Facts(run_id="2", user=User(name="bob"))
    assert counter("tool", ada) == counter("tool", bob)
    assert counter("user", ada) != counter("user", bob)
    assert counter("run", ada) != counter("run", Facts(run_id="3", user=User(name="ada")))


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("https://api.example.com/x", "allow"),
        ("api.example.com:8443", "allow"),
        ("HTTPS://API.EXAMPLE.COM.", "allow"),
        ("https://deep.example.org/?q=1#x", "allow"),
        ("https://example.org/", "ask"),
        ("https://api.example.com.evil.test/", "ask"),
        ("https://evil.test/api.example.com", "ask"),
        ("https://api.example.com@evil.test/", "ask"),
        ("https://evil.test\\@api.example.com/", "ask"),
        ("https://api.example.com\t.evil.test/", "ask"),
        ("//api.example.com/", "ask"),
        ("https://ąpi.example.com", "ask"),
        ("http://0x7f.1/", "ask"),
        ("http:api.example.com", "ask"),
    ],
)
def test_a_host_is_allowed_only_beyond_doubt(url: str, found: str) -> None:
    policy = rule(
        "{id: h, effect: allow, match: {tool: mail.send,"
        ' args: {url: {host_in: [api.example.com, "*.example.org"]}}}}'
    )
    assert effect(policy, send, url=url) == found


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/", "http://0177.0.0.1/", "http://2130706433/", "http://a@b/", 7]
)
def test_a_host_that_cannot_be_told_is_denied_by_a_deny_rule(url: Any) -> None:
    policy = rule("{id: h, effect: deny, match: {tool: mail.send, args: {url: {host_in: [127.0.0.1]}}}}")
    assert effect(policy, send, url=url) == "deny"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{id: a, effect: maybe, match: {tool: mail.send}}", "effect"),
        ("{id: a, effect: allow, match: {}}", "needs a tool or a label"),
        (
            "{id: a, effect: allow, match: {tool: mail.send}, approval: {}}",
            "belongs to rules with effect ask",
        ),
        ("{id: a, effect: deny, match: {tool: mail.send}, budget: {calls_per_run: 1}}", "has no budget"),
        ("{id: a, effect: ask, match: {tool: mail.send}, approval: {on_expiry: allow}}", "on_expiry"),
        ("{id: a, effect: ask, match: {tool: mail.send}, approval: {expires_in: soon}}", "24h"),
        (
            "{id: a, effect: ask, match: {tool: mail.send}, approval: {editable: [body]}}",
            "does not have edit",
        ),
        ("{id: a, effect: allow, match: {tool: x, args: {a: {matches: x}}}}", "matches"),
        ("{id: a, effect: allow, match: {tool: x, args: {a: {host_in: ['https://x']}}}}", "no host name"),
        ("{id: a, id: b, effect: allow, match: {tool: x}}", "there twice"),
    ],
)
def test_a_file_that_says_nonsense_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        rule(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{id: a, effect: deny, match: {tool: mail.sent}}", "did you mean 'mail.send'"),
        ("{id: a, effect: deny, match: {label: externl}}", "did you mean 'external'"),
        ("{id: a, effect: deny, match: {tool: crm.find, label: external}}", "no tool matches"),
        (
            "{id: a, effect: deny, match: {tool: mail.send, args: {subjet: {eq: x}}}}",
            "did you mean 'subject'",
        ),
        (
            "{id: a, effect: allow, match: {tool: mail.send, args: {subject: {lte: 3}, body: {eq: 3}}}}",
            "never 3",
        ),
        (
            "{id: a, effect: allow, match: {tool: billing.refund, args: {amount: {gt: 5, lt: 5}}}}",
            "no number",
        ),
        ("{id: a, effect: deny, match: {tool: crm.find, run_labels: {all: [secret]}}}", "no run ever has"),
        (
            "{id: a, effect: allow, match: {tool: crm.find}, budget: {sum: {arg: name2, per: run, max: 1}}}",
            "to sum up",
        ),
        (
            "{id: a, effect: ask, match: {tool: mail.send}, approval: {may: [edit], editable: [text]}}",
            "to edit",
        ),
        (
            "{id: a, effect: allow, match: {tool: mail.send}}, {id: b, effect: deny, match: {tool: mail.*}}",
            "b always denies that",
        ),
        (
            "{id: a, effect: allow,"
            " match: {tool: billing.refund, args: {amount: {gt: 5}, customer: {eq: x}}}},"
            " {id: b, effect: deny, match: {tool: '*', args: {amount: {gt: 5}}}}",
            "b always denies that",
        ),
        ("{id: a, effect: allow, match: {tool: crm.find, args: {name: {in: []}}}}", "names no value"),
        (
            "{id: a, effect: allow, match: {tool: billing.refund, args: {amount: {eq: 5, lt: 5}}}}",
            "no value is what all of eq, lt want",
        ),
        (
            "{id: a, effect: deny, match: {tool: crm.find, args: {name: {in: [ab, cd], glob: 'x*'}}}}",
            "no value is what all of glob, in want",
        ),
        ("{id: a, effect: allow, match: {tool: crm.find, args: {name: {exists: false}}}}", "always exists"),
    ],
)
def test_a_rule_that_can_never_match_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        rule(text).check(TOOLS)


def test_a_misspelt_group_is_refused() -> None:
    text = EXAMPLE.replace("groups: [ops]", "groups: [opps]")
    with pytest.raises(PolicyError, match="did you mean 'ops'"):
        Policy.parse(text).check(TOOLS)


def test_the_policy_puts_people_into_groups() -> None:
    policy = Policy.parse(EXAMPLE)
    assert policy.identify(User(name="olga")) == User(name="olga", groups=frozenset({"ops"}))
    assert policy.identify(None) is None


def test_explain_holds_every_rule_against_a_call() -> None:
    found = Policy.parse(EXAMPLE).explain(refund, {"amount": 70, "currency": "EUR"}, Facts(user=SUPPORT))
    assert [(each.rule, each.matches) for each in found] == [
        ("small-refund", False),
        ("no-exfiltration", False),
        ("mail", False),
        ("default:effect", True),
    ]
    assert "amount {'lte': 50}: does not hold" in found[0].why
    assert "user {'group': 'support'}: holds" in found[0].why
    assert found[1].why == "it is about label external"


def test_the_digest_of_a_policy_does_not_depend_on_order() -> None:
    first, second = "{id: a, effect: deny, match: {tool: x}}", "{id: b, effect: ask, match: {tool: y}}"
    assert rule(f"{first}, {second}").digest == rule(f"{second}, {first}").digest
    assert rule(first).digest != rule(second).digest


def test_country_codes_dates_and_leading_zeros_are_texts() -> None:
    assert parse_yaml("[NO, on, yes, 2026-11-29, 010, 12:30, 1_000]") == [
        "NO", "on", "yes", "2026-11-29", "010", "12:30", "1_000",
    ]  # fmt: skip
    assert parse_yaml("[true, False, null, ~, 5, -7, 0, 2.5, 1e3, '']") == [
        True, False, None, None, 5, -7, 0, 2.5, 1000.0, "",
    ]  # fmt: skip
    assert parse_yaml("a:") == {"a": None}
