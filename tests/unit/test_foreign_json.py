"""JSON that others wrote: what is read of it, and what is refused before it fills the memory."""

from __future__ import annotations

import math

import pytest

from hprofiler.base import bounded_json as foreign_json

DIGITS = b"9" * 5000
"""More than Python 3.11 reads as a whole number, and earlier ones in less than the square of their time."""


def test_what_is_read() -> None:
    assert foreign_json.read(b'{"a": [1, -9223372036854775808, 0.5, "b", null]}') == {
        "a": [1, -(2**63), 0.5, "b", None]
    }
    assert math.isnan(foreign_json.read(b'{"progress": NaN}')["progress"])


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b"[" + b"[]," * 1000 + b"[]]",
        b"[" + b'"a",' * 2000 + b"0]",
    ],
    ids=["nothing", "open", "no text", "deep", "lists", "texts"],
)
def test_what_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):
        foreign_json.read(text, 2000)


def test_nobody_counts_to_a_number_of_many_digits() -> None:
    assert foreign_json.read(b"[" + DIGITS + b"]") == [math.inf]
