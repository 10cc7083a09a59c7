"""Options by key and value, as the library takes them."""

from __future__ import annotations

import math
from contextlib import contextmanager
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Mapping, Optional, Tuple

from . import _abi
from ._errors import fail
from ._library import fq
from ._units import text


@dataclass(frozen=True)
class Option:
    """An option that there is."""

    scope: str
    """`client` or `limiter`: set when it is opened; `change`: by `Limiter.configure`."""
    key: str
    """Its name."""
    default: str
    """Its default, as it would be written in a configuration file."""
    doc: str
    """What it does."""


_SCOPES = {_abi.FQ_SCOPE_CLIENT: "client", _abi.FQ_SCOPE_LIMITER: "limiter", _abi.FQ_SCOPE_CHANGE: "change"}


def _options() -> Tuple[Option, ...]:
    size = _abi.Handle()
    rows = fq.options(byref(size))[: size.value]
    return tuple(
        Option(_SCOPES[row.scope], row.key.decode(), row.default_value.decode(), row.doc.decode()) for row in rows
    )


OPTIONS: Tuple[Option, ...] = _options()
"""All options that there are, with their defaults and what they do."""


def option(value: Any, key: str, write: Optional[Callable[[Any, str], str]] = None) -> Optional[str]:
    """How a value is written; `None`, which leaves the default, stays `None`."""
    if value is None:
        return None
    if key == "max_hold" and value == math.inf:
        return "0"  # the library's word for no bound
    if write is not None:
        return write(value, key)
    if isinstance(value, bool):
        return "true" if value else "false"
    if key == "max_queue" and value == math.inf:
        return "unbounded"
    return str(value)


@contextmanager
def config(options: Mapping[str, Optional[str]]) -> Iterator[int]:
    """A set of options for the time of one call. The library judges keys and values."""
    handle, error = _abi.Handle(), _abi.Handle()
    status = fq.config_new(byref(handle), byref(error))
    if status:
        fail(status, error.value)
    try:
        for key, value in options.items():
            if value is not None:
                name, word = key.encode(), text(value, key)
                status = fq.config_set(handle, name, len(name), word, len(word), byref(error))
                if status:
                    fail(status, error.value)
        yield handle.value
    finally:
        fq.config_free(handle)
