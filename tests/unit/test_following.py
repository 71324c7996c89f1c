"""Processes and hosts that join a recording, and its end with the job."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from hprofiler.base.errors import HprofilerError
from hprofiler.collect import following, watching
from hprofiler.collect.following import Following
from hprofiler.collect.limits import Care
from hprofiler.collect.visit_group import silent
from hprofiler.collect.watching import look
from hprofiler.model import Present, Sampling, Status
from tests.unit.stand_in import ANY

PRELUDE = """
def appears(*pids):
    say("appeared", processes=[process(pid) for pid in pids], ignored=[])
def joined(*pids):
    request = read()
    assert request["type"] == "join" and [one["pid"] for one in request["processes"]] == list(pids), request
def started(*pids):
    for pid in pids:
        past = {} if pid == 7 else dict(age=1.5, cpu_before=0.25)
        say("started", pid=pid, engine="async-profiler", sources={"cpu": "perf_events"}, **past)
def ended(pid):
    profile(pid, PROFILE)
    outcome(pid, "degraded", reason="ended after 2.0 s", code="cut-short", ended="process")
def end(*pids):
    for pid in pids:
        profile(pid, PROFILE); outcome(pid)
    say("done", left=[]); read()
"""
JOINED = f"""{PRELUDE}
hello(); found(7); prepared(7); followed(); recording(7)
appears(8); joined(8); started(8); ended(8)
end(7)
"""


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Targets are asked several times a second."""
    monkeypatch.setattr(following, "ASK_SECONDS", 0.1)


def lines(result):
    return {one.pid: (one.status, one.code) for one in result.outcomes}


def test_a_process_that_starts_later_joins(fleet):
    result = fleet(one=JOINED).collect(following=Following())["one"]
    first, second = sorted(result.recordings, key=lambda one: one.pid)
    assert (first.pid, first.joined, first.age, first.cpu_before) == (7, 0.0, None, None)
    assert second.pid == 8 and 0 < second.joined < 60 and (second.age, second.cpu_before) == (1.5, 0.25)
    assert [one.pid for one in result.outcomes if one.gone] == [8]
    assert second.ended == pytest.approx(second.joined + 0.1)
    assert lines(result) == {7: (Status.OK, "failed"), 8: (Status.OK, "cut-short")}


def test_without_following_nothing_joins(fleet):
    alone = "hello(); found(7); prepared(7); request = read(unread=()); assert request['type'] == 'start'\n"
    result = fleet(one=f"{PRELUDE}{alone}recorded(7); end(7)").collect()["one"]
    assert [one.pid for one in result.recordings] == [7]


def test_a_process_that_is_too_late_has_no_line(fleet):
    late = "outcome(8, 'failed', stage='start', reason='too late', code='recording-over')"
    body = JOINED.replace("started(8); ended(8)", late)
    result = fleet(one=body).collect(following=Following())["one"]
    assert lines(result) == {7: (Status.OK, "failed")}


def test_a_new_host_is_visited_for_the_time_that_is_left_until_the_job_is_over(fleet):
    """The first host's agent records until it is told to stop, which the end of the job does."""
    one = f"{PRELUDE}hello(); found(7); prepared(7); followed(); recording(7); read(); end(7)"
    two = f"{PRELUDE}hello(); found(9); request = read(); DURATION = request['sampling']['duration']\n"
    two += "say('ready', processes=[{'pid': 9}]); followed(); recording(9); read()\n"
    two += "profile(9, PROFILE, source=str(DURATION)); outcome(9); say('done', left=[]); read()"
    hosts = fleet(one=one, two=two)
    both, hosts.hosts = hosts.hosts, hosts.hosts[:1]
    hosts.sampling = Sampling(("cpu",), 99, 50.0)
    seen = threading.Event()
    hosts.listener = lambda step: seen.set() if (step.host, step.stage) == ("two", "record") else None
    answers = [HprofilerError("the API is away")]

    def look():
        if answers:  # an answer that fails costs nothing
            raise answers.pop()
        return Present(both, over=seen.is_set())

    results = hosts.collect(following=Following(look, until_over=True))
    assert list(results) == ["one", "two"] and hosts.stop.finished
    (recording,) = results["two"].recordings
    assert 0 < recording.joined < 50 and float(recording.source) < 50
    assert lines(results["two"]) == {9: (Status.OK, "failed")}


