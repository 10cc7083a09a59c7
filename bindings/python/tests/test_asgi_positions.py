"""Event streams that begin with the place in line."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asgi_tools import Caller, Stream, asynchronous, limiter_of, sse_events, until, until_standing

import fairq
from fairq.asgi import LimitMiddleware, rejection, sse_positions

ANSWER = "data: 1\n\ndata: 2\n\n"


@asynchronous
async def test_the_line_speaks_first_then_the_application() -> None:
    with limiter_of(1) as limiter:
        permit = limiter.acquire()
        middleware = LimitMiddleware(Stream().go(), limiter, positions=True)
        first = Caller(middleware).start()
        await until_standing(limiter, 1, 1)
        second = Caller(middleware).start()
        await until(lambda: first.sent[1:] and second.sent[1:])
        assert second.status == 200
        assert second.headers["content-type"].startswith("text/event-stream")
        assert second.headers["cache-control"] == "no-cache"
        assert second.headers["x-accel-buffering"] == "no"
        assert [name for name, _ in second.events()] == ["position"]
        assert second.events()[0][1]["position"] == 2 and "estimate" in second.events()[0][1]
        permit.release()
        await asyncio.gather(first.task, second.task)
        for caller in (first, second):
            starts = [message for message in caller.sent if message["type"] == "http.response.start"]
            assert len(starts) == 1 and caller.ended
            assert caller.text.endswith(ANSWER)
        places = [data["position"] for name, data in second.events() if name == "position"]
        assert places in ([2], [2, 1]), "who is too slow misses some"
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_who_need_not_wait_gets_the_response_as_it_is() -> None:
    with limiter_of(1) as limiter:
        caller = Caller(LimitMiddleware(Stream(b"text/plain", 201).go(), limiter, positions=True)).start()
        await caller.task
        assert (caller.status, caller.text) == (201, ANSWER)
        assert caller.headers == {"content-type": "text/plain"}


async def waited(limiter: fairq.Limiter, app: Any, **options: Any) -> Caller:
    """Someone whose place was shown, and who has the permit now."""
    permit = limiter.acquire()
    caller = Caller(LimitMiddleware(app, limiter, positions=True, **options)).start()
    await until(lambda: len(caller.sent) >= 2)
    permit.release()
    return caller


@pytest.mark.parametrize(("content_type", "status"), [(b"application/json", 200), (b"text/event-stream", 503)])
@asynchronous
async def test_what_is_no_event_stream_cannot_follow(content_type: bytes, status: int) -> None:
    with limiter_of(1) as limiter:
        caller = await waited(limiter, Stream(content_type, status).go())
        await caller.task
        name, data = caller.events()[-1]
        assert name == "failed" and data["status"] == status
        assert caller.ended and "data: 1" not in caller.text
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_what_is_compressed_cannot_follow() -> None:
    with limiter_of(1) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            headers = [(b"Content-Type", b"text/event-stream"), (b"Content-Encoding", b"gzip")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"\x1f\x8b"})

        caller = await waited(limiter, app)
        await caller.task
        assert caller.events()[-1][0] == "failed" and caller.ended


@asynchronous
async def test_what_only_a_response_of_its_own_could_have_is_left_out() -> None:
    with limiter_of(1) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.early_hint", "links": []})
            await Stream().go()(scope, receive, send)
            await send({"type": "http.response.trailers", "headers": []})

        caller = await waited(limiter, app)
        await caller.task
        assert {message["type"] for message in caller.sent} == {"http.response.start", "http.response.body"}
        assert caller.text.endswith(ANSWER)


@pytest.mark.parametrize("raises", [True, False])
@asynchronous
async def test_a_stream_that_has_begun_is_ended_when_the_application_fails(raises: bool) -> None:
    with limiter_of(1) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if raises:
                raise LookupError("a fault")

        caller = await waited(limiter, app)
        await asyncio.wait([caller.task])
        assert isinstance(caller.task.exception(), LookupError) == raises
        name, data = caller.events()[-1]
        assert (name, data["status"]) == ("failed", 500) and caller.ended
        assert "a fault" not in caller.text
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_a_fault_is_not_hidden_by_a_client_that_has_gone() -> None:
    with limiter_of(1) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            caller.fail_to_send = OSError("the client has gone")
            raise LookupError("a fault")

        caller = await waited(limiter, app)
        with pytest.raises(LookupError, match="a fault"):
            await caller.task


@asynchronous
async def test_a_refusal_after_a_wait_is_an_event() -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        caller = Caller(LimitMiddleware(Stream(), limiter, positions=True)).start()
        await until(lambda: len(caller.sent) >= 2)
        limiter._client.close()
        await caller.task
        assert caller.status == 200 and caller.ended
        assert caller.events()[-1] == ("rejected", rejection(fairq.Closed("")).data())


@asynchronous
async def test_quiet_times_are_filled_with_comments() -> None:
    with limiter_of(1) as limiter:
        permit = limiter.acquire()
        caller = Caller(LimitMiddleware(Stream().go(), limiter, positions=True, keep_alive=0.005)).start()
        await until(lambda: caller.text.count(": keep-alive\n\n") >= 3)
        permit.release()
        await caller.task
        assert caller.text.endswith(ANSWER)
        assert [name for name, _ in caller.events()][:1] == ["position"]


@pytest.mark.parametrize("how", ["inbox", "send"])
@asynchronous
async def test_a_disconnect_ends_the_wait(how: str) -> None:
    """Servers tell of it by receive(), newer ones by send() too."""
    with limiter_of(1) as limiter, limiter.acquire():
        app = Stream()
        caller = Caller(LimitMiddleware(app, limiter, positions=True, keep_alive=0.005)).start()
        await until(lambda: len(caller.sent) >= 2)
        if how == "inbox":
            caller.disconnect()
        else:
            caller.fail_to_send = OSError("the client has gone")
        await caller.task
        await until_standing(limiter, 1, 0)
        assert app.calls == 0


@asynchronous
async def test_a_cancellation_ends_the_wait() -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        caller = Caller(LimitMiddleware(Stream(), limiter, positions=True)).start()
        await until(lambda: len(caller.sent) >= 2)
        caller.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller.task
        await until_standing(limiter, 1, 0)


# --- sse_positions, by itself


@asynchronous
async def test_sse_positions_ends_with_the_wait() -> None:
    with limiter_of(1) as limiter:
        permit = limiter.acquire()
        request = limiter.acquire_async()
        texts = []
        async for text in sse_positions(request):
            texts.append(text)
            permit.release()
        assert [name for name, _ in sse_events("".join(texts))] == ["position"]
        async with await request:
            pass


@asynchronous
async def test_sse_positions_of_who_need_not_wait_are_none() -> None:
    with limiter_of(1) as limiter:
        request = limiter.acquire_async()
        assert [text async for text in sse_positions(request)] == []
        async with await request:
            pass


@pytest.mark.parametrize("keep_alive", [0.001, 60])
@asynchronous
async def test_sse_positions_that_are_closed_cancel(keep_alive: float) -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        request = limiter.acquire_async()
        positions = sse_positions(request, keep_alive=keep_alive)
        while "position" not in await positions.__anext__():
            pass
        if keep_alive < 1:
            assert await positions.__anext__() == ": keep-alive\n\n"
        await positions.aclose()
        await until_standing(limiter, 1, 0)
        with pytest.raises(fairq.Cancelled):
            await request


@asynchronous
async def test_sse_positions_whose_task_is_cancelled_cancel() -> None:
    with limiter_of(1) as limiter, limiter.acquire():

        async def show(request: fairq.Acquisition) -> None:
            async for _ in sse_positions(request):
                pass

        task = asyncio.ensure_future(show(limiter.acquire_async()))
        await until_standing(limiter, 1, 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_standing(limiter, 1, 0)
