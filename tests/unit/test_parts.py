"""Parts of a recording that goes on: kept as they come, and put together at its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.facts import read_facts
from hprofiler.model import Host, HostRecord, Outcome, Process, Recording, Samples, Sampling, Status
from hprofiler.runfolder import RunFolder, RunRecord
from hprofiler.runfolder.parts import Parts, settle_run
from hprofiler.runfolder.sink import FolderSink
from tests.timed_profile import BUCKET, Row, timed_profile

HOST = Host("node", "localhost")
PROCESS = Process("node", 7, 1, 0, "root", "executor 3")
RECORDING = Recording(PROCESS, "cpu", "async-profiler", "ctimer", 10**7, Samples(20, 10, 10), 10.0, 2.0)
CPU = [("samples", "count"), ("cpu", "nanoseconds")]
SECOND = 1_000_000


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


def part(begin: float, method: str = "run") -> Iterator[bytes]:
    """Ten samples in the first bucket."""
    rows = [Row(["[main]", method], 0, 10, (10, 100_000_000))]
    return iter([timed_profile(rows, start=int(begin * SECOND), values=CPU)])


def names(folder: RunFolder) -> list[str]:
    files = folder.profile_path("node", 7, "cpu").parent
    return sorted(path.name for path in files.iterdir() if path.suffix != ".json") if files.exists() else []


def test_parts_become_one_profile_with_its_times(folder: RunFolder) -> None:
    sink, begin = FolderSink(folder), time.time()
    whole: Recording | None = None
    for number in range(35):
        more = number < 34
        kept = sink.profile(HOST, RECORDING, part(begin + number, f"method{number % 5}"), more)
        whole = whole.with_part(kept) if whole else kept
        if number == 33:
            # Sixteen become one: 16 + 16 + 2.
            assert names(folder) == ["cpu.part-0-15", "cpu.part-16-31", "cpu.part-32-32", "cpu.part-33-33"]
    assert names(folder) == ["cpu.pb.gz", "cpu.time"]
    stored = Profile.open(folder.profile_path("node", 7, "cpu"))
    assert (stored.total("samples"), stored.total("cpu")) == (350, 3_500_000_000)
    assert stored.labels["process"] == "executor 3"
    times = Profile.open(folder.times_path("node", 7, "cpu")).times
    assert times is not None and times.samples == 350
    assert times.end - times.start == 34 * SECOND + BUCKET
    assert whole is not None and whole.totals == {"samples": 350, "cpu": 3_500_000_000}
    assert (whole.samples, whole.seconds, whole.cpu_seconds) == (Samples(700, 350, 350), 350.0, 70.0)
    assert whole.times is not None and whole.times.start == times.start


def test_files_that_are_in_another_do_not_count_twice(folder: RunFolder) -> None:
    """As if the coordinator had been killed after 16 files became one, and before they were deleted."""
    sink, begin = FolderSink(folder), time.time()
    for number in range(3):
        sink.profile(HOST, RECORDING, part(begin + number), True)
    profile = folder.profile_path("node", 7, "cpu")
    for end in ("", ".json"):
        first = profile.with_name(f"cpu.part-0-0{end}").read_bytes()
        profile.with_name(f"cpu.part-0-2{end}").write_bytes(first)
    parts = Parts(profile)
    assert parts.settle({}).total("samples") == 10
    assert names(folder) == ["cpu.pb.gz", "cpu.time"]
    settled = Parts(profile).recording()
    assert settled is not None and settled.totals["samples"] == 10


def test_run_json_of_a_run_that_was_killed_has_what_came_after_it_was_written(folder: RunFolder) -> None:
    """Of one process a part, of one its last part, of one the first; of another nothing came."""
    sink, begin = FolderSink(folder), time.time()

    def send(pid: int, more: bool, after: float) -> Recording:
        recording = replace(RECORDING, process=replace(PROCESS, pid=pid))
        return sink.profile(HOST, recording, part(begin + after), more)

    written = tuple(send(pid, True, 0) for pid in (7, 8))
    ok = Outcome("node", Status.OK, "record", "", pid=7, code="recorded")
    missing = Outcome("node", Status.FAILED, "fetch", "no profile", code="profile-missing")
    lines = (ok, replace(ok, pid=8), replace(missing, pid=9), replace(missing, pid=10))
    host = HostRecord(name="node", recordings=written, outcomes=lines)
    folder.write(RunRecord(hosts=(host,), sampling=Sampling(("cpu",), 99, 90.0)))
    send(7, True, 10)
    send(8, False, 10)
    send(9, True, 10)
    folder.release()

    killed = RunFolder.open(folder.path)
    settle_run(killed)
    (host,) = RunFolder.open(folder.path).record.hosts
    assert {one.pid: (one.seconds, one.cpu_seconds) for one in host.recordings} == {
        7: (20.0, 4.0),
        8: (20.0, 4.0),
        9: (10.0, 2.0),
    }
    for one in host.recordings:
        stored = Profile.open(folder.times_path("node", one.pid, "cpu"))
        assert one.totals == {name: stored.total(name) for name, _ in stored.values}
        assert one.times is not None and stored.times is not None and one.times.start == stored.times.start
    assert [line.status for line in host.outcomes] == [Status.OK, Status.OK, Status.OK, Status.FAILED]
    assert host.outcomes[3].reason == "the run was cut off before its first part came"
    assert not list(folder.path.glob("hosts/*/*/*.part-*"))
    assert read_facts(killed.record).finished[:16] == _minute(begin + 20)
    before = (folder.path / "run.json").stat().st_ino
    settle_run(RunFolder.open(folder.path))
    assert (folder.path / "run.json").stat().st_ino == before


def test_a_run_of_which_the_last_seconds_are_kept_begins_with_what_is_left(folder: RunFolder) -> None:
    sink, begin = FolderSink(folder), time.time()
    written = sink.profile(HOST, replace(RECORDING, age=100.0), part(begin), True)
    line = Outcome("node", Status.OK, "record", "", pid=7, code="recorded")
    host = HostRecord(name="node", recordings=(written,), outcomes=(line,))
    folder.write(RunRecord(hosts=(host,), sampling=Sampling(("cpu",), 99, 90.0)))
    sink.profile(HOST, RECORDING, part(begin + 10), True)
    Parts(folder.profile_path("node", 7, "cpu")).files[0].remove()
    folder.release()

    killed = RunFolder.open(folder.path)
    settle_run(killed)
    ((one,),) = (host.recordings for host in killed.record.hosts)
    assert (one.joined, one.seconds, one.totals["samples"]) == (0.0, 10.0, 10)
    assert one.age == pytest.approx(110.0, abs=0.1)


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()[:16]


def test_a_part_of_another_day_has_no_times(folder: RunFolder) -> None:
    sink, begin = FolderSink(folder), time.time()
    first = sink.profile(HOST, RECORDING, part(begin), True)
    wrong = sink.profile(HOST, RECORDING, part(begin - 86_400), True)
    assert first.times and not wrong.times and wrong.times_off > 80_000
    last = sink.profile(HOST, replace(RECORDING, interval=9), part(begin + 2), False)
    stored = Profile.open(folder.profile_path("node", 7, "cpu"))
    assert stored.total("samples") == 30 and not last.times and names(folder) == ["cpu.pb.gz"]
