"""The declarations of the ABI against the repository's: a wrong one would not fail, but read somebody else's memory."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import pytest
from conftest import REPOSITORY

import fairq
from fairq import _abi, _errors, _library

HEADER = REPOSITORY / "include/fairq.h"
LAYOUT = REPOSITORY / "tests/abi/layout.txt"


def lines(kind: str) -> list[list[str]]:
    words = [line.split() for line in LAYOUT.read_text().splitlines()]
    found = [line[1:] for line in words if line and line[0] == kind]
    assert found, f"{LAYOUT} has no {kind}"
    return found


def prototypes() -> dict[str, tuple[str, list[str]]]:
    """The functions of the header: their results and parameters."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)
    found = re.findall(r"^(const char \*|const fq_option \*|\w+ )(fq_\w+)\(([^)]*)\);", text, flags=re.MULTILINE)
    return {
        name: (result.strip(), [] if parameters == "void" else [p.strip() for p in parameters.split(",")])
        for result, name, parameters in found
    }


def test_structs_are_laid_out_as_in_c() -> None:
    for name, size, align in lines("struct"):
        struct = _abi.STRUCTS[name]
        assert (ctypes.sizeof(struct), ctypes.alignment(struct)) == (int(size), int(align)), name
        assert _abi.SIZES[name] == int(size)
    assert {name for name, *_ in lines("struct")} == set(_abi.STRUCTS)


def test_fields_are_where_c_has_them() -> None:
    seen: dict[str, list[str]] = {name: [] for name in _abi.STRUCTS}
    for path, offset, size in lines("field"):
        struct, name = path.split(".")
        field = getattr(_abi.STRUCTS[struct], name)
        assert (field.offset, field.size) == (int(offset), int(size)), path
        seen[struct].append(name)
    assert seen == {name: [field[0] for field in struct._fields_] for name, struct in _abi.STRUCTS.items()}


def test_constants_have_the_values_of_c() -> None:
    theirs = {name: int(value) for name, value in lines("const")}
    ours = {name: value for name, value in vars(_abi).items() if name.startswith("FQ_")}
    versions = {name: ours.pop(name) for name in list(ours) if name.startswith("FQ_VERSION_")}
    assert ours == {name: value for name, value in theirs.items() if not name.startswith("FQ_VERSION_")}
    for name, value in versions.items():
        assert f"#define {name} {value}\n" in HEADER.read_text()


def test_every_function_is_declared() -> None:
    header = prototypes()
    assert set(re.findall(r"\b(fq_\w+)\(", re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL))) == set(
        header
    )
    assert set(header) == set(_abi.PROTOTYPES)


NUMBERS = {
    "uint64_t": ctypes.c_uint64,
    "int32_t": ctypes.c_int32,
    "fq_status": ctypes.c_int32,
    "size_t": ctypes.c_size_t,
}


def places(parameter: str) -> tuple[object, ...]:
    """What a parameter may be declared as."""
    if parameter.startswith("const char *"):
        return (ctypes.c_char_p,)
    kind = parameter.replace("const ", "").rsplit(maxsplit=1)[0]
    if "*" not in parameter:
        return (NUMBERS[kind],)
    is_handle = parameter.count("*") == 1 and kind not in _abi.STRUCTS and kind not in NUMBERS
    return (_abi.Handle,) if is_handle else (ctypes.c_void_p,)


@pytest.mark.parametrize("name", sorted(_abi.PROTOTYPES))
def test_functions_are_called_as_c_has_them(name: str) -> None:
    result, parameters = prototypes()[name]
    prototype = _abi.PROTOTYPES[name]
    assert len(prototype.arguments) == len(parameters)
    for declared, parameter in zip(prototype.arguments, parameters):
        assert declared in places(parameter), parameter
    results = {"void": None, "const char *": ctypes.c_char_p}
    if result != "const fq_option *":
        assert prototype.result is results.get(result, NUMBERS.get(result))
    comment = HEADER.read_text().split(f" {name}(")[0].rsplit("/**", 1)[1]
    does_not = re.search(r"oes not (block|wait)", re.sub(r"\s+\*?\s*", " ", comment))
    # The package never tells a poll to wait.
    assert prototype.blocks == (does_not is None and name != "fq_completions_poll")


def test_the_version_is_that_of_the_library() -> None:
    cargo = re.search(r'^version = "(.*)"', Path(REPOSITORY, "Cargo.toml").read_text(), flags=re.MULTILINE)
    assert cargo is not None
    assert fairq.__version__ == cargo[1] == _library.fq.version().decode()
    assert fairq.__version__ == f"{_abi.FQ_VERSION_MAJOR}.{_abi.FQ_VERSION_MINOR}.{_abi.FQ_VERSION_PATCH}"


def test_every_status_has_its_exception() -> None:
    assert set(_errors._KINDS) == set(map(int, fairq.StatusCode)) - {0} | {int(fairq.StatusCode.INTERNAL)}
    for status, kind in _errors._KINDS.items():
        assert kind.status == status
        words = kind.__name__ if kind is not fairq.Configuration else "Configuration"
        assert fairq.StatusCode(status).name.replace("_", "").lower() == words.lower()
        assert getattr(fairq, kind.__name__) is kind


def test_another_version_is_refused() -> None:
    with pytest.raises(ImportError, match=r"is fairq 0\.2\.0, and this package is made for 0\.1"):
        _library._check("libother.so", "0.2.0")


@pytest.mark.parametrize("content", [None, b"no library"])
def test_a_library_that_cannot_be_loaded_is_named(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "libfairq.so"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("FAIRQ_LIBRARY", str(path))
    with pytest.raises(ImportError, match=re.escape(f"{path} cannot be loaded")):
        _library._load()


def test_another_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRQ_LIBRARY", "libc.so.6")
    with pytest.raises(ImportError, match="has no fq_version"):
        _library._load()
