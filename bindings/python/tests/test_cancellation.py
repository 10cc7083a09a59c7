"""Tasks that are cancelled, at every point where a task can be: nothing stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
from typing import Any, Awaitable, Callable

import pytest
from conftest import PATIENCE, Run, idle, wait_until, wait_until_async, waiting

import fairq
from fairq import _loop

Stream = Callable[[fairq.Limiter], Awaitable[None]]


async def with_block(limiter: fairq.Limiter) -> None:
    async with limiter.acquire_async(math.inf):
        for _ in range(3):
            await asyncio.sleep(0)


async def with_positions(limiter: fairq.Limiter) -> None:
    request = limiter.acquire_async(math.inf)
    try:
        async for _ in request.positions():
            await asyncio.sleep(0)
        async with await request:
            for _ in range(3):
                await asyncio.sleep(0)
    finally:
        request.cancel()


async def with_release(limiter: fairq.Limiter) -> None:
    permit = await limiter.acquire_async(math.inf)
    with permit:
        await asyncio.sleep(0)
        with contextlib.suppress(fairq.Stale):
            await permit.release_async()


async def with_watcher(limiter: fairq.Limiter) -> None:
    async with limiter.acquire_async(math.inf) as permit:
        watcher = asyncio.ensure_future(permit.wait_lost())
        try:
            await asyncio.sleep(0)
        finally:
            watcher.cancel()


@pytest.mark.parametrize("stream", [with_block, with_positions, with_release, with_watcher])
def test_streams_cancelled_anywhere_leave_nothing(client: fairq.Client, name: str, run: Run, stream: Stream) -> None:
    """1,000 streams; each is cancelled after another number of the loop's turns, so that all points are met."""
    limiter = client.limiter(name, limit=3)

    async def main() -> None:
        cancelled = finished = 0
        for batch in range(50):
            tasks = [asyncio.ensure_future(stream(limiter)) for _ in range(20)]
            for number, task in enumerate(tasks):
                for _ in range((number + batch) % 5):
                    await asyncio.sleep(0)
                task.cancel()
            for result in await asyncio.gather(*tasks, return_exceptions=True):
                if isinstance(result, asyncio.CancelledError):
                    cancelled += 1
                else:
                    assert result is None
                    finished += 1
        assert cancelled > 0 and cancelled + finished == 1_000
        await wait_until_async(idle(limiter))
        async with limiter.acquire_async(0, cost=3):
            pass

    run(main())
    wait_until(idle(limiter))


class Situation:
    """A task that waits behind a permit."""

    def __init__(self, limiter: fairq.Limiter, first: fairq.Permit, request: fairq.Acquisition) -> None:
        self.limiter = limiter
        self.first = first
        self.request = request
        self.task = asyncio.ensure_future(self.take())
        self.entered = False

    async def take(self) -> None:
        async with self.request:
            self.entered = True
            await asyncio.sleep(PATIENCE)


async def waiting_task(limiter: fairq.Limiter) -> Situation:
    first = await limiter.acquire_async()
    situation = Situation(limiter, first, limiter.acquire_async(math.inf))
    await wait_until_async(waiting(limiter, 1))
    return situation


async def in_line(it: Situation) -> None:
    """It waits."""


async def granted_in_the_queue(it: Situation) -> None:
    """The grant is there, and the loop has not looked."""
    it.first.release()
    # Another's answer comes after the grant's.
    queue = it.limiter.status()
    while queue.waiting:
        queue = it.limiter.status()


async def granted_and_told(it: Situation) -> None:
    """The task's future is set, and the task has not run."""
    it.first.release()
    mailbox = _loop.running_mailbox()
    assert it.request._request is not None
    while not it.request._request.settled:
        mailbox.drain()
    assert not it.entered


async def granted_and_entered(it: Situation) -> None:
    """It is in the block."""
    it.first.release()
    await wait_until_async(lambda: it.entered)


POINTS = [in_line, granted_in_the_queue, granted_and_told, granted_and_entered]


@pytest.mark.parametrize("reach", POINTS)
def test_a_task_cancelled_at_this_point_leaves_nothing(
    one: fairq.Limiter, run: Run, reach: Callable[[Situation], Awaitable[None]]
) -> None:
    async def main() -> None:
        it = await waiting_task(one)
        await reach(it)
        it.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await it.task
        assert it.entered == (reach is granted_and_entered)
        it.first._give_back()
        await wait_until_async(idle(one))

    run(main())


