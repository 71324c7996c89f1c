"""The built library needs nothing but a kernel from the machine it is loaded on."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.perfmap import library

COMPILERS = {"x86_64": "cc", "aarch64": "aarch64-linux-gnu-gcc"}


def readelf(what: str, architecture: str) -> str:
    command = ["readelf", "--wide", what, str(library.path(architecture))]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=COMPILERS)
def architecture(request):
    if not shutil.which(COMPILERS[request.param]):
        pytest.skip(f"no compiler for {request.param}")
    return request.param


def test_it_is_a_library_of_that_machine(architecture):
    header = readelf("--file-header", architecture)
    assert "DYN (Shared object file)" in header
    assert {"x86_64": "X86-64", "aarch64": "AArch64"}[architecture] in header


def test_it_needs_no_other_library_and_no_symbol(architecture):
    assert "NEEDED" not in readelf("--dynamic", architecture)
    symbols = [line.split() for line in readelf("--dyn-syms", architecture).splitlines()]
    named = [(words[6], words[7]) for words in symbols if len(words) > 7 and words[0].rstrip(":").isdigit()]
    assert [name for section, name in named if section == "UND"] == []
    assert [name for _, name in named] == ["Agent_OnAttach"]


def test_it_asks_nothing_of_the_loader(architecture):
    """No relocation, thread-local storage, constructor, executable stack, writable code."""
    assert "no relocations" in readelf("--relocs", architecture)
    assert not re.search("INIT|FINI|TEXTREL", readelf("--dynamic", architecture))
    segments = readelf("--program-headers", architecture)
    assert "TLS" not in segments and "RWE" not in segments
    assert re.search(r"GNU_STACK\s.*\sRW\s", segments)


def test_it_is_small(architecture):
    assert library.path(architecture).stat().st_size < 100_000
