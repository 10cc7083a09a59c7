"""Limited, PermitMiddleware and hold in FastAPI and Starlette, whatever their versions do after a response."""

from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator, Dict

import pytest
from asgi_tools import Caller, asynchronous, limiter_of, standing, until, until_standing

import fairq
from fairq.asgi import Limited, LimitMiddleware, PermitMiddleware, hold

fastapi = pytest.importorskip("fastapi")
responses = pytest.importorskip("starlette.responses")
base = pytest.importorskip("starlette.middleware.base")
# What the frameworks say of each other's next versions is no matter of ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Tokens:
    """A stream that goes on when it is told."""

    def __init__(self) -> None:
        self.more = asyncio.Event()
        self.closed = asyncio.Event()

    async def stream(self) -> AsyncIterator[bytes]:
        try:
            yield b"data: 1\n\n"
            await self.more.wait()
            yield b"data: 2\n\n"
        finally:
            self.closed.set()


def application(limiter: fairq.Limiter, tokens: Tokens, middleware: bool = True) -> Any:
    """Its endpoints hold a permit in different ways."""
    app = fastapi.FastAPI()
    limited = Limited(lambda scope: limiter, max_wait=30, label="asked by FastAPI")
    if middleware:
        app.add_middleware(PermitMiddleware)

    def answer() -> Any:
        return responses.StreamingResponse(tokens.stream(), media_type="text/event-stream")

    @app.post("/route", dependencies=[fastapi.Depends(limited)])
    async def route() -> Any:
        return answer()

    @app.post("/parameter")
    async def parameter(permit: fairq.Permit = fastapi.Depends(limited)) -> Any:
        assert permit.is_valid()
        return answer()

    @app.post("/thread", dependencies=[fastapi.Depends(limited)])
    def thread() -> Any:
        return answer()

    @app.post("/hold")
    async def holding() -> Any:
        permit = await limiter.acquire_async(30)
        return responses.StreamingResponse(hold(permit, tokens.stream()), media_type="text/event-stream")

    @app.post("/hold-in-thread")
    def holding_in_thread() -> Any:
        permit = limiter.acquire(30)
        return responses.StreamingResponse(hold(permit, tokens.stream()), media_type="text/event-stream")

    @app.post("/body", dependencies=[fastapi.Depends(limited)])
    async def body(question: Dict[str, str]) -> Any:
        return question

    @app.post("/fault", dependencies=[fastapi.Depends(limited)])
    async def fault() -> Any:
        raise LookupError("a fault")

    return app


class Between(base.BaseHTTPMiddleware):  # type: ignore[misc,name-defined]
    """Runs what is inside of it in another task."""

    async def dispatch(self, request: Any, call_next: Any) -> Any:
        return await call_next(request)


WAYS = ["/route", "/parameter", "/thread", "/hold", "/hold-in-thread"]


@pytest.mark.parametrize("between", [False, True], ids=["plain", "behind a BaseHTTPMiddleware"])
@pytest.mark.parametrize("path", WAYS)
@asynchronous
async def test_the_permit_is_held_until_the_body_has_gone_out(path: str, between: bool) -> None:
    with limiter_of(1) as limiter:
        tokens = Tokens()
        app = application(limiter, tokens)
        if between:
            app.add_middleware(Between)
        caller = Caller(app, path=path).start()
        await until(lambda: "data: 1" in caller.text)
        assert standing(limiter) == (1, 0)
        other = Caller(app, path=path).start()
        await until_standing(limiter, 1, 1)
        tokens.more.set()
        await asyncio.gather(caller.task, other.task)
        for done in (caller, other):
            assert done.status == 200 and done.text == "data: 1\n\ndata: 2\n\n" and done.ended
        await until_standing(limiter, 0, 0)


@pytest.mark.parametrize("path", WAYS)
@asynchronous
async def test_who_disconnects_in_the_stream_gives_the_permit_back(path: str) -> None:
    with limiter_of(1) as limiter:
        tokens = Tokens()
        caller = Caller(application(limiter, tokens), path=path).start()
        await until(lambda: "data: 1" in caller.text)
        caller.disconnect()
        await caller.task
        await until_standing(limiter, 0, 0)
        await tokens.closed.wait()


@pytest.mark.parametrize("path", ["/route", "/parameter", "/thread", "/body"])
@asynchronous
async def test_who_disconnects_while_waiting_leaves_the_line(path: str) -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        caller = Caller(application(limiter, Tokens()), path=path, body=(b"{}",)).start()
        await until_standing(limiter, 1, 1)
        caller.disconnect()
        await caller.task
        await until_standing(limiter, 1, 0)


@asynchronous
async def test_a_body_in_parts_is_read_before_and_after() -> None:
    with limiter_of(1) as limiter:
        for middleware in (application(limiter, Tokens()), LimitMiddleware(echo, limiter)):
            permit = limiter.acquire()
            caller = Caller(middleware, path="/body", body=(b'{"q": ', b'"why', b'?"}')).start()
            await until_standing(limiter, 1, 1)
            permit.release()
            await caller.task
            assert caller.status == 200 and json.loads(caller.text) == {"q": "why?"}
            await until_standing(limiter, 0, 0)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    request = fastapi.Request(scope, receive)
    await responses.JSONResponse(await request.json())(scope, receive, send)


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream"])
@asynchronous
async def test_a_refusal_is_told_as_everywhere(accept: str) -> None:
    with limiter_of(1, max_queue=0) as limiter, limiter.acquire():
        caller = Caller(application(limiter, Tokens()), path="/route", accept=accept).start()
        await caller.task
        assert caller.status == 429 and "queue_full" in caller.text and "retry-after" in caller.headers
        assert caller.text.startswith("{") == (accept == "*/*")


@asynchronous
async def test_an_application_may_tell_it_otherwise() -> None:
    with limiter_of(1, max_queue=0) as limiter, limiter.acquire():
        app = application(limiter, Tokens())

        @app.exception_handler(fairq.QueueFull)
        async def busy(request: Any, error: fairq.QueueFull) -> Any:
            return responses.PlainTextResponse("busy", 503)

        caller = Caller(app, path="/route").start()
        await caller.task
        assert (caller.status, caller.text) == (503, "busy")


@asynchronous
async def test_an_endpoint_that_fails_gives_the_permit_back() -> None:
    with limiter_of(1) as limiter:
        caller = Caller(application(limiter, Tokens()), path="/fault").start()
        with pytest.raises(LookupError):
            await caller.task
        assert caller.status == 500
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_without_the_middleware_it_says_what_is_missing() -> None:
    with limiter_of(1) as limiter:
        caller = Caller(application(limiter, Tokens(), middleware=False), path="/route").start()
        with pytest.raises(RuntimeError, match="add_middleware.*PermitMiddleware"):
            await caller.task
        assert standing(limiter) == (0, 0)


@asynchronous
async def test_what_goes_on_after_its_request_cannot_use_its_place() -> None:
    with limiter_of(1) as limiter:
        over, late = asyncio.Event(), []

        async def later() -> None:
            await over.wait()
            await Limited(limiter)()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            late.append(asyncio.ensure_future(later()))

        await PermitMiddleware(app)(Caller(app).scope, asyncio.Queue().get, None)  # type: ignore[arg-type]
        over.set()
        with pytest.raises(RuntimeError, match="PermitMiddleware"):
            await late[0]
