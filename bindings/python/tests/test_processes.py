"""Processes: how they end, and how they fork."""

from __future__ import annotations

import multiprocessing
import signal
from typing import Callable

import pytest
from conftest import PATIENCE, Script, idle, wait_until

import fairq

# --- the end of a process


def test_a_killed_process_gives_its_permits_back(redis_url: str, name: str) -> None:
    """Nobody tells the store: it is the lease that ends them."""
    doomed = Script(
        """
        limiter = fairq.Client(url).limiter(name, limit=2, lease=0.3)
        permits = [limiter.acquire(), limiter.acquire()]
        threading.Thread(target=limiter.acquire, args=(60,), daemon=True).start()
        wait_until(lambda: limiter.status().waiting == 1)
        say("held")
        signal.pause()
        """,
        redis_url,
        name,
    )
    assert doomed.line() == "held"
    with fairq.Client(redis_url) as client:
        limiter = client.limiter(name, limit=2, lease=0.3)
        assert limiter.status().used == 2 and limiter.status().waiting == 1
        doomed.kill(signal.SIGKILL)
        with limiter.acquire(PATIENCE), limiter.acquire(PATIENCE):
            pass
        wait_until(idle(limiter))


EXIT = {
    "a permit": "permit = limiter.acquire()",
    "a permit in a cycle": "cycle = [limiter.acquire()]; cycle.append(cycle); del cycle",
    "a watched permit": "permit = limiter.acquire(); permit.on_lost(print)",
    "waiting threads": """
permit = limiter.acquire()
for _ in range(3):
    threading.Thread(target=limiter.acquire, args=(60,), daemon=True).start()
wait_until(lambda: limiter.status().waiting == 3)
""",
    "a waiting loop in a thread": """
permit = limiter.acquire()
async def wait():
    async with limiter.acquire_async(60):
        pass
threading.Thread(target=asyncio.run, args=(wait(),), daemon=True).start()
wait_until(lambda: limiter.status().waiting == 1)
""",
    "a loop that was left": """
import warnings
warnings.simplefilter("ignore", ResourceWarning)
permit = limiter.acquire()
loop = asyncio.new_event_loop()
request = limiter.acquire_async(60)
async def wait():
    async for _ in request.positions():
        break
loop.run_until_complete(wait())
""",
}


@pytest.mark.parametrize("left", EXIT)
def test_the_interpreter_ends_with(script: Callable[[str], Script], client: fairq.Client, name: str, left: str) -> None:
    """At once, without a complaint; and what it held is given back, though its lease is long."""
    limiter = client.limiter(name, limit=1, lease=3600, idle=7200)
    leaver = script("limiter = fairq.Client(url).limiter(name, limit=1, lease=3600, idle=7200)\n" + EXIT[left])
    assert leaver.finish() == ""
    with limiter.acquire(0):
        pass


def test_the_interpreter_ends_without_a_server(name: str) -> None:
    leaver = Script(
        """
        limiter = fairq.Client(url, connect_timeout=0.1, io_timeout=0.1).limiter(name, limit=1)
        threading.Thread(target=limiter.acquire, args=(60,), daemon=True).start()
        try:
            limiter.acquire(0.05)
        except (fairq.Unavailable, fairq.TimedOut) as error:
            say(type(error).__name__)
        """,
        "unix:///nonexistent/redis.sock",
        name,
    )
    assert leaver.finish() in ("Unavailable\n", "TimedOut\n")


def test_a_thread_that_keeps_the_interpreter_for_itself_keeps_its_permit(script: Callable[[str], Script]) -> None:
    """The lease is kept by threads of the library, which do not need the interpreter's lock."""
    hog = script("""
    import ctypes
    limiter = fairq.Client(url).limiter(name, limit=1, lease=0.2)
    rival = fairq.Client(url).limiter(name, limit=1, lease=0.2)
    permit = limiter.acquire()
    taken = []
    def take():
        with rival.acquire(60) as other:
            taken.append(other.fence)
    thread = threading.Thread(target=take)
    thread.start()
    wait_until(lambda: limiter.status().waiting == 1)
    getattr(ctypes, "PyDLL", ctypes.CDLL)(None).usleep(900_000)  # more than four leases, with the lock
    assert not permit.lost and not taken and limiter.status().holders == 1
    permit.release()
    thread.join()
    assert taken and taken[0] > permit.fence
    """)
    assert hog.finish() == ""


# --- forks

FORK = """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)  # a fork with threads

def forked(child):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    assert os.waitpid(pid, 0)[1] == 0

def refused(use):
    try:
        use()
    except fairq.Forked:
        return
    raise AssertionError(use)

client = fairq.Client(url)
limiter = client.limiter(name, limit=3)
"""


