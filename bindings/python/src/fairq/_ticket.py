"""One request on its way."""

from __future__ import annotations

from ctypes import byref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Optional

from . import _abi, _process
from ._errors import fail
from ._library import fq
from ._units import seconds_if_known

if TYPE_CHECKING:
    from ._limiter import Limiter


@dataclass(frozen=True)
class Position:
    """Where a request stands in line."""

    position: int
    """1 is next."""
    estimate: Optional[float]
    """How many seconds it is likely to wait still; `None` while that is not known."""


class Ticket:
    """One request, to be cancelled or watched by any thread while another waits with it in `Limiter.acquire`."""

    __slots__ = ("_generation", "_handle", "_limiter")

    def __init__(self, limiter: Limiter) -> None:
        self._handle = 0
        self._generation = _process.generation
        self._limiter = limiter
        ticket, error = _abi.Handle(), _abi.Handle()
        status = fq.ticket_new(limiter._handle, byref(ticket), byref(error))
        if status:
            fail(status, error.value)
        self._handle = ticket.value

    def cancel(self) -> bool:
        """Cancels the request, also one that is not started yet. True: it is cancelled, and will not be granted. False:
        it had ended otherwise. Does not block; the store is told in the background.
        """
        error = _abi.Handle()
        status = fq.cancel(self._handle, byref(error))
        if status == _abi.FQ_STALE:
            fq.error_free(error.value)
            return False
        if status:
            fail(status, error.value)
        return True

    def position(self) -> Optional[Position]:
        """Asks the store where the request stands; `None`: it does not wait in line. Blocks for a round trip."""
        return self._tell(fq.ticket_position)

    def last_position(self) -> Optional[Position]:
        """Where the request stood when the store last told; `None`: it does not wait in line. Does not block."""
        return self._tell(fq.ticket_last_position)

    def _tell(self, ask: Any) -> Optional[Position]:
        told, error = _abi.Position(), _abi.Handle()
        status = ask(self._handle, byref(told), byref(error))
        if status:
            fail(status, error.value)
        if told.position == 0:
            return None
        return Position(told.position, seconds_if_known(told.estimate_ms))

    def __del__(self) -> None:
        if self._handle:
            fq.ticket_free(self._handle)
