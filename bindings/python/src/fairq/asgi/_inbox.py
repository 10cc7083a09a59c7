"""The way from the client: its messages, on which the line listens before the application does."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Callable, Deque, Optional

from ._types import Message, Receive


class Inbox:
    """The client's messages. Each reaches the application once and in order, whoever has waited for it.

    A `receive()` that the line has begun is never abandoned, since some servers lose a message that way: it goes on in a task
    of its own, and the next who asks gets what it brings.
    """

    def __init__(self, receive: Receive, read_ahead: int) -> None:
        self._receive = receive
        self._room = read_ahead
        self._ended = False
        self._kept: Deque[Message] = deque()
        self._pending: Optional[asyncio.Future[Message]] = None

    def watch(self, when_gone: Callable[[], object]) -> asyncio.Future[None]:
        """Begins to read ahead, and calls back when the client has gone. To be cancelled."""
        watching = asyncio.ensure_future(self._watch(when_gone))
        watching.add_done_callback(look_at_end)
        return watching

    async def _watch(self, when_gone: Callable[[], object]) -> None:
        # After the end of the body nothing comes but the disconnect, however much is kept.
        while not self._kept or self._ended or self._room > 0:
            message = await self._next()
            self._kept.append(message)
            if message["type"] == "http.disconnect":
                when_gone()
                return
            self._room -= len(message.get("body", b""))
            self._ended = not message.get("more_body", False)

    async def receive(self) -> Message:
        """What the application calls."""
        if self._kept:
            message = self._kept.popleft()
            self._room += len(message.get("body", b""))
            return message
        if self._pending is None:
            return await self._receive()
        return await self._next()

    async def _next(self) -> Message:
        while True:
            if self._pending is None:
                self._pending = asyncio.ensure_future(self._receive())
            pending = self._pending
            # What a receive() raises stays in `_pending`, for the application to see.
            message = await asyncio.shield(pending)
            if self._pending is pending:  # else another has taken it meanwhile
                self._pending = None
                return message

    def close(self) -> None:
        """The exchange is over."""
        if self._pending is not None:
            self._pending.add_done_callback(look_at_end)
            self._pending.cancel()


def look_at_end(done: asyncio.Future[Any]) -> None:
    """Nobody waits for it: without this, its failure would be logged as one that nobody has seen."""
    if not done.cancelled():
        done.exception()
