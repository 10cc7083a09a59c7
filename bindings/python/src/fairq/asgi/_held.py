"""A permit that lasts as long as an iterator."""

from __future__ import annotations

import sys
from typing import AsyncIterable, AsyncIterator, Callable, TypeVar

from .._errors import PermitLost
from .._permit import Permit
from ._exchange import current

T = TypeVar("T")


class Held(AsyncIterator[T]):
    """See `hold`. A class, because a generator that was never begun has nothing to close."""

    def __init__(self, permit: Permit, body: AsyncIterable[T]) -> None:
        self._permit = permit
        self._body = body.__aiter__()
        exchange = current.get()
        if exchange is not None and exchange.is_open:
            exchange.tie(permit)

    async def __anext__(self) -> T:
        try:
            if self._permit.lost:
                raise PermitLost("the permit was lost while its stream went on")
            return await self._body.__anext__()
        except BaseException:  # also the end, and a cancellation
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Closes the body, and gives the permit back."""
        try:
            close = getattr(self._body, "aclose", None)
            if close is not None:
                await close()
        finally:
            self._permit._give_back()

    def __del__(self, _finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not _finalizing():
            self._permit._give_back()


def hold(permit: Permit, body: AsyncIterable[T]) -> Held[T]:
    """Iterates over `body` with the permit held until that ends, raises, is cancelled or closed, whichever comes first.
    Raises `PermitLost` between two items when the permit is lost.

    An iterator that is abandoned in the middle, as frameworks do when a client disconnects, gives the permit back when it is
    collected as garbage, which may be late. Under `PermitMiddleware` or `LimitMiddleware` it does so with the end of the request.
    """
    return Held(permit, body)
