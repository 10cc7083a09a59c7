"""What many requests cost in threads and memory."""

from __future__ import annotations

import os
import sys
from typing import Callable

from conftest import Script

CPYTHON = sys.implementation.name == "cpython"  # others compile meanwhile, which takes memory too
ROUNDS = int(os.environ.get("FAIRQ_TEST_ROUNDS", "200000"))

MEASURE = """
def resident():
    "MiB"
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def threads():
    return len(os.listdir("/proc/self/task"))

client = fairq.Client(url)
limiter = client.limiter(name, limit=1)
"""


def test_ten_thousand_waiters(script: Callable[[str], Script]) -> None:
    crowd = script(
        MEASURE
        + """
async def one():
    async with limiter.acquire_async(600):
        pass

async def main():
    first = await limiter.acquire_async()
    tasks = [asyncio.ensure_future(one()) for _ in range(10_000)]
    await asyncio.sleep(0)
    while limiter.status().waiting < 10_000:
        await asyncio.sleep(0.01)
    say(threads(), resident())
    for task in tasks[::2]:
        task.cancel()  # they leave in the middle of the line
    await asyncio.gather(*tasks[::2], return_exceptions=True)
    first.release()
    await asyncio.gather(*tasks[1::2])
    while limiter.status().used or limiter.status().waiting:
        await asyncio.sleep(0.01)
    say(limiter.status().granted_total)

asyncio.run(main())
"""
    )
    threads, resident = crowd.line().split()
    assert int(threads) <= 1 + 3
    assert float(resident) <= (100 if CPYTHON else 300)
    assert crowd.line() == "5001"
    assert crowd.finish() == ""


def test_no_descriptor_is_left(script: Callable[[str], Script]) -> None:
    """Who has to wait needs one; without, it fails, and leaves nothing in line."""
    poor = script(
        MEASURE
        + """
import resource
first = limiter.acquire()
loop = asyncio.new_event_loop()
async def wait():
    async with limiter.acquire_async(60):
        pass

limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
for attempt in [lambda: limiter.acquire(60), lambda: loop.run_until_complete(wait())] * 3:
    try:
        attempt()
    except OSError as error:
        assert not isinstance(error, fairq.Error), error
    else:
        raise AssertionError(attempt)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
wait_until(lambda: limiter.status().waiting == 0)
first.release()
limiter.acquire(60).release()
loop.run_until_complete(wait())
loop.close()
"""
    )
    assert poor.finish() == ""


# A round is granted, or cancelled in line. The first rounds fill what is kept (tables, caches, the heap of each
# thread); after them nothing grows. A leak of 32 bytes a round would be 6 MiB.
FLAT = """
rounds = {rounds}
warm(rounds // 10)
before = resident()
warm(rounds)
growth = resident() - before
say(growth)
assert growth < {most}, growth
assert limiter.status().waiting == 0
"""


def test_blocking_requests_leave_no_memory_behind() -> None:
    """S47, P13."""
    script = Script(
        MEASURE
        + """
def warm(rounds):
    for _ in range(rounds // 2):
        with limiter.acquire(15, label="flat"):
            ticket = limiter.ticket()
            ticket.cancel()
            try:
                limiter.acquire(15, ticket=ticket)
            except fairq.Cancelled:
                pass
"""
        + FLAT.format(rounds=ROUNDS, most=4 if CPYTHON else 40),
        "memory:",
        "flat",
    )
    script.line()
    assert script.finish() == ""


def test_asyncio_requests_leave_no_memory_behind() -> None:
    """S47, P13."""
    script = Script(
        MEASURE
        + """
async def main(rounds):
    for _ in range(rounds // 20):
        first = await limiter.acquire_async(15, label="flat")
        tasks = [asyncio.ensure_future(limiter.acquire_async(15)) for _ in range(19)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        first._give_back()  # a grant may cross a cancel
        await asyncio.wait(tasks)

def warm(rounds):
    asyncio.run(main(rounds))
"""
        + FLAT.format(rounds=ROUNDS, most=4 if CPYTHON else 40),
        "memory:",
        "flat",
    )
    script.line()
    assert script.finish() == ""
