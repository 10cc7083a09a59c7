"""Permits that are lost while they are held for a response."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import Any, AsyncIterator, List

import pytest
from asgi_tools import Caller, Stream, asynchronous, limiter_of, sse_events, until, until_standing

import fairq
from fairq.asgi import LimitMiddleware, PermitMiddleware, hold

HELD = 0.02  # seconds, after which a permit is taken away in these tests


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream"])
@asynchronous
async def test_an_application_that_has_not_answered_is_stopped_and_the_client_told(accept: str) -> None:
    with limiter_of(1, max_hold=HELD) as limiter:
        app = Stream()
        caller = Caller(LimitMiddleware(app, limiter), accept=accept).start()
        await caller.task
        assert caller.status == 503 and "permit_lost" in caller.text and caller.ended
        assert app.left == 1, "cancelled"
        assert bool(sse_events(caller.text)) if "stream" in accept else caller.text.startswith("{")


@asynchronous
async def test_a_response_that_has_begun_is_cut() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:
        app = Stream()
        app.begin.set()
        caller = Caller(LimitMiddleware(app, limiter)).start()
        with pytest.raises(fairq.PermitLost):
            await caller.task
        assert app.left == 1 and not caller.ended


@asynchronous
async def test_a_permit_of_another_thread_is_watched_as_well() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            permit = await asyncio.get_running_loop().run_in_executor(None, limiter.acquire)
            async for _ in hold(permit, tokens([])):
                await asyncio.Event().wait()

        caller = Caller(PermitMiddleware(app)).start()
        await caller.task
        assert caller.status == 503 and "permit_lost" in caller.text


@asynchronous
async def test_who_was_shown_a_place_is_told_by_an_event() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:
        permit = limiter.acquire()
        caller = Caller(LimitMiddleware(Stream(), limiter, positions=True)).start()
        await until(lambda: len(caller.sent) >= 2)
        permit._give_back()
        await caller.task
        assert caller.events()[-1][0] == "rejected" and caller.ended
        assert caller.events()[-1][1]["error"] == "permit_lost"


@asynchronous
async def test_continue_lets_it_go_on() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:
        app = Stream()
        app.begin.set()
        caller = Caller(LimitMiddleware(app, limiter, on_lost="continue")).start()
        await until(lambda: "fairq.permit" in caller.scope)
        await until(lambda: caller.scope["fairq.permit"].lost)
        app.go()
        await caller.task
        assert caller.ended and caller.status == 200


@asynchronous
async def test_a_permit_that_was_given_back_cannot_be_lost() -> None:
    """In what comes after the response nobody is stopped."""
    with limiter_of(1, max_hold=HELD) as limiter:
        app = Stream()
        app.begin.set()
        app.end.set()
        caller = Caller(LimitMiddleware(app, limiter)).start()
        await until(lambda: caller.ended)
        async with limiter.acquire_async() as other:  # which is lost later than the first one would be
            await other.wait_lost()
        app.leave.set()
        await caller.task


@asynchronous
async def test_an_application_that_swallows_its_cancellation_leaves_none_behind() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await Stream().go()(scope, receive, send)

        caller = Caller(LimitMiddleware(app, limiter))

        async def server() -> int:
            await LimitMiddleware(app, limiter)(caller.scope, caller.inbox.get, caller._send)
            await asyncio.sleep(0)
            task: Any = asyncio.current_task()
            return int(task.cancelling()) if sys.version_info >= (3, 11) else 0

        assert await asyncio.ensure_future(server()) == 0
        assert caller.status == 200


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tasks do not count their cancellations")
@asynchronous
async def test_a_shutdown_at_the_same_time_stays_one() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:
        caller = Caller(PermitMiddleware(Stream()))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            permit = scope["fairq.permit"]
            # In the same turn of the loop in which the middleware stops this.
            permit.on_lost(lambda lost: asyncio.get_running_loop().call_soon(caller.task.cancel))
            await asyncio.Event().wait()

        caller._app = LimitMiddleware(app, limiter)
        caller.start()
        with pytest.raises(asyncio.CancelledError):
            await caller.task


# --- hold


async def tokens(seen: List[str]) -> AsyncIterator[int]:
    try:
        for number in range(3):
            yield number
    finally:
        seen.append("closed")


@asynchronous
async def test_hold_lasts_as_long_as_the_iterator() -> None:
    with limiter_of(1) as limiter:
        seen: List[str] = []
        permit = await limiter.acquire_async()
        got = []
        async for number in hold(permit, tokens(seen)):
            assert permit.is_valid()
            got.append(number)
        assert got == [0, 1, 2] and seen == ["closed"]
        assert permit.state == fairq.PermitState.RELEASED


@pytest.mark.parametrize("steps", [0, 1])
@pytest.mark.parametrize("how", ["closed", "forgotten"])
@asynchronous
async def test_hold_ends_when_the_iterator_does_not(steps: int, how: str) -> None:
    with limiter_of(1) as limiter:
        permit = await limiter.acquire_async()
        held = hold(permit, tokens([]))
        for _ in range(steps):
            await held.__anext__()
        if how == "closed":
            await held.aclose()
        else:
            del held
            gc.collect()
        assert permit.state == fairq.PermitState.RELEASED


@asynchronous
async def test_hold_ends_with_a_fault_and_with_a_cancellation() -> None:
    with limiter_of(2) as limiter:

        async def faulty() -> AsyncIterator[int]:
            yield 1
            raise LookupError("a fault")

        async def endless() -> AsyncIterator[int]:
            await asyncio.Event().wait()
            yield 1

        async def consume(permit: fairq.Permit, body: AsyncIterator[int]) -> None:
            async for _ in hold(permit, body):
                pass

        one, two = await limiter.acquire_async(), await limiter.acquire_async()
        with pytest.raises(LookupError):
            await consume(one, faulty())
        task = asyncio.ensure_future(consume(two, endless()))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert one.state == two.state == fairq.PermitState.RELEASED


@asynchronous
async def test_hold_stops_between_two_items_when_the_permit_is_lost() -> None:
    with limiter_of(1, max_hold=HELD) as limiter:
        permit = await limiter.acquire_async()
        seen: List[str] = []
        held = hold(permit, tokens(seen))
        await held.__anext__()
        await permit.wait_lost()
        with pytest.raises(fairq.PermitLost):
            await held.__anext__()
        assert seen == ["closed"]


@asynchronous
async def test_hold_ends_with_its_request_at_the_latest() -> None:
    """As when a framework drops a stream in the middle, and something still refers to it."""
    with limiter_of(1) as limiter:
        abandoned = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            held = hold(await limiter.acquire_async(), tokens([]))
            abandoned.append(held)
            await held.__anext__()
            await until_standing(limiter, 1, 0)

        await Caller(PermitMiddleware(app)).start().task
        await until_standing(limiter, 0, 0)
