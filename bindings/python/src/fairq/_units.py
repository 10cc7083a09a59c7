"""Seconds and counts of callers, as the library takes them; and back."""

from __future__ import annotations

import math
import operator
import os
from functools import lru_cache
from typing import NamedTuple, Optional, Union

from . import _abi
from ._errors import Invalid

_MAX_COUNT = (1 << 64) - 1

Path = Union[str, "os.PathLike[str]"]
"""A file, as a caller may name it."""


def _millis(seconds: float, what: str) -> float:
    """Whole milliseconds, rounded up, so that a short time never becomes none; `math.inf` as it is."""
    try:
        value = math.nan if isinstance(seconds, (str, bytes, bytearray)) else float(seconds)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if math.isnan(value) or value < 0:
        raise Invalid(f"{what}: {seconds!r} is no number of seconds; it has to be 0 or more, or math.inf")
    if value == math.inf:
        return value
    # In whole microseconds first: 0.07 s are 70 ms, though 0.07 * 1000 is a little more.
    micros = round(value * 1e6)
    return max(-(-micros // 1000), 1 if value > 0 else 0)


def wait_millis(seconds: Optional[float]) -> int:
    """`fq_request.max_wait_ms`; `None` is what the limiter says."""
    if seconds is None:
        return _abi.FQ_DEFAULT
    millis = _millis(seconds, "max_wait")
    return _abi.FQ_FOREVER if millis >= _abi.FQ_DEFAULT else int(millis)


def duration(seconds: float, what: str) -> str:
    """A duration as options have it: `1500ms`, or `forever`."""
    millis = _millis(seconds, what)
    return "forever" if millis == math.inf else f"{int(millis)}ms"


def drain_millis(seconds: float) -> int:
    """How long a close waits for what is held."""
    return int(min(_millis(seconds, "drain"), _abi.FQ_FOREVER))


def count(value: int, what: str) -> int:
    """A number that ctypes will not cut to 64 bits in silence."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise Invalid(f"{what}: {value!r} is no whole number") from error
    if not 0 <= number <= _MAX_COUNT:
        raise Invalid(f"{what}: {value!r} is not between 0 and 2**64 - 1")
    return number


def text(value: str, what: str) -> bytes:
    """UTF-8; what cannot be written in it is refused."""
    try:
        return value.encode()
    except (AttributeError, UnicodeEncodeError) as error:
        raise Invalid(f"{what}: {value!r} is no text that can be written in UTF-8") from error


def file_name(path: Path, what: str) -> str:
    """The name of a file as text."""
    try:
        return str(os.fspath(path))
    except TypeError as error:
        raise Invalid(f"{what}: {path!r} is no name of a file") from error


def seconds(millis: int) -> float:
    """Milliseconds of the library in seconds; `math.inf` for ever."""
    return math.inf if millis >= _abi.FQ_FOREVER else millis / 1000


def seconds_if_known(millis: int) -> Optional[float]:
    """As `seconds`, but `None` where the library says that it does not know."""
    return None if millis >= _abi.FQ_FOREVER else millis / 1000


class Asked(NamedTuple):
    """What is asked for, as the library takes it."""

    wait: int
    cost: int
    label: bytes


# Most requests ask for what others did before, and then this is the same object. `typed`, since 1.0 is no cost, but
# equals 1.
@lru_cache(maxsize=512, typed=True)
def asked(max_wait: Optional[float], cost: int, label: str) -> Asked:
    """What callers ask for.

    Raises `Invalid` for what means nothing.
    """
    return Asked(wait_millis(max_wait), count(cost, "cost"), text(label, "label"))
