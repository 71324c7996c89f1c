"""Many hosts at once: the phases, the ledger, and that one bad host does not affect the others."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pytest

from hprofiler.base.errors import HostError, RunFolderError
from hprofiler.collect import reconnect
from hprofiler.collect.checking import find_only
from hprofiler.model import Status
from tests.unit.stand_in import ANY, SAMPLING, Named
from tests.viewer.made_run import coverage_of

GOOD = """
hello(); found(7); prepared(7); recording(7)
profile(7, b"p" * 300000); outcome(7); say("done", left=[]); read()
"""


@pytest.fixture
def short_lease(monkeypatch):
    """Lost hosts are given up after a second."""
    monkeypatch.setattr(reconnect, "LEASE_SECONDS", 1.0)


def line(result, pid=None):
    """(status, stage, reason) of the host's line, or of a process's."""
    (found,) = [outcome for outcome in result.outcomes if outcome.pid == pid]
    return found.status, found.stage, found.reason


def test_a_good_host(fleet):
    hosts = fleet(one=GOOD)
    result = hosts.collect()["one"]
    assert line(result, 7) == (Status.OK, "record", "") and len(result.outcomes) == 1
    (recording,) = result.recordings
    assert (recording.process.pid, recording.event, recording.samples.taken) == (7, "cpu", 9)
    assert hosts.sink.sizes == {("one", 7, "cpu"): 300000}
    assert (recording.attach_seconds, recording.bytes_received) == (0.25, 300000)
    assert result.bytes_received > 300000 and result.bytes_sent > 500
    assert result.facts.cpus == 2
    stages = dict.fromkeys(step.stage for step in hosts.progress)
    assert [stage for stage in stages if stage != "push"] == [
        *("connect", "find", "prepare", "wait", "start", "record", "fetch", "clean", "done")
    ]
    assert {"connect", "find", "prepare", "start", "record", "fetch", "clean"} <= set(result.timings)


BAD = {
    "gone": ("sys.exit(9)", Status.FAILED, "connect", "status 9"),
    "idle": ("hello(); found(); read()", Status.IDLE, "find", "no process matches (9 processes searched)"),
    "liar": ("hello(); read(); out(b'?\\n'); read()", Status.FAILED, "find", "protocol"),
    "torn": (
        "hello(); found(7); prepared(7); recording(7); os.kill(os.getpid(), 9)",
        Status.FAILED,
        "record",
        "",
    ),
    "mute": (
        "hello(); read(); read()",
        Status.FAILED,
        "find",
        "timed out after 600 s while looking for processes",
    ),
    "stuck": (
        "hello(); found(7); read(stores=False); time.sleep(600)",
        Status.FAILED,
        "push",
        "timed out after 600 s while copying the agent",
    ),
    "mess": (
        GOOD.replace("left=[]", "left=['/tmp/.attach_pid7']"),
        Status.DEGRADED,
        "clean",
        "/.attach_pid7",
    ),
    "bye": (GOOD + "\nsys.exit(3)", Status.DEGRADED, "clean", "status 3"),
}


def test_bad_hosts_do_not_affect_others(fleet, limits, short_lease):
    scripts = {name: body for name, (body, *_) in BAD.items()}
    hosts = fleet(timeout=600.0, one=GOOD, **scripts, two=GOOD)
    waiting = {name: ["wait"] for name in ("one", "two", "torn", "mess", "bye")}
    over = {"gone": ["failed"], "liar": ["failed"], "idle": ["idle"]}
    limits.pass_when(hosts, 601, **waiting, **over, mute=["find"], stuck=["find", "push"])
    results = hosts.collect()
    assert list(results) == ["one", *BAD, "two"]
    for name in ("one", "two"):
        assert line(results[name], 7)[0] is Status.OK and len(results[name].outcomes) == 1
    for name, (_, status, stage, reason) in BAD.items():
        found = line(results[name])
        assert found[:2] == (status, stage) and reason in found[2], (name, found)
    late = [one for one in results["mute"].outcomes if one.code == "timeout"]
    assert [one.parameters for one in late] == [{"seconds": 600.0}]
    (left,) = [one.remedy for one in results["mess"].outcomes if one.code == "left-behind"]
    assert "by hand" in left and "cleanup" not in left  # which leaves this file alone
    for name in ("torn", "stuck"):
        assert line(results[name], 7)[0] is Status.FAILED and "its host was lost" in line(results[name], 7)[2]


def test_all_start_together_when_the_slowest_is_ready(fleet, tmp_path):
    """The slow host is ready half a second after the quick one."""
    ready = tmp_path / "ready"
    wait = f"while not os.path.exists({str(ready)!r}): time.sleep(0.01)\ntime.sleep(0.5)"
    quick = "hello(); found(7); prepared(7); read(); stamp = time.time()"
    slow = f"hello(); found(7)\n{wait}\nstamp = time.time(); prepared(7); read()"
    rest = "\nrecorded(7); profile(7, b'p', source=str(stamp)); outcome(7); say('done', left=[]); read()"
    hosts = fleet(a=quick + rest, b=slow + rest)
    hosts.listener = lambda step: ready.touch() if (step.host, step.stage) == ("a", "wait") else None
    results = hosts.collect()
    began, was_ready = (float(results[name].recordings[0].source) for name in "ab")
    assert began > was_ready
    assert results["a"].timings["wait"] > results["b"].timings["wait"]


def test_a_host_too_slow_for_the_others_starts_late_and_says_so(fleet, limits, tmp_path):
    """Each of its steps is within the limit, but the quick host starts without it."""
    waits, began = tmp_path / "waits", tmp_path / "began"
    slow = GOOD.replace(
        "hello(); found(7); prepared(7);",
        f"""
