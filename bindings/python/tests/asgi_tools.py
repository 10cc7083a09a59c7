"""What the tests of fairq.asgi share: limiters, and clients that speak ASGI with no server between."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
from contextlib import contextmanager
from typing import Any, Awaitable, Callable, Dict, Iterator, List, MutableMapping, Optional, Tuple

import fairq

PATIENCE = 30  # seconds until a test that waits for something is said to hang
_numbers = itertools.count()


def asynchronous(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that runs in an event loop of its own, and must not hang."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(asyncio.wait_for(test(*args, **kwargs), PATIENCE))

    return run


@contextmanager
def limiter_of(limit: int = 1, **options: Any) -> Iterator[fairq.Limiter]:
    """A limiter in a world of its own."""
    with fairq.Client(f"memory:asgi-{next(_numbers)}") as client:
        limiter = client.limiter("test", limit=limit, **options)
        limiter.acquire().release()  # so that it exists, and has a status
        yield limiter


async def until(condition: Callable[[], Any]) -> None:
    """Looks again and again, for things that nothing tells of."""
    while not condition():
        await asyncio.sleep(0.002)


def standing(limiter: fairq.Limiter) -> Tuple[int, int]:
    """How many hold a permit, and how many wait."""
    status = limiter.status()
    return status.holders, status.waiting


async def until_standing(limiter: fairq.Limiter, holders: int, waiting: int) -> None:
    await until(lambda: standing(limiter) == (holders, waiting))


Message = Dict[str, Any]


class Caller:
    """A client and its server, for one request: what it sends is put in, and what it was sent is kept."""

    def __init__(self, app: Any, path: str = "/", accept: str = "*/*", body: Tuple[bytes, ...] = (b"",), **scope: Any) -> None:
        self.inbox: asyncio.Queue[Message] = asyncio.Queue()
        self.sent: List[Message] = []
        self.fail_to_send: Optional[Exception] = None
        headers = [(b"Accept", accept.encode()), (b"content-type", b"application/json")]
        self.scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", **scope}
        for number, part in enumerate(body, 1):
            self.upload(part, more=number < len(body))
        self._app = app

    def start(self) -> Caller:
        self.task = asyncio.ensure_future(self._app(self.scope, self.inbox.get, self._send))
        return self

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        await asyncio.sleep(0)  # as if it went through a socket
        if self.fail_to_send is not None:
            raise self.fail_to_send
        self.sent.append(dict(message))

    def upload(self, part: bytes, more: bool) -> None:
        self.inbox.put_nowait({"type": "http.request", "body": part, "more_body": more})

    def disconnect(self) -> None:
        self.inbox.put_nowait({"type": "http.disconnect"})

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> Dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for message in self.sent[1:]).decode()

    @property
    def ended(self) -> bool:
        return bool(self.sent) and self.sent[-1]["type"] == "http.response.body" and not self.sent[-1].get("more_body")

    def events(self) -> List[Tuple[str, Any]]:
        return sse_events(self.text)


def sse_events(text: str) -> List[Tuple[str, Any]]:
    """The names and data of the events in a stream; comments are left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            found.append((fields.get("event", "message"), json.loads(fields["data"])))
    return found


class Stream:
    """An application whose response takes as long as the test says."""

    def __init__(self, content_type: bytes = b"text/event-stream", status: int = 200) -> None:
        self.begin = asyncio.Event()
        self.end = asyncio.Event()
        self.leave = asyncio.Event()
        self.calls = 0
        self.left = 0
        self._start = {"type": "http.response.start", "status": status, "headers": [(b"content-type", content_type)]}

    def go(self) -> Stream:
        """Nothing is to wait for."""
        for event in (self.begin, self.end, self.leave):
            event.set()
        return self

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.calls += 1
        try:
            await self.begin.wait()
            await send(self._start)
            await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
            await self.end.wait()
            await send({"type": "http.response.body", "body": b"data: 2\n\n"})
            await self.leave.wait()
        finally:
            self.left += 1
