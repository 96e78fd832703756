"""In how many orders a set of functions, classes or plain objects is gone through, over many guest processes.

Run as ``python -m tests.bench.set_order [RUNS]``, and under ``setarch -R`` for addresses that are not random.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.unit.guest.guest_process import run_process

MEMBERS = (5, 20, 60, 120)
KINDS = ("functions", "classes", "objects")


def script(members: int) -> str:
    """Return a script that prints the order of three sets, each as the numbers of its members."""
    made = "".join(f"def f{i}():\n    pass\nclass C{i}:\n    pass\n" for i in range(members))
    lists = (
        f"[{', '.join(f'f{i}' for i in range(members))}]",
        f"[{', '.join(f'C{i}' for i in range(members))}]",
        f"[object() for _ in range({members})]",
    )
    return made + "".join(f"rows = {each}\nprint([rows.index(x) for x in set(rows)])\n" for each in lists)


def orders(members: int, runs: int) -> dict[str, int]:
    """Return how many different orders there were, by kind."""
    seen: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for _ in range(runs):
        for kind, line in zip(KINDS, run_process(script(members)).output.splitlines(), strict=True):
            seen[kind][line] += 1
    return {kind: len(found) for kind, found in seen.items()}


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    for size in MEMBERS:
        print(f"{size} members, orders in {count} runs: {orders(size, count)}", flush=True)
