#!/usr/bin/env python3
"""What becomes of the order, and of the slots, when one limiter is split into several: a simulation, for docs/scale.md.

Requests come at random (Poisson), hold for a random time (exponential, mean 1), and choose one of the limiters at random,
as a hash of a tenant or a session does. Each limiter has its share of the limit and a line of its own. All chance comes from
one seed.
"""

from __future__ import annotations

import argparse
import heapq
import random
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass

SEED = 7


@dataclass
class Outcome:
    waits: list[float]  # in the order of arrival
    grants: list[float]  # when
    idle: float  # slot-time that was free while somebody waited elsewhere
    time: float


def simulate(limit: int, shards: int, load: float, requests: int) -> Outcome:
    chance = random.Random(SEED)
    free = [limit // shards] * shards
    lines: list[deque[int]] = [deque() for _ in range(shards)]
    arrivals, grants = [0.0] * requests, [0.0] * requests
    ends: list[tuple[float, int]] = []
    idle = now = 0.0
    coming, next_arrival = 0, chance.expovariate(load * limit)
    while coming < requests or ends:
        arrives = coming < requests and (not ends or next_arrival <= ends[0][0])
        then = next_arrival if arrives else ends[0][0]
        waiting, spare = sum(map(len, lines)), sum(free)
        idle += (then - now) * min(waiting, spare)
        now = then
        if arrives:
            shard = chance.randrange(shards)
            arrivals[coming] = now
            lines[shard].append(coming)
            coming, next_arrival = coming + 1, now + chance.expovariate(load * limit)
        else:
            shard = heapq.heappop(ends)[1]
            free[shard] += 1
        while free[shard] and lines[shard]:
            first = lines[shard].popleft()
            free[shard] -= 1
            grants[first] = now
            heapq.heappush(ends, (now + chance.expovariate(1), shard))
    return Outcome([grant - came for grant, came in zip(grants, arrivals)], grants, idle, now)


def overtakers(grants: list[float]) -> list[int]:
    """For each request, by how many it was passed that came after it."""
    later: list[float] = []
    passed = []
    for grant in reversed(grants):
        passed.append(bisect_left(later, grant))
        insort(later, grant)
    return passed


def main() -> None:
    parser = argparse.ArgumentParser(prog="split.py", description=__doc__)
    parser.add_argument("--limit", type=int, default=64, help="of all limiters together (%(default)s)")
    parser.add_argument("--requests", type=int, default=50_000, help="%(default)s")
    parser.add_argument("--shards", default="1,2,4,8,16", help="numbers of limiters (%(default)s)")
    parser.add_argument("--loads", default="0.8,0.95", help="use of the slots, at most (%(default)s)")
    chosen = parser.parse_args()
    print(f"limit {chosen.limit}, {chosen.requests} requests, mean hold 1; waits in mean holds")
    print("| load | limiters | overtaken | passed by, p99 | wait mean | wait p99 | free slots while somebody waits |")
    print("|---|---|---|---|---|---|---|")
    for load in map(float, chosen.loads.split(",")):
        for shards in map(int, chosen.shards.split(",")):
            print(row(chosen.limit, shards, load, chosen.requests))


def row(limit: int, shards: int, load: float, requests: int) -> str:
    outcome = simulate(limit, shards, load, requests)
    passed, waits = sorted(overtakers(outcome.grants)), sorted(outcome.waits)
    overtaken = 100 * sum(count > 0 for count in passed) / requests
    p99 = int(0.99 * requests)
    mean = sum(waits) / requests
    cells = [f"{overtaken:.1f} %", str(passed[p99]), f"{mean:.2f}", f"{waits[p99]:.2f}", f"{outcome.idle / outcome.time:.1f}"]
    return f"| {load} | {shards} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
