"""A worker process of run.py for what is used from Python: `self-limiters`, and fairq by its binding.

Its arguments and its words are told in README.md.
"""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import AbstractAsyncContextManager
from time import monotonic_ns
from typing import Callable

GOODBYES: list[Callable[[], None]] = []
"""What sees to it that the last permits have gone back before the process ends, which would be a crash to the others."""

Permits = Callable[[], AbstractAsyncContextManager]


def self_limiters(url: str) -> Callable[[str, int], Permits]:
    from self_limiters import Semaphore

    def named(name: str, limit: int) -> Permits:
        # The defaults: 15 connections, no bound on the wait, an expiry of 30 s.
        semaphore = Semaphore(name=name, capacity=limit, redis_url=url)
        return lambda: semaphore

    return named


def fairq(url: str) -> Callable[[str, int], Permits]:
    import fairq

    client = fairq.Client(url)
    GOODBYES.append(lambda: client.close(0))

    def named(name: str, limit: int) -> Permits:
        limiter = client.limiter(name, limit=limit)
        return lambda: limiter.acquire_async(max_wait=600)

    return named


PEERS = {"self-limiters": self_limiters, "fairq-python": fairq}


class Worker:
    def __init__(self, arguments: list[str]) -> None:
        peer, self.url, self.name, limit, waiters, rounds, hold_ms, self.file = arguments
        self.peer = PEERS[peer]
        self.limit, self.waiters, self.rounds, self.hold = int(limit), int(waiters), int(rounds), float(hold_ms) / 1e3
        self.records: list[list[int]] = []

    async def wait(self, permits: Permits) -> None:
        for _ in range(self.rounds):
            record = [monotonic_ns(), 0, 0]
            self.records.append(record)
            async with permits():
                record[1] = monotonic_ns()
                await asyncio.sleep(self.hold)
                record[2] = monotonic_ns()

    async def run(self) -> None:
        named = self.peer(self.url)
        warm = named(f"warm-{os.getpid()}", 1)
        for _ in range(50):
            async with warm():
                pass
        permits = named(self.name, self.limit)
        async with permits():
            pass
        print("ready", flush=True)
        orders: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        loop.add_reader(sys.stdin, lambda: orders.put_nowait(sys.stdin.readline().strip()))
        if await orders.get() == "go":
            work = asyncio.gather(*(self.wait(permits) for _ in range(self.waiters)))
            await asyncio.wait([work, asyncio.ensure_future(orders.get())], return_when=asyncio.FIRST_COMPLETED)
        self.finish()

    def finish(self) -> None:
        with open(self.file, "w", encoding="ascii") as file:
            file.writelines(f"{asked} {granted} {released}\n" for asked, granted, released in self.records)
        for goodbye in GOODBYES:
            goodbye()
        print("done", flush=True)
        os._exit(0)  # what is still under way ends with the process


asyncio.run(Worker(sys.argv[1:]).run())
