"""Safety limits: busy hosts, too many hosts, too many processes, open files."""

from __future__ import annotations

import resource

import pytest

from hprofiler.agent import MAX_RECORDED
from hprofiler.base.errors import HostError
from hprofiler.collect import Care, collect
from hprofiler.collect.limits import _OPEN_FILES, allow_many_open_files, refuse_busy
from hprofiler.model import HostFacts, Status
from tests.unit.command import hprofiler
from tests.unit.stand_in import ANY, Fleet

RECORDS = "prepared(7); recording(7); profile(7, b'x'); outcome(7); say('done', left=[]); read()"


def facts(load: float, free: int) -> HostFacts:
    return HostFacts("h", "x86_64", "6.1", 4, 1 << 30, "root", load=load, memory_available=free)


def test_a_host_without_time_or_room_is_left_alone():
    refuse_busy(facts(800.0, 1 << 30))
    refuse_busy(HostFacts("h", "x86_64", "6.1", 4, 1 << 30, "root"))
    for busy, words, remedy in (
        (facts(801.0, 1 << 30), "load 801", "wait until it has less to do"),
        (facts(1.0, 9 << 20), "9 MiB", "free some of its memory"),
    ):
        with pytest.raises(HostError) as refused:
            refuse_busy(busy)
        assert words in refused.value.reason
        assert refused.value.remedy == f"{remedy}, or record anyway with --force-busy"


@pytest.mark.parametrize(("forced", "recorded"), [(False, 0), (True, 1)])
def test_a_busy_host_of_a_run(stand_ins, forced, recorded):
    body = f"HOST['load'] = 1e6; hello(); found(7); {RECORDS if forced else 'read()'}"
    fleet = Fleet(stand_ins, 60.0, {"a": body})
    care = Care(busy=forced)
    (result,) = collect(
        fleet.hosts, ANY, fleet.sampling, fleet.reach, fleet.sink, fleet.listener, fleet.stop, care
    )
    assert len(result.recordings) == recorded
    assert any("busy" in line.reason for line in result.outcomes) is not forced


@pytest.mark.parametrize("verb", ["run", "doctor"])
def test_the_verbs_that_record_keep_to_the_number_of_hosts(verb):
    done = hprofiler(verb, "-j", "java", "-h", "a,b,c", "--max-hosts", "2")
    assert done.returncode == 2, done
    assert "3 hosts exceed the limit of 2" in done.stderr and "--max-hosts 3" in done.stderr


PIDS = [*range(3000, 3000 + MAX_RECORDED), 7, 8]
"""In the agent's order, which is not that of the pids."""
TOO_MANY = f"""
hello(); found(*{PIDS})
request = prepare_request()
assert [one["pid"] for one in request["processes"]] == {PIDS[:-2]}
recording_of = request["processes"][0]["pid"]
say("ready", processes=[{{"pid": recording_of}}]); recording(recording_of)
profile(recording_of, b"x" * 9); outcome(recording_of); say("done", left=[]); read()
"""


def test_of_too_many_processes_the_first_are_recorded(stand_ins) -> None:
    result = Fleet(stand_ins, 60.0, {"n1": TOO_MANY}).collect()["n1"]
    lines = {line.pid: line for line in result.outcomes}
    assert sorted(lines) == sorted(PIDS) and lines[3000].status is Status.OK
    for pid in (7, 8):
        assert (lines[pid].status, lines[pid].stage) == (Status.FAILED, "prepare")
        assert lines[pid].reason == "514 processes exceed the limit of 512 per host"


@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [
        (256, resource.RLIM_INFINITY, _OPEN_FILES),
        (1024, 4096, 4096),
        (4096, 4096, 4096),
        (1 << 20, 1 << 20, 1 << 20),
    ],
)
def test_open_files_are_allowed_up_to_the_hard_limit(monkeypatch, soft, hard, then):
    now = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda which: now[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: now.append(limits))
    allow_many_open_files()
    assert now[-1] == (then, hard)
