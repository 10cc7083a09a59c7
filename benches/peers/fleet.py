"""A server of our own, and the worker processes of one run."""

from __future__ import annotations

import os
import selectors
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Sequence

from install import Command, Missing
from measure import Counters, Request, parse

SCRIPTS = ("eval", "evalsha", "eval_ro", "evalsha_ro", "fcall", "fcall_ro")
TICK = os.sysconf("SC_CLK_TCK")


class Server:
    """A redis-server on a free port, without persistence, in a temporary folder."""

    def __init__(self, binary: str, folder: Path) -> None:
        if shutil.which(binary) is None:
            raise Missing(f"there is no {binary}; --redis names another")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--logfile", "redis.log"]
        self.process = subprocess.Popen([binary, "--port", str(self.port), *options], cwd=folder)
        self.url = f"redis://127.0.0.1:{self.port}"
        self.version = self.wait()["redis_version"]

    def wait(self) -> dict[str, str]:
        for _ in range(100):
            try:
                info = self.info("server")
            except OSError:
                time.sleep(0.05)
                continue
            if int(info["process_id"]) != self.process.pid:
                raise Missing(f"another server has taken port {self.port}")
            return info
        raise Missing("the server does not come up; see its redis.log")

    def call(self, *words: str) -> str:
        """One command whose reply is a text or a status; each on a connection of its own, so that none idles beside."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            parts = [f"*{len(words)}\r\n", *(f"${len(word)}\r\n{word}\r\n" for word in words)]
            connection.sendall("".join(parts).encode())
            with connection.makefile("rb") as replies:
                head = replies.readline().decode().strip()
                return replies.read(int(head[1:])).decode() if head.startswith("$") else head

    def info(self, section: str) -> dict[str, str]:
        lines = (line.split(":", 1) for line in self.call("INFO", section).splitlines() if ":" in line)
        return {name: value for name, value in lines}

    def counters(self, workers: Sequence[Worker]) -> Counters:
        calls, us = 0, 0
        stats = self.info("commandstats")
        for script in SCRIPTS:
            fields = dict(pair.split("=") for pair in stats.get(f"cmdstat_{script}", "calls=0,usec=0").split(","))
            calls, us = calls + int(fields["calls"]), us + int(fields["usec"])
        cpu = self.info("cpu")
        server = 1e6 * (float(cpu["used_cpu_user"]) + float(cpu["used_cpu_sys"]))
        return Counters(calls, us, server, sum(worker.cpu_us() for worker in workers))

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=10)


class Worker:
    """A process that speaks in lines."""

    def __init__(self, command: Command, extra: dict[str, str], record: Path) -> None:
        self.record = record
        self.process = subprocess.Popen(
            [*command, str(record)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **extra},
            text=True,
        )

    def tell(self, order: str) -> None:
        assert self.process.stdin
        try:
            self.process.stdin.write(order + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it was done already

    def cpu_us(self) -> float:
        """What it has used so far. The kernel keeps that for one that has ended, too, until it is waited for."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        after_the_name = stat.rpartition(")")[2].split()
        user, system = int(after_the_name[11]), int(after_the_name[12])
        return (user + system) * 1e6 / TICK

    def requests(self) -> list[Request]:
        return parse(self.record.read_text().splitlines()) if self.record.exists() else []


class Fleet:
    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = workers
        self.selector = selectors.DefaultSelector()
        for worker in workers:
            assert worker.process.stdout
            self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def hear(self, word: str, seconds: float) -> bool:
        """Waits until all have said it; false when that took too long."""
        missing = set(self.workers)
        end = time.monotonic() + seconds
        while missing and time.monotonic() < end:
            for key, _ in self.selector.select(timeout=0.05):
                line = key.fileobj.readline()  # type: ignore[union-attr]
                if not line:
                    self.selector.unregister(key.fileobj)
                    if key.data in missing:
                        raise Missing("a worker ended too early; see what it said above")
                if line.strip() == word:
                    missing.discard(key.data)
        return not missing

    def tell(self, order: str) -> None:
        for worker in self.workers:
            worker.tell(order)

    def end(self) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
