"""Lines, payloads and messages: nothing an agent sends gets past them unchecked."""

from __future__ import annotations

import contextlib
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
    wire = Wire(Bytes(b"x" * 5000, piece=1000))
    with pytest.raises(BadEvent, match="more than 2000"):
        wire.line(2000)
    assert wire._channel.data  # it did not read on


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


@pytest.mark.parametrize(
    ("event", "says"),
    [
        ({**HELLO, "blobs": ["a"]}, "blobs"),
        ({"type": "done", "left": ["/a"] * 10_001}, "length"),
        ({**LEFTOVERS, "entries": [{}] * 10_001}, "length|missing"),
        ({**LEFTOVERS, "out_of_reach": [{}] * 10_001}, "length|missing"),
        ({"type": "ready", "processes": [{"pid": 5}] * 513}, "length"),
    ],
    ids=range(5),
)
def test_lists_have_an_end(event, says):
    with pytest.raises(BadEvent, match=says):
        parse(event)


def parse(event):
    return decode(json.dumps(event, ensure_ascii=False).encode())


def found(process, *others):
    return {"type": "found", "searched": 1, "processes": [process, *others], "ignored": []}


OUTCOME = {"type": "outcome", "pid": 1, "status": "degraded", "stage": "record"}
PROCESS = {
    "pid": 5,
    "start_time": 1,
    "uid": 0,
    "user": "u",
    "label": "l",
    "jvm": {"version": "17"},
    "labels": {"a": "b"},
}


@pytest.mark.parametrize(
    "change",
    [
        *({"pid": pid} for pid in (0, -5, 1 << 40, True, 1.5, "1", None)),
        {"uid": -1},
        {"start_time": None},
        {"labels": 5},
        {"labels": {"a": 5}},
        {"labels": {str(n): "" for n in range(100)}},
        {"jvm": "17"},
        {"namespace_pid": "x"},
        {"user": {}},
        {"user": "x" * 256},
    ],
    ids=str,
)
def test_found_processes_are_checked(change):
    with pytest.raises(BadEvent, match=rf"\$\.processes\[0\]\.{next(iter(change))}"):
        parse(found({**PROCESS, **change}))


def test_a_process_found_twice_is_refused():
    with pytest.raises(BadEvent, match="twice"):
        parse(found(PROCESS, PROCESS))


def test_found_processes_become_the_house_s_own():
    process = parse(found({**PROCESS, "label": "l" * 999})).processes[0].on("h")
    assert (process.host, process.pid, process.jvm_version, process.labels) == ("h", 5, "17", {"a": "b"})
    assert process.is_jvm and process.label == "l" * 255


@pytest.mark.parametrize(
    "lie", [{"ended": "so"}, {"ended": 7}, {"ended": "cut"}, {"seconds": -1}, {"status": "idle"}]
)
def test_outcomes_are_checked(lie):
    with pytest.raises(BadEvent, match=r"ended|seconds|idle"):
        parse({**OUTCOME, **lie})


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


def test_events_survive_any_member_going_wrong():
    """Each member of each event replaced by each kind of nonsense: refused or read, never a crash."""
    raw = {"type": "raw", "pid": 1, "name": "recording.jfr", "sha256": "0" * 64, "size": 5}
    started = {"type": "started", "pid": 1, "engine": "perf", "sources": {"cpu": "cpu-clock"}}
    outcome = {**OUTCOME, "ended": "cut", "seconds": 1.5}
    seen = {**found(PROCESS), "ignored": [{"pid": 3, "reason": "r", "doubtful": True}]}
    for event in (HELLO, PROFILE, raw, started, outcome, {"type": "done", "left": []}, seen, LEFTOVERS):
        parse(event)
        for damaged in damages(event):
            with contextlib.suppress(BadEvent):
                decode(json.dumps(damaged).encode())


def damages(event):
    text = json.dumps(event)
    for name in event:
        if name == "type":
            continue
        for nonsense in (
            None,
            -1,
            1 << 70,
            1e999,
            True,
            "\ud800\x1b",
            "x" * 9999,
            [],
            [[]],
            {},
            {"x": {}},
            [1],
        ):
            yield {**json.loads(text), name: nonsense}
        if isinstance(event[name], dict):
            for inner in damages(event[name]):
                yield {**json.loads(text), name: inner}
        if isinstance(event[name], list) and event[name]:
            for inner in damages(event[name][0]) if isinstance(event[name][0], dict) else ():
                yield {**json.loads(text), name: [inner]}
