"""The decorator `Limiter.limited`."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, AsyncGenerator, Callable, Generator, Optional, TypeVar, cast

from ._units import asked

if TYPE_CHECKING:
    from ._limiter import Limiter

_F = TypeVar("_F", bound=Callable[..., Any])


def limited(limiter: Limiter, max_wait: Optional[float], cost: int, label: str) -> Callable[[_F], _F]:
    """See `Limiter.limited`."""
    asked(max_wait, cost, label)  # complains here, and not with the first call
    ask = functools.partial(limiter.acquire, max_wait, cost=cost, label=label)
    ask_async = functools.partial(limiter.acquire_async, max_wait, cost=cost, label=label)

    def decorate(function: _F) -> _F:
        if _is(inspect.isasyncgenfunction, function):
            wrapper = _async_generator(function, ask_async)
        elif _is(inspect.iscoroutinefunction, function):
            wrapper = _coroutine(function, ask_async)
        elif _is(inspect.isgeneratorfunction, function):
            wrapper = _generator(function, ask)
        else:
            wrapper = _plain(function, ask)
        return cast(_F, functools.wraps(function)(wrapper))

    return decorate


def _is(kind: Callable[[Any], bool], function: Callable[..., Any]) -> bool:
    """Whether a function, or what an object does when it is called, is of that kind."""
    return kind(function) or kind(getattr(function, "__call__", None))  # noqa: B004


def _plain(function: Callable[..., Any], ask: Callable[[], Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with ask():
            return function(*args, **kwargs)

    return wrapper


def _generator(function: Callable[..., Any], ask: Callable[[], Any]) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with ask():
            return (yield from function(*args, **kwargs))

    return wrapper


def _coroutine(function: Callable[..., Any], ask: Callable[[], Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        async with ask():
            return await function(*args, **kwargs)

    return wrapper


def _async_generator(function: Callable[..., Any], ask: Callable[[], Any]) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        async with ask():
            stream = function(*args, **kwargs)
            step = stream.__anext__()
            try:
                while True:
                    try:
                        value = await step
                    except StopAsyncIteration:
                        return
                    try:
                        step = stream.asend((yield value))
                    except GeneratorExit:
                        raise  # `aclose` passes it on
                    except BaseException as error:
                        step = stream.athrow(error)
            finally:
                await stream.aclose()

    return wrapper
