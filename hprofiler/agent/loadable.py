"""Making the agent's binary one that the dynamic loader runs, where no file can be made executable.

`/lib64/ld-linux-x86-64.so.2 FILE` runs a program that it can only read. But the agent is a static program
that relocates itself: glibc's loader would hand such a one to the kernel, which wants it executable, and
else would relocate it first, so that the program did it twice. So two program headers change. The note
becomes the name of an interpreter, by which the loader knows dynamic programs (it does not look for it).
The header of what becomes read-only after relocation becomes a second dynamic section, which is all but
empty: the loader takes the last one and finds nothing to do, the program takes the first.

But where it lies the program's C library (musl) tells by the last one, too, as if that were the first: by so
many bytes too low it then looks for what threads' variables begin as and for what unwinding needs. Their
headers say so many bytes more.
"""

from __future__ import annotations

import struct

_LOAD, _DYNAMIC, _INTERPRETER, _NOTE, _RELRO = 1, 2, 3, 4, 0x6474E552
_THREADS, _UNWINDING = 7, 0x6474E550
_STRINGS, _SYMBOLS = 5, 6  # what the loader looks up whether or not it needs them
_HEADER = struct.Struct("<IIQQQQQQ")  # type, flags, offset, address, physical address, sizes, alignment
_ENTRY = struct.Struct("<QQ")


def loadable(binary: bytes) -> bytes:
    """The same program, to be run by the loader. ValueError for a binary of another shape."""
    try:
        return _changed(binary)
    except (struct.error, KeyError) as error:
        raise ValueError(f"no static program with a dynamic section: {error}") from error


def _changed(binary: bytes) -> bytes:
    changed = bytearray(binary)
    headers = _headers(binary)
    if not {_DYNAMIC, _NOTE, _RELRO} <= set(headers):
        raise ValueError("no program headers to spare")
    _, flags, offset, address, physical, size, _, alignment = _HEADER.unpack_from(binary, headers[_DYNAMIC])
    entries = [_ENTRY.unpack_from(binary, offset + at) for at in range(0, size, _ENTRY.size)]
    used = [tag for tag, _ in entries].index(0) + 1
    empty = _almost_empty(dict(entries))
    if used + len(empty) > len(entries):
        raise ValueError("no room in the dynamic section")
    skip = used * _ENTRY.size
    for number, entry in enumerate(empty):
        _ENTRY.pack_into(changed, offset + skip + number * _ENTRY.size, *entry)
    second = (
        _DYNAMIC,
        flags,
        offset + skip,
        address + skip,
        physical + skip,
        size - skip,
        size - skip,
        alignment,
    )
    _HEADER.pack_into(changed, headers[_RELRO], *second)
    struct.pack_into("<I", changed, headers[_NOTE], _INTERPRETER)
    for kind in {_THREADS, _UNWINDING} & set(headers):
        _move(changed, headers[kind], skip)
    return bytes(changed)


def _move(changed: bytearray, header: int, by: int) -> None:
    """What a program header speaks of is so many bytes behind where it seems to be."""
    *before, address, physical, in_file, size, alignment = _HEADER.unpack_from(changed, header)
    if by % max(alignment, 1):
        raise ValueError("threads' variables cannot be moved")
    _HEADER.pack_into(changed, header, *before, address + by, physical + by, in_file, size, alignment)


def _headers(binary: bytes) -> dict[int, int]:
    """Where the first program header of each type is; RELRO, which changes, after DYNAMIC."""
    (start,) = struct.unpack_from("<Q", binary, 32)
    size, count = struct.unpack_from("<HH", binary, 54)
    found: dict[int, int] = {}
    for at in range(start, start + size * count, size):
        found.setdefault(struct.unpack_from("<I", binary, at)[0], at)
    if found.get(_DYNAMIC, 0) > found.get(_RELRO, 0):
        raise ValueError("the program headers are in another order")
    return found


def _almost_empty(entries: dict[int, int]) -> list[tuple[int, int]]:
    return [(_STRINGS, entries[_STRINGS]), (_SYMBOLS, entries[_SYMBOLS]), (0, 0)]
