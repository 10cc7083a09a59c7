"""What callers may ask for: accepted, or clearly refused (S6, S50)."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

import fairq
from fairq import _abi, _units

NOT_TIMES = [-1, -0.001, -math.inf, math.nan, "15", b"1", object(), 1j, 10**400]
NOT_COUNTS = [-1, 2**64, 2**64 + 1, 1.0, 0.5, math.inf, math.nan, "1", None]


@pytest.mark.parametrize(
    ("seconds", "millis"),
    [
        (0, 0),
        (0.0, 0),
        (-0.0, 0),
        (5e-324, 1),
        (1e-9, 1),
        (0.0004, 1),
        (0.001, 1),
        (0.0011, 2),
        (0.07, 70),
        (0.29, 290),
        (1.001, 1001),
        (15, 15_000),
        (Decimal("0.0004"), 1),
        (Fraction(1, 3), 334),
        (1e9, 10**12),
        (1e300, _abi.FQ_FOREVER),
        (math.inf, _abi.FQ_FOREVER),
        (None, _abi.FQ_DEFAULT),
    ],
)
def test_seconds_are_whole_milliseconds_rounded_up(seconds: float, millis: int) -> None:
    assert _units.wait_millis(seconds) == millis


def test_a_wait_too_short_for_the_clock_ends(one: fairq.Limiter) -> None:
    """S6: it is no wait of 0, and none for ever."""
    with one.acquire(), pytest.raises(fairq.TimedOut):
        one.acquire(max_wait=0.0004)


@pytest.mark.parametrize("seconds", [0, 15, math.inf, None])
def test_waits_that_mean_something(one: fairq.Limiter, seconds: float) -> None:
    with one.acquire(max_wait=seconds):
        pass
    one.limited(max_wait=seconds)(lambda: None)()


@pytest.mark.parametrize("seconds", NOT_TIMES, ids=repr)
def test_waits_that_mean_nothing(one: fairq.Limiter, seconds: float) -> None:
    for ask in (one.acquire, one.acquire_async, one.limited):
        with pytest.raises(fairq.Invalid, match="max_wait") as caught:
            ask(max_wait=seconds)
        assert isinstance(caught.value, ValueError) and not caught.value.retryable


@pytest.mark.parametrize("cost", [*NOT_COUNTS, 0], ids=repr)
def test_costs_that_mean_nothing(one: fairq.Limiter, cost: int) -> None:
    one.acquire(cost=1).release()
    with pytest.raises(fairq.Invalid, match="cost"):
        one.acquire(cost=cost)


@pytest.mark.parametrize("label", ["\ud800", b"bytes", None, "x" * 257, "a\nb", "a\0b"], ids=repr)
def test_labels_that_mean_nothing(one: fairq.Limiter, label: str) -> None:
    with pytest.raises(fairq.Invalid, match="label"):
        one.acquire(label=label)


def test_labels_of_all_kinds(one: fairq.Limiter) -> None:
    for label in ["", "x" * 256, "租户 7"]:
        one.acquire(label=label).release()


@pytest.mark.parametrize("name", ["", "x" * 257, "\udcff"], ids=["empty", "long", "surrogate"])
def test_names_that_mean_nothing(client: fairq.Client, name: str) -> None:
    with pytest.raises(fairq.Invalid, match="name"):
        client.limiter(name, limit=1)


@pytest.mark.parametrize("key", ["max_wait", "lease", "max_hold", "idle", "poll"])
@pytest.mark.parametrize("seconds", NOT_TIMES, ids=repr)
def test_durations_that_mean_nothing(key: str, seconds: float) -> None:
    with fairq.Client() as client, pytest.raises(fairq.Invalid, match=key):
        client.limiter("values", limit=1, **{key: seconds})  # type: ignore[arg-type]


@pytest.mark.parametrize("key", ["limit", "max_queue"])
@pytest.mark.parametrize("number", [-1, 2**64, 1.5, math.nan, "many"], ids=repr)
def test_numbers_that_mean_nothing(key: str, number: int) -> None:
    with fairq.Client() as client:
        with pytest.raises(fairq.Invalid, match=key):
            client.limiter("values", **{"limit": 1, key: number})  # type: ignore[arg-type]
        with pytest.raises(fairq.Invalid, match=key):
            client.limiter("values", limit=1).configure(**{key: number})  # type: ignore[arg-type]


@pytest.mark.parametrize("number", NOT_COUNTS, ids=repr)
def test_limits_that_mean_nothing(number: int) -> None:
    with fairq.Client() as client, pytest.raises(fairq.Invalid, match="limit"):
        client.limiter("values", limit=1).set_limit(number)


def test_settings_out_of_range_say_so() -> None:
    with fairq.Client() as client:
        for key, seconds in [("lease", 0), ("lease", math.inf), ("poll", 0), ("poll", math.inf), ("idle", 0.1)]:
            with pytest.raises(fairq.Invalid, match=key):
                client.limiter("values", limit=1, **{key: seconds})  # type: ignore[arg-type]
        with pytest.raises(fairq.Invalid, match="outage"):
            client.limiter("values", limit=1, outage="maybe")
        with pytest.raises(fairq.Invalid, match="limit"):
            client.limiter("values", max_queue=3)


def test_settings_of_all_kinds(client: fairq.Client, name: str) -> None:
    options = {"limit": 3, "max_queue": 4, "max_wait": math.inf, "lease": 0.5, "max_hold": 7.25}
    limiter = client.limiter(name, **options, idle=60, poll=0.25, outage="local:2")  # type: ignore[arg-type]
    limiter.acquire().release()
    status = limiter.status()
    assert {key: getattr(status, key) for key in options} == options
    unbounded = client.limiter(name + "2", limit=0, max_queue=math.inf, max_hold=math.inf)
    assert unbounded.try_acquire() is None
    status = unbounded.status()
    assert (status.limit, status.max_queue, status.max_hold) == (0, math.inf, math.inf)


def test_clients_that_mean_nothing() -> None:
    for url in ["http://example.org", "redis://", "unix://", "nonsense", "\udcff", None]:
        if url != "redis://":
            with pytest.raises(fairq.Invalid):
                fairq.Client(url)  # type: ignore[arg-type]
    for key in ("connect_timeout", "io_timeout"):
        for seconds in [*NOT_TIMES, 0, math.inf]:
            with pytest.raises(fairq.Invalid):
                fairq.Client(**{key: seconds})  # type: ignore[arg-type]
    with pytest.raises(fairq.Invalid, match="drain"), fairq.Client() as client:
        client.close(drain=-1)
    with fairq.Client(connect_timeout=0.5, io_timeout=1, subscribe=False, description="me"):
        pass


def test_a_login_and_certificates_reach_the_library(redis_url: str, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    with fairq.Client(redis_url, username="default", password_file=secret) as client:
        with pytest.raises(fairq.Configuration, match="password_file.*no such file"):
            client.check()
        secret.write_text("the server asks for none, and takes any\n")
        client.check()
    with fairq.Client(redis_url, username="default", password="any") as client:
        client.check()
    with pytest.raises(fairq.Invalid, match="in one place"):
        fairq.Client("redis://:p@h", password_file=str(secret))
    for key in ("tls_ca_file", "tls_cert_file", "tls_key_file"):
        with pytest.raises(fairq.Invalid, match=f"{key}.*rediss://"):
            fairq.Client("redis://h", **{key: tmp_path})  # type: ignore[arg-type]
    with pytest.raises(fairq.Invalid, match="tls_key_file"):
        fairq.Client("rediss-cluster://h:1,i:2", tls_cert_file=tmp_path)
    with pytest.raises(fairq.Invalid, match="sentinel_password_file"):
        fairq.Client("redis://h", sentinel_password_file=secret)
    with pytest.raises(fairq.Invalid, match="tls_ca_file"):
        fairq.Client(tls_ca_file=3)  # type: ignore[arg-type]
    with fairq.Client("rediss-sentinel://h/main", tls_ca_file=secret, tls_cert_file=secret, tls_key_file=secret) as client:
        with pytest.raises(fairq.Error):
            client.check()


def test_the_options_are_told() -> None:
    options = {(option.scope, option.key): option for option in fairq.OPTIONS}
    assert options["limiter", "lease"].default == "10s" and "silence" in options["limiter", "lease"].doc
    assert {option.scope for option in fairq.OPTIONS} == {"client", "limiter", "change"}
    for scope, signature in [
        ("client", fairq.Client.__init__),
        ("limiter", fairq.Client.limiter),
        ("change", fairq.Limiter.configure),
    ]:
        keys = {key for of, key in options if of == scope}
        assert keys == set(signature.__kwdefaults__), "an option that cannot be set, or one that is not there"


def test_errors_travel_between_processes() -> None:
    for kind in fairq.Error.__subclasses__():
        error = kind("what happened", retryable=True, retry_after=1.5)
        copy = pickle.loads(pickle.dumps(error))
        assert (type(copy), str(copy), copy.retryable, copy.retry_after) == (kind, "what happened", True, 1.5)
        assert copy.status == kind.status


def test_a_status_of_a_newer_library_is_an_error_still() -> None:
    from fairq._errors import take_error

    error = take_error(99, 0)
    assert type(error) is fairq.Error and str(error)
