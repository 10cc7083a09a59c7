"""Lost permits of blocking requests.

While the body of `with limiter.acquire():` runs, nobody looks into the permit's mailbox. Whoever calls `on_lost` on
such a permit makes one daemon thread do so, for all of the process; it sleeps until there is news.
"""

from __future__ import annotations

import select
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, Optional

from . import _abi, _process
from ._bell import Bell
from ._errors import take_error

if TYPE_CHECKING:
    from ._mailbox import Mailbox
    from ._permit import Home, Permit


class Followed:
    """A mailbox that the thread alone uses, until its permit is given back."""

    def __init__(self, watch: Watch, mailbox: Mailbox, permit: Permit) -> None:
        self._watch = watch
        self._permit = weakref.ref(permit)
        self.mailbox = mailbox
        self.fd = mailbox.bell().reader

    def look(self) -> None:
        """Takes what is in the mailbox, and passes on that the permit is lost."""
        self.mailbox.bell().clear()
        while self.mailbox.take():
            event = self.mailbox.event
            if event.kind == _abi.FQ_EVENT_PERMIT_LOST:
                error, permit = take_error(event.status, event.error), self._permit()
                if permit is not None and event.token == permit._token:
                    permit._tell_lost(error)

    # --- as the home of a permit

    def permit_gone(self, permit: Permit) -> None:
        """The thread may be at the mailbox just now, so it is the thread that closes it."""
        self._watch.change(self, False)

    def watched(self, permit: Permit) -> Home:
        """It is already."""
        return self


class Watch:
    """The thread, and what it looks after."""

    def __init__(self) -> None:
        self._bell = Bell()
        self._changes: Deque[tuple[Followed, bool]] = deque()
        self._followed: Dict[int, Followed] = {}
        threading.Thread(target=self._run, name="fairq-events", daemon=True).start()

    def follow(self, mailbox: Mailbox, permit: Permit) -> Followed:
        """Takes a mailbox over."""
        followed = Followed(self, mailbox, permit)
        self.change(followed, True)
        return followed

    def change(self, followed: Followed, stays: bool) -> None:
        """Tells the thread what is new, or is to be closed."""
        self._changes.append((followed, stays))
        self._bell.ring()

    def _run(self) -> None:
        while True:
            self._bell.clear()
            while self._changes:
                self._apply(*self._changes.popleft())
            poller = select.poll()
            poller.register(self._bell.reader, select.POLLIN)
            for fd in self._followed:
                poller.register(fd, select.POLLIN)
            for fd, _ in poller.poll():
                if fd in self._followed:
                    _process.freeze_if_left_over()
                    self._followed[fd].look()

    def _apply(self, followed: Followed, stays: bool) -> None:
        if stays:
            self._followed[followed.fd] = followed
        else:
            del self._followed[followed.fd]
            followed.mailbox.discard()


_current: Optional[Watch] = None
_starting = threading.Lock()


def watch() -> Watch:
    """The process's one, started when it is first needed."""
    global _current
    with _starting:
        if _current is None:
            _current = Watch()
        return _current


@_process.in_child
def _forget() -> None:
    """A child has no such thread, and nothing for it to do."""
    global _current, _starting
    _current, _starting = None, threading.Lock()
