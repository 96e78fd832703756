"""Budgets of rules: what one call would charge, and what follows when a budget is used up.

Amounts come from arguments of an untrusted script: one that is missing, no number or negative can not be
counted, which is taken as used up. Sums are kept in millionths, rounded up, so that counters are whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final, Literal

from bascule.bridge.conditions import find_argument, read_number
from bascule.bridge.matching import Facts
from bascule.bridge.result import JsonValue
from bascule.bridge.rules import BudgetSection

MILLIONTHS: Final = 1_000_000
UNCOUNTABLE: Final = 2**62
"""Charged for an amount that cannot be counted: more than any budget has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What one call would add to one counter.

    Attributes:
        counter: name of the counter in the store.
        amount, limit: in units of the counter; the call fits while the sum stays at or below ``limit``.
        rule: name of the rule whose budget it is.
        text: the budget in words for people.
    """

    counter: str
    amount: int
    limit: int
    rule: str
    on_exhausted: Literal["ask", "deny"]
    text: str


ReadCounter = Callable[[str], float]
"""Returns how much of a counter is used."""


def list_charges(
    rule: str, budget: BudgetSection, tool: str, arguments: Mapping[str, JsonValue], facts: Facts
) -> tuple[Charge, ...]:
    """Return what a call of ``tool`` would charge to the budget of a rule."""
    in_run = f"run {facts.run_id}"
    shared = {
        "tool": f"day {facts.day}",
        "user": f"day {facts.day} user {'' if facts.user is None else facts.user.name}",
        "run": f"day {facts.day} {in_run}",
    }[budget.key]
    found: list[Charge] = []

    def add(what: str, scope: str, amount: int, limit: int, text: str) -> None:
        counter = f"budget {rule} {tool} {what} {scope}"
        found.append(
            Charge(
                counter=counter,
                amount=amount,
                limit=limit,
                rule=rule,
                on_exhausted=budget.on_exhausted,
                text=text,
            )
        )

    if budget.calls_per_run is not None:
        add("calls", in_run, 1, budget.calls_per_run, f"{budget.calls_per_run} calls per run")
    if budget.calls_per_day is not None:
        add("calls", shared, 1, budget.calls_per_day, f"{budget.calls_per_day} calls per day")
    if budget.sum is not None:
        spent = budget.sum
        limit = int(Decimal(str(spent.max)) * MILLIONTHS)
        amount = _in_millionths(find_argument(arguments, spent.arg))
        text = f"{spent.arg} of {spent.max} in all per {spent.per}"
        add(f"sum {spent.arg}", in_run if spent.per == "run" else shared, amount, limit, text)
    return tuple(found)


def find_exhausted(charges: tuple[Charge, ...], read: ReadCounter) -> tuple[Charge, ...]:
    """Return the charges that do not fit any more."""
    return tuple(each for each in charges if each.amount + read(each.counter) > each.limit)


def _in_millionths(value: object) -> int:
    number = read_number(value)
    if number is None or number < 0:
        return UNCOUNTABLE
    return min(int((number * MILLIONTHS).to_integral_value(ROUND_CEILING)), UNCOUNTABLE)
