"""Permits for event loops."""

from __future__ import annotations

import asyncio
import functools
import gc
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, AsyncIterator

import pytest
from conftest import PATIENCE, Run, idle, uvloop_or_skip, wait_until, wait_until_async, waiting

import fairq


def test_a_permit_is_held_for_the_block(one: fairq.Limiter, run: Run) -> None:
    async def main() -> fairq.Permit:
        async with one.acquire_async(max_wait=15, label="tenant 7") as permit:
            assert permit.is_valid() and permit.fence > 0 and permit.cost == 1
            assert (await one.status_async()).used == 1
        assert permit.state == fairq.PermitState.RELEASED
        permit = await one.acquire_async(cost=1)
        await permit.release_async()
        with pytest.raises(fairq.Stale):
            await permit.release_async()
        async with await one.acquire_async() as permit:
            pass
        with await one.acquire_async() as permit:
            pass
        return permit

    assert run(main()).state == fairq.PermitState.RELEASED
    wait_until(idle(one))


def test_it_fails_as_blocking_ones_do(one: fairq.Limiter, client: fairq.Client, name: str, run: Run) -> None:
    async def main() -> None:
        full = client.limiter(name + "2", limit=1, max_queue=0)
        async with one.acquire_async(), full.acquire_async():
            with pytest.raises(fairq.TimedOut):
                await one.acquire_async(0)
            with pytest.raises(fairq.TimedOut):
                await one.acquire_async(0.0004)
            with pytest.raises(fairq.QueueFull):
                async with full.acquire_async(15):
                    raise AssertionError
        with pytest.raises(fairq.Impossible):
            await one.acquire_async(cost=2)
        with pytest.raises(fairq.Invalid):
            await one.acquire_async(cost=0)
        with pytest.raises(ZeroDivisionError):
            async with one.acquire_async():
                raise ZeroDivisionError

    run(main())
    wait_until(idle(one))


def test_tasks_are_served_in_order(one: fairq.Limiter, run: Run) -> None:
    served: list[int] = []

    async def work(number: int) -> None:
        async with one.acquire_async(PATIENCE):
            served.append(number)

    async def main() -> None:
        first = await one.acquire_async()
        tasks = [asyncio.ensure_future(work(number)) for number in range(100)]
        await wait_until_async(waiting(one, 100))
        await first.release_async()
        await asyncio.gather(*tasks)

    run(main())
    assert served == list(range(100))


