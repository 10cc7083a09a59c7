"""Opens many clients at once, some of which lose patience, and tells what became of them.

    python load.py --clients 50 --url http://127.0.0.1:8000

Exits with 1 if more answers ran at once than the limit allows, or somebody was overtaken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import time
from collections import Counter
from typing import Any, AsyncIterator, Dict, List, NamedTuple, Optional, Tuple

import httpx

QUESTIONS = ["Is the order fair?", "What happens after a crash?", "What does it cost?", "Which languages are there?"]


class Visit:
    """One client, and what it saw."""

    def __init__(self) -> None:
        self.state = "coming"
        self.asked = 0.0
        self.waited: Optional[float] = None
        self.order = 0
        self.fence = 0
        # By the server's clock. The end is when it was last seen to run, so that what we count is never too much.
        self.began = 0.0
        self.last_seen = 0.0

    async def run(self, http: httpx.AsyncClient, leave_after: float) -> None:
        self.asked = time.monotonic()
        try:
            await asyncio.wait_for(self._ask(http), leave_after)
        except asyncio.TimeoutError:
            self.state = {"streaming": "left in the stream", "waiting": "left the line"}.get(self.state, "left")
        except httpx.HTTPError as error:
            self.state = f"failed: {type(error).__name__}"

    async def _ask(self, http: httpx.AsyncClient) -> None:
        async with http.stream("GET", "/ask", params={"q": random.choice(QUESTIONS)}) as response:
            async for name, data in events(response):
                self._see(name, data)
        if self.state in ("coming", "waiting", "streaming"):
            self.state = "cut off"

    def _see(self, name: str, data: Dict[str, Any]) -> None:
        self.last_seen = data.get("at", self.last_seen)
        if name == "position":
            self.state = "waiting"
        elif name == "start":
            self.state, self.waited = "streaming", time.monotonic() - self.asked
            self.order, self.fence, self.began = data["order"], data["fence"], data["at"]
        elif name == "done":
            self.state = "answered"
        elif name in ("rejected", "failed"):
            self.state = data["error"].replace("_", " ")


async def events(response: httpx.Response) -> AsyncIterator[Tuple[str, Dict[str, Any]]]:
    """The server-sent events of a response."""
    name = ""
    async for line in response.aiter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


class Seen(NamedTuple):
    """What the limiter said of itself."""

    limit: int
    running: int
    waiting: int


async def look(http: httpx.AsyncClient) -> Seen:
    """Asks the limiter how it stands."""
    status = (await http.get("/status")).raise_for_status().json()
    return Seen(status["limit"], status["running"], status["waiting"])


async def watch(http: httpx.AsyncClient, visits: List[Visit], seen: List[Seen]) -> None:
    """Looks again and again; on a terminal, shows it."""
    while True:
        seen.append(await look(http))
        if sys.stdout.isatty():
            now, states = seen[-1], Counter(visit.state for visit in visits)
            each = "   ".join(f"{state} {number}" for state, number in sorted(states.items()))
            line = f"{now.running} of {now.limit} run, {now.waiting} wait | {each}"
            print(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        await asyncio.sleep(0.1)


# --- What became of them


def most_at_once(visits: List[Visit]) -> int:
    """How many answers ran at the same time. Whoever ends in the moment in which another begins has made room."""
    admitted = [visit for visit in visits if visit.fence]
    running = most = 0
    for _, step in sorted([(visit.began, 1) for visit in admitted] + [(visit.last_seen, -1) for visit in admitted]):
        running += step
        most = max(most, running)
    return most


def overtaken(visits: List[Visit]) -> int:
    """How many came before somebody who was admitted before them."""
    admitted = sorted((visit for visit in visits if visit.fence), key=lambda visit: visit.fence)
    return sum(later.order < earlier.order for earlier, later in zip(admitted, admitted[1:]))


def percentile(values: List[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def report(visits: List[Visit], seen: List[Seen]) -> bool:
    """Prints the table. Whether all is as it should be."""
    waits = [visit.waited for visit in visits if visit.waited is not None]
    limit, running = max(now.limit for now in seen), max(now.running for now in seen)
    most, passed = most_at_once(visits), overtaken(visits)
    rows = [(state, str(number)) for state, number in Counter(visit.state for visit in visits).most_common()]
    rows += [
        ("", ""),
        ("wait until the answer begins, p50", f"{percentile(waits, 0.5):.2f} s"),
        ("wait until the answer begins, p99", f"{percentile(waits, 0.99):.2f} s"),
        ("longest line", str(max(now.waiting for now in seen))),
        ("most answers at once", f"{most}, limit {limit}"),
        ("most permits at once", f"{running}, limit {limit}"),
        ("order", "kept" if passed == 0 else f"NOT KEPT: {passed} overtaken"),
    ]
    for name, value in rows:
        print(f"{name:36}{value}")
    return max(most, running) <= limit and passed == 0


async def main(options: argparse.Namespace) -> bool:
    visits = [Visit() for _ in range(options.clients)]
    seen: List[Seen] = []
    limits = httpx.Limits(max_connections=None)
    timeout = httpx.Timeout(10, read=60)
    async with httpx.AsyncClient(base_url=options.url, timeout=timeout, limits=limits) as http:
        seen.append(await look(http))
        watching = asyncio.ensure_future(watch(http, visits, seen))
        await asyncio.gather(*(come(visit, http, options) for visit in visits))
        watching.cancel()
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    return report(visits, seen)


async def come(visit: Visit, http: httpx.AsyncClient, options: argparse.Namespace) -> None:
    await asyncio.sleep(random.random() * options.spread)
    impatient = random.random() < options.leave
    await visit.run(http, random.random() * 10 if impatient else 600)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the gateway (%(default)s)")
    parser.add_argument("--clients", type=int, default=50, help="how many come (%(default)s)")
    parser.add_argument("--spread", type=float, default=20, help="seconds over which they come (%(default)s)")
    parser.add_argument("--leave", type=float, default=0.3, help="the share that leaves within ten seconds (%(default)s)")
    return parser.parse_args()


if __name__ == "__main__":
    try:
        sys.exit(0 if asyncio.run(main(arguments())) else 1)
    except httpx.HTTPError as error:
        sys.exit(f"the gateway does not answer: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
