"""The C ABI as ctypes sees it: constants, struct layouts, prototypes. Mirrors `include/fairq.h`; a test compares them.

Handles are names, not addresses, so they travel as plain integers: 0 is NULL, and an old one is refused, never
followed.
"""

from __future__ import annotations

from ctypes import POINTER, Structure, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, NamedTuple, Optional

FQ_VERSION_MAJOR = 0
FQ_VERSION_MINOR = 1
FQ_VERSION_PATCH = 0

FQ_FOREVER = 9223372036854775807
FQ_DEFAULT = 9223372036854775806

FQ_SCOPE_CLIENT = 0
FQ_SCOPE_LIMITER = 1
FQ_SCOPE_CHANGE = 2

FQ_REPORT_POSITION = 1
FQ_REPORT_PERMIT = 2

FQ_PERMIT_STATE_VALID = 0
FQ_PERMIT_STATE_UNCONFIRMED = 1
FQ_PERMIT_STATE_LOST = 2
FQ_PERMIT_STATE_RELEASED = 3
FQ_PERMIT_STATE_NONE = 4

FQ_EVENT_DONE = 0
FQ_EVENT_POSITION = 1
FQ_EVENT_PERMIT_UNCONFIRMED = 2
FQ_EVENT_PERMIT_CONFIRMED = 3
FQ_EVENT_PERMIT_LOST = 4

FQ_OK = 0
FQ_TIMED_OUT = 1
FQ_CANCELLED = 2
FQ_CLOSED = 3
FQ_QUEUE_FULL = 4
FQ_IMPOSSIBLE = 5
FQ_REVOKED = 6
FQ_PERMIT_LOST = 7
FQ_STALE = 8
FQ_UNAVAILABLE = 9
FQ_UNKNOWN_OUTCOME = 10
FQ_OVERLOADED = 11
FQ_INVALID = 12
FQ_CONFIGURATION = 13
FQ_SERVER = 14
FQ_NO_SUCH_LIMITER = 15
FQ_FORKED = 16
FQ_PANIC = 17
FQ_INTERNAL = 18

Handle = c_size_t


class Option(Structure):
    """`fq_option`"""

    _fields_ = [
        ("scope", c_int32),
        ("key", c_char_p),
        ("default_value", c_char_p),
        ("doc", c_char_p),
    ]


class Request(Structure):
    """`fq_request`"""

    _fields_ = [
        ("size", c_uint32),
        ("flags", c_uint32),
        ("max_wait_ms", c_uint64),
        ("cost", c_uint64),
        ("label", c_char_p),
        ("label_len", c_size_t),
    ]


class LimiterInfo(Structure):
    """`fq_limiter_info`"""

    _fields_ = [
        ("size", c_uint32),
        ("paused", c_uint32),
        ("limit", c_uint64),
        ("used", c_uint64),
        ("holders", c_uint64),
        ("waiting", c_uint64),
        ("max_queue", c_uint64),
        ("max_wait_ms", c_uint64),
        ("lease_ms", c_uint64),
        ("max_hold_ms", c_uint64),
        ("granted_total", c_uint64),
        ("instances", c_uint64),
        ("epoch", c_uint64),
        ("grace_ms", c_uint64),
        ("typical_hold_ms", c_uint64),
        ("estimate_ms", c_uint64),
        ("overshoot_total", c_uint64),
    ]


class Position(Structure):
    """`fq_position`"""

    _fields_ = [
        ("position", c_uint64),
        ("estimate_ms", c_uint64),
    ]


class Event(Structure):
    """`fq_event`"""

    _fields_ = [
        ("token", c_uint64),
        ("kind", c_int32),
        ("status", c_int32),
        ("permit", Handle),
        ("error", Handle),
        ("position", c_uint64),
        ("estimate_ms", c_uint64),
    ]


STRUCTS: dict[str, type[Structure]] = {
    "fq_option": Option,
    "fq_request": Request,
    "fq_limiter_info": LimiterInfo,
    "fq_position": Position,
    "fq_event": Event,
}

# What they measure where the library was built: 64 bits. Any other size means that this ctypes lays them out
# differently.
SIZES = {"fq_option": 32, "fq_request": 40, "fq_limiter_info": 128, "fq_position": 16, "fq_event": 48}


class Prototype(NamedTuple):
    """How a function is called."""

    result: Optional[Any]
    arguments: tuple[Any, ...]
    blocks: bool = False
    """Whether it may wait for the network or for others: then the interpreter's lock is let go around it."""


def _status(*arguments: Any, blocks: bool = False) -> Prototype:
    """A function that can fail: it ends with the place for an error."""
    return Prototype(c_int32, (*arguments, c_void_p), blocks)


def _free() -> Prototype:
    return Prototype(None, (Handle,))


# Places for answers are `c_void_p`: it takes `byref(x)`, and the number of an address that was computed once.
_OUT = c_void_p

PROTOTYPES: dict[str, Prototype] = {
    "fq_version": Prototype(c_char_p, ()),
    "fq_status_name": Prototype(c_char_p, (c_int32,)),
    "fq_error_status": Prototype(c_int32, (Handle,)),
    "fq_error_message": Prototype(c_char_p, (Handle,)),
    "fq_error_retryable": Prototype(c_int32, (Handle,)),
    "fq_error_retry_after_ms": Prototype(c_uint64, (Handle,)),
    "fq_error_free": _free(),
    "fq_config_new": _status(_OUT),
    "fq_config_set": _status(Handle, c_char_p, c_size_t, c_char_p, c_size_t),
    "fq_config_free": _free(),
    "fq_options": Prototype(POINTER(Option), (_OUT,)),
    "fq_client_open": _status(c_char_p, c_size_t, Handle, _OUT),
    "fq_client_check": _status(Handle, blocks=True),
    "fq_client_close": _status(Handle, c_uint64, blocks=True),
    "fq_client_free": _free(),
    "fq_limiter_open": _status(Handle, c_char_p, c_size_t, Handle, _OUT),
    "fq_acquire": _status(Handle, c_void_p, Handle, _OUT, blocks=True),
    "fq_acquire_start": _status(Handle, c_void_p, Handle, Handle, c_uint64),
    "fq_limiter_status": _status(Handle, _OUT, blocks=True),
    "fq_limiter_set_limit": _status(Handle, c_uint64, blocks=True),
    "fq_limiter_configure": _status(Handle, Handle, blocks=True),
    "fq_limiter_free": _free(),
    "fq_ticket_new": _status(Handle, _OUT),
    "fq_cancel": _status(Handle),
    "fq_ticket_position": _status(Handle, _OUT, blocks=True),
    "fq_ticket_last_position": _status(Handle, _OUT),
    "fq_ticket_free": _free(),
    "fq_release": _status(Handle, blocks=True),
    "fq_permit_free": _free(),
    "fq_permit_fence": Prototype(c_uint64, (Handle,)),
    "fq_permit_order": Prototype(c_uint64, (Handle,)),
    "fq_permit_cost": Prototype(c_uint64, (Handle,)),
    "fq_permit_is_valid": Prototype(c_int32, (Handle,)),
    "fq_permit_state": Prototype(c_int32, (Handle,)),
    "fq_completions_new": _status(_OUT),
    "fq_completions_set_fd": _status(Handle, c_int32),
    # Never called with a time to wait, so it does not block.
    "fq_completions_poll": _status(Handle, c_void_p, c_size_t, c_uint64, _OUT),
    "fq_completions_free": _free(),
}
