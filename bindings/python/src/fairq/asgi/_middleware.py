"""The limit before an application, or before single endpoints of it."""

from __future__ import annotations

from typing import Callable, Iterable, Optional, Union

from .._acquisition import Acquisition
from .._limiter import Limiter
from .._permit import Permit
from ._events import KEEP_ALIVE
from ._exchange import Exchange, current
from ._types import App, Receive, Scope, Send

READ_AHEAD = 64 * 1024
"""Bytes of the request's body that are read while it waits."""

_MAX_LABEL = 256


class _Asking:
    """What to ask a limiter for, by the request's scope."""

    def __init__(
        self,
        limiter: Union[Limiter, Callable[[Scope], Limiter]],
        max_wait: Optional[float],
        cost: Union[int, Callable[[Scope], int]],
        label: Union[str, Callable[[Scope], str], None],
    ) -> None:
        self._limiter = limiter
        self._max_wait = max_wait
        self._cost = cost
        self._label = label

    def start(self, scope: Scope) -> Acquisition:
        limiter = self._limiter if isinstance(self._limiter, Limiter) else self._limiter(scope)
        cost = self._cost(scope) if callable(self._cost) else self._cost
        label = self._label(scope) if callable(self._label) else self._label
        return limiter.acquire_async(self._max_wait, cost=cost, label=_fitting(label or ""))


def _fitting(label: str) -> str:
    """What clients send as a path or a header may be longer than labels are."""
    return label.encode("utf-8", "replace")[:_MAX_LABEL].decode("utf-8", "ignore")


class PermitMiddleware:
    """Gives back what `Limited` and `hold` have taken when the response has ended, and tells clients of refusals: an endpoint
    may let any `fairq.Error` pass. Add it first, that is innermost, so that the others see its responses.

    `on_lost` and `read_ahead` are explained in the module's documentation.
    """

    def __init__(self, app: App, *, on_lost: str = "stop", read_ahead: int = READ_AHEAD) -> None:
        if on_lost not in ("stop", "continue"):
            raise ValueError(f'on_lost is "stop" or "continue", not {on_lost!r}')
        self.app = app
        self._stop_when_lost = on_lost == "stop"
        self._read_ahead = read_ahead

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._concerns(scope):
            return await self.app(scope, receive, send)
        exchange = Exchange(scope, receive, send, self._read_ahead, self._stop_when_lost)

        async def work() -> None:
            await self._enter(exchange)
            await self.app(scope, exchange.inbox.receive, exchange.reply.send)

        await exchange.run(work)
        return None

    def _concerns(self, scope: Scope) -> bool:
        return True

    async def _enter(self, exchange: Exchange) -> None:
        """Before the application."""


class LimitMiddleware(PermitMiddleware):
    """Lets requests to the application only under a permit of `limiter`, which is held until the response's body has gone out
    (background tasks come after that). The application finds it in `scope["fairq.permit"]`.

    - `limiter`: a `Limiter`, or a function of the scope, for one that is opened at startup or is another for each tenant.
    - `max_wait` (seconds), `cost`, `label`: as for `Limiter.acquire`; `cost` and `label` may be functions of the scope.
    - `when`: which requests: the beginning of a path (`"/ask"` is also for `/ask/…`), several, or a function of the scope.
    - `positions`: the responses are event streams, and begin with `event: position` and `data: {"position": 3, "estimate": 12.5}`
      (`null` while not known) while the request waits. The status 200 has gone out then: a refusal comes as `event: rejected`;
      the application's headers are dropped; and if its response is no event stream with status 200 it is replaced by
      `event: failed`, with its status in the data (not `error`, by which an `EventSource` means its connection).
      Who need not wait gets the application's response as it is.
    - `keep_alive`: after so many quiet seconds comes a comment, so that proxies keep the connection.

    `on_lost` and `read_ahead` are explained in the module's documentation.
    """

    def __init__(
        self,
        app: App,
        limiter: Union[Limiter, Callable[[Scope], Limiter]],
        *,
        max_wait: Optional[float] = None,
        cost: Union[int, Callable[[Scope], int]] = 1,
        label: Union[str, Callable[[Scope], str], None] = None,
        when: Union[str, Iterable[str], Callable[[Scope], bool], None] = None,
        positions: bool = False,
        keep_alive: float = KEEP_ALIVE,
        on_lost: str = "stop",
        read_ahead: int = READ_AHEAD,
    ) -> None:
        super().__init__(app, on_lost=on_lost, read_ahead=read_ahead)
        self._asking = _Asking(limiter, max_wait, cost, label)
        self._when = when if callable(when) else _by_path(when)
        self._positions = positions
        self._keep_alive = keep_alive

    def _concerns(self, scope: Scope) -> bool:
        return self._when(scope)

    async def _enter(self, exchange: Exchange) -> None:
        if self._positions:
            exchange.refuse_as_event = True
        keep_alive = self._keep_alive if self._positions else None
        exchange.scope["fairq.permit"] = await exchange.acquire(self._asking.start(exchange.scope), keep_alive)


def _by_path(beginnings: Union[str, Iterable[str], None]) -> Callable[[Scope], bool]:
    if beginnings is None:
        return lambda scope: True
    paths = [beginnings] if isinstance(beginnings, str) else list(beginnings)
    exact = {path.rstrip("/") or "/" for path in paths}
    below = tuple(path.rstrip("/") + "/" for path in paths)
    return lambda scope: scope["path"] in exact or scope["path"].startswith(below)


class Limited:
    """A FastAPI dependency: the endpoint runs under a permit, which is held until the response's body has gone out.

        app.add_middleware(PermitMiddleware)
        limited = Limited(lambda scope: limiter, max_wait=15)

        @app.get("/answer")
        async def answer(permit: fairq.Permit = Depends(limited)): ...

    It needs the middleware, which sees the end of the response: when the code after a dependency's `yield` runs, before or after
    the body is sent, has changed twice in FastAPI (0.106, 0.118). Parameters as for `LimitMiddleware`.
    """

    def __init__(
        self,
        limiter: Union[Limiter, Callable[[Scope], Limiter]],
        *,
        max_wait: Optional[float] = None,
        cost: Union[int, Callable[[Scope], int]] = 1,
        label: Union[str, Callable[[Scope], str], None] = None,
    ) -> None:
        self._asking = _Asking(limiter, max_wait, cost, label)

    async def __call__(self) -> Permit:
        exchange = current.get()
        if exchange is None or not exchange.is_open:
            raise RuntimeError(
                "fairq.asgi.Limited works in HTTP requests that pass PermitMiddleware: "
                "app.add_middleware(fairq.asgi.PermitMiddleware)"
            )
        return await exchange.acquire(self._asking.start(exchange.scope))
