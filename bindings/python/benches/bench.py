"""What the binding costs above the library: `python benches/bench.py [--waiters N] [--rounds N] [--url URL]`.

The floor is the library called by ctypes with nothing around it. Each figure is the best of several tries, and of the
process's CPU time, since what else a machine does only ever adds to it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import threading
import time
from ctypes import addressof, byref, c_size_t, sizeof
from typing import Callable

import fairq
from fairq import _abi
from fairq._library import fq

TRIES = 7


def microseconds(rounds: int, work: Callable[[int], None]) -> float:
    start = time.process_time()
    work(rounds)
    return (time.process_time() - start) / rounds * 1e6


def compare(what: str, rounds: int, floor: Callable[[int], None], ours: Callable[[int], None]) -> None:
    """By turns, since a machine is not always equally fast."""
    tries = [(microseconds(rounds, floor), microseconds(rounds, ours)) for _ in range(TRIES)]
    alone, all_in_all = (min(figures) for figures in zip(*tries))
    print(f"{what}: {all_in_all:.1f} us; the library alone {alone:.1f} us; above it {all_in_all - alone:.1f} us")


class Floor:
    """The library's calls for an acquire and its release, and no more."""

    def __init__(self, limiter: fairq.Limiter) -> None:
        queue, self.count = c_size_t(), c_size_t()
        fq.completions_new(byref(queue), None)
        self.queue, self.limiter = queue.value, limiter._handle
        self.request = _abi.Request(sizeof(_abi.Request), 0, 15_000, 1, None, 0)
        self.event = _abi.Event()

    def blocking(self, rounds: int) -> None:
        """As one thread would, that never waits."""
        start, poll, free = fq.acquire_start, fq.completions_poll, fq.permit_free
        queue, limiter, event = self.queue, self.limiter, self.event
        request, at, count = addressof(self.request), addressof(event), addressof(self.count)
        for _ in range(rounds):
            start(limiter, request, 0, queue, 1, None)
            poll(queue, at, 1, _abi.FQ_FOREVER, count, None)
            free(event.permit)

    def waiting(self, waiters: int) -> None:
        """As an event loop would with many in line: a ticket for each."""
        start, poll, free = fq.acquire_start, fq.completions_poll, fq.permit_free
        ticket, events = c_size_t(), (_abi.Event * 256)()
        tickets = []
        for _ in range(waiters):
            fq.ticket_new(self.limiter, byref(ticket), None)
            tickets.append(ticket.value)
            start(self.limiter, byref(self.request), ticket, self.queue, 1, None)
        left = waiters
        while left:
            poll(self.queue, byref(events), 256, _abi.FQ_FOREVER, byref(self.count), None)
            for event in events[: self.count.value]:
                free(event.permit)
                left -= 1
        for one in tickets:
            fq.ticket_free(one)


def blocking(limiter: fairq.Limiter) -> Callable[[int], None]:
    def work(rounds: int) -> None:
        for _ in range(rounds):
            with limiter.acquire(max_wait=15):
                pass

    return work


def uncontended(limiter: fairq.Limiter) -> Callable[[int], None]:
    async def main(rounds: int) -> None:
        for _ in range(rounds):
            async with limiter.acquire_async(max_wait=15):
                pass

    return lambda rounds: asyncio.run(main(rounds))


def resident() -> float:
    """MiB."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


class Crowd:
    """Many tasks in one line."""

    def __init__(self, limiter: fairq.Limiter) -> None:
        self.limiter = limiter
        self.memory = 0.0
        self.threads = 0

    def __call__(self, waiters: int) -> None:
        asyncio.run(self.main(waiters))

    async def main(self, waiters: int) -> None:
        first = await self.limiter.acquire_async()
        tasks = [asyncio.ensure_future(self.one()) for _ in range(waiters)]
        await asyncio.sleep(0)  # all of them ask
        self.memory, self.threads = resident(), threads()
        first.release()
        await asyncio.gather(*tasks)

    async def one(self) -> None:
        async with self.limiter.acquire_async(max_wait=600):
            pass


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--waiters", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=20_000)
    arguments.add_argument("--url", default="memory:")
    options = arguments.parse_args()
    before, threads_before = resident(), threads()
    client = fairq.Client(options.url)
    line = client.limiter("bench:line", limit=1)
    crowd = Crowd(line)
    crowd(options.waiters)
    print(f"{options.waiters} asyncio waiters")
    print(f"  memory: {crowd.memory:.0f} MiB resident, {crowd.memory - before:.0f} of them for this")
    print(f"  threads: {crowd.threads - threads_before} beside the loop's")

    free = client.limiter("bench:free", limit=1_000)
    alone = Floor(free).blocking
    compare("acquire + release, alone", options.rounds, alone, blocking(free))
    compare("acquire + release, alone, in asyncio", options.rounds, alone, uncontended(free))
    many = f"acquire + release, among {options.waiters} asyncio waiters"
    compare(many, options.waiters, Floor(line).waiting, crowd)
    assert threading.active_count() == 1


if __name__ == "__main__":
    main()
