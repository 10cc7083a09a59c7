"""An open client."""

from __future__ import annotations

import asyncio
import atexit
import threading
import weakref
from ctypes import byref
from types import TracebackType
from typing import Optional, Type

from . import _abi, _process
from ._config import config, option
from ._errors import fail
from ._library import fq
from ._limiter import Limiter
from ._units import Path, drain_millis, duration, file_name, text

_open_clients: weakref.WeakSet[Client] = weakref.WeakSet()


class Client:
    """One instance of fairq: it has a connection or two and a thread or two, however many limiters and waiters it has.

    `url`: `memory:` for this process alone (`memory:NAME` is a world of its own); for a cluster of processes `redis://host`
    or `unix:///path/to/socket`, `redis-cluster://host:port,host:port` for a Redis Cluster,
    `redis-sentinel://host:port,host:port/SERVICE` for a master that sentinels know, and each of these with `rediss` in the
    place of `redis` by TLS. Connects with the first request; does not block. Times are seconds, `None` is the default; see
    `fairq.OPTIONS`. Any thread may use it. A forked child opens one of its own.

    `username`, with `password` or a `password_file`, is a login that does not stand in the URL. This file and those for TLS
    (`tls_ca_file`, `tls_cert_file`, `tls_key_file`) are read for each connection, so that what is renewed is taken over.

    Closed by `close()`, by the end of a `with` or `async with` block, and at the interpreter's exit.

    Raises `Invalid` for what means nothing.
    """

    def __init__(
        self,
        url: str = "memory:",
        *,
        connect_timeout: Optional[float] = None,
        io_timeout: Optional[float] = None,
        subscribe: Optional[bool] = None,
        max_tickets: Optional[int] = None,
        description: Optional[str] = None,
        username: Optional[str] = None,
        password: Optional[str] = None,
        password_file: Optional[Path] = None,
        sentinel_password_file: Optional[Path] = None,
        tls_ca_file: Optional[Path] = None,
        tls_cert_file: Optional[Path] = None,
        tls_key_file: Optional[Path] = None,
    ) -> None:
        self._handle = 0
        self._generation = _process.generation
        options = {
            "connect_timeout": option(connect_timeout, "connect_timeout", duration),
            "io_timeout": option(io_timeout, "io_timeout", duration),
            "subscribe": option(subscribe, "subscribe"),
            "max_tickets": option(max_tickets, "max_tickets"),
            "description": option(description, "description"),
            "username": option(username, "username"),
            "password": option(password, "password"),
            "password_file": option(password_file, "password_file", file_name),
            "sentinel_password_file": option(sentinel_password_file, "sentinel_password_file", file_name),
            "tls_ca_file": option(tls_ca_file, "tls_ca_file", file_name),
            "tls_cert_file": option(tls_cert_file, "tls_cert_file", file_name),
            "tls_key_file": option(tls_key_file, "tls_key_file", file_name),
        }
        place, client, error = text(url, "url"), _abi.Handle(), _abi.Handle()
        with config(options) as settings:
            status = fq.client_open(place, len(place), settings, byref(client), byref(error))
        if status:
            fail(status, error.value)
        self._handle = client.value
        _open_clients.add(self)

    def limiter(
        self,
        name: str,
        *,
        limit: Optional[int] = None,
        max_queue: Optional[float] = None,
        max_wait: Optional[float] = None,
        lease: Optional[float] = None,
        max_hold: Optional[float] = None,
        idle: Optional[float] = None,
        poll: Optional[float] = None,
        outage: Optional[str] = None,
    ) -> Limiter:
        """Opens the limiter `name`, 1 to 256 bytes of UTF-8. Without a `limit` it is one that others have declared.

        Times are seconds, `math.inf` is for ever or no bound, `None` the default; `fairq.OPTIONS` says what each does.
        Does not block.

        Raises `Invalid`, `Closed`, `Forked`.
        """
        options = {
            "limit": option(limit, "limit"),
            "max_queue": option(max_queue, "max_queue"),
            "max_wait": option(max_wait, "max_wait", duration),
            "lease": option(lease, "lease", duration),
            "max_hold": option(max_hold, "max_hold", duration),
            "idle": option(idle, "idle", duration),
            "poll": option(poll, "poll", duration),
            "outage": option(outage, "outage"),
        }
        return Limiter(self, name, options)

    def check(self) -> None:
        """Connects now, and looks whether the server is fit: its version, the rights of the user. Blocks for at most
        `connect_timeout` and `io_timeout`.

        Raises `Unavailable`, `Configuration`, `Server`, `Closed`, `Forked`.
        """
        error = _abi.Handle()
        status = fq.client_check(self._handle, byref(error))
        if status:
            fail(status, error.value)

    def close(self, drain: float = 0.0) -> None:
        """Closes the client: every waiter ends with `Closed`; what is held is kept until it is given back or `drain`
        seconds are over, then taken back; all its threads end. Blocks for `drain` and a few seconds at most. Safe to
        call more than once, from any thread.

        Raises `Forked`.
        """
        millis = drain_millis(drain)
        if millis == 0 or self._generation != _process.generation:
            self._close(millis)
            return
        # Signals are handled while one waits for a thread, but not while one waits in the library.
        closing = threading.Thread(target=self._close, args=(millis,), name="fairq-close", daemon=True)
        closing.start()
        closing.join()

    def _close(self, millis: int) -> None:
        error = _abi.Handle()
        status = fq.client_close(self._handle, millis, byref(error))
        if status:
            fail(status, error.value)
        _open_clients.discard(self)

    async def close_async(self, drain: float = 0.0) -> None:
        """As `close`, in a thread of the loop's default executor."""
        await asyncio.get_running_loop().run_in_executor(None, self._close, drain_millis(drain))

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        self.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        await self.close_async()

    def __del__(self) -> None:
        if self._handle:
            fq.client_free(self._handle)


@atexit.register
def _close_all() -> None:
    """Gives back at the interpreter's exit what is held: else others would wait until the lease is over."""
    _process.ending = True
    for client in list(_open_clients):
        fq.client_close(client._handle, 0, None)


@_process.in_child
def _forget() -> None:
    """What a parent has open is not a child's to close."""
    global _open_clients
    _open_clients = weakref.WeakSet()
