"""Limits of time and bytes of a host, of what the agent takes, and of the number of hosts."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import pytest

from hprofiler.agent.messages import MAX_RECORDED
from hprofiler.base.errors import HostError
from hprofiler.cli.options import numbers
from hprofiler.cli.options import objects as chosen
from hprofiler.cli.options.parser import parse
from hprofiler.collect import fetching
from hprofiler.collect.limits import AGENT_CPU, Care, first_processes, refuse_busy
from hprofiler.model import HostFacts, HostRecord, Outcome, Process, Status
from tests.unit.command import hprofiler
from tests.unit.conftest import MakeFleet
from tests.unit.limits import Limits
from tests.unit.stand_in import SAMPLING

BEGIN = "hello(); found(7); prepared(7); recording(7)\n"
END = "outcome(7); say('done', left=[]); read()\n"


def host_line(result: HostRecord) -> Outcome:
    (line,) = [line for line in result.outcomes if line.pid is None]
    return line


@pytest.mark.parametrize(
    ("of_a_part", "reason"),
    [
        (69.0, "it did not send all its recordings within 1200 s"),
        (71.0, "timed out after 70 s while fetching"),
    ],
    ids=["each part comes in time", "one part is late"],
)
def test_each_part_has_a_limit_and_so_has_all_of_it(
    fleet: MakeFleet, limits: Limits, monkeypatch: pytest.MonkeyPatch, of_a_part: float, reason: str
) -> None:
    monkeypatch.setattr(fetching, "PART", 1000)
    monkeypatch.setattr(fetching, "SLOWEST", 100)
    hosts = fleet(
        one=f"{BEGIN}profile(7, b'', size=512 << 20)\nwhile True: out(b'x' * 1000); time.sleep(0.05)"
    )

    def keep(host, recording, pieces, more):
        for _ in pieces:
            limits.pass_time(of_a_part)
            time.sleep(0.2)  # until the limits are looked at
        return recording

    hosts.sink.profile = keep  # type: ignore[method-assign]
    line = host_line(hosts.collect()["one"])
    assert (line.status, line.stage) == (Status.FAILED, "fetch")
    assert line.reason.startswith(reason) and "--timeout" in line.remedy


def test_a_process_that_ends_early_does_not_shorten_others(fleet, limits, tmp_path):
    """The rest of the recording is longer than the time limit of a step."""
    passed = tmp_path / "passed"
    waits = f"while not os.path.exists({str(passed)!r}): time.sleep(0.01)\n"
    early = "hello(); found(7, 8); prepared(7, 8); recording(7, 8)\n"
    early += "profile(7, b'half'); outcome(7, 'degraded', 'record', 'it ended early')\n"
    hosts = fleet(one=early + waits + "profile(8, b'whole'); outcome(8); say('done', left=[]); read()")
    hosts.sampling = replace(SAMPLING, duration=600.0)

    def listen(step):
        hosts.progress.append(step)
        if [one.stage for one in hosts.progress][-3:] == ["record", "fetch", "record"]:
            limits.pass_time(400)
            passed.touch()

    hosts.listener = listen
    of_7, of_8 = hosts.collect()["one"].outcomes
    assert (of_7.status, of_7.reason) == (Status.DEGRADED, "it ended early")
    assert of_8.status is Status.OK


@pytest.mark.parametrize("what", ["profiles", "raw recordings"])
def test_bytes_of_a_host_are_limited(fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    most, bytes_ = ("MOST_PROFILES", 5) if what == "profiles" else ("MOST_RAW", 5)
    monkeypatch.setattr(fetching, most, bytes_)
    sends = "profile(7, b'four'); profile(7, b'aa', event='alloc', source='alloc'); raw(7, b'FLR...'); "
    hosts = fleet(one=BEGIN + sends + END)
    hosts.sampling = replace(SAMPLING, events=("cpu", "alloc"), keep_raw=True)
    (line,) = hosts.collect()["one"].outcomes
    assert (line.status, line.stage) == (Status.DEGRADED, "fetch")
    assert line.reason == f"not kept: its host has more than 0 MiB of {what}"
    assert "record fewer processes" in line.remedy
    assert ("--keep-raw" in line.remedy) == (what == "raw recordings")
    left_out = "alloc" if what == "profiles" else "recording.jfr"
    assert {name for _, _, name in hosts.sink.sizes} == {"cpu", "alloc", "recording.jfr"} - {left_out}


def test_pauses_count_as_well(fleet: MakeFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "MOST_PROFILES", 5 + fetching.PAUSE)
    hosts = fleet(
        one=BEGIN + "profile(7, b'four'); pauses(7, collector=[0] * 2, end=[1] * 2, duration=[1] * 2); " + END
    )
    result = hosts.collect()["one"]
    assert result.outcomes[0].status is Status.DEGRADED and not result.pauses


def test_more_hosts_than_allowed():
    done = hprofiler("-j", "java", "-h", "a,b,c", "--max-hosts", "2")
    assert done.returncode == 2, done
    assert "3 hosts exceed the limit of 2" in done.stderr and "--max-hosts 3" in done.stderr


PIDS = [*range(3000, 3000 + MAX_RECORDED), 7, 8]
"""In the order of the agent, not of the pids."""
TOO_MANY = f"""
hello(); found(*{PIDS})
request = read()
assert [one["pid"] for one in request["processes"]] == {PIDS[:-2]}
recording_of = request["processes"][0]["pid"]
say("ready", processes=[{{"pid": recording_of}}]); recording(recording_of)
profile(recording_of, b"x" * 9); outcome(recording_of); say("done", left=[]); read()
"""


def test_of_too_many_processes_the_first_are_recorded(fleet) -> None:
    result = fleet(n1=TOO_MANY).collect()["n1"]
    lines = {line.pid: line for line in result.outcomes}
    assert sorted(lines) == sorted(PIDS) and lines[3000].status is Status.OK
    for pid in (7, 8):
        assert (lines[pid].status, lines[pid].stage) == (Status.FAILED, "prepare")
        assert lines[pid].reason == "514 processes exceed the limit of 512 per host"


def test_beyond_the_limit_users_take_turns() -> None:
    users = [0] * MAX_RECORDED + [7]
    processes = [Process("h", pid, 1, uid, str(uid), "") for pid, uid in enumerate(users)]
    meant, too_many = first_processes(processes)
    assert [one.pid for one in meant[:3]] == [0, MAX_RECORDED, 1]
    assert [one.pid for one in too_many] == [MAX_RECORDED - 1]


@pytest.mark.parametrize(
    ("text", "cores"), [("0.1", 0.1), ("1024", 1024.0), *dict.fromkeys(["0.05", "nan", "1,5"]).items()]
)
def test_processors_that_the_agent_may_use(text, cores):
    assert chosen.care(parse(["-j", "java"])).agent_cpu == AGENT_CPU
    if cores:
        assert chosen.care(parse(["-j", "java", "--agent-cpu", text])).agent_cpu == cores
    else:
        with pytest.raises(argparse.ArgumentTypeError, match="is not a number of processors"):
            numbers.cores(text)


def test_the_agent_is_told_its_limit(fleet):
    body = """hello(); found(7); asked = read()
outcome(7, "failed", "prepare", str(asked["agent_cpu"])); say("ready", processes=[]); read()"""
    hosts = fleet(a=body)
    result = hosts.collect(Care(agent_cpu=0.25))["a"]
    assert [line.reason for line in result.outcomes if line.pid == 7] == ["0.25"]
    assert [step.detail for step in hosts.progress if step.stage == "done"] == ["nothing was recorded"]


@pytest.mark.parametrize(
    ("load", "free", "words"),
    [(801.0, 1 << 30, "load 801"), (1.0, 9 << 20, "9 MiB"), (800.0, 1 << 30, ""), (0.0, None, "")],
)
def test_a_host_without_time_or_memory_is_not_recorded(load, free, words):
    facts = HostFacts("h", "x86_64", "6.1", 4, 1 << 30, "root", load=load, memory_available=free)
    if not words:
        refuse_busy(facts)
        return
    with pytest.raises(HostError, match=words) as refused:
        refuse_busy(facts)
    assert "--force-busy" in refused.value.remedy
