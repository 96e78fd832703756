"""Programs that compute, for restricted against plain Python: no tools, the same text on both sides."""

from __future__ import annotations

PROGRAMS: dict[str, str] = {
    "primes": """
def primes(n):
    sieve = [True] * (n + 1)
    for i in range(2, int(n ** 0.5) + 1):
        if sieve[i]:
            for j in range(i * i, n + 1, i):
                sieve[j] = False
    return sum(sieve[2:])
print(primes(3_000_000))
""",
    "queens": """
def solve(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    count = 0
    free = ~(columns | left | right) & ((1 << n) - 1)
    while free:
        bit = free & -free
        free ^= bit
        count += solve(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count
print(solve(11))
""",
    "objects": """
class Body:
    def __init__(self, x, v, m):
        self.x = x
        self.v = v
        self.m = m
    def move(self, dt):
        self.x += self.v * dt
    def pull(self, other, dt):
        d = other.x - self.x
        self.v += dt * other.m * d / (abs(d) ** 3 + 0.01)
bodies = [Body(float(i), 0.1 * i, 1.0 + i) for i in range(8)]
for _ in range(12_000):
    for a in bodies:
        for b in bodies:
            if a is not b:
                a.pull(b, 0.001)
    for a in bodies:
        a.move(0.001)
print(round(sum(b.x for b in bodies), 6))
""",
    "words": """
import re
from collections import Counter
text = " ".join(f"word{i * 7919 % 997} and the rest" for i in range(80_000))
counts = Counter()
for line in text.split(" and "):
    for word in re.findall(r"[a-z]+[0-9]*", line.strip().lower()):
        counts[word.upper()] += 1
print(counts.most_common(3))
""",
    "paths": """
import heapq
graph = {n: [((n * 7 + k * 13) % 3000, (n * k) % 17 + 1) for k in range(1, 6)] for n in range(3000)}
best = {0: 0}
queue = [(0, 0)]
for _ in range(30):
    best, queue = {0: 0}, [(0, 0)]
    while queue:
        cost, node = heapq.heappop(queue)
        if cost > best[node]:
            continue
        for other, weight in graph[node]:
            if cost + weight < best.get(other, 1 << 30):
                best[other] = cost + weight
                heapq.heappush(queue, (cost + weight, other))
print(sum(best.values()))
""",
    "rows": """
import json
from collections import defaultdict
regions = "north south east west".split()
rows = [{"id": i, "region": regions[i % 4], "amount": i * 37 % 1000 / 10, "tags": ["a"]} for i in range(5000)]
for _ in range(20):
    totals = defaultdict(float)
    for row in json.loads(json.dumps(rows)):
        if row["amount"] > 20 and "a" in row["tags"]:
            totals[row["region"].upper()] += row["amount"]
    ranked = sorted(totals.items(), key=lambda pair: -pair[1])
print([f"{name}: {total:,.2f}" for name, total in ranked])
""",
}
"""Five that load the processor, and `rows`, the typical work of a script: group, filter, format."""

TYPICAL = "rows"
