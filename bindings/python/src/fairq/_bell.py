"""The descriptor that a completion queue rings, for `poll` and event loops to wait for."""

from __future__ import annotations

import os
import sys


class Bell:
    """An eventfd, or a pipe where there is none (before Python 3.10, and off Linux). Nothing here blocks."""

    __slots__ = ("reader", "writer")

    def __init__(self) -> None:
        if sys.version_info >= (3, 10) and hasattr(os, "eventfd"):
            self.reader = self.writer = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self.reader, self.writer = os.pipe()  # not inheritable, which is CLOEXEC
            os.set_blocking(self.reader, False)
            os.set_blocking(self.writer, False)

    def ring(self) -> None:
        """Wakes whoever waits."""
        try:
            os.write(self.writer, (1).to_bytes(8, "little"))
        except BlockingIOError:
            pass  # a full pipe wakes as well

    def clear(self) -> None:
        """Forgets the rings so far."""
        try:
            os.read(self.reader, 4096)
        except BlockingIOError:
            pass  # nobody rang, or another took it

    def close(self) -> None:
        """Closes the descriptors; may be called again.

        Only its owner knows when the library does not write to it any more: so it does not close itself.
        """
        reader, writer = self.reader, self.writer
        self.reader = self.writer = -1
        for fd in {reader, writer} - {-1}:
            os.close(fd)
