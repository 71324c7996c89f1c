"""For the sake of the hosts: canaries, busy hosts, too many hosts, and the record of what was done."""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import threading
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import pytest

from hprofiler.agent.checks import parse_audited
from hprofiler.agent.wire import BadEvent
from hprofiler.cli import care_options
from hprofiler.cli import options as chosen
from hprofiler.cli.parser import parse
from hprofiler.collect import Audit, Care, collect
from hprofiler.collect.audit import in_words
from hprofiler.collect.care import TRIES, Canaries, refuse_busy
from hprofiler.errors import HostError, UsageError
from hprofiler.model import Host, HostFacts, Status, Target
from hprofiler.resolvers import Located
from tests.unit.stand_in import ANY, Fleet, StandIns

KIND = ("x86_64", "17")


def hprofiler(
    *words: object, before: Optional[Callable[[], None]] = None
) -> subprocess.CompletedProcess[str]:
    """The command line, as a user runs it; `before` is called in its process."""
    command = [sys.executable, "-m", "hprofiler", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, preexec_fn=before)


@pytest.fixture
def stand_ins(tmp_path):
    made = StandIns(tmp_path)
    yield made
    made.clean()


def nothing() -> None:
    pass


def test_one_canary_speaks_for_its_kind():
    canaries = Canaries()
    assert canaries.verdict(KIND, lambda: None, nothing) is None and canaries.known(KIND) is None
    assert canaries.verdict(KIND, lambda: "it died", nothing) == canaries.known(KIND) == "it died"
    assert canaries.verdict(KIND, lambda: pytest.fail("watched again"), nothing) == "it died"
    assert canaries.verdict(("x86_64", "21"), lambda: "", nothing) == ""


def test_the_others_wait_for_it():
    canaries, begun, over = Canaries(), threading.Event(), threading.Event()
    told: List[str] = []

    def watch() -> str:
        begun.set()
        assert over.wait(30)
        return "it died"

    first = threading.Thread(target=lambda: told.append(canaries.verdict(KIND, watch, nothing)))
    first.start()
    assert begun.wait(30)
    second = threading.Thread(
        target=lambda: told.append(canaries.verdict(KIND, lambda: "not asked", nothing))
    )
    second.start()
    assert not told
    over.set()
    first.join(30)
    second.join(30)
    assert told == ["it died", "it died"]


def test_a_host_that_is_lost_speaks_against_the_kind():
    canaries = Canaries()
    with pytest.raises(HostError):
        canaries.verdict(KIND, lambda: (_ for _ in ()).throw(HostError("prepare", "timed out")), nothing)
    why = canaries.verdict(KIND, lambda: pytest.fail("watched again"), nothing)
    assert why is not None and "was lost: timed out" in why


def test_what_cannot_be_recorded_is_not_tried_for_ever():
    canaries = Canaries()
    for _ in range(TRIES):
        assert canaries.verdict(KIND, lambda: None, nothing) is None
    why = canaries.verdict(KIND, lambda: pytest.fail("watched again"), nothing)
    assert why is not None and f"{TRIES} were tried" in why


RECORDS = "prepared(7); recording(7); profile(7, b'x'); outcome(7); say('done', left=[]); read()"
VERDICT = {"stage": "record", "reason": "", "remedy": "", "engine": "perf", "sources": {}, "findings": []}
CANARIES = """
read()
versions, failing = {versions!r}, {failing!r}
say("found", searched=9, ignored=[],
    processes=[process(pid, jvm={{"version": version}}) for pid, version in versions.items()])
request = read()
while request["type"] == "put":
    say("stored", sha256=LIBRARY)
    request = read()
assert request["type"] == "check"
say("checked", time=1e9, findings=[], processes=[
    {{**{verdict!r}, "pid": one["pid"], "status": "failed" if one["pid"] in failing else "ok"}}
    for one in request["processes"]])
request = read()
while request["type"] == "canary":
    (one,) = request["processes"]
    print(one["pid"], file=open({told!r}, "a"))
    if {status!r} == "lost":
        sys.exit(9)
    say("watched", pid=one["pid"], status={status!r}, stage={stage!r}, reason="process 7 ended", remedy="",
        left=["/tmp/x"])
    request = read()
pids = [one["pid"] for one in request["processes"]]
say("ready", processes=[{{"pid": pid}} for pid in pids])
if not pids:
    read(); sys.exit()
recording(*pids)
for pid in pids:
    profile(pid, b"x"); outcome(pid)
say("done", left=[]); read()
"""


class Flock:
    """Hosts "a" and "b" whose JVMs' `versions` are known by pid, and whose canaries all end alike."""

    def __init__(
        self, stand_ins: StandIns, versions: Dict[int, str], end: Tuple[str, str], failing: Sequence[int] = ()
    ) -> None:
        self._told = stand_ins.folder / "canaries"
        self._told.write_text("")
        status, stage = end
        body = "hello()\n" + CANARIES.format(
            told=str(self._told),
            versions=versions,
            failing=list(failing),
            status=status,
            stage=stage,
            verdict=VERDICT,
        )
        fleet = Fleet(stand_ins, 20, {"a": body, "b": body})
        care = Care(canary=True)
        self.results = collect(
            fleet.hosts, ANY, fleet.sampling, fleet.reach, fleet.sink, fleet.listener, fleet.stop, care
        )

    @property
    def canaries(self) -> List[int]:
        return [int(pid) for pid in self._told.read_text().split()]

    @property
    def recorded(self) -> List[int]:
        return [one.process.pid for result in self.results for one in result.recordings]

    @property
    def reasons(self) -> List[str]:
        return [line.reason for result in self.results for line in result.outcomes]


