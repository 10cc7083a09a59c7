"""asyncio: one completion queue for each event loop, however many requests wait in it.

The queue rings an eventfd that the loop watches; then all the news there is are taken in one go. A request is known by
a number that is never used again, so that late news of a cancelled one cannot be taken for another's.
"""

from __future__ import annotations

import asyncio
import weakref
from ctypes import addressof, byref, sizeof
from typing import TYPE_CHECKING, Dict, List, Optional

from . import _abi, _process
from ._bell import Bell
from ._errors import Cancelled, Error, fail, take_error
from ._library import fq
from ._mailbox import fill, new_token
from ._permit import Home, Permit
from ._ticket import Position
from ._units import Asked, seconds_if_known

if TYPE_CHECKING:
    from ._limiter import Limiter

_BATCH = 256


class LoopRequest:
    """A request that reports to a loop's mailbox. Used in the loop's thread; only `cancel` may come from another."""

    __slots__ = (
        "cost",
        "error",
        "limiter",
        "mailbox",
        "moves",
        "permit",
        "position",
        "settled",
        "sleepers",
        "ticket",
        "token",
        "unwanted",
    )

    def __init__(self, mailbox: LoopMailbox, limiter: Limiter, cost: int, token: int, ticket: int) -> None:
        self.mailbox = mailbox
        self.limiter = limiter
        self.cost = cost
        self.token = token
        self.ticket = ticket
        self.settled = False  # it has ended, or got its permit
        self.permit: Optional[Permit] = None
        self.error: Optional[Error] = None
        self.position: Optional[Position] = None
        self.moves = 0
        self.unwanted = False
        self.sleepers: List[asyncio.Future[None]] = []

    def news(self) -> asyncio.Future[None]:
        """A future for the next news."""
        future = self.mailbox.loop.create_future()
        self.sleepers.append(future)
        return future

    def rouse(self) -> None:
        """Tells all who wait for news. A future that was cancelled with its task is left alone."""
        sleepers, self.sleepers = self.sleepers, []
        for future in sleepers:
            if not future.done():
                future.set_result(None)

    def settle(self, event: _abi.Event) -> None:
        """Its one completion."""
        if self.unwanted:
            free(event)
            self.error = _cancelled()
        elif self.permit is None and self.error is None:  # else an interrupt came after that, and before the end
            if event.status == _abi.FQ_OK:
                permit = Permit(self.limiter, event.permit, self.cost, self.mailbox, self.token)
                self.mailbox.permits[self.token] = weakref.ref(permit)
                self.permit = permit
            else:
                self.error = take_error(event.status, event.error)
        self.end()

    def end(self) -> None:
        """Nothing more will come of it."""
        self.settled = True
        fq.ticket_free(self.ticket)
        self.rouse()

    def cancel(self) -> bool:
        """Nobody wants the permit (any more). False when it had failed before."""
        if self.error is not None:
            return False
        self.unwanted = True
        permit, self.permit = self.permit, None
        if permit is not None:
            self.error = _cancelled()
            permit._give_back()
        else:
            # Either it is cancelled by this, or a grant is on its way, and goes back when it arrives.
            fq.cancel(self.ticket, None)
        return True


def free(event: _abi.Event) -> None:
    """Of news that nobody wants: gives the permit back."""
    fq.permit_free(event.permit)
    fq.error_free(event.error)


def _cancelled() -> Cancelled:
    return Cancelled("cancelled while waiting for a permit")


