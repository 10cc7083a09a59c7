"""How clients are told that there is no permit."""

from __future__ import annotations

import json
import logging
from typing import Any, Optional

import pytest
from asgi_tools import Caller, Stream, asynchronous, limiter_of, sse_events, until_standing

import fairq
from fairq.asgi import LimitMiddleware, rejection

STREAM = "text/event-stream"

TABLE = {
    fairq.QueueFull: (429, "queue_full", 7),
    fairq.TimedOut: (429, "timed_out", 7),
    fairq.Closed: (503, "closed", 7),
    fairq.Unavailable: (503, "unavailable", 7),
    fairq.Overloaded: (503, "overloaded", 7),
    fairq.PermitLost: (503, "permit_lost", 7),
    fairq.Revoked: (503, "revoked", 7),
    fairq.NoSuchLimiter: (503, "no_such_limiter", 7),
    fairq.Configuration: (503, "configuration", 7),
    fairq.Server: (503, "server", 7),
    fairq.Impossible: (400, "impossible", None),
    fairq.Cancelled: (499, "cancelled", None),
}


@pytest.mark.parametrize("kind", TABLE)
def test_the_table_of_refusals(kind: Any) -> None:
    refusal = rejection(kind("inside", retry_after=6.2))
    assert (refusal.status, refusal.error, refusal.retry_after) == TABLE[kind]
    assert "inside" not in refusal.message, "clients are not told of the inside"
    assert refusal.data() == {"error": refusal.error, "message": refusal.message, "retry_after": refusal.retry_after}
    assert refusal.headers == ({} if refusal.retry_after is None else {"Retry-After": "7"})
    assert sse_events(refusal.event()) == [("rejected", refusal.data())]
    assert ("retry: 7000\n" in refusal.event()) == (refusal.retry_after is not None)


@pytest.mark.parametrize("kind", sorted(set(fairq.Error.__subclasses__()) - set(TABLE), key=repr))
def test_mistakes_are_no_refusals(kind: Any) -> None:
    error = kind("a mistake")
    with pytest.raises(kind) as caught:
        rejection(error)
    assert caught.value is error


@pytest.mark.parametrize(("known", "told"), [(None, 5), (0.0, 1), (0.2, 1), (3.0, 3), (3.01, 4)])
def test_retry_after_is_in_whole_seconds(known: Optional[float], told: int) -> None:
    assert rejection(fairq.QueueFull("full", retry_after=known)).retry_after == told


def test_an_operator_finds_in_the_log_what_clients_are_not_told(caplog: Any) -> None:
    with caplog.at_level(logging.WARNING, "fairq.asgi"):
        rejection(fairq.QueueFull("ten are waiting"))
        rejection(fairq.Unavailable("redis://10.0.0.1 does not answer"))
    assert [record.getMessage() for record in caplog.records] == [
        "refused a request: redis://10.0.0.1 does not answer"
    ]


@asynchronous
async def test_a_full_line_is_told_as_json() -> None:
    with limiter_of(1, max_queue=0) as limiter, limiter.acquire():
        app = Stream()
        caller = Caller(LimitMiddleware(app, limiter)).start()
        await caller.task
        assert caller.status == 429
        assert caller.headers["content-type"] == "application/json"
        body = json.loads(caller.text)
        assert set(body) == {"error", "message", "retry_after"} and body["error"] == "queue_full"
        assert caller.headers["retry-after"] == str(body["retry_after"])
        assert caller.ended and app.calls == 0
        await until_standing(limiter, 1, 0)


@pytest.mark.parametrize(
    ("accept", "positions"), [(STREAM, False), (f"application/json, {STREAM}; q=0.9", False), ("*/*", True)]
)
@asynchronous
async def test_a_refusal_is_an_event_for_who_wants_events(accept: str, positions: bool) -> None:
    with limiter_of(1, max_queue=0) as limiter, limiter.acquire():
        caller = Caller(LimitMiddleware(Stream(), limiter, positions=positions), accept=accept).start()
        await caller.task
        assert caller.status == 429, "nothing has gone out before"
        assert caller.headers["content-type"].startswith(STREAM)
        [(name, data)] = caller.events()
        assert name == "rejected" and data["error"] == "queue_full"
        assert caller.headers["retry-after"] == str(data["retry_after"])


@asynchronous
async def test_who_waits_too_long_is_told() -> None:
    with limiter_of(1) as limiter, limiter.acquire():
        caller = Caller(LimitMiddleware(Stream(), limiter, max_wait=0.01)).start()
        await caller.task
        assert (caller.status, json.loads(caller.text)["error"]) == (429, "timed_out")


@asynchronous
async def test_a_closed_client_is_a_service_that_is_away() -> None:
    with limiter_of(1) as limiter:
        limiter._client.close()
        caller = Caller(LimitMiddleware(Stream(), limiter)).start()
        await caller.task
        assert (caller.status, json.loads(caller.text)["error"]) == (503, "closed")


@asynchronous
async def test_a_store_that_is_away_is_told_without_its_address() -> None:
    with fairq.Client("redis://127.0.0.1:1/") as client:
        limiter = client.limiter("away", limit=1, outage="fail")
        caller = Caller(LimitMiddleware(Stream(), limiter)).start()
        await caller.task
        assert (caller.status, json.loads(caller.text)["error"]) == (503, "unavailable")
        assert int(caller.headers["retry-after"]) >= 1
        assert "127.0.0.1" not in caller.text


@asynchronous
async def test_a_cost_over_the_limit_is_the_callers_fault() -> None:
    with limiter_of(1) as limiter:
        caller = Caller(LimitMiddleware(Stream(), limiter, cost=2)).start()
        await caller.task
        assert (caller.status, json.loads(caller.text)["error"]) == (400, "impossible")
        assert "retry-after" not in caller.headers


@asynchronous
async def test_a_mistake_is_raised() -> None:
    with limiter_of(1) as limiter:
        caller = Caller(LimitMiddleware(Stream(), limiter, cost=0)).start()
        with pytest.raises(fairq.Invalid):
            await caller.task
        assert caller.sent == []


@asynchronous
async def test_an_error_that_the_application_lets_pass_is_told_as_well() -> None:
    with limiter_of(1) as limiter, limiter_of(1) as other, other.acquire():

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await other.acquire_async(0)

        caller = Caller(LimitMiddleware(app, limiter)).start()
        await caller.task
        assert caller.status == 429
        await until_standing(limiter, 0, 0)
