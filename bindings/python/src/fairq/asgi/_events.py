"""What clients are told: their place in line, and refusals."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from typing import Any, AsyncGenerator, Dict, Mapping, NamedTuple, Optional, Tuple

from .._acquisition import Acquisition
from .._errors import Error, StatusCode
from ._inbox import look_at_end

log = logging.getLogger("fairq.asgi")

KEEP_ALIVE = 15.0
"""Seconds between comments in an event stream that has nothing else to say. Proxies often cut after 30 or 60."""

_RETRY_AFTER = 5.0
"""Seconds for `Retry-After` where nothing better is known."""

_AWAY = "The service is not available at the moment."
_REFUSALS: Dict[StatusCode, Tuple[int, str]] = {
    StatusCode.QUEUE_FULL: (429, "Too many are waiting already."),
    StatusCode.TIMED_OUT: (429, "No place became free in time."),
    StatusCode.CLOSED: (503, "The service is shutting down."),
    StatusCode.UNAVAILABLE: (503, _AWAY),
    StatusCode.OVERLOADED: (503, _AWAY),
    StatusCode.CONFIGURATION: (503, _AWAY),
    StatusCode.NO_SUCH_LIMITER: (503, _AWAY),
    StatusCode.SERVER: (503, _AWAY),
    StatusCode.REVOKED: (503, "An operator took the place in line away."),
    StatusCode.PERMIT_LOST: (503, "The request lost its place."),
    StatusCode.IMPOSSIBLE: (400, "The request costs more than is ever admitted."),
    StatusCode.CANCELLED: (499, "The client went away."),
}


class Rejection(NamedTuple):
    """A refusal as HTTP has it; the table is in the documentation of `fairq.asgi`."""

    status: int
    """The status of the response."""
    error: str
    """The name that programs go by: `queue_full`, `timed_out` …"""
    message: str
    """For people."""
    retry_after: Optional[int]
    """Whole seconds; `None` where trying again does not help."""

    @property
    def headers(self) -> Dict[str, str]:
        """`Retry-After`, where there is one."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def data(self) -> Dict[str, Any]:
        """The body of a response, or the data of an event."""
        return {"error": self.error, "message": self.message, "retry_after": self.retry_after}

    def event(self) -> str:
        """The SSE event `rejected`. An `EventSource` that is not closed comes back after `retry`."""
        retry = "" if self.retry_after is None else f"retry: {self.retry_after * 1000}\n"
        return retry + event("rejected", self.data())


def is_refusal(error: Error) -> bool:
    """Whether it is for clients, and no mistake in the program."""
    return error.status in _REFUSALS


def rejection(error: Error) -> Rejection:
    """The refusal that tells a client of `error`. An error that is a mistake in the program is raised instead."""
    if not is_refusal(error):
        raise error
    status, message = _REFUSALS[error.status]
    retry_after = None
    if status in (429, 503):
        known = error.retry_after
        retry_after = max(1, math.ceil(_RETRY_AFTER if known is None else known))
    if status == 503:
        log.warning("refused a request: %s", error)
    return Rejection(status, error.status.name.lower(), message, retry_after)


def event(name: str, data: Mapping[str, Any]) -> str:
    """An SSE event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


async def sse_positions(request: Acquisition, *, keep_alive: float = KEEP_ALIVE) -> AsyncGenerator[str, None]:
    """SSE for who waits: an event `position` for each new place in line, and a comment after `keep_alive` quiet seconds.

    It ends when the request has: then `await request` returns the permit or raises. Closing it before that, or
    cancelling who iterates, cancels the request.

        request = limiter.acquire_async(max_wait=15)
        async for text in sse_positions(request):
            yield text
        try:
            permit = await request
        except fairq.Error as error:
            yield rejection(error).event()
            return
        async for token in hold(permit, model.stream(question)):
            yield f"data: {token}\\n\\n"
    """
    positions = request.positions()
    step: Optional[asyncio.Future[Any]] = None
    try:
        while True:
            # Not wait_for, which would cancel the step, and with it the iterator.
            step = step or asyncio.ensure_future(positions.__anext__())
            await asyncio.wait([step], timeout=keep_alive)
            if not step.done():
                yield ": keep-alive\n\n"
                continue
            try:
                position = step.result()
            except StopAsyncIteration:
                return
            step = None
            yield event("position", {"position": position.position, "estimate": position.estimate})
    except (GeneratorExit, asyncio.CancelledError):
        request.cancel()
        raise
    finally:
        if step is not None:
            step.add_done_callback(look_at_end)
            step.cancel()

