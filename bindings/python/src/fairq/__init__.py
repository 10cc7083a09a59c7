"""How many long-running requests run at once over a whole cluster, with a strict first-come-first-served line in front.

    import fairq

    client = fairq.Client("redis://localhost")
    chat = client.limiter("rag:chat", limit=4)
    with chat.acquire(max_wait=15) as permit:
        ...

See `Client`, `Limiter`, `Permit`, `Acquisition`.
"""

from __future__ import annotations

from ._acquisition import Acquisition, Positions
from ._client import Client
from ._config import OPTIONS, Option
from ._errors import (
    Cancelled,
    Closed,
    Configuration,
    Error,
    Forked,
    Impossible,
    Internal,
    Invalid,
    NoSuchLimiter,
    Overloaded,
    Panic,
    PermitLost,
    QueueFull,
    Revoked,
    Server,
    Stale,
    StatusCode,
    TimedOut,
    Unavailable,
    UnknownOutcome,
)
from ._limiter import Limiter, Status
from ._permit import LostPermit, Permit, PermitState
from ._ticket import Position, Ticket
from ._version import __version__

__all__ = [
    "OPTIONS",
    "Acquisition",
    "Cancelled",
    "Client",
    "Closed",
    "Configuration",
    "Error",
    "Forked",
    "Impossible",
    "Internal",
    "Invalid",
    "Limiter",
    "LostPermit",
    "NoSuchLimiter",
    "Option",
    "Overloaded",
    "Panic",
    "Permit",
    "PermitLost",
    "PermitState",
    "Position",
    "Positions",
    "QueueFull",
    "Revoked",
    "Server",
    "Stale",
    "Status",
    "StatusCode",
    "Ticket",
    "TimedOut",
    "Unavailable",
    "UnknownOutcome",
    "__version__",
]
