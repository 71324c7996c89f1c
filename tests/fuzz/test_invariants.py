"""What the fuzz targets hold whatever they are given does break where it is broken."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from hprofiler.agent.events import Done, Ignored, Started
from hprofiler.base.errors import HostError, UsageError
from tests.fuzz.invariants import check_html, check_text, check_texts, of_file, ours


@pytest.mark.parametrize("word", ["\x1b[2J", "\u202e", "\ud800", "\x9b", "a\nb", "x" * 5000])
def test_texts_wherever_they_are(word: str) -> None:
    for held in (Done((word,)), Ignored(1, word), Started(1, "perf", {word: "a"}), [{"a": {word}}]):
        with pytest.raises(AssertionError):
            check_texts(held)
    check_texts(Started(1, "perf", {"a": "\u00e9\ufffd"}))


def test_errors_that_are_not_ours() -> None:
    ours(lambda: _raise(UsageError("a")))
    ours(lambda: _raise(HostError("find", "\x1b")))
    with pytest.raises(AssertionError):
        ours(lambda: _raise(UsageError("x" * 100_000)))
    with pytest.raises(KeyError):
        ours(lambda: _raise(KeyError("a")))


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "leave",
    [
        lambda file: Path("/etc/passwd").read_bytes(),
        lambda file: (file.parent.parent / "other").write_bytes(b""),
        lambda file: subprocess.run(["true"]),
    ],
    ids=["read", "write", "run"],
)
def test_nobody_leaves_the_folder(leave) -> None:
    """Nor where the reader takes it for an error of the file."""

    def read(file: Path) -> None:
        with contextlib.suppress(Exception):
            leave(file)

    with pytest.raises(AssertionError):
        of_file(b"", read)
    assert of_file(b"a", Path.read_bytes) == b"a"


@pytest.mark.parametrize("html", ["<script>", "<p onclick='x'>", "<p>\x1b</p>"])
def test_html_that_does_something(html: str) -> None:
    with pytest.raises(AssertionError):
        check_html(html)
    check_html("<p>&lt;script&gt;</p>\n")


def test_a_lone_surrogate_is_shown_as_such() -> None:
    with pytest.raises(AssertionError, match=r"\\ud800"):
        check_text("\ud800")
