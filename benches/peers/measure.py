"""From what workers noted to figures: the same arithmetic for every peer."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import asdict, dataclass
from typing import Iterable, Optional, Sequence

MS = 1_000_000
# Two processes that ask within this time of each other have no order that a caller could see: the requests may reach
# Redis either way, and the news of two grants may reach their owners either way.
BLUR_NS = 10 * MS


@dataclass(frozen=True)
class Request:
    """Nanoseconds of one clock; 0: it did not come to that."""

    asked: int
    granted: int
    released: int


@dataclass(frozen=True)
class Counters:
    """What the server has done, and what the workers have used, up to some moment."""

    script_calls: int
    script_us: int
    server_cpu_us: float
    worker_cpu_us: float

    def since(self, before: Counters) -> Counters:
        return Counters(*(now - then for now, then in zip(self.values(), before.values())))

    def values(self) -> tuple[float, ...]:
        return (self.script_calls, self.script_us, self.server_cpu_us, self.worker_cpu_us)


@dataclass(frozen=True)
class Figures:
    """A row of the table. Times in milliseconds, unless the name says otherwise."""

    asked: int
    grants: int
    grants_per_s: float
    scripts_per_grant: float
    script_us_per_grant: float
    server_us_per_grant: float
    client_us_per_grant: float
    handoff_p50: Optional[float]
    handoff_p99: Optional[float]
    handoff_max: Optional[float]
    overtaken_percent: float
    wait_p50: Optional[float]
    wait_max: Optional[float]
    most_at_once: int

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


def parse(lines: Iterable[str]) -> list[Request]:
    return [Request(*(int(number) for number in line.split())) for line in lines if line.strip()]


def until(requests: Iterable[Request], end: int) -> list[Request]:
    """What was so at that moment. Workers that are stopped let go one after the other, which is not to be measured."""

    def had(time: int) -> int:
        return time if time <= end else 0

    return [Request(r.asked, had(r.granted), had(r.released)) for r in requests if r.asked <= end]


def figures(requests: Sequence[Request], limit: int, ended: int, used: Counters) -> Figures:
    """`ended`: when the measurement was over; a request without a grant has waited until then."""
    granted = [request for request in requests if request.granted]
    grants = len(granted)
    last = max(request.granted for request in granted) if grants == len(requests) else ended
    seconds = (last - min(request.asked for request in requests)) / 1e9
    handoffs = sorted(handoffs_ns(granted, limit))
    waits = sorted((request.granted or ended) - request.asked for request in requests)
    each = max(grants, 1)
    return Figures(
        asked=len(requests),
        grants=grants,
        grants_per_s=grants / seconds,
        scripts_per_grant=used.script_calls / each,
        script_us_per_grant=used.script_us / each,
        server_us_per_grant=used.server_cpu_us / each,
        client_us_per_grant=used.worker_cpu_us / each,
        handoff_p50=quantile_ms(handoffs, 0.5),
        handoff_p99=quantile_ms(handoffs, 0.99),
        handoff_max=quantile_ms(handoffs, 1),
        overtaken_percent=100 * overtaken(requests) / max(len(requests), 1),
        wait_p50=quantile_ms(waits, 0.5),
        wait_max=quantile_ms(waits, 1),
        most_at_once=most_at_once(granted, ended),
    )


def quantile_ms(ordered: Sequence[int], share: float) -> Optional[float]:
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] / MS


def handoffs_ns(granted: Sequence[Request], limit: int) -> list[int]:
    """From each release to the grant that takes its slot, where somebody waited at the time.

    Slots are alike: the n-th release makes room for the grant number n + limit. A grant that comes before its release (the
    limit was exceeded, or the news crossed) counts as 0.
    """
    grants = sorted(request.granted for request in granted)
    asks = sorted(request.asked for request in granted)
    releases = sorted(request.released for request in granted if request.released)
    times = []
    for release, grant in zip(releases, grants[limit:]):
        somebody_waits = bisect_left(asks, release) > bisect_left(grants, release)
        if somebody_waits:
            times.append(max(0, grant - release))
    return times


def overtaken(requests: Sequence[Request]) -> int:
    """How many were passed by one that had asked later, both by more than the blur. Who never got anything counts."""
    by_ask = sorted(requests, key=lambda request: request.asked)
    count = 0
    earliest_later_grant = math.inf  # of all that asked more than the blur after the one that is looked at
    later = len(by_ask)
    for request in reversed(by_ask):
        while later > 0 and by_ask[later - 1].asked > request.asked + BLUR_NS:
            later -= 1
            earliest_later_grant = min(earliest_later_grant, by_ask[later].granted or math.inf)
        count += (request.granted or math.inf) > earliest_later_grant + BLUR_NS
    return count


def most_at_once(granted: Sequence[Request], ended: int) -> int:
    """A request's interval begins after it heard of its grant and ends before it gives it back: what overlaps, did."""
    edges = [(request.granted, 1) for request in granted]
    edges += [(request.released or ended, -1) for request in granted]
    held = most = 0
    for _, step in sorted(edges):  # at the same nanosecond the end comes first
        held += step
        most = max(most, held)
    return most
