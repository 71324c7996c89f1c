"""The kept inputs of a target: one file in a `corpus` folder, an input a line.

`NAME.txt` has text with the escapes of a byte string, `NAME.hex` bytes in hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def read(corpus: Path, target: str) -> list[bytes]:
    """The inputs kept for a target, perhaps none."""
    for form, decode in _DECODED.items():
        file = corpus / f"{target}.{form}"
        if file.is_file():
            return [decode(line) for line in file.read_text(encoding="ascii").splitlines()]
    return []


def _unescaped(line: str) -> bytes:
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


_DECODED: dict[str, Callable[[str], bytes]] = {"txt": _unescaped, "hex": bytes.fromhex}
