"""A limit in front of an ASGI application: Starlette, FastAPI, or anything else that speaks ASGI 3.

A permit is held until the *body* of the response has gone out, not until its first byte; who disconnects while waiting
leaves the line. Three ways to use it:

- `LimitMiddleware` puts a limit before paths, and can show those who wait their place in line;
- `Limited` is a FastAPI dependency for single endpoints; it needs `PermitMiddleware`;
- `sse_positions` and `hold` are for endpoints that acquire by themselves.

    app.add_middleware(LimitMiddleware, limiter=lambda scope: limiter, when="/ask", max_wait=15)

**Refusals** are JSON, `{"error": "queue_full", "message": "…", "retry_after": 7}`; for who accepts `text/event-stream`, and
with `positions`, the SSE event `rejected` with the same as its data.

| `fairq.` | status | `error` | `Retry-After` |
|---|---|---|---|
| `QueueFull`, `TimedOut` | 429 | `queue_full`, `timed_out` | as the error says; else 5 s |
| `Closed`, `Unavailable`, `Overloaded`, `PermitLost`, `Revoked` | 503 | `closed`, … `revoked` | as the error says; else 5 s |
| `NoSuchLimiter`, `Configuration`, `Server` | 503 | `no_such_limiter`, … `server` | as the error says; else 5 s |
| `Impossible` | 400 | `impossible` | none: trying again does not help |
| `Cancelled` | 499 | `cancelled` | none: the client has gone, and nobody reads it |

What a 503 could tell of the inside goes to the log `fairq.asgi`, and not to the client. Other errors (`Invalid`, `Forked`, …)
are mistakes in the program: they are raised.

**Disconnects.** While a request waits, the middleware listens to `receive()`, and keeps what comes for the application, in
order. Once it keeps `read_ahead` bytes of a body that goes on it reads no further (it reads one message in any case): then
the server holds a large upload back, and a disconnect is noticed only when the application reads on.

**A permit that is lost** while the application streams (its process was cut off for longer than the lease, or an operator
revoked it) is another's. With `on_lost="stop"`, the default, the application is cancelled; if its response has not begun the
client is told 503, otherwise the connection is cut, so that nobody takes half an answer for a whole one. With
`on_lost="continue"` it goes on, and may look at `scope["fairq.permit"].lost`.

**In a browser** an `EventSource` comes back by itself when its stream has ended: call its `close()` on `rejected`, or let it,
since `rejected` tells it when (`retry`).
"""

from __future__ import annotations

from ._events import Rejection, rejection, sse_positions
from ._held import Held, hold
from ._middleware import Limited, LimitMiddleware, PermitMiddleware

__all__ = ["Held", "LimitMiddleware", "Limited", "PermitMiddleware", "Rejection", "hold", "rejection", "sse_positions"]
