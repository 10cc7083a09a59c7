"""Permits that are lost while they are held."""

from __future__ import annotations

import asyncio
import queue
import signal
import socket
import threading
from typing import Any

import pytest
from conftest import PATIENCE, Run, Script, idle, wait_until, waiting

import fairq


@pytest.fixture
def short(client: fairq.Client, name: str) -> fairq.Limiter:
    """Its permits are lost soon."""
    return client.limiter(name, limit=1, max_hold=0.1)


@pytest.fixture
def endless(client: fairq.Client, name: str) -> fairq.Limiter:
    """Its permits are lost when the client is closed."""
    return client.limiter(name, limit=3)


def test_a_thread_sees_it_in_its_permit(short: fairq.Limiter) -> None:
    with short.acquire() as permit:
        wait_until(lambda: permit.lost)
        assert permit.state == fairq.PermitState.LOST and not permit.is_valid()
        with pytest.raises(fairq.PermitLost, match="max_hold"):
            permit.release()
    assert permit.lost, "also afterwards"
    with short.acquire(PATIENCE):
        pass
    wait_until(idle(short))


def test_a_callback_is_called_once(short: fairq.Limiter) -> None:
    lost: queue.Queue[Any] = queue.Queue()
    with short.acquire() as permit:
        for number in range(3):
            permit.on_lost(lambda what, number=number: lost.put((number, what, threading.current_thread().name)))
        told = [lost.get(timeout=PATIENCE) for _ in range(3)]
        assert sorted(number for number, *_ in told) == [0, 1, 2]
        for _, what, thread in told:
            assert what.fence == permit.fence and "max_hold" in what.reason and thread == "fairq-events"
            assert isinstance(what.error, fairq.PermitLost)
        permit.on_lost(lost.put)  # it is lost already
        assert lost.get(timeout=PATIENCE).fence == permit.fence
    assert lost.empty()


def test_a_callback_comes_late_but_is_told(short: fairq.Limiter) -> None:
    lost: queue.Queue[Any] = queue.Queue()
    with short.acquire() as permit:
        wait_until(lambda: permit.lost)
        permit.on_lost(lost.put)
        assert "max_hold" in lost.get(timeout=PATIENCE).reason


def test_what_is_given_back_is_not_lost(endless: fairq.Limiter) -> None:
    lost: queue.Queue[Any] = queue.Queue()
    with endless.acquire() as before, endless.acquire() as kept:
        kept.on_lost(lambda _: lost.put("kept"))
        before.on_lost(lambda _: lost.put("before"))
        before.release()
        before.on_lost(lambda _: lost.put("after"))
        endless._client.close()
        assert lost.get(timeout=PATIENCE) == "kept"
    assert lost.empty()


def test_a_callback_that_fails_harms_nobody(short: fairq.Limiter, caplog: pytest.LogCaptureFixture) -> None:
    lost: queue.Queue[Any] = queue.Queue()

    def fails(_: object) -> None:
        lost.put("called")
        raise ZeroDivisionError

    for _ in range(2):
        with short.acquire(PATIENCE) as permit:
            permit.on_lost(fails)
            assert lost.get(timeout=PATIENCE) == "called"
    wait_until(lambda: len(caplog.records) == 2)
    assert {record.name for record in caplog.records} == {"fairq"}


def test_permits_come_and_go_while_they_are_watched(client: fairq.Client, name: str) -> None:
    """The thread's mailboxes are its own: none is used by two at once, and none is left over."""
    limiter = client.limiter(name, limit=100)

    def work() -> None:
        for _ in range(200):
            with limiter.acquire(PATIENCE) as permit:
                permit.on_lost(print)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_until(idle(limiter))
    from fairq import _watch

    wait_until(lambda: not _watch.watch()._followed)


