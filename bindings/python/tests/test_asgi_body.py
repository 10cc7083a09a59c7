"""The request's body, of which the middleware reads some while the request waits."""

from __future__ import annotations

import asyncio
from typing import Any, List

import pytest
from asgi_tools import Caller, Stream, asynchronous, limiter_of, until, until_standing

from fairq.asgi import Limited, LimitMiddleware


class Reading:
    """An application that reads its whole body."""

    def __init__(self) -> None:
        self.parts: List[bytes] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            assert message["type"] == "http.request"
            self.parts.append(message["body"])
            more = message["more_body"]
        await Stream().go()(scope, receive, send)


PARTS = tuple(b"%06d" % number for number in range(8))


@pytest.mark.parametrize("read_ahead", [0, 1, 13, 10_000])
@asynchronous
async def test_the_body_comes_whole_and_in_order_after_a_wait(read_ahead: int) -> None:
    with limiter_of(1) as limiter:
        permit = limiter.acquire()
        app = Reading()
        caller = Caller(LimitMiddleware(app, limiter, read_ahead=read_ahead), body=PARTS).start()
        await until_standing(limiter, 1, 1)
        permit.release()
        await caller.task
        assert tuple(app.parts) == PARTS and caller.status == 200


@pytest.mark.parametrize(("read_ahead", "kept"), [(0, 1), (1, 1), (6, 1), (7, 2), (12, 2), (13, 3), (10_000, 8)])
@asynchronous
async def test_no_more_is_read_ahead_than_allowed_and_a_message(read_ahead: int, kept: int) -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        caller = Caller(LimitMiddleware(Reading(), limiter, read_ahead=read_ahead), body=PARTS).start()
        await until_standing(limiter, 1, 1)
        await until(lambda: caller.inbox.qsize() <= len(PARTS) - kept)
        for _ in range(20):  # as many turns as it could want for another
            await asyncio.sleep(0)
        assert caller.inbox.qsize() == len(PARTS) - kept
        caller.task.cancel()
        await asyncio.wait([caller.task])


@asynchronous
async def test_a_second_limit_reads_no_more_than_the_first() -> None:
    with limiter_of(1) as limiter, limiter_of(1) as other, other.acquire():
        limited = Limited(other)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await limited()

        permit = limiter.acquire()
        caller = Caller(LimitMiddleware(app, limiter, read_ahead=1), body=PARTS).start()
        await until_standing(limiter, 1, 1)
        await until(lambda: caller.inbox.qsize() == len(PARTS) - 1)
        for _ in range(20):  # until it is kept
            await asyncio.sleep(0)
        permit.release()
        await until_standing(other, 1, 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert caller.inbox.qsize() == len(PARTS) - 1
        caller.task.cancel()
        await asyncio.wait([caller.task])
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_a_disconnect_is_noticed_after_a_body_as_long_as_it_likes() -> None:
    """Once the body has ended there is nothing to hold back."""
    with limiter_of(1) as limiter, limiter.acquire():
        caller = Caller(LimitMiddleware(Reading(), limiter, read_ahead=1), body=(b"x" * 100_000,)).start()
        await until_standing(limiter, 1, 1)
        caller.disconnect()
        await caller.task
        await until_standing(limiter, 1, 0)


@asynchronous
async def test_a_part_that_comes_in_the_moment_of_the_grant_is_not_lost() -> None:
    """The middleware is at a receive() when the wait ends: what it brings is the application's."""
    with limiter_of(1) as limiter:
        for turns in range(12):
            app = Reading()
            permit = limiter.acquire()
            caller = Caller(LimitMiddleware(app, limiter), body=())
            caller.upload(b"first", more=True)
            caller.start()
            await until_standing(limiter, 1, 1)
            permit.release()
            for _ in range(turns):
                await asyncio.sleep(0)
            caller.upload(b"second", more=True)
            caller.upload(b"third", more=False)
            await caller.task
            assert app.parts == [b"first", b"second", b"third"]


@asynchronous
async def test_who_stops_listening_and_listens_again_misses_nothing() -> None:
    """Frameworks cancel their receive() when a stream has ended, or to look only for a moment."""
    with limiter_of(1) as limiter:
        parts = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            for _ in range(3):
                for _ in range(3):
                    glance = asyncio.ensure_future(receive())
                    await asyncio.sleep(0)
                    glance.cancel()
                    await asyncio.wait([glance])
                    if not glance.cancelled():
                        parts.append(glance.result()["body"])
            while len(parts) < 3:
                parts.append((await receive())["body"])

        permit = limiter.acquire()
        caller = Caller(LimitMiddleware(app, limiter), body=()).start()
        await until_standing(limiter, 1, 1)  # the middleware is at a receive() that the application takes over
        permit.release()
        for part in (b"1", b"2", b"3"):
            await asyncio.sleep(0)
            caller.upload(part, more=part != b"3")
        await caller.task
        assert parts == [b"1", b"2", b"3"]


@asynchronous
async def test_two_that_listen_get_each_message_once() -> None:
    with limiter_of(1) as limiter:
        parts: List[bytes] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            both = await asyncio.gather(receive(), receive())
            parts.extend(message["body"] for message in both)

        permit = limiter.acquire()
        caller = Caller(LimitMiddleware(app, limiter), body=()).start()
        await until_standing(limiter, 1, 1)  # the middleware is at a receive() that the application takes over
        permit.release()
        await until(lambda: "fairq.permit" in caller.scope)
        caller.upload(b"1", more=True)
        caller.upload(b"2", more=False)
        await caller.task
        assert sorted(parts) == [b"1", b"2"]


@asynchronous
async def test_nothing_is_left_running() -> None:
    with limiter_of(1) as limiter:
        before = asyncio.all_tasks()
        permit = limiter.acquire()
        caller = Caller(LimitMiddleware(Stream().go(), limiter)).start()
        await until_standing(limiter, 1, 1)  # the middleware is at a receive() that nobody takes over
        permit.release()
        await caller.task
        await until(lambda: asyncio.all_tasks() == before)


@asynchronous
async def test_a_receive_that_fails_is_the_applications_to_see() -> None:
    with limiter_of(1) as limiter:
        permit = limiter.acquire()

        async def receive() -> Any:
            raise LookupError("a fault of the server")

        app = Reading()
        caller = Caller(LimitMiddleware(app, limiter))
        task = asyncio.ensure_future(LimitMiddleware(app, limiter)(caller.scope, receive, caller._send))
        await until_standing(limiter, 1, 1)
        permit.release()
        with pytest.raises(LookupError, match="a fault of the server"):
            await task
        await until_standing(limiter, 0, 0)
