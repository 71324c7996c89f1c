"""The built libraries need nothing but a kernel from the machine they are loaded on."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess

import pytest

from tests.jvmti import library

COMPILERS = {"x86_64": "cc", "aarch64": "aarch64-linux-gnu-gcc"}


def readelf(what: str, built: tuple[str, str]) -> str:
    command = ["readelf", "--wide", what, str(library.path(*built))]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(params=itertools.product(COMPILERS, library.FILES), ids="-".join)
def built(request):
    """Architecture and name of a library."""
    architecture, _ = request.param
    if not shutil.which(COMPILERS[architecture]):
        pytest.skip(f"no compiler for {architecture}")
    return request.param


def test_it_is_a_library_of_that_machine(built):
    header = readelf("--file-header", built)
    assert "DYN (Shared object file)" in header
    assert {"x86_64": "X86-64", "aarch64": "AArch64"}[built[0]] in header


def test_it_needs_no_other_library_and_no_symbol(built):
    assert "NEEDED" not in readelf("--dynamic", built)
    symbols = [line.split() for line in readelf("--dyn-syms", built).splitlines()]
    named = [(words[6], words[7]) for words in symbols if len(words) > 7 and words[0].rstrip(":").isdigit()]
    assert [name for section, name in named if section == "UND"] == []
    assert [name for _, name in named] == ["Agent_OnAttach"]


def test_it_asks_nothing_of_the_loader(built):
    """No relocation, thread-local storage, constructor, executable stack, writable code."""
    assert "no relocations" in readelf("--relocs", built)
    assert not re.search("INIT|FINI|TEXTREL", readelf("--dynamic", built))
    segments = readelf("--program-headers", built)
    assert "TLS" not in segments and "RWE" not in segments
    assert re.search(r"GNU_STACK\s.*\sRW\s", segments)


def test_it_is_small(built):
    assert library.path(*built).stat().st_size < 100_000
