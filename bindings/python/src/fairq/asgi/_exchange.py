"""One request and its response, and the permits that are held for it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Awaitable, Callable, List, Optional

from .._acquisition import Acquisition
from .._errors import Cancelled, Error, StatusCode
from .._permit import LostPermit, Permit
from ._events import is_refusal, rejection, sse_positions
from ._guard import Guard
from ._inbox import Inbox
from ._reply import Reply
from ._types import Receive, Scope, Send


class Exchange:
    """What a middleware has to do with a request from its begin to its end. It runs in one task, the application's too:
    contexts, scopes and tracebacks are as they would be without it.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, read_ahead: int, stop_when_lost: bool) -> None:
        self.scope = scope
        self.inbox = Inbox(receive, read_ahead)
        self.reply = Reply(send, self._give_back)
        self.refuse_as_event = _accepts_events(scope)
        self._guard = Guard()
        self._stop_when_lost = stop_when_lost
        self._loop = asyncio.get_running_loop()
        self._permits: List[Permit] = []

    async def run(self, work: Callable[[], Awaitable[None]]) -> None:
        """Runs the application, tells of refusals, and gives the permits back on every way out."""
        before = current.set(self)
        try:
            with self._guard:
                await work()
        except Exception as error:
            if isinstance(error, Error) and is_refusal(error) and not self.reply.started:
                await self._refuse(error)
            else:
                await self.reply.finish()
                raise
        else:
            await self.reply.finish()
        finally:
            current.reset(before)
            self._give_back()
            self.inbox.close()

    @property
    def is_open(self) -> bool:
        """Whether the application still runs. What it has started may go on after it, in the same context."""
        return self._guard.is_open

    async def acquire(self, request: Acquisition, keep_alive: Optional[float] = None) -> Permit:
        """Waits in line, as long as the client does; with `keep_alive`, showing it its place."""
        watching = self.inbox.watch(request.cancel)  # which also takes back a grant that nobody has seen yet
        try:
            if keep_alive is not None:
                await self._show(request, keep_alive)
            permit = await request
        finally:
            watching.cancel()
        self.tie(permit)
        return permit

    async def _show(self, request: Acquisition, keep_alive: float) -> None:
        events = sse_positions(request, keep_alive=keep_alive)
        try:
            async for text in events:
                await self._tell(text)
        finally:
            await events.aclose()

    async def _tell(self, text: str) -> None:
        try:
            await self.reply.tell(text)
        except OSError as error:  # as newer servers say it
            raise Cancelled("the client has gone") from error

    def tie(self, permit: Permit) -> None:
        """From now on the permit is given back with the end of the response, at the latest. Any thread may say so."""
        self._permits.append(permit)
        if self._stop_when_lost:
            permit.on_lost(lambda lost: self._stop_soon(permit, lost))

    def _stop_soon(self, permit: Permit, lost: LostPermit) -> None:
        # In whichever thread, and perhaps long after the end.
        if self.is_open:
            self._loop.call_soon_threadsafe(self._stop, permit, lost)

    def _stop(self, permit: Permit, lost: LostPermit) -> None:
        if permit in self._permits:
            self._guard.stop(lost)

    def _give_back(self) -> None:
        while self._permits:
            self._permits.pop()._give_back()

    async def _refuse(self, error: Error) -> None:
        refusal = rejection(error)
        try:
            await self.reply.refuse(refusal, self.refuse_as_event)
        except OSError:
            if error.status is not StatusCode.CANCELLED:
                raise


current: ContextVar[Optional[Exchange]] = ContextVar("fairq.asgi", default=None)
"""What the running code belongs to. In a context, since that reaches where a scope does not."""


def _accepts_events(scope: Scope) -> bool:
    accepted = [bytes(value) for name, value in scope.get("headers", []) if bytes(name).lower() == b"accept"]
    return b"text/event-stream" in b",".join(accepted).lower()