WELL, BADLY, IN_VAIN = ("ok", "record"), ("failed", "record"), ("failed", "prepare")


@pytest.mark.parametrize(("end", "recorded"), [(WELL, [7, 7]), (BADLY, [])])
def test_a_canary_speaks_for_all_hosts(stand_ins, end, recorded):
    """Whichever of the hosts is asked for it, it is asked once."""
    flock = Flock(stand_ins, {7: "17"}, end)
    assert (flock.canaries, flock.recorded) == ([7], recorded)
    assert "left behind: /tmp/x" in flock.reasons
    if not recorded:
        lines = [line for result in flock.results for line in result.outcomes if line.stage != "clean"]
        assert {line.status for line in lines} == {Status.FAILED}
        assert all("process 7 ended" in line.reason and "--no-canary" in line.remedy for line in lines)


def test_each_kind_has_a_canary_however_many_there_are(stand_ins):
    """A JVM whose version is not known is a kind as well."""
    versions = {pid: str(pid) for pid in range(1, 9)}
    versions[9] = ""
    flock = Flock(stand_ins, versions, BADLY)
    assert sorted(flock.canaries) == list(versions) and not flock.recorded


def test_canaries_in_vain_are_few_on_all_hosts_together(stand_ins):
    flock = Flock(stand_ins, dict.fromkeys(range(1, 9), "17"), IN_VAIN)
    assert len(flock.canaries) == TRIES and not flock.recorded
    assert sum(f"{TRIES} were tried" in reason for reason in flock.reasons) >= 1


def test_who_cannot_be_recorded_is_no_canary(stand_ins):
    flock = Flock(stand_ins, {7: "17", 8: "17"}, WELL, failing=[7])
    assert (flock.canaries, flock.recorded) == ([8], [7, 8, 7, 8])
    flock = Flock(stand_ins, {7: "17"}, WELL, failing=[7])
    assert not flock.canaries and not flock.recorded


def test_a_host_that_is_lost_with_its_canary(stand_ins):
    flock = Flock(stand_ins, {7: "17"}, ("lost", ""))
    assert flock.canaries == [7] and not flock.recorded
    assert any("the host of the first was lost" in reason for reason in flock.reasons)


def facts(load: float, free: int) -> HostFacts:
    return HostFacts("h", "x86_64", "6.1", 4, 1 << 30, "root", load=load, memory_available=free)


def test_a_host_without_time_or_room_is_left_alone():
    refuse_busy(facts(800.0, 1 << 30))
    refuse_busy(HostFacts("h", "x86_64", "6.1", 4, 1 << 30, "root"))
    for busy, words in ((facts(801.0, 1 << 30), "load 801"), (facts(1.0, 9 << 20), "9 MiB")):
        with pytest.raises(HostError) as refused:
            refuse_busy(busy)
        assert words in refused.value.reason and "--force-busy" in refused.value.remedy


def test_what_is_cut_says_so(tmp_path):
    audit = Audit.append_to(tmp_path / "audit")
    for length in (4096, 5000):
        audit.note("h", "command", "x" * length)
    _, whole, cut = (json.loads(line)["detail"] for line in (tmp_path / "audit").read_text().splitlines())
    assert whole == "x" * 4096 and cut == f"{whole}… (5000 characters)"


@pytest.mark.parametrize(("forced", "recorded"), [(False, 0), (True, 1)])
def test_a_busy_host_of_a_run(stand_ins, forced, recorded):
    body = f"HOST['load'] = 1e6; hello(); found(7); {RECORDS if forced else 'read()'}"
    fleet = Fleet(stand_ins, 20, {"a": body})
    care = Care(busy=forced)
    (result,) = collect(
        fleet.hosts, ANY, fleet.sampling, fleet.reach, fleet.sink, fleet.listener, fleet.stop, care
    )
    assert len(result.recordings) == recorded
    assert any("busy" in line.reason for line in result.outcomes) is not forced


def test_more_hosts_than_agreed():
    located = Located(Target("hosts", "many"), tuple(Host(str(n), "") for n in range(4)))
    care_options.refuse_many(argparse.Namespace(max_hosts=4), located)
    with pytest.raises(UsageError) as refused:
        care_options.refuse_many(argparse.Namespace(max_hosts=3), located)
    assert "--max-hosts 4" in (refused.value.remedy or "")


@pytest.mark.parametrize("verb", ["run", "doctor"])
def test_the_verbs_that_record_keep_to_the_number_of_hosts(verb):
    done = hprofiler(verb, "-j", "java", "-h", "a,b,c", "--max-hosts", "2")
    assert done.returncode == 2, done
    assert "3 hosts are more than 2" in done.stderr and "--max-hosts 3" in done.stderr


