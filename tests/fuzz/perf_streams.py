"""A stream as `perf record -o -` writes it, made by hand, with what is asked of it (target `perf_live`)."""

from __future__ import annotations

import struct
from collections.abc import Sequence

_PID, _TID = 7, 8
_SECOND = 1_000_000_000
_KERNEL, _USER = 2**64 - 128, 2**64 - 512
"""What stands before the addresses of each in a call chain."""
_CPU, _SWITCHES = 1, 2
"""The identifiers of the two events."""
_MAP = b"10000 30 Interpreter\n10030 20 int a.B.c(int)\n"


def with_what_is_asked() -> bytes:
    """Samples in a library, in compiled code and in the kernel, and a wait; the process has a map."""
    stream = [
        b"PERFILE2" + struct.pack("<Q", 16),
        _event(0, _CPU),
        _event(3, _SWITCHES),
        _record(3, 0, struct.pack("<II", _PID, _TID) + b"pool-1-thread-2\0" + _trailer(1)),
        _mapped(1, 2**32 - 1, 0xFFFFFFFF81000000, 0x1000000, b"[kernel.kallsyms]_text\0\0"),
        _mapped(2, _PID, 0x1000, 0x1000, b"/bin/prog\0\0\0\0\0\0\0"),
        _mapped(2, _PID, 0x10000, 0x1000, b"//anon\0\0"),
        _sample(_CPU, _SECOND, [_KERNEL, 0xFFFFFFFF81000050, _USER, 0x10040, 0x1900]),
        _sample(_CPU, 2 * _SECOND, [_USER, 0x10010, 0x1900]),
        _sample(_SWITCHES, 3 * _SECOND, [_USER, 0x10040]),
        _record(14, 1 << 13, _trailer(3 * _SECOND)),
        _record(14, 0, _trailer(4 * _SECOND)),
    ]
    asked = struct.pack("<IQQ", _PID, _SECOND // 2, 6 * _SECOND)
    return b"".join(stream) + b"HPROFASK" + asked + _MAP


def _record(kind: int, misc: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def _event(config: int, number: int) -> bytes:
    """A software event of IP, TID, TIME, CALLCHAIN, PERIOD and IDENTIFIER, identified in all records."""
    attributes = struct.pack("<IIQQQQQ", 1, 128, config, 1, 0x10127, 0, 1 << 18).ljust(128, b"\0")
    return _record(64, 0, attributes + struct.pack("<Q", number))


def _trailer(time: int) -> bytes:
    return struct.pack("<IIQQ", _PID, _TID, time, _CPU)


def _mapped(misc: int, pid: int, start: int, size: int, name: bytes) -> bytes:
    return _record(1, misc, struct.pack("<IIQQQ", pid, pid, start, size, 0) + name + _trailer(2))


def _sample(event: int, time: int, chain: Sequence[int]) -> bytes:
    place = struct.pack("<QQIIQQ", event, chain[-1], _PID, _TID, time, 1000)
    return _record(9, 2, place + struct.pack(f"<{len(chain) + 1}Q", len(chain), *chain))
