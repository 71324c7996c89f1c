"""What is kept of a target's inputs: one file in a `corpus` folder, an input a line.

`NAME.txt` has text with the escapes of a byte string, `NAME.hex` bytes in hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

MOST_BYTES = 30_000
"""What one `keep` adds to a target."""
_READABLE = 0.9
_ESCAPED = {0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}


def read(corpus: Path, target: str) -> list[bytes]:
    """The inputs kept for a target, perhaps none."""
    for form, decode in _DECODED.items():
        file = corpus / f"{target}.{form}"
        if file.is_file():
            return [decode(line) for line in file.read_text(encoding="ascii").splitlines()]
    return []


def write(corpus: Path, target: str, before: Iterable[bytes], found: Iterable[bytes]) -> int:
    """Keeps all that were there, and the shortest of those that were found. Returns their number."""
    always = _shortest_first(before)
    taken: list[bytes] = []
    for data in _shortest_first(set(found) - set(always)):
        if sum(map(len, taken)) + len(data) <= MOST_BYTES:
            taken.append(data)
    taken = always + taken
    everything = b"".join(taken)
    readable = sum(32 <= byte < 127 or byte in (9, 10) for byte in everything)
    text = readable >= _READABLE * len(everything)
    lines = [_escaped(data) if text else data.hex() for data in taken]
    corpus.mkdir(exist_ok=True)
    for form in _DECODED:
        (corpus / f"{target}.{form}").unlink(missing_ok=True)
    file = corpus / f"{target}.{'txt' if text else 'hex'}"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
    return len(taken)


def _shortest_first(inputs: Iterable[bytes]) -> list[bytes]:
    return sorted(set(inputs), key=lambda one: (len(one), one))


def _escaped(data: bytes) -> str:
    return "".join(
        _ESCAPED.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}") for byte in data
    )


def _unescaped(line: str) -> bytes:
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


_DECODED: dict[str, Callable[[str], bytes]] = {"txt": _unescaped, "hex": bytes.fromhex}