@pytest.mark.parametrize("reach", [in_line, granted_in_the_queue, granted_and_told])
def test_a_request_taken_back_at_this_point_leaves_nothing(
    one: fairq.Limiter, run: Run, reach: Callable[[Situation], Awaitable[None]]
) -> None:
    async def main() -> None:
        it = await waiting_task(one)
        await reach(it)
        assert it.request.cancel()
        with pytest.raises(fairq.Cancelled):
            await it.task
        it.first._give_back()
        await wait_until_async(idle(one))

    run(main())


@pytest.mark.parametrize("reach", [in_line, granted_in_the_queue, granted_and_told])
def test_one_who_only_watches_and_is_cancelled(
    one: fairq.Limiter, run: Run, reach: Callable[[Situation], Awaitable[None]]
) -> None:
    """It takes the request back when nobody awaits it, and else leaves it alone."""

    async def watch(request: fairq.Acquisition) -> None:
        async for _ in request.positions():
            pass

    async def main() -> None:
        first = await one.acquire_async()
        awaited, alone = one.acquire_async(math.inf, positions=True), one.acquire_async(math.inf)
        task = asyncio.ensure_future(awaited)
        watchers = [asyncio.ensure_future(watch(awaited)), asyncio.ensure_future(watch(alone))]
        await wait_until_async(waiting(one, 2))
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
        with pytest.raises(fairq.Cancelled):
            await alone
        await first.release_async()
        await (await task).release_async()

    run(main())
    wait_until(idle(one))


def test_a_wait_for_that_ends_with_the_grant(one: fairq.Limiter, run: Run) -> None:
    """Whichever comes first, the permit is either had or given back."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for round_ in range(100):
            first = await one.acquire_async()
            loop.call_later(round_ * 1e-4, first._give_back)
            try:
                permit = await asyncio.wait_for(one.acquire_async(math.inf), round_ % 10 * 1e-3)
            except asyncio.TimeoutError:
                first._give_back()
            else:
                permit._give_back()
            await wait_until_async(idle(one))

    run(main())


def test_a_request_that_nobody_has_leaves_the_line(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        async with one.acquire_async():
            request = one.acquire_async(math.inf)
            async for _ in request.positions():
                break
            assert one.status().waiting == 1
            del request
            gc.collect()
            await wait_until_async(waiting(one, 0))

    run(main())
    wait_until(idle(one))


def test_nothing_is_known_of_requests_that_have_ended(one: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        mailbox = _loop.running_mailbox()
        first = await one.acquire_async()
        tasks = [asyncio.ensure_future(one.acquire_async(math.inf)) for _ in range(10)]
        await wait_until_async(waiting(one, 10))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await wait_until_async(lambda: not mailbox.pending)
        assert list(mailbox.permits) == [first._token]
        await first.release_async()
        assert not mailbox.permits

    run(main())


class Interrupt(BaseException):
    """As Ctrl-C before Python 3.11, which raises wherever the loop is."""


def test_an_interrupt_in_the_middle_of_the_news_loses_none(one: fairq.Limiter) -> None:
    async def main() -> None:
        mailbox: Any = _loop.running_mailbox()
        first = await one.acquire_async()
        tasks = [asyncio.ensure_future(one.acquire_async(math.inf)) for _ in range(5)]
        await wait_until_async(waiting(one, 5))
        deliver, calls = mailbox._deliver, 0

        def interrupted(event: Any) -> None:
            nonlocal calls
            calls += 1
            if calls % 3 == 1:
                raise Interrupt
            deliver(event)
            if calls % 3 == 2:
                raise Interrupt

        mailbox._deliver = interrupted
        one._client.close()  # five pieces of news at once
        while not all(task.done() for task in tasks):
            with contextlib.suppress(Interrupt):
                mailbox.drain()
            await asyncio.sleep(0)
        assert calls > 5
        for task in tasks:
            assert isinstance(task.exception(), fairq.Closed)
        assert not mailbox.pending and first.lost
        first._give_back()

    asyncio.run(main())


def test_an_interrupt_at_the_start_takes_it_back(one: fairq.Limiter) -> None:
    async def main() -> None:
        mailbox: Any = _loop.running_mailbox()
        deliver = mailbox._deliver

        def interrupted(event: Any) -> None:
            mailbox._deliver = deliver
            raise Interrupt

        mailbox._deliver = interrupted
        try:
            (await one.acquire_async()).release()
        except Interrupt:
            pass
        mailbox.drain()
        await wait_until_async(idle(one))

    asyncio.run(main())
