"""The same with a real server and real sockets between."""

from __future__ import annotations

import asyncio
import json
import random
import socket
from contextlib import asynccontextmanager
from typing import Any, AsyncIterator, Dict, List

import pytest
from asgi_tools import Stream, asynchronous, limiter_of, until, until_standing

from fairq.asgi import LimitMiddleware

uvicorn = pytest.importorskip("uvicorn")
# What the server says of the next versions of its own parts is no matter of ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """A server on a port of its own; its applications' faults are the test's to find."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off", ws="none"))
        running = asyncio.ensure_future(server.serve([listening]))
        await until(lambda: server.started)
        try:
            yield listening.getsockname()[1]
        finally:
            server.should_exit = True
            await running


class Browser:
    """A connection, on which one request is made."""

    @classmethod
    async def ask(cls, port: int, *parts: bytes, accept: str = "*/*") -> Browser:
        browser = cls()
        browser._reader, browser._writer = await asyncio.open_connection("127.0.0.1", port)
        length = sum(map(len, parts))
        head = f"POST / HTTP/1.1\r\nHost: test\r\nAccept: {accept}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        browser.write(head.encode())
        for part in parts:
            browser.write(part)
        return browser

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def read_until(self, text: str) -> None:
        await self._reader.readuntil(text.encode())

    async def read_all(self) -> str:
        """The rest of what it gets, with the frames of chunks in it. A cut connection raises no error here."""
        rest = (await self._reader.read()).decode()
        self.leave()
        return rest

    def leave(self) -> None:
        self._writer.transport.abort()


def of(text: str) -> int:
    """The status in a response."""
    return int(text.split(" ", 2)[1])


def headers_of(text: str) -> Dict[str, str]:
    lines = text.split("\r\n\r\n", 1)[0].split("\r\n")[1:]
    return {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}


@asynchronous
async def test_held_to_the_last_byte() -> None:
    with limiter_of(1) as limiter:
        app = Stream()
        app.begin.set()
        async with serving(LimitMiddleware(app, limiter)) as port:
            browser = await Browser.ask(port)
            await browser.read_until("data: 1\n\n")
            await until_standing(limiter, 1, 0)
            app.go()
            assert "data: 2\n\n" in await browser.read_all()
            await until_standing(limiter, 0, 0)


@pytest.mark.parametrize("positions", [False, True])
@asynchronous
async def test_a_client_that_goes_while_waiting_frees_its_place(positions: bool) -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        app = Stream()
        async with serving(LimitMiddleware(app, limiter, positions=positions)) as port:
            browser = await Browser.ask(port)
            await until_standing(limiter, 1, 1)
            if positions:
                await browser.read_until('"position": 1')
            browser.leave()
            await until_standing(limiter, 1, 0)
            assert app.calls == 0


@asynchronous
async def test_a_client_that_goes_in_the_stream_frees_its_permit() -> None:
    responses = pytest.importorskip("starlette.responses")
    with limiter_of(1) as limiter:
        closed = asyncio.Event()

        async def endless() -> AsyncIterator[bytes]:
            try:
                yield b"data: 1\n\n"
                await asyncio.Event().wait()
            finally:
                closed.set()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await responses.StreamingResponse(endless())(scope, receive, send)

        async with serving(LimitMiddleware(app, limiter)) as port:
            browser = await Browser.ask(port)
            await browser.read_until("data: 1")
            browser.leave()
            await until_standing(limiter, 0, 0)
            await closed.wait()


@asynchronous
async def test_refusals_as_clients_see_them() -> None:
    with limiter_of(1, max_queue=0) as limiter, limiter.acquire():
        async with serving(LimitMiddleware(Stream(), limiter)) as port:
            plain = await (await Browser.ask(port)).read_all()
            events = await (await Browser.ask(port, accept="text/event-stream")).read_all()
        assert of(plain) == of(events) == 429
        assert int(headers_of(plain)["retry-after"]) >= 1
        assert '"error": "queue_full"' in plain and "event: rejected" in events
        assert headers_of(events)["content-type"].startswith("text/event-stream")


@asynchronous
async def test_an_upload_waits_with_its_request() -> None:
    """A large one: the server holds it back while the request waits, and the application gets all of it."""
    with limiter_of(1) as limiter:
        parts = [bytes([number]) * 50_000 for number in range(20)]
        got: List[bytes] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            more = True
            while more:
                message = await receive()
                got.append(message["body"])
                more = message["more_body"]
            await Stream().go()(scope, receive, send)

        async with serving(LimitMiddleware(app, limiter)) as port:
            permit = limiter.acquire()
            browser = await Browser.ask(port, *parts)
            await until_standing(limiter, 1, 1)
            permit.release()
            assert of(await browser.read_all()) == 200
        assert b"".join(got) == b"".join(parts)
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_a_failing_application_gives_back_and_the_server_goes_on() -> None:
    with limiter_of(1) as limiter:
        turns: List[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            turns.append("turn")
            if len(turns) == 2:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            if len(turns) <= 2:
                raise LookupError("a fault")
            await Stream().go()(scope, receive, send)

        async with serving(LimitMiddleware(app, limiter)) as port:
            answers = [await (await Browser.ask(port)).read_all() for _ in range(3)]
        assert of(answers[0]) == 500 and not answers[1].endswith("0\r\n\r\n"), "cut"
        assert of(answers[2]) == 200
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_many_wait_in_the_order_in_which_they_came() -> None:
    with limiter_of(1) as limiter:
        order: List[int] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            order.append(scope["fairq.permit"].order)
            await Stream().go()(scope, receive, send)

        async with serving(LimitMiddleware(app, limiter, positions=True)) as port:
            permit = limiter.acquire()
            browsers = [await Browser.ask(port) for _ in range(20)]
            await until_standing(limiter, 1, 20)
            permit.release()
            answers = [await browser.read_all() for browser in browsers]
        assert len(order) == 20 and order == sorted(order)
        assert all("data: 2" in answer for answer in answers)
        places = [json.loads(answer.split("data: ", 1)[1].split("\n")[0])["position"] for answer in answers]
        assert places == list(range(1, 21))
        await until_standing(limiter, 0, 0)


@asynchronous
async def test_two_hundred_clients_that_go_at_random_leave_nothing() -> None:
    chance = random.Random(20)
    with limiter_of(4, max_queue=50) as limiter:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await Stream().go()(scope, receive, send)

        async def visit(port: int) -> None:
            browser = await Browser.ask(port, b"a question")
            if chance.random() < 0.3:
                assert of(await browser.read_all()) in (200, 429)
                return
            if chance.random() < 0.5:
                await browser.read_until("data: ")
            browser.leave()

        async with serving(LimitMiddleware(app, limiter, positions=True)) as port:
            permits = [limiter.acquire() for _ in range(4)]
            visits = [asyncio.ensure_future(visit(port)) for _ in range(200)]
            await until(lambda: limiter.status().waiting > 10 or all(visit.done() for visit in visits))
            for permit in permits:
                permit.release()
            await asyncio.gather(*visits)
            await until_standing(limiter, 0, 0)
