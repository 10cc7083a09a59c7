"""A held slot."""

from __future__ import annotations

import asyncio
import enum
import logging
import sys
import warnings
from ctypes import byref
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Callable, List, Optional, Protocol, Type

from . import _abi, _process
from ._errors import Error, Stale, fail
from ._library import fq

if TYPE_CHECKING:
    from ._limiter import Limiter

_finalizing = sys.is_finalizing

_Watcher = Callable[[Optional["LostPermit"]], None]
"""Told once: what happened to a permit, or `None` when it was given back in time."""


class PermitState(enum.IntEnum):
    """How a permit stands: a local, conservative judgement."""

    VALID = _abi.FQ_PERMIT_STATE_VALID
    """Held, and confirmed within the lease."""
    UNCONFIRMED = _abi.FQ_PERMIT_STATE_UNCONFIRMED
    """Held as far as is known, but the store has been silent for a lease: others may have the slot."""
    LOST = _abi.FQ_PERMIT_STATE_LOST
    """Lost; guarded work has to stop."""
    RELEASED = _abi.FQ_PERMIT_STATE_RELEASED
    """Given back."""


@dataclass(frozen=True)
class LostPermit:
    """That a permit was lost, and why."""

    fence: int
    """Which permit it was."""
    reason: str
    """Why it was lost, in a sentence."""
    error: Error
    """The same as an exception, to be raised: a `PermitLost`."""


class Home(Protocol):
    """Where news of a permit arrive."""

    def permit_gone(self, permit: Permit) -> None:
        """The permit was given back."""

    def watched(self, permit: Permit) -> Home:
        """Somebody wants to know when it is lost. Returns its home from now on."""


