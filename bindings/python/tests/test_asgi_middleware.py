"""LimitMiddleware: how long the permit is held, and what becomes of it when something ends early."""

from __future__ import annotations

import asyncio
import random
from typing import Any, List

import pytest
from asgi_tools import Caller, Stream, asynchronous, limiter_of, standing, until, until_standing

import fairq
from fairq.asgi import LimitMiddleware


class Listening:
    """An application that goes on until the client has gone."""

    def __init__(self) -> None:
        self.received: List[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        while "http.disconnect" not in self.received:
            self.received.append((await receive())["type"])


@asynchronous
async def test_holds_the_permit_until_the_body_has_gone_out() -> None:
    with limiter_of(1) as limiter:
        app = Stream()
        caller = Caller(LimitMiddleware(app, limiter)).start()
        app.begin.set()
        await until(lambda: len(caller.sent) == 2)
        assert standing(limiter) == (1, 0)
        app.end.set()
        await until_standing(limiter, 0, 0)
        assert caller.ended and app.left == 0, "background tasks go on without the permit"
        app.leave.set()
        await caller.task
        assert (caller.status, caller.text) == (200, "data: 1\n\ndata: 2\n\n")


@asynchronous
async def test_the_next_in_line_begins_when_the_body_has_ended() -> None:
    with limiter_of(1) as limiter:
        first, second = Stream(), Stream().go()
        one = Caller(LimitMiddleware(first, limiter)).start()
        await until_standing(limiter, 1, 0)
        two = Caller(LimitMiddleware(second, limiter)).start()
        await until_standing(limiter, 1, 1)
        assert second.calls == 0
        first.go()
        await asyncio.gather(one.task, two.task)
        assert two.ended and two.status == 200
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_who_disconnects_while_waiting_leaves_the_line() -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        app = Stream().go()
        caller = Caller(LimitMiddleware(app, limiter)).start()
        await until_standing(limiter, 1, 1)
        caller.disconnect()
        await caller.task
        await until_standing(limiter, 1, 0)
        assert app.calls == 0
        assert caller.status == 499, "for the logs: nobody reads it"


@asynchronous
async def test_a_disconnect_in_the_moment_of_the_grant_is_not_lost() -> None:
    """Whichever is seen first: the application is not begun, or hears of it."""
    with limiter_of(1) as limiter:
        served = 0
        for turns in range(12):
            listening = Listening()
            permit = limiter.acquire()
            caller = Caller(LimitMiddleware(listening, limiter)).start()
            await until_standing(limiter, 1, 1)
            caller.disconnect()
            for _ in range(turns):
                await asyncio.sleep(0)
            permit.release()
            await caller.task
            await until_standing(limiter, 0, 0)
            assert listening.received in ([], ["http.request", "http.disconnect"])
            served += len(listening.received) > 0
        assert served < 12, "in the last of them the disconnect is seen first"


@asynchronous
async def test_a_disconnect_reaches_the_application_that_streams() -> None:
    with limiter_of(1) as limiter:
        listening = Listening()
        caller = Caller(LimitMiddleware(listening, limiter)).start()
        await until_standing(limiter, 1, 0)
        caller.disconnect()
        await caller.task
        assert listening.received == ["http.request", "http.disconnect"]
        await until_standing(limiter, 0, 0)


@pytest.mark.parametrize("begun", [False, True], ids=["before its response", "in its response"])
@asynchronous
async def test_an_application_that_raises_gives_the_permit_back(begun: bool) -> None:
    with limiter_of(1) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if begun:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            raise LookupError("a fault")

        caller = Caller(LimitMiddleware(app, limiter)).start()
        with pytest.raises(LookupError, match="a fault"):
            await caller.task
        assert len(caller.sent) == begun, "the framework tells of it, not the middleware"
        await until_standing(limiter, 0, 0)


@pytest.mark.parametrize("waiting", [True, False], ids=["waiting", "streaming"])
@asynchronous
async def test_a_server_that_shuts_down_cancels(waiting: bool) -> None:
    with limiter_of(1) as limiter:
        app = Stream()
        if waiting:
            permit = limiter.acquire()
        caller = Caller(LimitMiddleware(app, limiter)).start()
        await until_standing(limiter, 1, int(waiting))
        caller.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller.task
        if waiting:
            permit.release()
        await until_standing(limiter, 0, 0)
        assert app.left == app.calls == (0 if waiting else 1)


@asynchronous
async def test_two_hundred_that_end_at_random_leave_nothing() -> None:
    """Disconnects, cancellations and plain ends, in any moment of waiting and streaming."""
    chance = random.Random(20)
    with limiter_of(3) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            listening = asyncio.ensure_future(_until_disconnect(receive))
            try:
                await send({"type": "http.response.start", "status": 200, "headers": []})
                for _ in range(chance.randrange(20)):
                    if listening.done():
                        return
                    await send({"type": "http.response.body", "body": b"token", "more_body": True})
                await send({"type": "http.response.body", "body": b""})
            finally:
                listening.cancel()

        shown, plain = (LimitMiddleware(app, limiter, positions=positions) for positions in (True, False))
        callers = [Caller(chance.choice([shown, plain])).start() for _ in range(200)]
        restless = list(callers)
        while restless:
            await asyncio.sleep(0)
            for _ in range(chance.randrange(4)):
                if restless:
                    caller = restless.pop(chance.randrange(len(restless)))
                    chance.choice([caller.disconnect, caller.task.cancel, lambda: None])()
        await asyncio.gather(*(caller.task for caller in callers), return_exceptions=True)
        await until_standing(limiter, 0, 0)
        for caller in callers:
            assert caller.task.cancelled() or caller.task.exception() is None


async def _until_disconnect(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@asynchronous
async def test_other_scopes_pass_untouched() -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        seen = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append((scope, receive, send))

        middleware = LimitMiddleware(app, limiter)
        for kind in ("websocket", "lifespan"):
            passed: Any = ({"type": kind, "path": "/"}, object(), object())
            await middleware(*passed)
            assert all(one is other for one, other in zip(seen.pop(), passed))


@pytest.mark.parametrize(
    ("when", "limited", "free"),
    [
        ("/ask", ["/ask", "/ask/", "/ask/more"], ["/", "/asking", "/other"]),
        (["/a", "/b/"], ["/a", "/b", "/b/c"], ["/", "/c", "/ab"]),
        ("/", ["/", "/x"], []),
        (lambda scope: scope["path"] == "/x", ["/x"], ["/", "/x/"]),
        (None, ["/", "/x"], []),
    ],
)
@asynchronous
async def test_when_says_which_requests(when: Any, limited: Any, free: Any) -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        middleware = LimitMiddleware(Stream().go(), limiter, when=when, max_wait=0)
        for path in limited + free:
            caller = Caller(middleware, path=path).start()
            await caller.task
            assert caller.status == (429 if path in limited else 200), path


@asynchronous
async def test_what_is_asked_for_may_depend_on_the_request() -> None:
    with limiter_of(9) as limiter:
        app = Stream()
        middleware = LimitMiddleware(
            app,
            lambda scope: limiter,
            cost=lambda scope: len(scope["path"]),
            label=lambda scope: "é" * 200 + "\udcff",  # more than fits, and none that is text
        )
        caller = Caller(middleware, path="/four").start()
        await until(lambda: app.calls)
        permit = caller.scope["fairq.permit"]
        assert isinstance(permit, fairq.Permit) and permit.is_valid() and permit.cost == 5
        assert limiter.status().used == 5
        app.go()
        await caller.task


def test_a_wrong_option_is_refused_at_once() -> None:
    with limiter_of(1) as limiter, pytest.raises(ValueError, match="on_lost"):
        LimitMiddleware(_nothing, limiter, on_lost="ignore")


async def _nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application."""
