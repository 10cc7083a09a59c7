"""A named limit with a line in front of it."""

from __future__ import annotations

import asyncio
from ctypes import byref, sizeof
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from . import _abi, _mailbox, _process
from ._acquisition import Acquisition
from ._config import config, option
from ._errors import QueueFull, TimedOut, fail, take_error
from ._library import fq
from ._limited import limited
from ._permit import Permit
from ._ticket import Ticket
from ._units import asked, count, duration, seconds, seconds_if_known, text

if TYPE_CHECKING:
    from ._client import Client

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Status:
    """How a limiter stands. Times are seconds; `math.inf` is for ever, or no bound."""

    name: str
    limit: int
    """How much cost may be held at once."""
    used: int
    """The cost that is held."""
    holders: int
    """Permits that are held."""
    waiting: int
    """Requests in line."""
    paused: bool
    """Whether an operator has paused it."""
    max_queue: float
    """How many may wait; `math.inf` for no bound."""
    max_wait: float
    """How long a request waits that does not say so."""
    lease: float
    """How long the store believes in a process that has stopped talking."""
    max_hold: float
    """How long a permit may be held."""
    granted_total: int
    """Permits given since the limiter came to be."""
    instances: int
    """Live instances that use it."""
    epoch: int
    """Changes whenever the store has lost state."""
    grace: float
    """For how long nobody is admitted yet, after a loss of state; 0 in quiet times."""
    typical_hold: Optional[float]
    """Mean time a permit is held; `None` while not known."""
    estimate: Optional[float]
    """How long a newcomer is likely to wait; `None` while not known."""
    overshoot_total: int
    """Cost that came back over the limit after losses of state, since the limiter came to be."""


def _status(name: str, info: _abi.LimiterInfo) -> Status:
    return Status(
        name=name,
        limit=info.limit,
        used=info.used,
        holders=info.holders,
        waiting=info.waiting,
        paused=bool(info.paused),
        max_queue=float("inf") if info.max_queue >= _abi.FQ_FOREVER else info.max_queue,
        max_wait=seconds(info.max_wait_ms),
        lease=seconds(info.lease_ms),
        max_hold=seconds(info.max_hold_ms),
        granted_total=info.granted_total,
        instances=info.instances,
        epoch=info.epoch,
        grace=seconds(info.grace_ms),
        typical_hold=seconds_if_known(info.typical_hold_ms),
        estimate=seconds_if_known(info.estimate_ms),
        overshoot_total=info.overshoot_total,
    )