while not os.path.exists({str(waits)!r}): time.sleep(0.01)
hello(); found(7); read()
while not os.path.exists({str(began)!r}): time.sleep(0.01)
time.sleep(1.5); say("ready", processes=[{{"pid": 7}}]);""",
    )
    quick = GOOD.replace("recording(7)", f"recording(7); open({str(began)!r}, 'w').close()")

    def listen(step):
        if (step.host, step.stage) == ("quick", "wait"):
            waits.touch()
        if step.host == "late" and step.stage in ("find", "push", "prepare"):
            limits.pass_time(450)

    hosts = fleet(timeout=600.0, quick=quick, late=slow)
    hosts.listener = listen
    results = hosts.collect()
    assert line(results["quick"], 7)[0] is Status.OK
    assert line(results["late"], 7)[0] is Status.OK
    status, stage, reason = line(results["late"])
    assert (status, stage) == (Status.DEGRADED, "start") and "after the others" in reason


PARTS = """
hello(); found(7, 8, 9, 10); read()
outcome(8, "failed", "prepare", "refuses attach", "allow it")
say("ready", processes=[{"pid": 7}, {"pid": 9}, {"pid": 10}]); recording(7, 9, 10)
profile(7, b"p"); outcome(7, "degraded", "record", "it ended early")
profile(9, b"p", sha256="0" * 64); outcome(9)
outcome(10)
say("done", left=[]); read()
"""


def test_every_process_gets_exactly_one_line(fleet):
    result = fleet(one=PARTS).collect()["one"]
    assert line(result, 7) == (Status.DEGRADED, "record", "it ended early")
    assert line(result, 8) == (Status.FAILED, "prepare", "refuses attach")
    assert line(result, 9)[:2] == (Status.FAILED, "fetch") and "damaged" in line(result, 9)[2]
    assert line(result, 10) == (Status.FAILED, "fetch", "the agent sent no profile")
    assert [recording.process.pid for recording in result.recordings] == [7]


CPU = "profile(7, b'c'); "
ALLOC = "profile(7, b'aa', event='alloc', source='alloc'); "
DAMAGED = ALLOC.replace("b'aa'", "b'aa', sha256='0' * 64")
EVENTS = {
    "all": (
        CPU + ALLOC + "raw(7, b'FLR'); outcome(7, reason='interval 4 MiB'); END",
        (Status.OK, "interval 4 MiB"),
        {"cpu": 1, "alloc": 2, "recording.jfr": 3},
    ),
    "damaged": (
        CPU + DAMAGED + "outcome(7); END",
        (Status.DEGRADED, "the alloc profile of process 7 arrived damaged"),
        {"cpu": 1},
    ),
    "missing": (
        CPU + "outcome(7); END",
        (Status.DEGRADED, "the agent sent no profile (alloc)"),
        {"cpu": 1},
    ),
    "missing with a reason": (
        CPU + "outcome(7, 'degraded', 'prepare', 'JDK 8 has no alloc'); END",
        (Status.DEGRADED, "JDK 8 has no alloc"),
        {"cpu": 1},
    ),
    "host lost": (
        CPU + "os.kill(os.getpid(), 9)",
        (Status.DEGRADED, "its host was lost"),
        {"cpu": 1},
    ),
}


@pytest.mark.parametrize(("body", "expected", "kept"), EVENTS.values(), ids=EVENTS)
def test_each_event_that_arrives_is_kept(fleet, short_lease, body, expected, kept):
    body = body.replace("END", "say('done', left=[]); read()")
    hosts = fleet(one=f"hello(); found(7); prepared(7); recording(7)\n{body}")
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"), keep_raw=True)
    status, _, reason = line(hosts.collect()["one"], 7)
    assert status is expected[0] and reason.startswith(expected[1])
    assert {name: size for (_, _, name), size in hosts.sink.sizes.items()} == kept


def test_pauses_and_the_clock_are_results_of_the_host(fleet):
    hosts = fleet(one=GOOD.replace("outcome(7", "pauses(7, duration=[9]); outcome(7"))
    result = hosts.collect()["one"]
    assert [(one.pid, one.collectors, [*one.duration]) for one in result.pauses] == [(7, ("young",), [9])]
    assert result.clock.offset == 0 and result.clock.uncertainty > 0


def test_pauses_that_come_in_parts_are_those_of_one_process(fleet):
    parts = "pauses(7, duration=[9], more=True); pauses(7, duration=[5], left_out=2); outcome(7"
    hosts = fleet(one=GOOD.replace("outcome(7", parts))
    hosts.sampling = replace(SAMPLING, part=10.0)
    (pauses,) = hosts.collect()["one"].pauses
    assert ([*pauses.duration], len(pauses.end), pauses.left_out) == ([9, 5], 2, 2)


def test_metrics_are_kept_and_the_recording_is_complete_without_them(fleet):
    """Whatever is wrong with a part of them: the last message has all."""
    hosts = fleet(
        one=GOOD.replace('say("done"', 'metrics(more=True); metrics(); say("done"'),
        two=GOOD.replace('say("done"', 'metrics(); say("done"'),
    )
    hosts.sampling = replace(SAMPLING, metrics=True, part=10.0)
    keep = hosts.sink.metrics

    def metrics(host, read, more):
        if host.name == "two" or more:
            raise HostError("fetch", "their times are 90 s off", "set the clock", code="times-impossible")
        keep(host, read)

    hosts.sink.metrics = metrics
    results = hosts.collect()
    assert [*hosts.sink.read["one"].series[0].values] == [3] and [*hosts.sink.read] == ["one"]
    lines = {one.pid: (one.status, one.code) for one in results["two"].outcomes}
    assert lines[None] == (Status.DEGRADED, "metrics-left-out") and lines[7][0] is Status.OK
    assert [outcome.pid for outcome in results["one"].outcomes] == [7]


def test_a_sink_that_cannot_write_loses_that_profile_only(fleet):
    hosts = fleet(
        one=GOOD.replace("(7)", "(7, 8)").replace("outcome(7, 8)", "outcome(7); profile(8, b'q'); outcome(8)")
    )
    take = hosts.sink.profile

    def full(host, recording, pieces, more):
        if recording.process.pid == 7:
            next(pieces)
            raise RunFolderError("the disk is full", "make room")
        return take(host, recording, pieces)

    hosts.sink.profile = full
    result = hosts.collect()["one"]
    assert line(result, 7) == (Status.FAILED, "fetch", "the disk is full")
    assert line(result, 8)[0] is Status.OK and hosts.sink.sizes == {("one", 8, "cpu"): 1}


LONG = """
hello(); found(7); prepared(7); recording(7)
asked = read()
assert asked["type"] == "stop"
profile(7, b"half"); outcome(7); say("done", left=[]); read()
"""
TOO_LONG = "time.sleep(1000)"
"""Longer than a test may take."""


def stop_when(hosts, stage, times=1):
    """Ask to stop as soon as the first host gets to `stage`."""
    seen = threading.Event()

    def listen(step):
        hosts.progress.append(step)
        if step.stage == stage and not seen.is_set():
            seen.set()
            for _ in range(times):
                hosts.stop.request()

    hosts.listener = listen


def test_the_first_stop_keeps_what_was_recorded(fleet):
    hosts = fleet(one=LONG)
    stop_when(hosts, "record")
    result = hosts.collect()["one"]
    assert line(result, 7)[0] is Status.OK and hosts.sink.sizes == {("one", 7, "cpu"): 4}
    (told,) = [step.detail for step in hosts.progress if step.stage == "stop"]
    assert "press Ctrl-C again to end at once" in told


def test_a_stop_before_anything_was_recorded_ends_at_once(fleet):
    hosts = fleet(timeout=1000.0, one=LONG, slow=f"hello(); read(); {TOO_LONG}")
    stop_when(hosts, "wait")
    results = hosts.collect()
    for result in results.values():
        assert "interrupted before anything was recorded" in line(result)[2]
    assert line(results["one"], 7)[0] is Status.FAILED


def test_the_second_stop_does_not_wait(fleet):
    hosts = fleet(timeout=1000.0, one=LONG.replace("asked = read()", TOO_LONG))
    stop_when(hosts, "record", times=2)
    result = hosts.collect()["one"]
    assert line(result)[2] == "interrupted"


def test_find_only(fleet):
    hosts = fleet(one="hello(); found(5, 6); read()", idle="hello(); found(); read()", gone="sys.exit(1)")
    results = {result.host.name: result for result in find_only(hosts.hosts, ANY, hosts.reach)}
    assert [process.pid for process in results["one"].processes] == [5, 6] and not results["one"].outcomes
    assert line(results["idle"])[0] is Status.IDLE and line(results["gone"])[0] is Status.FAILED


def test_doubtful_processes_are_listed_first_and_said_by_a_run(fleet):
    body = """hello(); read(); say("found", searched=9, processes=[], ignored=[
*(dict(pid=pid, reason="not a JVM") for pid in range(1, 20)), dict(pid=99, reason="many", doubtful=True)])
read()"""
    hosts = fleet(one=body)
    assert find_only(hosts.hosts, ANY, hosts.reach)[0].ignored[0].pid == 99
    doubt = hosts.collect()["one"].outcomes[1]
    assert (doubt.status, doubt.code, doubt.reason) == (Status.DEGRADED, "doubtful-match", "pid 99 (many)")


NODE = """
hello(host={**HOST, "boot_id": "b"}, session="70-1"); found(7)
if read()["type"] == "prepare":
    say("ready", processes=[{"pid": 7}]); recording(7)
    profile(7, b"p"); outcome(7); say("done", left=[]); read()
