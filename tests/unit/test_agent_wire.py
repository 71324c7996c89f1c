"""Lines, payloads and checked members: nothing an agent sends gets past them unchecked."""

from __future__ import annotations

import contextlib
import json
import tracemalloc

import pytest

from hprofiler.agent import fields
from hprofiler.agent.events import parse_found, parse_hello, parse_record_event, parse_sources
from hprofiler.agent.leftovers import parse_leftovers
from hprofiler.agent.wire import BadEvent, Wire, decode
from hprofiler.base.errors import HostError
from hprofiler.base.text import printable

HELLO = {
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
LEFTOVERS = {"entries": [], "failed": [], "out_of_reach": []}


class Bytes:
    """A channel that has said all it will say, in small pieces."""

    def __init__(self, data: bytes, piece: int = 7) -> None:
        self.data, self.piece = data, piece

    def read(self, size: int) -> bytes:
        size = min(size, self.piece)
        data, self.data = self.data[:size], self.data[size:]
        return data


def test_lines_and_payloads_take_turns():
    wire = Wire(Bytes(b'{"type":"a"}\n\x00\n\xff{"type":"b"}\n{"type'))
    assert wire.receive() == {"type": "a"}
    assert b"".join(wire.payload(3)) == b"\x00\n\xff"
    assert wire.receive() == {"type": "b"}
    assert wire.receive() is None


def test_a_payload_that_breaks_off():
    with pytest.raises(EOFError):
        list(Wire(Bytes(b"abc")).payload(4))


def test_an_endless_line_is_given_up_at_the_limit():
    wire = Wire(Bytes(b"x" * 5000, piece=1000))
    with pytest.raises(BadEvent, match="more than 2000"):
        wire.line(2000)
    assert wire._channel.data  # it did not read on


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
        b'{"type":"a","n":NaN}',
        b'{"type":"a","n":[' + b"[]," * 400000 + b"0]}",
    ],
    ids=range(10),
)
def test_lines_that_are_no_events(line):
    with pytest.raises(BadEvent):
        decode(line)


def test_a_number_of_many_digits_is_none_to_count_by():
    event = decode(b'{"type":"a","n":' + b"9" * 1_000_000 + b"}")
    with pytest.raises(BadEvent, match="n is not a number"):
        fields.integer(event, "n")


def test_what_a_terminal_would_obey_is_replaced():
    assert printable("a\x1b[2Jb\x9bc\u202ed\ud800e\nf\tg") == "a\ufffd[2Jb\ufffdc\ufffdd\ufffde f g"
    printable("\ud800").encode()


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (fields.pid, 0),
        (fields.pid, -5),
        (fields.pid, 1 << 40),
        (fields.pid, True),
        (fields.pid, 1.5),
        (fields.pid, "1"),
        (fields.pid, None),
        (fields.text, 5),
        (fields.text, ["a"]),
        (fields.seconds, -1),
        (fields.seconds, 1e300),
        (fields.seconds, "1"),
        (fields.seconds, False),
        (fields.sha256, "0" * 63),
        (fields.sha256, "G" * 64),
        (fields.sha256, "0" * 64 + "\n"),
        (fields.items, {}),
        (fields.objects, [1]),
        (fields.texts, [1]),
        (fields.member, []),
        (fields.labels, []),
        (fields.labels, {"a": 5}),
        (fields.labels, {str(n): "" for n in range(100)}),
    ],
)
def test_members_of_the_wrong_kind(check, value):
    with pytest.raises(BadEvent, match=r"\bx\b|\ba\b"):
        check({"x": value}, "x")


def test_texts_are_cut():
    assert len(fields.text({"x": "y" * 10000}, "x")) == fields.TEXT_LIMIT


@pytest.mark.parametrize(
    ("parse", "event"),
    [
        (fields.labels, {"labels": {"\x1b" * 100_000: 1}}),
        (parse_sources, {"sources": {"\ud800" * 100_000: 1}}),
    ],
)
def test_a_name_of_the_host_s_is_cut_in_what_is_told_of_it(parse, event):
    with pytest.raises(BadEvent, match="is not text") as told:
        parse(event)
    words = str(told.value)
    assert len(words) < 300 and words == printable(words)


