#!/usr/bin/env python3
"""One line for processes of several languages (S52): whoever stands in it, grants follow the order of arrival, and
every process writes the same fields.

usage: line.py REDIS-SERVER FAIRQ LANGUAGE=COMMAND...

Starts a server of its own, and two processes of each language, which all use one limiter of limit 3. Requests of random
costs are started one by one, each seen in line (by the command FAIRQ) before the next. Then permits are given back, and
each grant has to be the next in line. What a worker reads and says is told in worker.rs.
"""

from __future__ import annotations

import json
import random
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
import time
from queue import Empty, Queue

NAME = "line"
LIMIT = 3
REQUESTS = 60
PATIENCE = 30.0  # seconds, after which something is broken


class Worker:
    """A process, what it says, and the language it is written in."""

    def __init__(self, language: str, command: str, url: str, heard: Queue[tuple[Worker, list[str]]]) -> None:
        self.language = language
        arguments = [*shlex.split(command), url, NAME]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self._listen, args=(heard,), daemon=True).start()

    def _listen(self, heard: Queue[tuple[Worker, list[str]]]) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            heard.put((self, line.split()))

    def order(self, *words: object) -> None:
        assert self.process.stdin
        print(*words, file=self.process.stdin, flush=True)

    def end(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0, f"the {self.language} worker ended with {self.process.returncode}"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_server(binary: str, folder: str) -> tuple[subprocess.Popen[bytes], str]:
    port = free_port()
    options = ["--port", str(port), "--save", "", "--dir", folder, "--logfile", "log"]
    server = subprocess.Popen([binary, *options])
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert server.poll() is None, f"{binary} did not start; its port may have been taken"
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, f"redis://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.02)
    raise AssertionError("the server does not answer")


class Line:
    """The line as it has to be, beside the one that is."""

    def __init__(self, fairq: str, url: str, workers: list[Worker], heard: Queue[tuple[Worker, list[str]]]) -> None:
        self.fairq, self.url, self.workers, self.heard = fairq, url, workers, heard
        self.random = random.Random(7)
        self.waiting: list[int] = []
        self.held: list[int] = []
        self.owner: dict[int, Worker] = {}
        self.cost: dict[int, int] = {}
        self.fence = 0

    def list(self, what: str) -> list[dict[str, object]]:
        command = [self.fairq, what, NAME, "--json", "--url", self.url]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=PATIENCE)
        rows = json.loads(done.stdout or b"[]")
        assert isinstance(rows, list)
        return rows

    def start(self, token: int) -> None:
        worker = self.workers[token % len(self.workers)] if token < len(self.workers) else self.random.choice(self.workers)
        self.owner[token], self.cost[token] = worker, self.random.randint(1, LIMIT)
        worker.order("start", token, self.cost[token])
        self.waiting.append(token)
        self.expect_grants()
        self.see_in_line(token)

    def see_in_line(self, token: int) -> None:
        """Waits until the request is where it has to be: the next one must not come before it."""
        what = "waiters" if token in self.waiting else "holders"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for row in self.list(what):
                if row["label"] == f"t{token}":
                    assert row["cost"] == self.cost[token], (self.owner[token].language, row)
                    return
            time.sleep(0.01)
        raise AssertionError(f"request {token} of {self.owner[token].language} is not among the {what}")

    def expect_grants(self) -> None:
        """The head of the line is granted while its cost fits, and nobody else."""
        used = sum(self.cost[token] for token in self.held)
        due = []
        while self.waiting and used + self.cost[self.waiting[0]] <= LIMIT:
            due.append(self.waiting.pop(0))
            used += self.cost[due[-1]]
        fences = dict(self.hear("granted", due))
        told = [fences[token] for token in due]
        assert told == sorted(told) and (not told or told[0] > self.fence), f"fences {told} after {self.fence}"
        self.fence = max([self.fence, *told])
        self.held += due

    def release(self) -> None:
        token = self.held.pop(self.random.randrange(len(self.held)))
        self.owner[token].order("release", token)
        self.hear("released", [token], also_granted=True)
        self.expect_grants()

    def hear(self, word: str, tokens: list[int], also_granted: bool = False) -> list[tuple[int, int]]:
        """Waits for exactly these; the answer to a release and the grants that follow it may come in any order."""
        told, left, put_off = [], set(tokens), []
        while left:
            try:
                worker, words = self.heard.get(timeout=PATIENCE)
            except Empty:
                raise AssertionError(f"nobody said {word} {left}") from None
            if also_granted and words[0] == "granted":
                put_off.append((worker, words))
                continue
            token = int(words[1])
            assert words[0] == word and token in left, f"{worker.language} said {words}, expected {word} {left}"
            assert self.owner[token] is worker
            left.discard(token)
            told.append((token, int(words[2]) if word == "granted" else 0))
        for item in put_off:
            self.heard.put(item)
        return told


def run(server: str, fairq: str, languages: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        process, url = start_server(server, folder)
        heard: Queue[tuple[Worker, list[str]]] = Queue()
        workers = [Worker(language, command, url, heard) for _ in range(2) for language, command in languages.items()]
        try:
            line = Line(fairq, url, workers, heard)
            for token in range(REQUESTS):
                line.start(token)
            while line.held:
                line.release()
            assert not line.waiting and heard.empty()
            assert not line.list("holders") and not line.list("waiters")
            for worker in workers:
                worker.end()
        finally:
            for worker in workers:
                worker.process.kill()
            process.kill()
    print(f"{REQUESTS} requests of {', '.join(languages)} in one line: granted in their order")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    run(sys.argv[1], sys.argv[2], dict(pair.split("=", 1) for pair in sys.argv[3:]))
