#!/usr/bin/env python3
"""The same work by fairq and by what people use today, on one Redis, with one clock and one arithmetic.

Starts a redis-server of its own, fetches the peers by their package managers (npm, pip, Maven) into target/peers, runs
one after the other, and prints a table. What each column means is told in README.md beside this file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional, Union

from fleet import Fleet, Server, Worker
from install import PEERS, REPOSITORY, Command, Missing, Peer
from measure import Figures, figures, until
from table import markdown

STARTING, ENDING = 120, 30


@dataclass(frozen=True)
class Workload:
    name: str
    limit: int
    waiters: int
    processes: int
    hold_ms: int
    grants: int

    def with_limit_one(self) -> Workload:
        return Workload(self.name, 1, self.waiters, self.processes, self.hold_ms, self.grants)


WORKLOADS = {
    "small": Workload("small", limit=4, waiters=200, processes=2, hold_ms=5, grants=1_000),
    "large": Workload("large", limit=50, waiters=2_000, processes=10, hold_ms=5, grants=10_000),
    # For a look whether everything works.
    "tiny": Workload("tiny", limit=2, waiters=8, processes=2, hold_ms=2, grants=40),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [peer.name for peer in PEERS]
    parser.add_argument("--only", metavar="PEER,…", help=f"of {', '.join(names)}")
    parser.add_argument("--workload", metavar="W,…", default="small,large", help="small, large, tiny (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="at most, for each run (%(default)s)")
    parser.add_argument("--runs", type=int, default=1, help="of each; the one with the median rate is shown")
    parser.add_argument("--redis", default="redis-server", help="the server's binary (%(default)s)")
    parser.add_argument("--folder", type=Path, default=None, help="where the peers are put (target/peers)")
    parser.add_argument("--json", action="store_true", help="one JSON object in the place of the table")
    chosen = parser.parse_args()
    chosen.peers = pick(parser, chosen.only, {peer.name: peer for peer in PEERS})
    chosen.workloads = pick(parser, chosen.workload, WORKLOADS)
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target")).resolve()
    chosen.folder = (chosen.folder or target / "peers").resolve()
    return chosen


def pick(parser: argparse.ArgumentParser, words: Optional[str], of: dict) -> list:
    if words is None:
        return list(of.values())
    unknown = [word for word in words.split(",") if word not in of]
    if unknown:
        parser.error(f"no such thing: {', '.join(unknown)}; there are {', '.join(of)}")
    return [of[word] for word in words.split(",")]


def measure(command: Command, extra: dict, peer: Peer, workload: Workload, options: argparse.Namespace) -> Figures:
    """One run, on a fresh server."""
    with tempfile.TemporaryDirectory(prefix="fairq-peers-") as temporary:
        server = Server(options.redis, Path(temporary))
        try:
            fleet = Fleet(start(command, extra, peer, workload, server, Path(temporary)))
            try:
                return watch(fleet, server, workload, options.seconds)
            finally:
                fleet.end()
        finally:
            server.stop()


def start(
    command: Command, extra: dict, peer: Peer, workload: Workload, server: Server, folder: Path
) -> list[Worker]:
    each = workload.waiters // workload.processes
    rounds = max(1, workload.grants // workload.waiters)
    kind = "fairq" if peer.name == "fairq-one" else peer.name
    words = [kind, server.url, "bench", workload.limit, each, rounds, workload.hold_ms]
    line = [*command, *map(str, words)]
    return [Worker(line, extra, folder / f"record-{number}") for number in range(workload.processes)]


def watch(fleet: Fleet, server: Server, workload: Workload, seconds: float) -> Figures:
    if not fleet.hear("ready", STARTING):
        raise Missing("its workers did not get ready")
    before = server.counters(fleet.workers)
    fleet.tell("go")
    done = fleet.hear("done", seconds)
    ended = time.monotonic_ns()
    used = server.counters(fleet.workers).since(before)
    if not done:
        fleet.tell("stop")
        fleet.hear("done", ENDING)
    requests = until((request for worker in fleet.workers for request in worker.requests()), ended)
    if not requests:
        raise Missing("its workers noted nothing")
    return figures(requests, workload.limit, ended, used)


def rows(options: argparse.Namespace, workload: Workload) -> list[tuple[Peer, Union[Figures, str]]]:
    """For each peer its figures, or why there are none."""
    found: list[tuple[Peer, Union[Figures, str]]] = []
    for peer in options.peers:
        say(f"{workload.name}: {peer.name}")
        its_own = workload.with_limit_one() if peer.one_holder else workload
        try:
            command, extra = peer.install(options.folder)
            runs = [measure(command, extra, peer, its_own, options) for _ in range(options.runs)]
            runs.sort(key=lambda run: run.grants_per_s)
            found.append((peer, runs[len(runs) // 2]))
        except Missing as missing:
            say(f"  {missing}")
            found.append((peer, str(missing)))
    return found


def say(text: str) -> None:
    print(text, file=sys.stderr)


def version_of(options: argparse.Namespace) -> str:
    with tempfile.TemporaryDirectory(prefix="fairq-peers-") as temporary:
        server = Server(options.redis, Path(temporary))
        server.stop()
        return server.version


def main() -> int:
    options = arguments()
    options.folder.mkdir(parents=True, exist_ok=True)
    try:
        head = {
            "date": time.strftime("%Y-%m-%d"),
            "redis": version_of(options),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "command": " ".join(["benches/peers/run.py", *sys.argv[1:]]),
        }
    except Missing as missing:
        say(str(missing))
        return 1
    results = [(workload, rows(options, workload)) for workload in options.workloads]
    if options.json:
        print(json.dumps({**head, "workloads": [as_json(*result) for result in results]}, indent=2))
    else:
        print(markdown(head, results))
    broken = any(isinstance(row, str) for _, found in results for _, row in found)
    return 1 if broken else 0


def as_json(workload: Workload, found: list[tuple[Peer, Union[Figures, str]]]) -> dict:
    def row(peer: Peer, figures: Union[Figures, str]) -> dict:
        head = {"peer": peer.name, "what": peer.what, "notes": peer.notes}
        return {**head, "missing": figures} if isinstance(figures, str) else {**head, **figures.as_dict()}

    return {**vars(workload), "rows": [row(*each) for each in found]}


if __name__ == "__main__":
    sys.exit(main())
