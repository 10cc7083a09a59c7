"""Builds the shared library with cargo and puts it into the wheel; puts its sources into the sdist.

FAIRQ_LIBRARY: the path of a library that is built already, to be put into the wheel instead.
CARGO_TARGET_DIR: where cargo builds, as always.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# What cargo needs, and who reads the sources: in the repository two directories up, in an sdist under `rust`.
SOURCES = [
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",  # unused, but Cargo.toml names them
    "build.rs",
    "cbindgen.toml",
    "include",
    "lua",
    "src",
]
BUILD = ["cargo", "build", "--release", "--lib", "--no-default-features", "--features", "tls"]
NAME = "libfairq.dylib" if sys.platform == "darwin" else "libfairq.so"


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Called by hatchling, for each wheel and sdist."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Before something is built; what is in `build_data` is built in."""
        if self.target_name == "sdist":
            rust = self.rust_sources()
            build_data["force_include"].update({str(rust / name): f"rust/{name}" for name in SOURCES})
            return
        library = self.library()
        if version == "editable":  # is used where it lies
            bundled = Path(self.root, "src", "fairq", "_lib", NAME)
            bundled.parent.mkdir(exist_ok=True)
            copy_whole(library, bundled)
        else:
            self.scratch = tempfile.TemporaryDirectory()
            small = without_line_numbers(library, Path(self.scratch.name, NAME))
            build_data["force_include"][str(small)] = f"fairq/_lib/{NAME}"
            licenses = f"fairq-{self.metadata.version}.dist-info/licenses"
            for license in self.rust_sources().glob("LICENSE-*"):
                build_data["force_include"][str(license)] = f"{licenses}/{license.name}"
        # The library is for one platform, but for any Python on it.
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False

    def rust_sources(self) -> Path:
        """Where Cargo.toml is."""
        root = Path(self.root)
        for place in [root / "rust", root.parent.parent]:
            if (place / "Cargo.toml").is_file() and (place / "lua").is_dir():
                return place
        sys.exit(
            f"fairq: no Rust sources in {root / 'rust'} or {root.parent.parent}; build in a clone, or from an sdist"
        )

    def library(self) -> Path:
        """The library: the one that FAIRQ_LIBRARY names, or a new one."""
        named = os.environ.get("FAIRQ_LIBRARY")
        if named:
            if not Path(named).is_file():
                sys.exit(f"fairq: FAIRQ_LIBRARY names {named}, which is no file")
            return Path(named).resolve()
        if shutil.which("cargo") is None:
            sys.exit(
                "fairq: there is no cargo to build the library with. Install Rust (https://rustup.rs), "
                "or set FAIRQ_LIBRARY to the path of a libfairq that is built already"
            )
        rust = self.rust_sources()
        built = subprocess.run(BUILD, cwd=rust, check=False)
        if built.returncode != 0:
            sys.exit(f"fairq: `{' '.join(BUILD)}` failed in {rust}")
        return target_directory(rust) / "release" / NAME


def without_line_numbers(library: Path, small: Path) -> Path:
    """A copy that is a fifth as large, where the system has what it takes; else the library itself."""
    strip = shutil.which("strip")
    if strip is None or sys.platform != "linux":
        return library
    done = subprocess.run([strip, "--strip-debug", "-o", str(small), str(library)], check=False)
    return small if done.returncode == 0 else library


def target_directory(rust: Path) -> Path:
    """Where cargo builds, by environment or configuration."""
    command = ["cargo", "metadata", "--format-version=1", "--no-deps", "--offline"]
    answer = subprocess.run(command, cwd=rust, check=True, stdout=subprocess.PIPE).stdout
    return Path(json.loads(answer)["target_directory"])


def copy_whole(source: Path, target: Path) -> None:
    """In one move: a process that has loaded the old one keeps it."""
    part = target.with_suffix(".part")
    shutil.copyfile(source, part)
    part.replace(target)