def test_it_is_as_good_as_a_coroutine(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        assert asyncio.iscoroutine(one.acquire_async())
        permit = await asyncio.create_task(one.acquire_async())
        permit.release()
        permit = await asyncio.wait_for(one.acquire_async(), PATIENCE)
        permit.release()
        (permit,) = await asyncio.gather(one.acquire_async())
        permit.release()
        one.acquire_async()  # never started, nothing to complain about
        request = one.acquire_async()
        (await request).release()
        with pytest.raises(RuntimeError, match="awaited already"):
            await request

    run(main())
    wait_until(idle(one))


def test_positions_come_until_the_end(client: fairq.Client, name: str, run: Run) -> None:
    line = client.limiter(name, limit=1, poll=0.05)

    async def main() -> None:
        first, second = await line.acquire_async(), asyncio.ensure_future(line.acquire_async(PATIENCE))
        await wait_until_async(waiting(line, 1))
        request = line.acquire_async(PATIENCE)
        seen = []
        async for position in request.positions():
            seen.append(position.position)
            if position.position == 2:
                await first.release_async()
                first = await second
            elif len(seen) > 1:
                await first.release_async()
        assert seen == [2, 1]
        async with await request as permit:
            assert permit.is_valid()
        unhindered = line.acquire_async(PATIENCE)
        assert [position async for position in unhindered.positions()] == []
        (await unhindered).release()

    run(main())
    wait_until(idle(line))


def test_positions_end_with_a_failure_too(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        async with one.acquire_async():
            request = one.acquire_async(0.05)
            assert [position.position async for position in request.positions()] == [1]
            with pytest.raises(fairq.TimedOut):
                await request
            waiting_already = asyncio.ensure_future(request := one.acquire_async(PATIENCE, positions=True))
            await wait_until_async(waiting(one, 1))
            async for position in request.positions():
                assert position.position == 1
                request.cancel()
            with pytest.raises(fairq.Cancelled):
                await waiting_already
            late = asyncio.ensure_future(request := one.acquire_async(PATIENCE))
            await wait_until_async(waiting(one, 1))
            with pytest.raises(fairq.Invalid, match="positions=True"):
                request.positions()
            late.cancel()

    run(main())
    wait_until(idle(one))


def test_a_request_is_taken_back(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        request = one.acquire_async()
        assert request.cancel()
        with pytest.raises(fairq.Cancelled):
            await request
        async with one.acquire_async():
            request = one.acquire_async(PATIENCE)
            task = asyncio.ensure_future(request)
            await wait_until_async(waiting(one, 1))
            assert request.cancel()
            with pytest.raises(fairq.Cancelled):
                await task
            assert not request.cancel()
        request = one.acquire_async()
        async with request as permit:
            assert not request.cancel() and permit.is_valid()

    run(main())
    wait_until(idle(one))


def test_a_closed_client_ends_them_all(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        async with one._client:
            permit = await one.acquire_async()
            tasks = [asyncio.ensure_future(one.acquire_async(PATIENCE)) for _ in range(10)]
            await wait_until_async(waiting(one, 10))
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(ended, fairq.Closed)
        with pytest.raises(fairq.Closed):
            await one.acquire_async()
        assert permit.lost
        permit._give_back()

    run(main())


def test_decorated_functions_hold_a_permit(one: fairq.Limiter, run: Run) -> None:
    @one.limited(max_wait=15)
    async def used(add: int) -> Any:
        return (await one.status_async()).used + add

    @one.limited(max_wait=15)
    async def stream(words: list[str]) -> AsyncIterator[Any]:
        try:
            got = yield one.status().used
            while words:
                try:
                    got = yield (got, words.pop(0))
                except KeyError:
                    got = "thrown"
        finally:
            words.append("closed")

    class Called:
        async def __call__(self) -> int:
            await asyncio.sleep(0)
            return one.status().used

    async def main() -> None:
        assert await used(10) == 11
        await wait_until_async(idle(one))
        assert await one.limited(max_wait=15)(Called())() == 1
        await wait_until_async(idle(one))
        assert await one.limited(max_wait=15)(functools.partial(used.__wrapped__, 20))() == 21
        await wait_until_async(idle(one))
        steps: Any = stream(words := ["a", "b", "c"])
        assert one.status().used == 0
        assert await steps.__anext__() == 1
        assert await steps.asend("sent") == ("sent", "a")
        assert await steps.athrow(KeyError()) == ("thrown", "b")
        await steps.aclose()
        assert words == ["c", "closed"]
        await wait_until_async(idle(one))
        assert [step async for step in stream(["a"])] == [1, (None, "a")]
        await wait_until_async(idle(one))

    run(main())


def test_a_loop_that_is_busy_loses_nothing(client: fairq.Client, name: str, run: Run) -> None:
    """The lease is kept by the library's threads, and grants wait in the queue."""
    short = client.limiter(name, limit=1, lease=0.2)

    async def main() -> None:
        lost: list[fairq.LostPermit] = []
        permit = await short.acquire_async(PATIENCE)
        permit.on_lost(lost.append)
        task = asyncio.ensure_future(short.acquire_async(PATIENCE))
        await wait_until_async(waiting(short, 1))
        time.sleep(0.6)  # three leases, with the loop's thread at work
        assert not permit.lost and short.status().holders == 1
        await permit.release_async()
        time.sleep(0.6)  # with the grant in the queue
        await (await task).release_async()
        assert lost == []

    run(main())


def test_loops_in_many_threads(one: fairq.Limiter, run: Run) -> None:
    rounds = 50
    inside = []

    async def main() -> None:
        async def work() -> None:
            async with one.acquire_async(PATIENCE):
                inside.append(threading.get_ident())
                assert one.status().used == 1
                await asyncio.sleep(0)

        await asyncio.gather(*[work() for _ in range(rounds)])

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(run, main()) for _ in range(4)]:
            done.result()
    assert len(inside) == 4 * rounds
    wait_until(idle(one))


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="elsewhere all is left to the collector")
def test_failures_leave_nothing_to_the_collector(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        async with one.acquire_async():
            gc.collect()
            gc.disable()
            try:
                for _ in range(50):
                    for ask in (one.acquire, one.acquire_async):
                        try:
                            await ask(0)
                        except fairq.TimedOut:
                            pass
                assert gc.collect() < 50
            finally:
                gc.enable()

    run(main())


@pytest.mark.parametrize("how", ["closed", "forgotten"])
@pytest.mark.filterwarnings("ignore:unclosed event loop:ResourceWarning")
def test_a_loop_that_ends_takes_its_requests_along(one: fairq.Limiter, how: str, run: Run, caplog: Any) -> None:
    if run is asyncio.run:
        loop = asyncio.new_event_loop()
    else:
        if how == "forgotten":
            return  # uvloop never lets go of a loop that was not closed
        loop = uvloop_or_skip().new_event_loop()
    first = one.acquire()

    async def main() -> list[Any]:
        tasks = [asyncio.ensure_future(one.acquire_async(math.inf)) for _ in range(3)]
        # A grant that nobody has looked at yet, behind those who wait.
        await wait_until_async(waiting(one, 3))
        return tasks

    tasks = loop.run_until_complete(main())
    first.release()
    if how == "closed":
        loop.close()
    else:
        del tasks, loop
    wait_until(lambda: [gc.collect(), idle(one)()][1])
    for _ in range(3):
        gc.collect()  # PyPy takes its time
    caplog.clear()  # asyncio has noticed that tasks were destroyed


def test_a_mailbox_goes_with_its_loop(one: fairq.Limiter, run: Run) -> None:
    from fairq import _loop

    async def main() -> None:
        async with one.acquire_async():
            pass

    for _ in range(20):
        run(main())

    def left() -> int:
        gc.collect()
        return sum(reference() is not None for reference in _loop._mailboxes.values())

    wait_until(lambda: left() == 0)
    run(main())
    assert len(_loop._mailboxes) <= 1


def test_the_first_requests_of_a_cold_client(url: str, name: str, run: Run) -> None:
    """S48."""

    async def main() -> None:
        async with fairq.Client(url) as client:
            limiter = client.limiter(name, limit=100)
            permits = await asyncio.gather(*[limiter.acquire_async(PATIENCE) for _ in range(100)])
            assert len({permit.fence for permit in permits}) == 100 and limiter.status().used == 100
            await asyncio.gather(*[permit.release_async() for permit in permits])
            assert limiter.status().used == 0

    run(main())


def test_a_grant_is_told_and_not_found_by_chance(client: fairq.Client, name: str, run: Run) -> None:
    """S53: with a poll so rare, only the message can be in time."""
    limiter = client.limiter(name, limit=1, poll=60, lease=300, idle=600)

    async def main() -> None:
        for _ in range(20):
            first = await limiter.acquire_async()
            task = asyncio.ensure_future(limiter.acquire_async(10))
            await wait_until_async(waiting(limiter, 1))
            await first.release_async()
            await (await task).release_async()

    run(main())
