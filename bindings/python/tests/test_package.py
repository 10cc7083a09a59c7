"""What is installed, and what is told about it."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

import fairq

PACKAGE = REPOSITORY / "bindings/python"


def test_the_readme_is_true(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All of its Python runs, from top to bottom."""
    blocks = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) > 5
    world: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block.replace("redis://localhost", url), "README.md", "exec"), world)
    said = capsys.readouterr().out
    assert re.match(r"\d+\nALL\ncancelled\n\?yhw\n1\n0 of 4 in use, 0 waiting\nclient connect_timeout 2s ", said)


def test_it_is_installed_as_the_version_that_it_says() -> None:
    distribution = importlib.metadata.distribution("fairq")
    assert distribution.version == fairq.__version__
    requirements = distribution.requires or []
    assert all("extra ==" in requirement for requirement in requirements), "it needs nothing to run"


def test_it_is_typed() -> None:
    assert Path(fairq.__file__).with_name("py.typed").exists()


def test_all_that_is_promised_is_there() -> None:
    for name in fairq.__all__:
        assert getattr(fairq, name).__doc__ or name == "__version__", name
    for kind in (fairq.Client, fairq.Limiter, fairq.Permit, fairq.Ticket, fairq.Acquisition):
        for name, member in vars(kind).items():
            if not name.startswith("_") and callable(member):
                assert member.__doc__, f"{kind.__name__}.{name}"


def test_the_import_brings_only_what_it_needs() -> None:
    """Servers import it before they fork: no thread, no client, and nothing of other packages."""
    code = """
import sys, os
before = set(sys.modules)
import fairq
assert len(os.listdir("/proc/self/task")) == 1
ours = {name.split(".")[0] for name in set(sys.modules) - before}
print(sorted(ours - set(sys.stdlib_module_names) - {"fairq"}) if hasattr(sys, "stdlib_module_names") else [])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
