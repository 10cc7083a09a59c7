"""A worker of the cross-language line (see line.py), in Python. What it reads and says is told in worker.rs."""

from __future__ import annotations

import asyncio
import math
import sys

import fairq


def say(*words: object) -> None:
    print(*words, flush=True)


async def run(limiter: fairq.Limiter, token: int, cost: int, may_go: asyncio.Event) -> None:
    try:
        permit = await limiter.acquire_async(max_wait=math.inf, cost=cost, label=f"t{token}")
    except fairq.Error as error:
        say("failed", token, error)
        return
    say("granted", token, permit.fence)
    await may_go.wait()
    await permit.release_async()
    say("released", token)


async def main(url: str, name: str) -> None:
    client = fairq.Client(url)
    limiter = client.limiter(name, limit=3)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    may_go: dict[int, asyncio.Event] = {}
    tasks = []
    async for line in orders:
        word, *numbers = line.decode().split()
        if word == "start":
            token, cost = map(int, numbers)
            may_go[token] = asyncio.Event()
            tasks.append(asyncio.create_task(run(limiter, token, cost, may_go[token])))
        else:
            may_go[int(numbers[0])].set()
    for task in tasks:
        task.cancel()
    client.close()


asyncio.run(main(*sys.argv[1:]))
