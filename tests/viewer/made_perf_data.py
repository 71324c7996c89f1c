"""A file of perf's made by hand: hardware events, which many machines do not count."""

from __future__ import annotations

import struct

_CONFIGS = {"cycles": 0, "instructions": 1}
_SAMPLE_TYPE = 0x10127  # IP, TID, TIME, CALLCHAIN, PERIOD, IDENTIFIER
_IDS_WITH_ALL_RECORDS = 1 << 18
_MMAP, _COMM, _SAMPLE, _EVENT = 1, 3, 9, 64
_USER = 2
_PAGE = 0x1000


class PerfData:
    """Samples of a process `main`, each in a library, as perf writes them into a pipe."""

    def __init__(self, *events: str) -> None:
        self._ids = {name: number for number, name in enumerate(events, 1)}
        self._libraries: dict[str, int] = {}
        self._records = [_record(_COMM, 0, _halves(7, 7) + _text("main") + self._trailer())]

    def add(self, event: str, library: str, period: int, samples: int) -> None:
        if library not in self._libraries:
            start = self._libraries[library] = _PAGE * (1 + 2 * len(self._libraries))
            body = _halves(7, 7) + _words(start, _PAGE, 0) + _text(library) + self._trailer()
            self._records.append(_record(_MMAP, _USER, body))
        place = self._libraries[library] + 8
        body = _words(self._ids[event], place) + _halves(7, 7) + _words(20, period, 1, place)
        self._records += [_record(_SAMPLE, _USER, body)] * samples

    def content(self) -> bytes:
        events = (
            _halves(0, 128) + _words(_CONFIGS[name], 1, _SAMPLE_TYPE, 0, _IDS_WITH_ALL_RECORDS)
            for name in self._ids
        )
        attributes = (
            _record(_EVENT, 0, event.ljust(128, b"\0") + _words(number))
            for number, event in enumerate(events, 1)
        )
        return b"PERFILE2" + _words(16) + b"".join((*attributes, *self._records))

    def _trailer(self) -> bytes:
        """Thread, time and event of a record that is no sample."""
        return _halves(7, 7) + _words(1, 1)


def _words(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def _halves(*numbers: int) -> bytes:
    return struct.pack(f"<{len(numbers)}I", *numbers)


def _text(text: str) -> bytes:
    return text.encode().ljust((len(text) // 8 + 1) * 8, b"\0")


def _record(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("<IHH", kind, flags, 8 + len(body)) + body