def test_a_task_waits_for_it(short: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        loop_thread = threading.get_ident()
        async with short.acquire_async(PATIENCE) as permit:
            called: list[Any] = []
            permit.on_lost(lambda lost: called.append((lost, threading.get_ident())))
            lost = await permit.wait_lost()
            assert lost is not None and lost.fence == permit.fence and "max_hold" in lost.reason
            assert called == [(lost, loop_thread)]
            assert await permit.wait_lost() == lost
            with pytest.raises(fairq.PermitLost):
                await permit.release_async()
        assert permit.lost

    run(main())


def test_a_task_waits_for_a_thread_s_permit(short: fairq.Limiter, run: Run) -> None:
    with short.acquire() as permit:
        lost = run(permit.wait_lost())
        assert lost is not None and lost.fence == permit.fence


def test_a_wait_ends_when_it_is_given_back(endless: fairq.Limiter, run: Run) -> None:
    async def main() -> None:
        async with endless.acquire_async() as permit:
            watchers = [asyncio.ensure_future(permit.wait_lost()) for _ in range(3)]
            await asyncio.sleep(0)
            watchers.pop().cancel()
            await asyncio.sleep(0)
            assert len(permit._watchers) == 2
        assert await asyncio.gather(*watchers) == [None, None]
        assert await permit.wait_lost() is None

    run(main())


def test_a_process_that_was_stopped_for_too_long(redis_url: str, name: str) -> None:
    """S49: each of its permits is told lost once, and it may ask again."""
    sleeper = Script(
        """
        limiter = fairq.Client(url).limiter(name, limit=3, lease=0.2)
        permits = [limiter.acquire() for _ in range(3)]
        for permit in permits:
            permit.on_lost(lambda lost: say("lost", lost.fence))
        say("held", *[permit.fence for permit in permits])
        sys.stdin.readline()
        assert not any(permit.is_valid() for permit in permits)
        for permit in permits:
            permit._give_back()
        limiter.acquire(60).release()
        say("acquired")
        """,
        redis_url,
        name,
    )
    fences = sleeper.line().split()[1:]
    others = fairq.Client(redis_url).limiter(name, limit=3, lease=0.2)
    sleeper.process.send_signal(signal.SIGSTOP)
    permits = [others.acquire(PATIENCE) for _ in range(3)]
    sleeper.process.send_signal(signal.SIGCONT)
    assert sorted(sleeper.line() for _ in range(3)) == sorted(f"lost {fence}" for fence in fences)
    assert sleeper.process.stdin is not None
    sleeper.process.stdin.write("\n")
    sleeper.process.stdin.flush()
    wait_until(waiting(others, 1))
    for permit in permits:
        permit.release()
    assert sleeper.line() == "acquired"
    assert sleeper.finish() == ""
    others._client.close()


def test_the_answer_to_a_release_is_lost(redis_url: str, name: str) -> None:
    """S51: it is asked again, and freed once."""
    with Proxy(redis_url) as proxy, fairq.Client(proxy.url) as client, fairq.Client(redis_url) as direct:
        limiter, looker = client.limiter(name, limit=2), direct.limiter(name, limit=2)
        kept, permit = limiter.acquire(), limiter.acquire()
        assert looker.status().used == 2
        proxy.drop_next_answer()
        permit.release()
        assert proxy.dropped == 1
        assert looker.status().used == 1 and kept.is_valid()
        kept.release()
        assert looker.status().used == 0


class Proxy:
    """Between a client and a server; it may swallow an answer, and close the connection that waits for it."""

    def __init__(self, url: str) -> None:
        self._to = url[len("unix://") :]
        self.dropped = 0
        self._drop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[Any] = [self._listener]

    def drop_next_answer(self) -> None:
        self._drop.set()

    def __enter__(self) -> Proxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._sockets:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._to)
            self._sockets += [client, server]
            threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: Any, target: Any, answers: bool) -> None:
        try:
            while data := source.recv(65536):
                if answers and self._drop.is_set():
                    self._drop.clear()
                    self.dropped += 1
                    break
                target.sendall(data)
        except OSError:
            pass
        for each in (source, target):
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
