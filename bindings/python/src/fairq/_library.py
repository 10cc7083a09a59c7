"""Finds and loads the shared library, and looks whether it is the one that this package is made for."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Optional

from . import _abi
from ._version import __version__

_NAMES = {"darwin": "libfairq.dylib"}


def _find() -> str:
    """The path of the library: what FAIRQ_LIBRARY says, else the one of this package, else the system's."""
    named = os.environ.get("FAIRQ_LIBRARY")
    if named:
        return named
    bundled = Path(__file__).with_name("_lib") / _NAMES.get(sys.platform, "libfairq.so")
    if bundled.exists():
        return str(bundled)
    installed: Optional[str] = ctypes.util.find_library("fairq")
    if installed:
        return installed
    raise ImportError(
        f"there is no {bundled}, and the system has no libfairq: install a wheel of fairq that is made for this "
        "platform, or let the environment variable FAIRQ_LIBRARY name the library"
    )


def _load() -> SimpleNamespace:
    """All functions of the library by their names without the prefix."""
    path = _find()
    try:
        # What blocks lets the interpreter's lock go (CDLL). What does not is cheaper with it, and needs no other
        # thread to come to an end (PyDLL, which PyPy does not have): the library's threads never want that lock.
        patient = ctypes.CDLL(path)
        quick = ctypes.PyDLL(path) if hasattr(ctypes, "PyDLL") else patient
    except OSError as error:
        raise ImportError(f"{path} cannot be loaded: {error}") from error
    functions = SimpleNamespace()
    for name, prototype in _abi.PROTOTYPES.items():
        try:
            function = getattr(patient if prototype.blocks else quick, name)
        except AttributeError:
            raise ImportError(f"{path} has no {name}: it is not the library of fairq {__version__}") from None
        function.restype, function.argtypes = prototype.result, prototype.arguments
        setattr(functions, name[len("fq_") :], function)
    _check(path, functions.version().decode())
    return functions


def _check(path: str, version: str) -> None:
    # While the major version is 0, a minor one may change what this package relies on.
    if version.split(".")[:2] != __version__.split(".")[:2]:
        raise ImportError(f"{path} is fairq {version}, and this package is made for {__version__}")
    for name, struct in _abi.STRUCTS.items():
        if ctypes.sizeof(struct) != _abi.SIZES[name]:
            raise ImportError(
                f"{name} has {ctypes.sizeof(struct)} bytes here and {_abi.SIZES[name]} in the library: "
                "fairq needs a 64-bit Python"
            )


fq = _load()
