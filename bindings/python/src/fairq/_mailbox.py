"""Where a blocking request's news arrives.

Each request has a completion queue of its own, out of a pool, and its permit keeps it while it is held, since news of
the permit come there as well. So nothing is shared by two requests: not by those of two threads, and not by that of a
thread and another that a signal handler starts meanwhile. Who loses patience (a `KeyboardInterrupt`) frees the queue:
the library then cancels the request, and gives back a grant that nobody has taken.
"""

from __future__ import annotations

import itertools
import select
import threading
from ctypes import addressof, sizeof
from typing import TYPE_CHECKING, List, Optional

from . import _abi, _process, _watch
from ._bell import Bell
from ._errors import fail
from ._library import fq
from ._units import Asked

if TYPE_CHECKING:
    from ._permit import Home, Permit

new_token = itertools.count(1).__next__
"""A number for a request, never used again."""

_MAX_SPARE = 64
_LOOK_UP_MS = 200
_spare: List[Mailbox] = []


class Mailbox:
    """A completion queue for one request, and one thread, at a time; with the structs that its calls need."""

    __slots__ = (
        "_asked",
        "_bell",
        "_count",
        "_count_at",
        "_error",
        "_error_at",
        "_event_at",
        "_generation",
        "_poller",
        "_request",
        "_request_at",
        "event",
        "handle",
        "token",
    )

    def __init__(self) -> None:
        self.event = _abi.Event()
        self._bell: Optional[Bell] = None
        self.handle = 0
        self.token = 0
        self._generation = _process.generation
        self._asked: Optional[Asked] = None
        self._request = _abi.Request(size=sizeof(_abi.Request), flags=_abi.FQ_REPORT_PERMIT)
        self._count = _abi.Handle()
        self._error = _abi.Handle()
        # The structs stay where they are, so that their addresses are computed once.
        self._request_at = addressof(self._request)
        self._event_at = addressof(self.event)
        self._count_at = addressof(self._count)
        self._error_at = addressof(self._error)
        self._open()

    def _open(self) -> None:
        handle = _abi.Handle()
        status = fq.completions_new(addressof(handle), self._error_at)
        if status:
            fail(status, self._error.value)
        self.handle = handle.value

    def ask(self, limiter: int, asked: Asked, ticket: int) -> int:
        """Starts a request and waits for its end, which is left in `event`. Returns its status.

        Signals end the wait: whatever their handlers raise goes through here, and then the mailbox has to be discarded.
        """
        if asked is not self._asked:
            fill(self._request, asked)
            self._asked = asked
        self.token = token = new_token()
        status = fq.acquire_start(limiter, self._request_at, ticket, self.handle, token, self._error_at)
        if status:
            fail(status, self._error.value)
        event = self.event
        while True:
            if not self.take():
                self._sleep()
            elif event.token == token and event.kind == _abi.FQ_EVENT_DONE:
                return int(event.status)
            else:
                fq.error_free(event.error)  # late news of the mailbox's last permit

    def take(self) -> bool:
        """Puts the next piece of news into `event`. Whether there was one."""
        status = fq.completions_poll(self.handle, self._event_at, 1, 0, self._count_at, self._error_at)
        if status:
            fail(status, self._error.value)
        return self._count.value != 0

    def _sleep(self) -> None:
        """Waits in the system's `poll`, which signals interrupt, and not in the library, where they could not."""
        bell = self.bell()
        # A signal that comes just before the system's call does not interrupt it. Python handles signals in its main
        # thread, so it is that one which looks up from time to time.
        main = threading.current_thread() is threading.main_thread()
        self._poller.poll(_LOOK_UP_MS if main else None)
        if self._generation != _process.generation:
            raise _process.forked()  # by a signal handler that forked and returned; the ring is the parent's
        bell.clear()

    def bell(self) -> Bell:
        """What rings when there is news. Only who waits needs one."""
        if self._bell is None:
            bell = Bell()
            self._poller = select.poll()
            self._poller.register(bell.reader, select.POLLIN)
            self._bell = bell  # before the library knows it: then it stays open as long
            fq.completions_set_fd(self.handle, bell.writer, None)  # rings at once for what has come already
        return self._bell

    def discard(self) -> None:
        """Cancels the request if it goes on, gives back what nobody has taken, and closes the queue.

        May be called again, as after an interrupt; and after its permit was taken and given back, whose name is an old
        one then, which is no harm.
        """
        fq.completions_free(self.handle)
        fq.permit_free(self.event.permit)
        if self._bell is not None:
            self._bell.close()
        self.handle = 0

    def __del__(self) -> None:
        if getattr(self, "handle", 0):
            self.discard()

    # --- as the home of a permit

    def permit_gone(self, permit: Permit) -> None:
        """The permit was given back: the mailbox is free for another request."""
        put(self)

    def watched(self, permit: Permit) -> Home:
        """The permit's home from now on, since somebody wants to know when it is lost."""
        return _watch.watch().follow(self, permit)


def fill(request: _abi.Request, asked: Asked) -> None:
    """Writes down what is asked for."""
    request.max_wait_ms = asked.wait
    request.cost = asked.cost
    request.label = asked.label
    request.label_len = len(asked.label)


def take() -> Mailbox:
    """A mailbox for a request."""
    while True:
        try:
            mailbox = _spare.pop()
        except IndexError:
            return Mailbox()
        if mailbox.handle:
            return mailbox


def put(mailbox: Mailbox) -> None:
    """Keeps a mailbox, whose request has ended and whose permit is gone, for another request."""
    if mailbox.handle and len(_spare) < _MAX_SPARE:
        _spare.append(mailbox)
    else:
        mailbox.discard()


@_process.in_child
def _forget() -> None:
    """The library knows none of a parent's queues in a child, so to free them touches nothing."""
    _spare.clear()
