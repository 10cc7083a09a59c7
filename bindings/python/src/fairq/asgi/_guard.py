"""Stops an application whose permit is lost."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Optional, Type

from .._permit import LostPermit


class Guard:
    """`with` around the application, in its task: cancels it when told, and makes a `PermitLost` of that cancellation.
    A cancellation that comes from elsewhere, even at the same time, stays one.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._lost: Optional[LostPermit] = None

    def __enter__(self) -> Guard:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._before = _call(task, "cancelling")
        self.is_open = True
        return self

    def stop(self, lost: LostPermit) -> None:
        """The permit is another's. Called in the loop, hence while the application awaits something, or after its end."""
        if self.is_open and self._lost is None:
            self._lost = lost
            self._task.cancel()

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.is_open = False
        if self._lost is None:
            return
        # Also when the application has swallowed it: whoever comes after us would take it for theirs.
        left = _call(self._task, "uncancel")
        if isinstance(error, asyncio.CancelledError) and left <= self._before:
            raise self._lost.error from None


def _call(task: asyncio.Task[Any], name: str) -> int:
    """Tasks count their cancellations since Python 3.11."""
    method = getattr(task, name, None)
    return 0 if method is None else int(method())