class Limiter:
    """A named limit with a line in front of it; from `Client.limiter`. Any thread, and any event loop, may use it."""

    def __init__(self, client: Client, name: str, options: dict[str, Optional[str]]) -> None:
        self._handle = 0
        self._client = client  # which has to stay open as long as its limiters
        self.name = name
        """Its name."""
        encoded, limiter, error = text(name, "name"), _abi.Handle(), _abi.Handle()
        with config(options) as settings:
            status = fq.limiter_open(client._handle, encoded, len(encoded), settings, byref(limiter), byref(error))
        if status:
            fail(status, error.value)
        self._handle = limiter.value

    def __repr__(self) -> str:
        return f"<fairq.Limiter {self.name!r}>"

    def __del__(self) -> None:
        if self._handle:
            fq.limiter_free(self._handle)

    # --- permits

    def acquire(
        self,
        max_wait: Optional[float] = None,
        *,
        cost: int = 1,
        label: str = "",
        ticket: Optional[Ticket] = None,
    ) -> Permit:
        """Waits in line for a permit: a context manager, which gives it back in the background.

        Blocks for `max_wait` seconds at most (`None`: as the limiter says; 0: have it at once or not at all;
        `math.inf`), and a little, whatever the store does; a signal's exception such as `KeyboardInterrupt` ends the
        wait at once. Any number of threads may wait; each has a file descriptor open meanwhile. `cost` is how much of
        the limit the permit takes, `label` (up to 256 bytes of UTF-8) what operators see. A `ticket` lets other threads
        cancel or watch, and serves for one request.

        Raises `TimedOut`, `QueueFull`, `Cancelled`, `Closed`, `Impossible`, `Revoked`, `Unavailable`, `Overloaded`,
        `Invalid`, `Configuration`, `Server`, `NoSuchLimiter`, `Forked`.
        """
        wanted = asked(max_wait, cost, label)
        mailbox = _mailbox.take()
        try:
            status = mailbox.ask(self._handle, wanted, 0 if ticket is None else ticket._handle)
            if status == _abi.FQ_OK:
                return Permit(self, mailbox.event.permit, wanted.cost, mailbox, mailbox.token)
            error = mailbox.event.error
        except BaseException:
            mailbox.discard()
            raise
        _mailbox.put(mailbox)
        if status == _abi.FQ_CLOSED:
            _process.freeze_if_left_over()
        raise take_error(status, error)

    def try_acquire(self, *, cost: int = 1, label: str = "", ticket: Optional[Ticket] = None) -> Optional[Permit]:
        """Takes a permit if that needs no waiting, passing nobody who waits; `None` otherwise. Blocks for a round trip.

        Raises as `acquire`, but neither `TimedOut` nor `QueueFull`.
        """
        try:
            return self.acquire(0, cost=cost, label=label, ticket=ticket)
        except (TimedOut, QueueFull):
            return None

    def acquire_async(
        self,
        max_wait: Optional[float] = None,
        *,
        cost: int = 1,
        label: str = "",
        positions: bool = False,
    ) -> Acquisition:
        """A request for an event loop, to be awaited or used in `async with`; see `Acquisition`. Takes and raises what
        `acquire` does. `positions=True` if `Acquisition.positions` is to be used after it is started. Does not block;
        no thread waits.
        """
        return Acquisition(self, asked(max_wait, cost, label), positions)

    def limited(self, max_wait: Optional[float] = None, *, cost: int = 1, label: str = "") -> Callable[[_F], _F]:
        """A decorator: each call of the function waits for a permit, as by `acquire` or, for an asynchronous function,
        `acquire_async`, and holds it until it returns. Of a generator, asynchronous or not, it is held from the first
        step until it is exhausted or closed.
        """
        return limited(self, max_wait, cost, label)

    def ticket(self) -> Ticket:
        """A ticket for one `acquire`. Does not block."""
        return Ticket(self)

    # --- operation

    def status(self) -> Status:
        """Asks how the limiter stands. Blocks for a round trip.

        Raises `NoSuchLimiter` before anybody has used it, `Unavailable`, `Closed`, `Configuration`, `Forked`.
        """
        info, error = _abi.LimiterInfo(size=sizeof(_abi.LimiterInfo)), _abi.Handle()
        status = fq.limiter_status(self._handle, byref(info), byref(error))
        if status:
            fail(status, error.value)
        return _status(self.name, info)

    def set_limit(self, limit: int) -> None:
        """Changes the limit while the limiter runs, as its operator. Lowering it revokes nothing; nobody is admitted
        until use is below it. Stands above what processes declare, until it is reset. Blocks for two round trips.

        Raises as `status`, and `UnknownOutcome` when the answer was lost.
        """
        error = _abi.Handle()
        status = fq.limiter_set_limit(self._handle, count(limit, "limit"), byref(error))
        if status:
            fail(status, error.value)

    def configure(
        self,
        *,
        limit: Optional[int] = None,
        max_queue: Optional[float] = None,
        max_wait: Optional[float] = None,
        lease: Optional[float] = None,
        max_hold: Optional[float] = None,
        paused: Optional[bool] = None,
        reset: Optional[bool] = None,
    ) -> None:
        """Changes settings while the limiter runs, as its operator; `None` leaves one as it is. Times are seconds,
        `math.inf` is no bound. `paused=True` admits nobody until it is `False` again; `reset=True` forgets what
        operators have set before. Blocks for two round trips.

        Raises as `set_limit`.
        """
        changes = {
            "limit": option(limit, "limit"),
            "max_queue": option(max_queue, "max_queue"),
            "max_wait": option(max_wait, "max_wait", duration),
            "lease": option(lease, "lease", duration),
            "max_hold": option(max_hold, "max_hold", duration),
            "paused": option(paused, "paused"),
            "reset": option(reset, "reset"),
        }
        error = _abi.Handle()
        with config(changes) as settings:
            status = fq.limiter_configure(self._handle, settings, byref(error))
        if status:
            fail(status, error.value)

    async def status_async(self) -> Status:
        """As `status`, in a thread of the loop's default executor."""
        return await asyncio.get_running_loop().run_in_executor(None, self.status)

    async def configure_async(self, **changes: Any) -> None:
        """As `configure`, in a thread of the loop's default executor."""
        await asyncio.get_running_loop().run_in_executor(None, partial(self.configure, **changes))
