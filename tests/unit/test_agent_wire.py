"""Lines, payloads and messages: everything an agent sends is checked before it is used."""

from __future__ import annotations

import json

import pytest

from hprofiler.agent.messages import TEXT_LIMIT, BadEvent, decode
from hprofiler.agent.wire import Wire
from hprofiler.base.text import printable


class Bytes:
    """A channel that returns `data` in pieces."""

    def __init__(self, data: bytes, piece: int = 7) -> None:
        self.data, self.piece = data, piece

    def read(self, size: int) -> bytes:
        size = min(size, self.piece)
        data, self.data = self.data[:size], self.data[size:]
        return data


def test_lines_and_payloads_alternate():
    wire = Wire(Bytes(b'{"type":"done","left":["a"]}\n\x00\n\xff{"type":"done","left":["b"]}\n{"type'))
    assert wire.receive().left == ("a",)
    assert b"".join(wire.payload(3)) == b"\x00\n\xff"
    assert wire.receive().left == ("b",)
    assert wire.receive() is None


def test_reading_an_endless_line_stops_at_the_limit():
    channel = Bytes(b"x" * 5000, piece=1000)
    with pytest.raises(BadEvent, match="more than 2000"):
        Wire(channel).line(2000)
    assert channel.data  # it did not read on


@pytest.mark.parametrize(
    "line",
    [
        b"null",
        b"\xff\xfe",
        b"[" * 100000,
        b'{"type":"done","left":["\\ud800"]}',
        b'{"type":"recording","processes":' + b"9" * 1_000_000 + b"}",
        b'{"type":"interrupted","reason":"","seconds":1e999}',
        b'{"type":"' + b"\xc2\x9b" * 100_000 + b'"}',
    ],
    ids=range(7),
)
def test_lines_that_are_not_events(line):
    with pytest.raises(BadEvent) as refused:
        decode(line)
    assert len(str(refused.value)) < 400 and str(refused.value) == printable(str(refused.value))


def test_texts_are_cut_and_lose_control_characters():
    outcome = {
        **OUTCOME,
        "reason": "a\x1b[2Jb\x9bc\u202ed\nf\tg" + "x" * 10_000,
        "parameters": {"a\x1b": "b\x1b", "n": 1.5, "i": 1 << 40},
        "notes": [{"code": "c", "reason": "\x1b", "parameters": {"\x1b": "\n"}}],
    }
    read = parse(outcome)
    assert read.reason.startswith("a\ufffd[2Jb\ufffdc\ufffdd f gx") and len(read.reason) == TEXT_LIMIT
    assert read.parameters == {"a\ufffd": "b\ufffd", "n": 1.5, "i": 1 << 40}
    assert (read.notes[0].reason, read.notes[0].parameters) == ("\ufffd", {"\ufffd": " "})


def parse(event):
    return decode(json.dumps(event, ensure_ascii=False).encode())


def found(process, *others):
    return {"type": "found", "searched": 1, "processes": [process, *others], "ignored": []}


OUTCOME = {"type": "outcome", "pid": 1, "status": "degraded", "stage": "record"}
STARTED = {"type": "started", "pid": 1, "engine": "perf", "sources": {"cpu": "cpu-clock"}}
RAW = {"type": "raw", "pid": 1, "name": "recording.jfr", "sha256": "0" * 64, "size": 5}
PROCESS = {
    "pid": 5,
    "start_time": 1,
    "uid": 0,
    "user": "u",
    "label": "l",
    "jvm": {"version": "17"},
    "labels": {"a": "b"},
}

PROFILE = {
    **{"type": "profile", "pid": 1, "event": "cpu", "engine": "perf", "source": "cpu-clock", "interval": 1},
    **{"seconds": 1, "cpu_seconds": 1, "resident_bytes": 9, "attach_seconds": 1},
    **{"samples": {"expected": 1, "taken": 1, "lost": 0}, "sha256": "0" * 64, "size": 5},
}
PAUSES = {
    **{"type": "pauses", "pid": 1, "collectors": ["young", "full"], "left_out": 0},
    **{"collector": [1, 0], "end": [1 << 50, 5], "duration": [9, 8]},
}
LEFTOVER = {"kind": "file", "path": "/x", "pid": None, "user": "u", "seconds": 1, "bytes": 1, "state": "left"}
LEFTOVERS = {"type": "leftovers", "entries": [{**LEFTOVER, "reason": ""}]}
CHECKED = {"type": "checked", "time": 1e9, "findings": [], "processes": []}
FINDING = {"severity": "info", "about": "perf", "text": ""}
BOUNDS = [
    ({"type": "done", "left": ["/a"] * 10_001}, "left"),
    ({"type": "ready", "processes": [{"pid": 5}] * 513}, "processes"),
    *((found({**PROCESS, "pid": pid}), "pid") for pid in (0, 1 << 40, True, "1")),
    (found({**PROCESS, "labels": {str(n): "" for n in range(100)}}), "labels"),
    ({**OUTCOME, "status": "perfect"}, "status"),
    ({**OUTCOME, "seconds": -1}, "seconds"),
    ({**STARTED, "sources": dict.fromkeys(map(str, range(17)), "x")}, "sources"),
    ({**RAW, "name": "../x"}, "name"),
    ({**RAW, "size": 1 << 30}, "size"),
    ({**PROFILE, "sha256": "beef"}, "sha256"),
    ({**PAUSES, "collector": [2, 0]}, "collector"),
    ({**PAUSES, "collector": [1 << 9, 0]}, "collector"),
    ({**PAUSES, "end": [1]}, "differ in length"),
    ({**PAUSES, "end": [1, 1 << 60]}, "end"),
    ({**PAUSES, "duration": [1, -1]}, "duration"),
    ({**PAUSES, "collectors": ["x"] * 9}, "collectors"),
    ({**PAUSES, "collector": [0] * 100_001}, "collector"),
    ({"type": "clock", "time": -1}, "time"),
    ({**LEFTOVERS, "entries": [{**LEFTOVER, "reason": "", "state": "maybe"}]}, "state"),
    ({**CHECKED, "time": 1e12}, "time"),
    ({**CHECKED, "findings": [FINDING] * 101}, "findings"),
    ({**CHECKED, "findings": [{**FINDING, "severity": "fatal"}]}, "severity"),
]


@pytest.mark.parametrize(("event", "where"), BOUNDS)
def test_values_outside_their_bounds_are_refused(event, where):
    with pytest.raises(BadEvent, match=where):
        parse(event)


def test_pauses_become_our_type():
    pauses = parse({**PAUSES, "collectors": ["young\x1b", "full"]}).pauses
    assert (pauses.pid, pauses.collectors) == (1, ("young\ufffd", "full"))
    assert [*zip(pauses.collector, pauses.end, pauses.duration, strict=True)] == [(1, 1 << 50, 9), (0, 5, 8)]


def test_found_processes_become_our_type():
    process = parse(found({**PROCESS, "label": "l" * 999})).processes[0].on("h")
    assert (process.host, process.pid, process.jvm_version, process.labels) == ("h", 5, "17", {"a": "b"})
    assert process.is_jvm and process.label == "l" * 255