class Permit:
    """A held slot of a limiter. It is given back by `release()`, at the end of a `with` or `async with` block, or at
    last when it is collected as garbage (with a `ResourceWarning`). Any thread may use it.
    """

    __slots__ = (
        "__weakref__",
        "_generation",
        "_gone",
        "_handle",
        "_home",
        "_limiter",
        "_lost",
        "_token",
        "_was_lost",
        "_watchers",
        "cost",
        "fence",
        "order",
    )

    cost: int
    """How much of the limit it takes."""
    fence: int
    """A number that grows with every grant of the limiter: let the guarded resource refuse whoever comes with a smaller
    one. 0 for a permit admitted locally while the store was away."""
    order: int
    """The request's place in line, given once at its arrival: microseconds of the store's clock."""

    def __init__(self, limiter: Limiter, handle: int, cost: int, home: Home, token: int) -> None:
        self._handle = handle
        self._token = token
        # In a list, since to pop from it is one step: whoever does is the one who has it.
        self._home: List[Home] = [home]
        self._generation = _process.generation
        self._limiter = limiter  # which has to stay as long as its permits
        self._lost: Optional[LostPermit] = None
        self._was_lost = False
        self._watchers: List[_Watcher] = []
        self.cost = cost
        self.fence = fq.permit_fence(handle)
        self.order = fq.permit_order(handle)
        self._gone = False  # at last: before, an exception (of a signal) leaves the handle to who gave it

    def __repr__(self) -> str:
        return f"<fairq.Permit of {self._limiter.name!r} cost={self.cost} fence={self.fence}>"

    # --- how it stands

    @property
    def state(self) -> PermitState:
        """How it stands. Does not block.

        Raises `Forked` in a forked child.
        """
        state = fq.permit_state(self._handle)
        if state != _abi.FQ_PERMIT_STATE_NONE:
            return PermitState(state)
        self._check_process()
        return PermitState.LOST if self._was_lost else PermitState.RELEASED

    def is_valid(self) -> bool:
        """Whether nobody else can have the slot: it was neither lost nor given back, and the store has confirmed it
        within the lease. A local, conservative judgement; does not block.

        Raises `Forked` in a forked child.
        """
        valid = bool(fq.permit_is_valid(self._handle))
        if not valid:
            self._check_process()
        return valid

    @property
    def lost(self) -> bool:
        """Whether it is lost for good (or was, when it was given back): guarded work has to stop. Does not block."""
        return self.state == PermitState.LOST

    def _check_process(self) -> None:
        if self._generation != _process.generation:
            raise _process.forked()

    # --- its loss

    def on_lost(self, callback: Callable[[LostPermit], object]) -> None:
        """Calls `callback(lost)` once, should the permit be lost before it is given back; soon, if it is lost already.

        A permit from `acquire_async` calls it in its event loop's thread; any other in the thread `fairq-events`, which
        is started by the first use of this, one for all of the process. It has to be quick. Does not block.
        """

        def watcher(lost: Optional[LostPermit]) -> None:
            if lost is not None:
                callback(lost)

        self._add_watcher(watcher)

    async def wait_lost(self) -> Optional[LostPermit]:
        """Waits until the permit is lost, and says why; `None` when it is given back, and can be lost no more."""
        loop = asyncio.get_running_loop()
        news: asyncio.Future[Optional[LostPermit]] = loop.create_future()

        def watcher(lost: Optional[LostPermit]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, news, lost)

        self._add_watcher(watcher)
        try:
            return await news
        finally:
            if watcher in self._watchers:
                self._watchers.remove(watcher)

    def _add_watcher(self, watcher: _Watcher) -> None:
        self._check_process()
        self._watchers.append(watcher)
        try:
            home = self._home.pop()
        except IndexError:
            pass  # it was given back, or another thread is here and does the rest
        else:
            try:
                home = home.watched(self)
            finally:
                self._home.append(home)
        if self._gone:
            self._leave_home()
        if self._gone or self._lost is not None:
            self._tell_watchers()

    def _tell_lost(self, error: Error) -> None:
        """News from its home."""
        self._was_lost = True
        self._lost = LostPermit(self.fence, str(error), error)
        self._tell_watchers()

    def _tell_watchers(self) -> None:
        while self._watchers:
            try:
                watcher = self._watchers.pop()
            except IndexError:
                return  # another thread was quicker
            try:
                watcher(self._lost)
            except Exception:
                logging.getLogger("fairq").exception("a callback of on_lost failed")

    # --- its end

    def release(self) -> None:
        """Gives the slot back, and waits for the store's answer: at most about twice the option `io_timeout`; after
        that the release goes on in the background, and `Unavailable` is raised. Blocks.

        Raises `Stale` or `PermitLost` when it had been given or taken back before, `Closed`, `Forked`.
        """
        self._check_process()
        if self._gone:
            raise Stale("the permit had been given back already")
        error = _abi.Handle()
        status = fq.release(self._handle, byref(error))
        self._give_back()
        if status:
            fail(status, error.value)

    async def release_async(self) -> None:
        """As `release`, in a thread of the loop's default executor."""
        await asyncio.get_running_loop().run_in_executor(None, self.release)

    def _give_back(self) -> None:
        """Gives the slot back in the background, if that was not done. Does not block, does not fail."""
        if self._gone or self._generation != _process.generation:
            return
        if fq.permit_state(self._handle) == _abi.FQ_PERMIT_STATE_LOST:
            self._was_lost = True
        fq.permit_free(self._handle)
        self._gone = True
        self._leave_home()
        if self._watchers:
            self._tell_watchers()

    def _leave_home(self) -> None:
        try:
            home = self._home.pop()
        except IndexError:
            return  # somebody else has it, and will see that the permit is gone
        home.permit_gone(self)

    def __enter__(self) -> Permit:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._give_back()

    async def __aenter__(self) -> Permit:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self._give_back()

    def __del__(self, _finalizing: Callable[[], bool] = _finalizing) -> None:
        # At the interpreter's end the clients are closed, and that has given everything back.
        if _finalizing() or getattr(self, "_gone", True) or self._generation != _process.generation:
            return
        self._give_back()
        warnings.warn(f"{self!r} was never given back", ResourceWarning, source=self, stacklevel=2)


def _settle(news: asyncio.Future[Optional[LostPermit]], lost: Optional[LostPermit]) -> None:
    if not news.done():
        news.set_result(lost)