class LoopMailbox:
    """The completion queue of an event loop; a permit's home."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.pending: Dict[int, LoopRequest] = {}
        self.permits: Dict[int, weakref.ref[Permit]] = {}
        self.handle = 0
        self._generation = _process.generation
        self._request = _abi.Request(size=sizeof(_abi.Request))
        self._request_at = addressof(self._request)
        self._ticket = _abi.Handle()
        self._ticket_at = addressof(self._ticket)
        self._error = _abi.Handle()
        self._error_at = addressof(self._error)
        self._events = (_abi.Event * _BATCH)()
        self._events_at = addressof(self._events)
        self._filled = _abi.Handle()
        self._filled_at = addressof(self._filled)
        self._next = 0
        self._open()

    def _open(self) -> None:
        handle, self._bell = _abi.Handle(), Bell()
        status = fq.completions_new(byref(handle), self._error_at)
        if status:
            self._bell.close()
            fail(status, self._error.value)
        self.handle = handle.value
        fq.completions_set_fd(self.handle, self._bell.writer, None)
        # The loop alone has the reader. It lets go of it when it is closed, and that is how we learn that it is.
        self.loop.add_reader(self._bell.reader, _Reader(self))

    def check_process(self) -> None:
        """Raises `Forked` when it is a parent's."""
        if self._generation != _process.generation:
            raise _process.forked()

    def start(self, limiter: Limiter, asked: Asked, positions: bool) -> LoopRequest:
        """Starts a request; it may have ended already when this returns."""
        status = fq.ticket_new(limiter._handle, self._ticket_at, self._error_at)
        if status:
            fail(status, self._error.value)
        request = LoopRequest(self, limiter, asked.cost, new_token(), self._ticket.value)
        try:
            self._start(request, asked, positions)
            self.drain()
        except BaseException:  # of a signal's handler, too
            request.cancel()
            raise
        return request

    def _start(self, request: LoopRequest, asked: Asked, positions: bool) -> None:
        token = request.token
        self.pending[token] = request
        fill(self._request, asked)
        self._request.flags = _abi.FQ_REPORT_PERMIT | (_abi.FQ_REPORT_POSITION if positions else 0)
        status = fq.acquire_start(
            request.limiter._handle, self._request_at, request.ticket, self.handle, token, self._error_at
        )
        if status:
            del self.pending[token]
            request.end()
            fail(status, self._error.value)

    def drain(self) -> None:
        """Takes all the news there is. Runs nobody else's code, so that it is never entered twice."""
        try:
            if self._next < self._filled.value:
                self._deliver_all()
            while self._poll() == _BATCH:
                self._deliver_all()
            self._deliver_all()
        except BaseException:
            # A signal's handler raises anywhere. The next drain begins with what is left, and this has the loop do it.
            self._bell.ring()
            raise

    def _poll(self) -> int:
        self._filled.value = self._next = 0
        status = fq.completions_poll(self.handle, self._events_at, _BATCH, 0, self._filled_at, self._error_at)
        if status:
            fail(status, self._error.value)
        return int(self._filled.value)

    def _deliver_all(self) -> None:
        for at in range(self._next, self._filled.value):
            self._deliver(self._events[at])
            self._next = at + 1

    def _deliver(self, event: _abi.Event) -> None:
        if _process.is_left_over():
            return
        kind = event.kind
        if kind == _abi.FQ_EVENT_DONE:
            request = self.pending.get(event.token)
            if request is None:
                free(event)
            else:
                request.settle(event)
                self.pending.pop(event.token, None)
        elif kind == _abi.FQ_EVENT_POSITION:
            request = self.pending.get(event.token)
            if request is not None:
                request.position = Position(event.position, seconds_if_known(event.estimate_ms))
                request.moves += 1
                request.rouse()
        elif kind == _abi.FQ_EVENT_PERMIT_LOST:
            self._lost(event)

    def _lost(self, event: _abi.Event) -> None:
        error = take_error(event.status, event.error)
        reference = self.permits.pop(event.token, None)
        permit = reference() if reference is not None else None
        if permit is not None:
            self.loop.call_soon(permit._tell_lost, error)

    def close(self) -> None:
        """The loop is closed: whoever still waits in it waits no more, and what nobody has taken goes back."""
        handle, self.handle = self.handle, 0
        fq.completions_free(handle)
        self._bell.close()
        pending, self.pending = self.pending, {}
        for request in pending.values():
            fq.ticket_free(request.ticket)
        for event in self._events[self._next : self._filled.value]:
            free(event)

    # --- as the home of its permits

    def permit_gone(self, permit: Permit) -> None:
        """The permit was given back."""
        self.permits.pop(permit._token, None)

    def watched(self, permit: Permit) -> Home:
        """All are."""
        return self


class _Reader:
    """What the loop calls when the bell rings."""

    __slots__ = ("_mailbox",)

    def __init__(self, mailbox: LoopMailbox) -> None:
        self._mailbox = mailbox

    def __call__(self) -> None:
        mailbox = self._mailbox
        if mailbox._generation == _process.generation:  # else the bell is a parent's
            mailbox._bell.clear()
            mailbox.drain()

    def __del__(self) -> None:
        self._mailbox.close()


_mailboxes: Dict[int, weakref.ref[LoopMailbox]] = {}
"""By the loop's `id`, since not all loops can be hashed; weakly, since the mailbox goes with its loop."""


def running_mailbox() -> LoopMailbox:
    """The mailbox of the loop that runs in this thread."""
    loop = asyncio.get_running_loop()
    reference = _mailboxes.get(id(loop))
    mailbox = reference() if reference is not None else None
    if mailbox is None or mailbox.loop is not loop or not mailbox.handle:
        mailbox = LoopMailbox(loop)
        _forget_closed()
        _mailboxes[id(loop)] = weakref.ref(mailbox)
    return mailbox


def _forget_closed() -> None:
    for key, reference in list(_mailboxes.items()):
        if reference() is None:
            _mailboxes.pop(key, None)


@_process.in_child
def _forget() -> None:
    """A child's loops begin with new mailboxes."""
    _mailboxes.clear()
