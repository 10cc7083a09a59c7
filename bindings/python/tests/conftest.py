"""What the tests share: a Redis server, clients, loops, and scripts that run in a Python of their own."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, Callable, Coroutine, Iterator, Optional

import pytest

import fairq

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE = float(os.environ.get("FAIRQ_TEST_PATIENCE", "60"))
"""Seconds after which a test gives up; nothing is expected to take so long."""


def skip(reason: str) -> None:
    """Where nothing may be missing, it is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"had to be skipped: {reason}")
    pytest.skip(reason)


# --- a server


def server_binary() -> Optional[str]:
    named = os.environ.get("FAIRQ_REDIS70")
    if named:
        return named
    found = shutil.which("redis-server", path=os.environ.get("PATH", "") + ":/usr/bin:/usr/sbin")
    if found:
        return found
    installed = sorted((REPOSITORY / "target/servers").glob("*/bin/*-server"))
    return str(installed[0]) if installed else None


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """A server of its own, on a socket that nobody else knows."""
    binary = server_binary()
    if binary is None:
        skip("there is no redis-server: install one, or let FAIRQ_REDIS70 name it")
        return
    directory = tempfile.mkdtemp(prefix="fairq-")
    socket = Path(directory, "redis.sock")
    server = subprocess.Popen(
        [binary, "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", directory],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(socket.exists)
        yield f"unix://{socket}"
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(directory)


@pytest.fixture(params=["memory", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    """Each store."""
    if request.param == "redis":
        return str(request.getfixturevalue("redis_url"))
    return "memory:"


_names = itertools.count()


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A limiter that no other test uses."""
    return f"{request.node.name[:100]}:{next(_names)}"


@pytest.fixture
def client(url: str) -> Iterator[fairq.Client]:
    with fairq.Client(url) as client:
        yield client


@pytest.fixture
def one(client: fairq.Client, name: str) -> fairq.Limiter:
    """A limiter with a limit of 1."""
    return client.limiter(name, limit=1)


# --- loops

Run = Callable[[Coroutine[Any, Any, Any]], Any]


def uvloop_or_skip() -> Any:
    if sys.implementation.name != "cpython":
        pytest.skip("uvloop is for CPython")
    try:
        import uvloop
    except ImportError:
        skip("uvloop is not installed")
    return uvloop


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine, in each kind of loop."""
    if request.param == "asyncio":
        return asyncio.run
    uvloop = uvloop_or_skip()

    def run_it(main: Coroutine[Any, Any, Any]) -> Any:
        loop = uvloop.new_event_loop()
        try:
            return loop.run_until_complete(main)
        finally:
            loop.close()

    return run_it


# --- waiting


def wait_until(true: Callable[[], Any], what: str = "it") -> None:
    """Looks again and again; fails when it takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"{what} did not come to be"
        time.sleep(0.002)


async def wait_until_async(true: Callable[[], Any], what: str = "it") -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, f"{what} did not come to be"
        await asyncio.sleep(0.002)


def waiting(limiter: fairq.Limiter, number: int) -> Callable[[], bool]:
    """Whether so many wait in line."""
    return lambda: limiter.status().waiting == number


def idle(limiter: fairq.Limiter) -> Callable[[], bool]:
    """Whether nobody holds or waits."""

    def nobody() -> bool:
        status = limiter.status()
        return status.used == 0 and status.holders == 0 and status.waiting == 0

    return nobody


# --- scripts

PREAMBLE = """
import asyncio, os, signal, sys, threading, time
import fairq

def wait_until(true):
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.002)

def say(*words):
    print(*words, flush=True)

url, name = sys.argv[1:3]
"""


class Script:
    """A Python of its own that runs a script; its arguments are `url` and `name`."""

    def __init__(self, source: str, url: str, name: str) -> None:
        code = PREAMBLE + textwrap.dedent(source)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code, url, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._timer = threading.Timer(PATIENCE, self._kill_family)
        self._timer.start()

    def _kill_family(self) -> None:
        """With its children, which would keep the pipes open."""
        os.killpg(self.process.pid, signal.SIGKILL)

    def line(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"it said no more; {self.process.communicate()[1]}"
        return line.rstrip("\n")

    def finish(self) -> str:
        """Waits for its end, which has to be a good one. What else it has said."""
        said, complaints = self.process.communicate()
        self._timer.cancel()
        assert (self.process.returncode, complaints) == (0, ""), f"{self.process.returncode}: {said}{complaints}"
        return said

    def kill(self, number: int) -> None:
        """Ends it by a signal."""
        self.process.send_signal(number)
        self.process.communicate()
        self._timer.cancel()


@pytest.fixture
def script(url: str, name: str) -> Callable[[str], Script]:
    """Starts scripts."""
    return lambda source: Script(source, url, name)