def test_a_visited_host_hears_of_new_containers_and_labels(fleet):
    first, second = "container_1_0001_01_000001", "container_1_0001_01_000002"
    body = f"""{PRELUDE}
def inside(pid, id): return process(pid, labels=dict(container=id))
hello(); read(); say("found", searched=1, processes=[inside(7, "{first}")], ignored=[]); prepared(7)
assert followed()["containers"] == ["{first}", "container_1_0001_*"]
recording(7)
assert "{second}" in followed()["containers"]
say("appeared", processes=[inside(8, "{second}")], ignored=[]); joined(8); started(8); end(7, 8)
"""
    hosts = fleet(one=body)
    prefixes = {"container_1_0001_": {"application": "application_1_0001"}}
    host = replace(hosts.hosts[0], containers={first: {}}, prefixes=prefixes)
    hosts.hosts = [host]
    executor = {"executor": "2", "process": "executor 2"}
    later = replace(host, containers={first: {"executor": "1"}, second: executor})
    looks = Following(lambda: Present([later]))
    result = hosts.collect(following=looks)["one"]
    labels = {one.pid: one.process.labels.get("executor") for one in result.recordings}
    assert labels == {7: "1", 8: "2"} and looks.containers == {first, second}


def test_where_nothing_is_found_the_run_ends_unless_it_waits(fleet):
    none = 'hello(); found(); read(); say("processes", processes=[], ignored=[]); prepared()'
    nothing = f"{PRELUDE}{none}; followed(); recording(); read(); end()"
    (result,) = fleet(one=f"{none}; read()").collect(following=Following()).values()
    assert lines(result) == {None: (Status.IDLE, "no-match")}
    hosts = fleet(one=nothing)
    (result,) = hosts.collect(following=Following(wait=0.5)).values()
    assert lines(result) == {None: (Status.IDLE, "no-match")} and hosts.stop.finished
    comes = nothing.replace("read(); end()", "appears(8); joined(8); started(8); read(); end(8)")
    hosts = fleet(one=comes)
    (result,) = hosts.collect(following=Following(wait=600.0)).values()
    assert lines(result) == {8: (Status.OK, "failed")}


def test_where_nothing_can_be_recorded_the_run_ends_and_says_why(fleet):
    refused = "read(); outcome(7, 'failed', stage='prepare', reason='no'); say('ready', processes=[]); read()"
    hosts = fleet(one=f"hello(); found(7); {refused}")
    (result,) = hosts.collect(following=Following()).values()
    assert lines(result) == {7: (Status.FAILED, "failed")}
    assert (hosts.progress[-1].stage, hosts.progress[-1].detail) == ("done", "nothing was recorded")


def test_a_job_on_hosts_is_over_when_its_last_process_has_been_gone_for_a_while(fleet, monkeypatch):
    monkeypatch.setattr(following, "QUIET_SECONDS", 0.3)
    body = f"{PRELUDE}hello(); found(7); prepared(7); followed(); recording(7); ended(7); read(); end()"
    hosts = fleet(one=body)
    hosts.sampling = Sampling(("cpu",), 99, 600.0)
    (result,) = hosts.collect(following=Following(until_over=True)).values()
    assert hosts.stop.finished and lines(result) == {7: (Status.OK, "cut-short")}


def test_only_jvms_of_a_kind_that_had_a_canary_join(fleet):
    """The canary of JDK 17 was recorded before; JDK 21 had none."""
    canary = """
request = read(); assert request["type"] == "check"
say("checked", time=time.time(), findings=[], processes=[dict(pid=7, status="ok", stage="prepare",
    engine="async-profiler")])
prepared(7); recording(7); profile(7, PROFILE); outcome(7); say("done", left=[])
"""
    body = f"""{PRELUDE}hello(); found(7); {canary}
prepared(7); followed(); recording(7)
say("appeared", processes=[process(8), process(9, jvm=dict(version="21"))], ignored=[])
joined(8); started(8); end(7, 8)
"""
    (result,) = fleet(one=body).collect(Care(canary=True), Following()).values()
    found = lines(result)
    assert found[8] == (Status.OK, "failed") and found[9] == (Status.FAILED, "canary-failed")


def test_a_watch_visits_new_hosts_and_finds_what_comes_and_goes(fleet, monkeypatch):
    """What `ps --watch` and `top` do. A host of the target that comes later has no process at first."""
    monkeypatch.setattr(watching, "_LOOK_EVERY", 0.01)
    one = "hello()\nfound(7)\nwhile True: found(8)"
    two = "hello()\nfound()\nread(); say('processes', processes=[], ignored=[])\nwhile True: found(9)"
    hosts = fleet(one=one, two=two)
    both, hosts.hosts = hosts.hosts, hosts.hosts[:1]
    seen = []

    def on_found(found):
        seen.append((found.host.name, tuple(one.pid for one in found.processes)))
        if {("one", (8,)), ("two", (9,))} <= set(seen):
            hosts.stop.finish()

    looks = Following(lambda: Present(both))
    found = look(hosts.hosts, ANY, hosts.reach, on_found, silent, hosts.stop, looks)
    assert [host.host.name for host in found] == ["one", "two"]
    assert seen.index(("one", (7,))) < seen.index(("one", (8,)))
    assert seen.index(("two", ())) < seen.index(("two", (9,)))
