"""A request in an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generator, Optional, Type

from . import _loop
from ._errors import Cancelled, Invalid
from ._permit import Permit
from ._ticket import Position
from ._units import Asked

if TYPE_CHECKING:
    from ._limiter import Limiter


class Acquisition(Coroutine[Any, Any, Permit]):
    """A request for a permit: `await` it for the permit, or use it in `async with`. It starts with the first of these,
    or with `positions()`, and belongs to one event loop.

    When the task that awaits it is cancelled, so is the request: it leaves the line, and a grant that was on its way
    goes back.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_awaited",
        "_cancelled",
        "_coroutine",
        "_limiter",
        "_permit",
        "_positions",
        "_request",
        "_taken",
    )

    def __init__(self, limiter: Limiter, asked: Asked, positions: bool) -> None:
        self._request: Optional[_loop.LoopRequest] = None
        self._limiter = limiter
        self._asked = asked
        self._positions = positions
        self._cancelled = False
        self._awaited = False
        self._taken = False
        self._permit: Optional[Permit] = None
        self._coroutine: Optional[Coroutine[Any, Any, Permit]] = None

    def cancel(self) -> bool:
        """Takes the request back. True: nobody gets a permit from it, and who awaits it gets `Cancelled`. False: it had
        ended, and its permit was taken; so this may end every use of a request. Does not block; the store is told in
        the background. For the loop's thread; others use `loop.call_soon_threadsafe(request.cancel)`.
        """
        if self._taken:
            return False
        if self._request is not None:
            return self._request.cancel()
        self._cancelled = True
        return True

    def positions(self) -> Positions:
        """For `async for`: where the request stands in line, each time that it moves; the first at once when it has to
        wait. Ends when the request does, with or without a permit: then `await` it. Who is too slow misses the older
        ones.

        A task that is cancelled in this loop cancels the request, unless another task awaits it.
        """
        if self._request is not None and not self._positions:
            raise Invalid(
                "positions: the request goes on without; start it by this, or with acquire_async(positions=True)"
            )
        self._positions = True
        return Positions(self)

    def _start(self) -> _loop.LoopRequest:
        mailbox = _loop.running_mailbox()
        if self._request is None:
            if self._cancelled:
                raise Cancelled("cancelled before it was started")
            self._request = mailbox.start(self._limiter, self._asked, self._positions)
        elif self._request.mailbox is not mailbox:
            self._request.mailbox.check_process()
            raise RuntimeError("this request was started in another event loop")
        return self._request

    async def _acquire(self) -> Permit:
        if self._awaited:
            raise RuntimeError("this request was awaited already: it has one permit")
        self._awaited = True
        request = self._start()
        try:
            while not request.settled:
                await request.news()
            return self._take(request)
        except BaseException:  # the task was cancelled, or its loop is gone
            self.cancel()
            raise

    def _take(self, request: _loop.LoopRequest) -> Permit:
        self._taken = True
        permit, request.permit = request.permit, None
        if permit is not None:
            return permit
        error, request.error = request.error, None
        assert error is not None
        try:
            raise error
        finally:
            del error  # or it would refer to itself, by way of its traceback and this frame

    def __del__(self) -> None:
        # Nobody can take the permit any more.
        if not self._taken:
            self.cancel()

    # --- `await`, and what `asyncio.create_task` wants of a coroutine

    @property
    def __name__(self) -> str:  # type: ignore[override, unused-ignore]
        """What a task that runs it is called."""
        return "acquire_async"

    def __await__(self) -> Generator[Any, Any, Permit]:
        return self._acquire().__await__()

    def _running(self) -> Coroutine[Any, Any, Permit]:
        if self._coroutine is None:
            self._coroutine = self._acquire()
        return self._coroutine

    def send(self, value: Any) -> Any:
        """As of any coroutine."""
        return self._running().send(value)

    def throw(self, *error: Any) -> Any:
        """As of any coroutine."""
        return self._running().throw(*error)

    def close(self) -> None:
        """As of any coroutine: whoever would await it has gone."""
        if self._coroutine is not None:
            self._coroutine.close()

    # --- `async with`

    async def __aenter__(self) -> Permit:
        self._permit = await self._acquire()
        return self._permit

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self._permit is not None:
            self._permit._give_back()


class Positions:
    """Where a request stands in line; from `Acquisition.positions`."""

    def __init__(self, acquisition: Acquisition) -> None:
        self._acquisition = acquisition
        self._seen = 0

    def __aiter__(self) -> Positions:
        return self

    async def __anext__(self) -> Position:
        request = self._acquisition._start()
        try:
            while not request.settled:
                if request.moves > self._seen and request.position is not None:
                    self._seen = request.moves
                    return request.position
                await request.news()
        except BaseException:  # as in `_acquire`
            if not self._acquisition._awaited:
                self._acquisition.cancel()
            raise
        raise StopAsyncIteration