def test_a_child_cannot_use_what_it_inherits(script: Callable[[str], Script]) -> None:
    family = script(
        FORK
        + """
permit, ticket = limiter.acquire(), limiter.ticket()
watched = limiter.acquire()
watched.on_lost(print)
waiter = threading.Thread(target=lambda: limiter.acquire(60, cost=2).release())
waiter.start()
wait_until(lambda: limiter.status().waiting == 1)

def child():
    global permit, ticket, watched
    for use in [
        client.check, client.close, lambda: client.close(1), lambda: client.limiter("x"), limiter.acquire,
        limiter.try_acquire, limiter.ticket, limiter.status, lambda: limiter.set_limit(9),
        lambda: limiter.configure(limit=9), lambda: asyncio.run(limiter.acquire_async()._acquire()),
        ticket.cancel, ticket.position, ticket.last_position, permit.is_valid, permit.release,
        lambda: permit.state, lambda: permit.lost, lambda: permit.on_lost(print),
    ]:
        refused(use)
    assert permit.fence > 0
    with permit:
        pass  # gives nothing back
    del permit, ticket, watched
    import gc
    gc.collect()
    with fairq.Client("memory:") as mine:  # and what was left behind is not used again
        for _ in range(10):
            mine.limiter("own", limit=1).acquire(60).release()

forked(child)
assert permit.is_valid() and watched.is_valid() and limiter.status().used == 2
permit.release()
waiter.join()
watched.release()
"""
    )
    assert family.finish() == ""


def test_a_child_opens_a_client_of_its_own(script: Callable[[str], Script], url: str) -> None:
    family = script(
        FORK
        + """
permit = limiter.acquire()
permit.on_lost(print)
async def hold():
    async with limiter.acquire_async() as inherited:
        def child():
            with fairq.Client(url) as mine:
                again = mine.limiter(name, limit=3)
                with again.acquire(60) as other:
                    say("blocking", other.is_valid())
                async def in_loop():
                    async with again.acquire_async(60) as other:
                        other.on_lost(print)
                        say("asyncio", other.is_valid())
                asyncio.run(in_loop())
                told = threading.Event()
                with mine.limiter(name + ":short", limit=1, max_hold=0.1).acquire(60) as other:
                    other.on_lost(lambda lost: told.set())
                    assert told.wait(60)
            assert inherited.fence
            refused(inherited.is_valid)
        forked(child)
        assert inherited.is_valid()
asyncio.run(hold())
assert permit.is_valid()
permit.release()
"""
    )
    assert family.finish() == "blocking True\nasyncio True\n"


def test_a_child_goes_on_with_a_loop_that_stood_still(script: Callable[[str], Script]) -> None:
    family = script(
        FORK
        + """
loop = asyncio.new_event_loop()
async def use(limiter):
    async with limiter.acquire_async(60) as permit:
        return permit.is_valid()
assert loop.run_until_complete(use(limiter))
def child():
    with fairq.Client(url) as mine:
        assert loop.run_until_complete(use(mine.limiter(name, limit=3)))
forked(child)
loop.close()
"""
    )
    assert family.finish() == ""


def test_a_child_ends_like_any_interpreter(script: Callable[[str], Script], client: fairq.Client, name: str) -> None:
    """Its exit closes its own client, and not its parent's."""
    family = script("""
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)
    limiter = fairq.Client(url).limiter(name, limit=2, lease=3600, idle=7200)
    permit = limiter.acquire()
    child = os.fork()
    if child == 0:
        mine = fairq.Client(url).limiter(name, limit=2, lease=3600, idle=7200).acquire(60)
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    if url != "memory:":
        assert limiter.status().used == 1, limiter.status()
    assert permit.is_valid()
    permit.release()
    """)
    assert family.finish() == ""


def test_a_prefork_server(redis_url: str, name: str) -> None:
    """The master has a permit, and workers with clients of their own share the line."""
    master = Script(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        limiter = fairq.Client(url).limiter(name, limit=2)
        permit = limiter.acquire()

        def work():
            mine = fairq.Client(url).limiter(name, limit=2)
            for _ in range(20):
                with mine.acquire(60) as permit:
                    assert permit.is_valid() and mine.status().used <= 2

        workers = []
        for _ in range(4):
            pid = os.fork()
            if pid == 0:
                work()
                sys.exit(0)
            workers.append(pid)
        assert [os.waitpid(pid, 0)[1] for pid in workers] == [0] * 4
        assert permit.is_valid()
        permit.release()
        status = limiter.status()
        say(status.used, status.waiting, status.granted_total)
        """,
        redis_url,
        name,
    )
    assert master.finish() == f"0 0 {4 * 20 + 1}\n"


def work(url: str, name: str) -> int:
    with fairq.Client(url) as client, client.limiter(name, limit=2).acquire(PATIENCE) as permit:
        return permit.fence


@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_multiprocessing(redis_url: str, name: str, method: str) -> None:
    with fairq.Client(redis_url) as client:
        permit = client.limiter(name, limit=2).acquire()
        with multiprocessing.get_context(method).Pool(3) as pool:
            fences = pool.starmap(work, [(redis_url, name)] * 12)
        assert len(set(fences)) == 12
        assert permit.is_valid()
        permit.release()
        wait_until(idle(client.limiter(name, limit=2)))
