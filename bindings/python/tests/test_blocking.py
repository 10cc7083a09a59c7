"""Permits for threads."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PATIENCE, idle, wait_until, waiting

import fairq


def test_a_permit_is_held_for_the_block(one: fairq.Limiter) -> None:
    with one.acquire(max_wait=15, label="tenant 7") as permit:
        assert permit.is_valid() and permit.state == fairq.PermitState.VALID and not permit.lost
        assert permit.cost == 1 and permit.fence > 0 and permit.order > 0
        assert one.status().used == 1
    assert not permit.is_valid() and permit.state == fairq.PermitState.RELEASED
    wait_until(idle(one))


def test_the_block_ends_as_it_would_without(one: fairq.Limiter) -> None:
    with pytest.raises(ZeroDivisionError), one.acquire() as permit:
        raise ZeroDivisionError
    assert permit.state == fairq.PermitState.RELEASED
    with pytest.raises(ZeroDivisionError), one.acquire() as permit:
        permit.release()
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), one.acquire():
        one._client.close()  # nothing can be given back any more
        raise ZeroDivisionError


def test_a_release_waits_for_the_store(one: fairq.Limiter) -> None:
    permit = one.acquire()
    permit.release()
    assert one.status().used == 0
    assert permit.state == fairq.PermitState.RELEASED
    with pytest.raises(fairq.Stale):
        permit.release()


def test_fences_grow_and_orders_are_kept(one: fairq.Limiter) -> None:
    permits = []
    for _ in range(3):
        with one.acquire() as permit:
            permits.append(permit)
    assert sorted({p.fence for p in permits}) == [p.fence for p in permits]
    assert sorted({p.order for p in permits}) == [p.order for p in permits]


def test_costs_count(client: fairq.Client, name: str) -> None:
    three = client.limiter(name, limit=3)
    with three.acquire(cost=2) as permit:
        assert permit.cost == 2 and three.status().used == 2 and three.status().holders == 1
        assert three.try_acquire(cost=2) is None
        with three.acquire(0):
            assert three.status().used == 3
    with pytest.raises(fairq.Impossible) as caught:
        three.acquire(cost=4)
    assert isinstance(caught.value, ValueError) and not caught.value.retryable


def test_what_is_not_free_is_not_had_at_once(one: fairq.Limiter) -> None:
    with one.acquire():
        assert one.try_acquire() is None
        with pytest.raises(fairq.TimedOut) as caught:
            one.acquire(max_wait=0)
        assert isinstance(caught.value, TimeoutError)
        assert caught.value.status is fairq.StatusCode.TIMED_OUT and caught.value.retryable
    wait_until(idle(one))
    permit = one.try_acquire()
    assert permit is not None
    permit.release()


def test_a_full_line_says_so(client: fairq.Client, name: str) -> None:
    short = client.limiter(name, limit=1, max_queue=0)
    with short.acquire():
        with pytest.raises(fairq.QueueFull) as caught:
            short.acquire(max_wait=15)
        assert caught.value.retryable
        assert short.try_acquire() is None


def test_threads_are_served_in_order(one: fairq.Limiter) -> None:
    served: list[int] = []

    def work(number: int) -> None:
        with one.acquire(max_wait=PATIENCE):
            served.append(number)

    with ThreadPoolExecutor(8) as pool, one.acquire():
        for number in range(8):
            pool.submit(work, number)
            wait_until(waiting(one, number + 1))
    assert served == list(range(8))


def test_a_ticket_cancels_another_thread(one: fairq.Limiter) -> None:
    ticket = one.ticket()
    with ThreadPoolExecutor(1) as pool, one.acquire():
        request = pool.submit(one.acquire, PATIENCE, ticket=ticket)
        wait_until(waiting(one, 1))
        position = ticket.position()
        assert position is not None and position.position == 1 and ticket.last_position() is not None
        assert ticket.cancel()
        with pytest.raises(fairq.Cancelled):
            request.result()
        wait_until(waiting(one, 0))
        assert ticket.position() is None and ticket.last_position() is None


def test_a_ticket_is_cancelled_for_good(one: fairq.Limiter) -> None:
    ticket = one.ticket()
    assert ticket.cancel()
    with pytest.raises(fairq.Cancelled):
        one.acquire(ticket=ticket)
    with pytest.raises(fairq.Invalid):
        one.acquire(ticket=ticket)
    used = one.ticket()
    with one.acquire(ticket=used):
        assert not used.cancel()


def test_a_closed_client_says_so(one: fairq.Limiter) -> None:
    with ThreadPoolExecutor(1) as pool:
        permit = one.acquire()
        request = pool.submit(one.acquire, PATIENCE)
        wait_until(waiting(one, 1))
        one._client.close()
        with pytest.raises(fairq.Closed):
            request.result()
    with pytest.raises(fairq.Closed):
        one.acquire()
    assert not permit.is_valid() and permit.lost
    with pytest.raises((fairq.PermitLost, fairq.Closed)):
        permit.release()
    one._client.close()


def test_a_close_waits_for_what_is_held(one: fairq.Limiter, url: str, name: str) -> None:
    permit = one.acquire()
    closing = threading.Thread(target=one._client.close, args=(PATIENCE,))
    closing.start()

    def refused() -> bool:
        try:
            other = one.try_acquire()
        except fairq.Closed:
            return True
        assert other is None
        return False

    wait_until(refused)
    assert permit.is_valid() and closing.is_alive()
    permit.release()
    closing.join(PATIENCE)
    assert not closing.is_alive()


def test_nobody_releases_it_but_it_goes_back(one: fairq.Limiter) -> None:
    permit = one.acquire()
    with pytest.warns(ResourceWarning, match="was never given back"):
        del permit
        gc.collect()  # PyPy counts no references
    wait_until(idle(one))


def test_the_operator_changes_what_is_declared(one: fairq.Limiter) -> None:
    with one.acquire():
        one.set_limit(2)
        assert one.status().limit == 2
        with one.acquire(0):
            pass
    one.configure(max_queue=7, max_wait=1.5, lease=20, max_hold=60, paused=True)
    status = one.status()
    assert (status.max_queue, status.max_wait, status.lease, status.max_hold) == (7, 1.5, 20, 60)
    assert status.paused and one.try_acquire() is None
    one.configure(reset=True)
    status = one.status()
    assert (status.limit, status.paused, status.name) == (1, False, one.name)
    assert (status.max_queue, status.max_hold) == (10000, float("inf"))


def test_a_limiter_that_nobody_has_declared(client: fairq.Client, name: str) -> None:
    attached = client.limiter(name)
    for ask in (attached.acquire, attached.status):
        with pytest.raises(fairq.NoSuchLimiter) as caught:
            ask()
        assert isinstance(caught.value, LookupError) and name in str(caught.value)
    client.limiter(name, limit=1).acquire().release()
    attached.acquire().release()


def test_a_server_that_is_not_there(name: str) -> None:
    with fairq.Client("unix:///nonexistent/redis.sock", connect_timeout=0.1, io_timeout=0.1) as client:
        with pytest.raises(fairq.Unavailable) as caught:
            client.limiter(name, limit=1, outage="fail").acquire(PATIENCE)
        assert isinstance(caught.value, ConnectionError) and caught.value.retryable
        with pytest.raises(fairq.Unavailable):
            client.check()
        with client.limiter(name + "2", limit=1, outage="local:1").acquire(PATIENCE) as permit:
            assert permit.fence == 0


def test_a_client_can_be_examined(client: fairq.Client) -> None:
    client.check()
    client.close()
    with pytest.raises(fairq.Closed):
        client.check()


def test_decorated_functions_hold_a_permit(one: fairq.Limiter) -> None:
    @one.limited(max_wait=15)
    def used(add: int, *, more: int = 0) -> int:
        """Tells."""
        return one.status().used + add + more

    assert used(10, more=5) == 16
    assert used.__name__ == "used" and used.__doc__ == "Tells."
    wait_until(idle(one))


def test_decorated_generators_hold_it_to_their_end(one: fairq.Limiter) -> None:
    @one.limited()
    def stream():  # type: ignore[no-untyped-def]
        got = yield one.status().used
        yield got
        return "end"

    steps = stream()
    assert one.try_acquire().release() is None  # type: ignore[union-attr]  # nothing is held before the first step
    assert next(steps) == 1 and steps.send("sent") == "sent"
    with pytest.raises(StopIteration, match="end"):
        next(steps)
    wait_until(idle(one))
    steps = stream()
    next(steps)
    steps.close()
    wait_until(idle(one))


def test_many_first_requests_of_a_cold_client(url: str, name: str) -> None:
    """S48."""
    together = threading.Barrier(100)
    with fairq.Client(url) as client, ThreadPoolExecutor(100) as pool:
        limiter = client.limiter(name, limit=100)

        def first() -> fairq.Permit:
            together.wait(PATIENCE)
            return limiter.acquire(PATIENCE)

        permits = [request.result() for request in [pool.submit(first) for _ in range(100)]]
        assert len({permit.fence for permit in permits}) == 100 and limiter.status().used == 100
        for permit in permits:
            permit.release()
        assert limiter.status().used == 0