"""


def test_a_machine_with_two_names_is_recorded_once(fleet):
    results = fleet(a=NODE, b=NODE).collect()
    first, other = sorted(results.values(), key=lambda result: not result.recordings)
    assert len(first.recordings) == 1 and [one.status for one in first.outcomes] == [Status.OK]
    note, idle = other.outcomes
    assert (note.status, idle.status) == (Status.DEGRADED, Status.IDLE) and not other.recordings
    assert note.reason == f"1 process is left to {first.name}, which is the same machine"
    assert f"it is left to {first.name}, which is the same machine" in idle.reason
    coverage = coverage_of(*results.values())
    assert coverage.complete and (coverage.hosts.idle, coverage.processes.found) == (1, 1)


@pytest.mark.parametrize(
    "other",
    [
        NODE.replace('"b"}', '"another boot"}'),
        NODE.replace('"b"}', '"b", "pid_namespace": "a container"}'),
        NODE.replace('"b"}', '"b", "name": "a copy of the machine"}'),
        NODE.replace(
            "found(7)",
            'read(); say("found", searched=9, processes=[process(7, start_time=2)], ignored=[])',
        ),
    ],
    ids=["boot", "namespace", "copy", "pid that was used again"],
)
def test_equal_pids_elsewhere_are_other_processes(fleet, other):
    results = fleet(a=NODE, b=other).collect()
    assert [len(result.recordings) for result in results.values()] == [1, 1]


def test_a_bug_affects_one_host(fleet):
    class Broken(Named):
        def _connect(self):
            if self.host.name == "one":
                raise ZeroDivisionError("oops")

    hosts = fleet(one=GOOD, two=GOOD)
    hosts.reach = replace(hosts.reach, transport_for=Broken)
    results = hosts.collect()
    assert "unexpected ZeroDivisionError: oops" in line(results["one"])[2]
    assert line(results["two"], 7)[0] is Status.OK


def test_few_hosts_connect_at_once(fleet):
    three, connecting, most = threading.Barrier(3, timeout=60), [], []

    class Slow(Named):
        def _connect(self):
            connecting.append(self)
            three.wait()
            time.sleep(0.02)  # others must not begin now
            most.append(len(connecting))
            connecting.remove(self)

    hosts = fleet(**{f"h{number}": GOOD for number in range(6)})
    hosts.reach = replace(hosts.reach, transport_for=Slow, parallel=3)
    assert all(line(result, 7)[0] is Status.OK for result in hosts.collect().values())
    assert max(most) == 3
