"""The process: its forks, and its end.

A child inherits Python objects, but nothing that they stand for: what is kept per process begins anew there.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Callable, List

from ._errors import Forked

generation = 0
"""Counts the forks between the process that imported this and the present one: a child knows itself by it."""

ending = False
"""The interpreter is about to exit, and the clients are being closed. The threads that are left are daemons, which end
in the middle of whatever they do: what becomes of their requests is not told any more, for it would only make them
complain."""

_in_child: List[Callable[[], None]] = []


def in_child(reset: Callable[[], None]) -> Callable[[], None]:
    """Decorates a function that runs in each forked child, on its only thread, before anything else does."""
    _in_child.append(reset)
    return reset


def _forked() -> None:
    global generation
    generation += 1
    for reset in _in_child:
        reset()


def is_left_over() -> bool:
    """Whether this is a daemon thread in an interpreter that exits."""
    return ending and threading.current_thread().daemon


def freeze_if_left_over() -> None:
    """Does not return in such a thread."""
    while is_left_over():
        time.sleep(3600)


def forked() -> Forked:
    """The error for whoever uses what a parent process has left."""
    return Forked("this belongs to the parent process: open another client after the fork")


os.register_at_fork(after_in_child=_forked)
