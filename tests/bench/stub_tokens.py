"""What the stubs of 10, 100 and 500 tools cost in tokens, at each level of detail; part of `make bench`."""

from __future__ import annotations

from typing import get_args

from bascule.tools import fit_stubs, render_stubs
from bascule.tools.stubs import Detail
from tests.conformance.many_tools import make_tools

COUNTS = (10, 100, 500)
ENCODING = "o200k_base"


def count_tokens(text: str) -> int:
    """Return the tokens of a text as current OpenAI models count them."""
    import toktok  # pyright: ignore[reportMissingTypeStubs]

    return int(toktok.batch_count([text], ENCODING)[0])


def measure() -> dict[int, dict[str, int]]:
    """Return tokens by number of tools and level; of a mix of all services for each number."""
    tools = make_tools()
    found: dict[int, dict[str, int]] = {}
    for count in COUNTS:
        step = len(tools) / count
        some = [tools[int(number * step)] for number in range(count)]
        found[count] = {
            detail: count_tokens(render_stubs(some, detail=detail)) for detail in get_args(Detail)
        }
    return found


def render_table(measured: dict[int, dict[str, int]]) -> str:
    """Return the figures as a Markdown table."""
    levels = get_args(Detail)
    lines = [f"| tools | {' | '.join(levels)} |", "|" + " --- |" * (len(levels) + 1)]
    lines += [
        f"| {count} | {' | '.join(f'{row[level]:,}' for level in levels)} |"
        for count, row in measured.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(f"tokens of stubs ({ENCODING})\n\n{render_table(measure())}")
    fitted = fit_stubs(make_tools(), budget_tokens=4000, count_tokens=count_tokens)
    print(f"\n4,000 tokens show {len(fitted.shown)} of {len(make_tools())} tools ({fitted.detail})")