def test_looking_is_not_limited():
    names = ",".join(f"n{number}" for number in range(care_options.MOST_HOSTS + 1))
    assert len(chosen.target(parse(["ps", "-j", "java", "-h", names])).hosts) == care_options.MOST_HOSTS + 1


def audited(stand_ins: StandIns, body: str) -> List[Dict[str, Any]]:
    from dataclasses import replace

    out = io.StringIO()
    fleet = Fleet(stand_ins, 20, {"a": body})
    fleet.reach = replace(fleet.reach, audit=Audit(out))
    fleet.collect()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_what_was_done_is_recorded(stand_ins):
    entry = {"time": 1e9, "what": "attach", "pid": 7, "detail": "load /tmp/x.so"}
    audit = f"assert read()['type'] == 'audit'; say('audited', entries=[{entry!r}], dropped=3); read()"
    lines = audited(stand_ins, f"hello(); found(7); {RECORDS.rpartition(';')[0]}; {audit}")
    assert {line["host"] for line in lines} == {"a"}
    whats = [(line["by"], line["what"]) for line in lines]
    assert whats[:2] == [("coordinator", "connect"), ("coordinator", "command")]
    requests = [line["detail"].split()[0] for line in lines if line["what"] == "request"]
    assert requests[0] == "hello" and requests[-2:] == ["audit", "bye"]
    assert {"find", "put", "prepare", "start"} <= set(requests)
    (attach,) = [line for line in lines if line["by"] == "agent"]
    assert (attach["pid"], attach["detail"], attach["time"][:4]) == (7, "load /tmp/x.so", "2001")
    assert any(line["what"] == "dropped" and "3 more" in line["detail"] for line in lines)


def test_an_agents_record_that_is_lost_is_told(stand_ins):
    lines = audited(stand_ins, "hello(); found(7); read(); sys.exit(9)")
    assert lines[-1]["what"] == "dropped" and "broke off" in lines[-1]["detail"]


def test_the_record_of_a_busy_host_is_whole(stand_ins):
    audit = "assert read()['type'] == 'audit'; say('audited', entries=[], dropped=3); read()"
    lines = audited(stand_ins, f"HOST['load'] = 1e6; hello(); found(7); {audit}")
    assert "broke off" not in lines[-1]["detail"] and "3 more" in lines[-2]["detail"], lines


@pytest.mark.parametrize(
    "lie",
    [
        {"entries": [{"time": 1, "what": "x"}] * 10_001},
        {"entries": [{"time": "now", "what": "x"}]},
        {"entries": [{"time": 1, "what": 7}]},
        {"dropped": -1},
    ],
)
def test_an_agents_record_is_checked(lie):
    with pytest.raises(BadEvent):
        parse_audited({"entries": [], "dropped": 0, **lie})


def test_requests_are_told_without_their_bulk():
    sampling = {"events": ["cpu", "alloc"]}
    told = in_words({"type": "prepare", "sampling": sampling, "processes": [{"pid": 7}], "blobs": {}})
    assert told == "prepare events=cpu,alloc pids=7"
    assert in_words({"type": "clean", "kept": True, "dry": True}) == "clean kept=true dry=true"
    assert in_words({"type": "clean", "only": ["file:1:2"]}) == 'clean only=["file:1:2"]'
    assert (
        in_words({"type": "put", "name": "x", "sha256": "ab", "size": 3}) == 'put name="x" sha256="ab" size=3'
    )


def test_the_record_is_its_owners_alone(tmp_path):
    audit = Audit.append_to(tmp_path / "audit")
    audit.note("h", "connect", "h")
    (tmp_path / "audit").chmod(0o644)
    Audit.append_to(tmp_path / "audit").note("h", "connect", "h")
    assert (tmp_path / "audit").stat().st_mode & 0o777 == 0o600
    whats = [json.loads(line)["what"] for line in (tmp_path / "audit").read_text().splitlines()]
    assert whats == ["begin", "connect"] * 2


def test_a_record_that_is_not_the_users_own_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("no/folder", "link", "pipe"):
        with pytest.raises(UsageError, match="--audit"):
            Audit.append_to(tmp_path / name)
    if os.geteuid() == 0:  # others have no files to try
        (tmp_path / "file").touch()
        os.chown(tmp_path / "file", 12345, 12345)
        with pytest.raises(UsageError, match="another user's"):
            Audit.append_to(tmp_path / "file")
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_ends_the_record_and_nothing_else():
    told: List[str] = []
    with open("/dev/full", "w") as full:
        audit = Audit(full, told.append)
        for _ in range(3):
            audit.note("h", "connect", "h")
    assert told == ["No space left on device"]


def test_without_room_for_a_record_no_host_is_touched(tmp_path):
    done = hprofiler(
        "doctor",
        *("-j", "java", "-h", "localhost", "--audit", tmp_path / "audit"),
        before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert done.returncode == 2 and f"--audit {tmp_path}" in done.stderr, done
