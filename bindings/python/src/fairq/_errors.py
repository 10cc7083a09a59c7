"""What can go wrong: one exception for each status of the library, all of them `fairq.Error`."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, Dict, NoReturn, Optional, Tuple, Type

from . import _abi
from ._library import fq


class StatusCode(enum.IntEnum):
    """What a call, or a request, came to. Values are only ever added."""

    OK = _abi.FQ_OK
    TIMED_OUT = _abi.FQ_TIMED_OUT
    CANCELLED = _abi.FQ_CANCELLED
    CLOSED = _abi.FQ_CLOSED
    QUEUE_FULL = _abi.FQ_QUEUE_FULL
    IMPOSSIBLE = _abi.FQ_IMPOSSIBLE
    REVOKED = _abi.FQ_REVOKED
    PERMIT_LOST = _abi.FQ_PERMIT_LOST
    STALE = _abi.FQ_STALE
    UNAVAILABLE = _abi.FQ_UNAVAILABLE
    UNKNOWN_OUTCOME = _abi.FQ_UNKNOWN_OUTCOME
    OVERLOADED = _abi.FQ_OVERLOADED
    INVALID = _abi.FQ_INVALID
    CONFIGURATION = _abi.FQ_CONFIGURATION
    SERVER = _abi.FQ_SERVER
    NO_SUCH_LIMITER = _abi.FQ_NO_SUCH_LIMITER
    FORKED = _abi.FQ_FORKED
    PANIC = _abi.FQ_PANIC
    INTERNAL = _abi.FQ_INTERNAL


class Error(Exception):
    """Why a request ended without a permit, or a call without a result. Its text says what to do."""

    status: ClassVar[StatusCode] = StatusCode.INTERNAL
    """Which status of the library it is."""
    retryable: bool
    """Whether the same request may succeed later without anything being changed."""
    retry_after: Optional[float]
    """After how many seconds to try again, where that is known."""

    def __init__(self, message: str, *, retryable: bool = False, retry_after: Optional[float] = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after

    def __reduce__(self) -> Tuple[Any, ...]:
        """Errors travel between processes, with all they know."""
        return _rebuild, (type(self), str(self), self.retryable, self.retry_after)


def _rebuild(kind: Type[Error], message: str, retryable: bool, retry_after: Optional[float]) -> Error:
    return kind(message, retryable=retryable, retry_after=retry_after)


class TimedOut(Error, TimeoutError):
    """The request waited as long as it was allowed to (with `max_wait=0`: nothing was free)."""

    status = StatusCode.TIMED_OUT


class Cancelled(Error):
    """The request was cancelled, by its ticket or by `Acquisition.cancel()`."""

    status = StatusCode.CANCELLED


class Closed(Error):
    """The client is closed or closing."""

    status = StatusCode.CLOSED


class QueueFull(Error):
    """The line is as long as it may be; `retry_after` says when to come back, where that is known."""

    status = StatusCode.QUEUE_FULL


class Impossible(Error, ValueError):
    """The cost is above the limit: the request could never be granted."""

    status = StatusCode.IMPOSSIBLE


class Revoked(Error):
    """An operator took the place in line away."""

    status = StatusCode.REVOKED


class PermitLost(Error):
    """The permit was lost; the text says why."""

    status = StatusCode.PERMIT_LOST


class Stale(Error):
    """What it was about had ended before; nothing was done."""

    status = StatusCode.STALE


class Unavailable(Error, ConnectionError):
    """The store cannot be reached, or does not take commands now. Whatever was asked is safe to ask again."""

    status = StatusCode.UNAVAILABLE


class UnknownOutcome(Error):
    """An operator's order was sent, and its answer was lost: look whether it was carried out."""

    status = StatusCode.UNKNOWN_OUTCOME


class Overloaded(Error):
    """The store has no memory for another ticket, or this process has as many as it may (`max_tickets`)."""

    status = StatusCode.OVERLOADED


class Invalid(Error, ValueError):
    """An argument means nothing; nothing was done."""

    status = StatusCode.INVALID


class Configuration(Error):
    """The client or the server is not set up right; trying again does not help."""

    status = StatusCode.CONFIGURATION


class Server(Error):
    """The server answered with something that fairq does not understand."""

    status = StatusCode.SERVER


class NoSuchLimiter(Error, LookupError):
    """The limiter does not exist, and nobody has declared a limit for it."""

    status = StatusCode.NO_SUCH_LIMITER


class Forked(Error):
    """The object belongs to the parent process: a forked child opens a client of its own."""

    status = StatusCode.FORKED


class Panic(Error):
    """A bug in fairq: it panicked, and the panic ended at the border to Python."""

    status = StatusCode.PANIC


class Internal(Error):
    """Another fault inside of fairq; the text says which."""

    status = StatusCode.INTERNAL


_KINDS: Dict[int, Type[Error]] = {int(kind.status): kind for kind in Error.__subclasses__()}


def take_error(status: int, error: int) -> Error:
    """The exception for a status and the error that came with it, which is freed. `error` may be 0."""
    kind = _KINDS.get(status, Error)
    try:
        message = fq.error_message(error).decode("utf-8", "replace")
        after = fq.error_retry_after_ms(error)
        return kind(
            message or fq.status_name(status).decode(),
            retryable=bool(fq.error_retryable(error)),
            retry_after=None if after >= _abi.FQ_FOREVER else after / 1000,
        )
    finally:
        fq.error_free(error)


def fail(status: int, error: int) -> NoReturn:
    """Raises what `take_error` makes."""
    raise take_error(status, error)
