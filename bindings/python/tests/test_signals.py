"""Signals, and Ctrl-C above all, while a thread waits."""

from __future__ import annotations

import math
import os
import select
import signal
import sys
import threading
from typing import Any, Callable

import pytest
from conftest import PATIENCE, Script, idle, wait_until, waiting

import fairq
from fairq import _mailbox


def test_a_signal_handler_may_acquire_while_its_thread_waits(
    one: fairq.Limiter, client: fairq.Client, name: str
) -> None:
    other = client.limiter(name + ":other", limit=1)
    first = one.acquire()
    fences = []

    def handler(*_: object) -> None:
        with other.acquire(PATIENCE) as permit:
            pass
        fences.append(permit.fence)  # now the next signal may come
        if len(fences) == 3:
            first.release()

    def disturb() -> None:
        wait_until(waiting(one, 1))
        for number in range(3):
            os.kill(os.getpid(), signal.SIGUSR1)
            wait_until(lambda: len(fences) > number)

    before = signal.signal(signal.SIGUSR1, handler)
    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        one.acquire(PATIENCE).release()
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert len(fences) == 3
    wait_until(idle(other))


def test_the_main_thread_looks_up(one: fairq.Limiter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal just before the system's call is seen only after it: it may not last, where signals are handled."""
    timeouts: dict[bool, set[object]] = {True: set(), False: set()}

    class Poller:
        def __init__(self, real: Any = select.poll) -> None:
            self._real = real()
            self.register = self._real.register

        def poll(self, timeout: Any = None) -> Any:
            timeouts[threading.current_thread() is threading.main_thread()].add(timeout)
            return self._real.poll(timeout)

    monkeypatch.setattr(_mailbox, "_spare", [])
    monkeypatch.setattr(select, "poll", Poller)
    first = one.acquire()
    thread = threading.Thread(target=lambda: one.acquire(math.inf).release())
    thread.start()
    wait_until(waiting(one, 1))
    with pytest.raises(fairq.TimedOut):
        one.acquire(0.01)
    first.release()
    thread.join()
    assert timeouts == {True: {_mailbox._LOOK_UP_MS}, False: {None}}


INTERRUPT = """
    limiter = fairq.Client(url).limiter(name, limit=1)
    first = limiter.acquire()

    def interrupt():
        wait_until(lambda: limiter.status().waiting == 1)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
"""


def test_ctrl_c_ends_a_wait(script: Callable[[str], Script]) -> None:
    """A wait that hides the signal would end as timed out, or be killed by the test."""
    waiter = script(
        INTERRUPT
        + """
    try:
        limiter.acquire(50)
    except KeyboardInterrupt:
        wait_until(lambda: limiter.status().waiting == 0)
        first.release()
        assert limiter.status().used == 0, limiter.status()
        say("interrupted")
    """
    )
    assert waiter.line() == "interrupted"
    assert waiter.finish() == ""


def test_ctrl_c_ends_a_wait_in_asyncio(script: Callable[[str], Script]) -> None:
    waiter = script(
        INTERRUPT
        + """
    async def tick():
        # A loop that sleeps may miss a signal that comes just before; that is asyncio's.
        while True:
            await asyncio.sleep(0.1)

    async def main():
        ticking = asyncio.ensure_future(tick())
        async with limiter.acquire_async(50):
            pass

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        wait_until(lambda: limiter.status().waiting == 0)
        first.release()
        assert limiter.status().used == 0, limiter.status()
        say("interrupted")
    """
    )
    assert waiter.line() == "interrupted"
    assert waiter.finish() == ""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="what an interrupt leaves waits for a collection")
@pytest.mark.filterwarnings("ignore:.*never given back:ResourceWarning")  # between the acquire and its block
@pytest.mark.filterwarnings("ignore:Exception ignored in")  # in the destructor of what was given back already
def test_an_interrupt_anywhere_leaves_nothing_behind(one: fairq.Limiter) -> None:
    """Signals at thousands of places of an acquire, between any two steps of the interpreter."""

    class Interrupt(Exception):
        pass

    def handler(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    interrupts = 0
    try:
        for number in range(3_000):
            try:
                signal.setitimer(signal.ITIMER_REAL, 1e-6 + number % 300 * 1e-6)
                with one.acquire(15):
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                interrupts += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupts > 0
    wait_until(idle(one))
    one.acquire(0).release()