def test_reasons_are_cut():
    error = HostError("find", "x" * 100_000, "y" * 100_000).at("record")
    assert len(error.reason) == len(error.remedy) == 4096


@pytest.mark.parametrize(
    ("parse", "event"),
    [
        (parse_hello, {**HELLO, "blobs": ["a"]}),
        (parse_record_event, {"type": "done", "left": ["/a"] * 10_001}),
        (parse_leftovers, {**LEFTOVERS, "entries": [{}] * 10_001}),
        (parse_leftovers, {**LEFTOVERS, "out_of_reach": [{}] * 10_001}),
        (lambda event: parse_found(event, "h"), {"processes": [{}] * 10_001}),
    ],
    ids=range(5),
)
def test_lists_have_an_end(parse, event):
    with pytest.raises(BadEvent, match=r"more than \d+ members|SHA-256"):
        parse(event)


def test_what_is_kept_and_ignored():
    kept = [f"{n:064x}" for n in range(501)]
    assert parse_hello({**HELLO, "blobs": kept}).blobs == set(kept[:500])
    ignored = [{"pid": 1, "reason": ""}] * 10_001
    assert len(parse_found({"searched": 1, "processes": [], "ignored": ignored}, "h").ignored) == 10_000


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
        {"pid": 0},
        {"uid": -1},
        {"start_time": None},
        {"labels": 5},
        {"jvm": "17"},
        {"namespace_pid": "x"},
        {"user": {}},
    ],
)
def test_found_processes_are_checked(change):
    event = {"searched": 1, "processes": [{**PROCESS, **change}], "ignored": []}
    with pytest.raises(BadEvent):
        parse_found(event, "h")


def test_a_process_found_twice_is_refused():
    with pytest.raises(BadEvent, match="twice"):
        parse_found({"searched": 1, "processes": [PROCESS, PROCESS], "ignored": []}, "h")


def test_found_processes_become_the_house_s_own():
    (process,) = parse_found({"searched": 1, "processes": [PROCESS], "ignored": []}, "h").processes
    assert (process.host, process.pid, process.jvm_version, process.labels) == ("h", 5, "17", {"a": "b"})
    assert process.is_jvm


@pytest.mark.parametrize("lie", [{"ended": "so"}, {"ended": 7}, {"ended": "cut"}, {"seconds": -1}])
def test_what_ended_a_recording_is_checked(lie):
    with pytest.raises(BadEvent, match=r"^(ended|seconds) is no"):
        parse_record_event({"type": "outcome", "pid": 1, "status": "degraded", "stage": "record", **lie})


def test_a_timeline_takes_eight_bytes_a_second():
    """As Python's numbers a day of large ones took 3.5 MB, and a host may have five hundred."""
    line = json.dumps({**PROFILE, "timeline": list(range(fields.INT64 - 86_400, fields.INT64))}).encode()
    tracemalloc.start()
    try:
        header = parse_record_event(decode(line))
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert header.timeline[-1] == fields.INT64 - 1 and kept < 1 << 20


def test_events_survive_any_member_going_wrong():
    """Each member of each event replaced by each kind of nonsense: refused or read, never a crash."""
    raw = {"type": "raw", "pid": 1, "name": "recording.jfr", "sha256": "0" * 64, "size": 5}
    started = {"type": "started", "pid": 1, "engine": "perf", "sources": {"cpu": "cpu-clock"}}
    outcome = {"type": "outcome", "pid": 1, "status": "ok", "stage": "record", "ended": "cut", "seconds": 1.5}
    found = {"searched": 1, "processes": [PROCESS], "ignored": [{"pid": 3, "reason": "r", "doubtful": True}]}
    cases = [
        (parse_hello, HELLO),
        (parse_record_event, PROFILE),
        (parse_record_event, raw),
        (parse_record_event, started),
        (parse_record_event, outcome),
        (parse_record_event, {"type": "done", "left": []}),
        (lambda event: parse_found(event, "h"), found),
    ]
    for parse, event in cases:
        parse(event)
        for damaged in damages(event):
            with contextlib.suppress(BadEvent):
                parse(damaged)


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
