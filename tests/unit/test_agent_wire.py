"""Lines, payloads and messages: nothing an agent sends gets past them unchecked."""

from __future__ import annotations

import json
import tracemalloc

import pytest

from hprofiler.agent.messages import TEXT_LIMIT, BadEvent, decode
from hprofiler.agent.requests import Find, Ping
from hprofiler.agent.wire import Wire
from hprofiler.base.errors import HostError
from hprofiler.base.text import printable

HELLO = {
    "type": "hello",
    "host": {
        "name": "n",
        "arch": "a",
        "kernel": "k",
        "cpus": 1,
        "memory_bytes": 1,
        "uid": 0,
        "user": "u",
    },
    "protocol": 2,
    "version": "1",
    "blobs": [],
}
PROFILE = {
    "type": "profile",
    "pid": 1,
    "event": "cpu",
    "engine": "perf",
    "source": "cpu-clock",
    "interval": 1,
    "timeline": [1, 2],
    "seconds": 1,
    "cpu_seconds": 1,
    "attach_seconds": 1,
    "samples": {"expected": 1, "taken": 1, "lost": 0},
    "sha256": "0" * 64,
    "size": 5,
}
LEFTOVERS = {"type": "leftovers", "entries": [], "failed": [], "out_of_reach": []}


class Bytes:
    """A channel that has said all it will say, in small pieces."""

    def __init__(self, data: bytes, piece: int = 7) -> None:
        self.data, self.piece = data, piece

    def read(self, size: int) -> bytes:
        size = min(size, self.piece)
        data, self.data = self.data[:size], self.data[size:]
        return data


def test_lines_and_payloads_take_turns():
    wire = Wire(Bytes(b'{"type":"done","left":["a"]}\n\x00\n\xff{"type":"done","left":["b"]}\n{"type'))
    assert wire.receive().left == ("a",)
    assert b"".join(wire.payload(3)) == b"\x00\n\xff"
    assert wire.receive().left == ("b",)
    assert wire.receive() is None


def test_a_payload_that_breaks_off():
    with pytest.raises(EOFError):
        list(Wire(Bytes(b"abc")).payload(4))


def test_an_endless_line_is_given_up_at_the_limit():
    channel = Bytes(b"x" * 5000, piece=1000)
    with pytest.raises(BadEvent, match="more than 2000"):
        Wire(channel).line(2000)
    assert channel.data  # it did not read on


def test_requests_are_lines():
    channel = Bytes(b"")
    channel.write = lambda data: setattr(channel, "data", channel.data + data)
    wire = Wire(channel)
    wire.send(Ping())
    assert channel.data == b'{"type":"ping"}\n'
    with pytest.raises(HostError, match="not valid text"):
        wire.send(Find(selector={"kind": "text", "text": "\udcff"}, native=False))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'{"no":"type"}',
        b'{"type":5}',
        b"\xff\xfe",
        b"{",
        b"[" * 100000,
        b'{"type":"done","left":[],"n":' + b"[" * 100000,
        b'{"type":"done","left":["\xff"]}',
        b'{"type":"done","left":["\\ud800"]}',
        b'{"type":"recording","processes":' + b"9" * 1_000_000 + b"}",
        b'{"type":"interrupted","reason":"","seconds":NaN}',
        b'{"type":"interrupted","reason":"","seconds":1e999}',
        b'{"type":"' + b"\xc2\x9b" * 100_000 + b'"}',
    ],
    ids=range(15),
)
def test_lines_that_are_no_events(line):
    with pytest.raises(BadEvent) as refused:
        decode(line)
    assert len(str(refused.value)) < 400 and str(refused.value) == printable(str(refused.value))


def test_texts_are_cut_and_hold_nothing_that_a_terminal_would_obey():
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


def test_reasons_are_cut():
    error = HostError("find", "x" * 100_000, "y" * 100_000).at("record")
    assert len(error.reason) == len(error.remedy) == 4096


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


BOUNDS = [
    ({**HELLO, "host": None}, "host"),
    ({**HELLO, "blobs": ["a"]}, "blobs"),
    ({"type": "done", "left": ["/a"] * 10_001}, "left"),
    ({**LEFTOVERS, "entries": [{}] * 10_001}, "entries"),
    ({"type": "ready", "processes": [{"pid": 5}] * 513}, "processes"),
    *((found({**PROCESS, "pid": pid}), "pid") for pid in (0, -5, 1 << 40, True, 1.5, "1", None)),
    (found({**PROCESS, "labels": {"a": 5}}), "labels"),
    (found({**PROCESS, "labels": {str(n): "" for n in range(100)}}), "labels"),
    (found({**PROCESS, "user": "x" * 256}), "user"),
    ({**OUTCOME, "status": "perfect"}, "status"),
    ({**OUTCOME, "stage": "dance"}, "stage"),
    ({**OUTCOME, "ended": "so"}, "ended"),
    ({**OUTCOME, "seconds": -1}, "seconds"),
    ({**STARTED, "engine": "gprof"}, "engine"),
    ({**STARTED, "sources": dict.fromkeys(map(str, range(17)), "x")}, "sources"),
    ({**RAW, "name": "../x"}, "name"),
    ({**RAW, "size": 1 << 30}, "size"),
    ({**PROFILE, "timeline": [0] * 86_461}, "timeline"),
    ({**PROFILE, "timeline": [1, -1]}, "timeline"),
    ({**PROFILE, "interval": -1}, "interval"),
    ({**PROFILE, "samples": [1, 2, 3]}, "samples"),
    ({**PROFILE, "sha256": "beef"}, "sha256"),
    ({**PROFILE, "size": -1}, "size"),
]


@pytest.mark.parametrize(("event", "where"), BOUNDS)
def test_members_are_of_their_type_and_have_bounds(event, where):
    with pytest.raises(BadEvent, match=where):
        parse(event)


def test_a_process_found_twice_is_refused():
    with pytest.raises(BadEvent, match="twice"):
        parse(found(PROCESS, PROCESS))


def test_found_processes_become_the_house_s_own():
    process = parse(found({**PROCESS, "label": "l" * 999})).processes[0].on("h")
    assert (process.host, process.pid, process.jvm_version, process.labels) == ("h", 5, "17", {"a": "b"})
    assert process.is_jvm and process.label == "l" * 255


def test_a_timeline_takes_eight_bytes_a_second():
    """As Python's numbers a day of large ones took 3.5 MB, and a host may have five hundred."""
    line = json.dumps({**PROFILE, "timeline": list(range((1 << 63) - 86_400, 1 << 63))}).encode()
    tracemalloc.start()
    try:
        header = decode(line)
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert header.timeline[-1] == (1 << 63) - 1 and kept < 1 << 20
