"""Profiles from agents: stored as pprof with labels, or refused."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.base.errors import HostError, ProfileError
from hprofiler.model import Host, Process, Recording, Samples, SampleTimes
from hprofiler.model.metrics import Metrics
from hprofiler.runfolder import RunFolder
from hprofiler.runfolder.metrics_file import read_metrics
from hprofiler.runfolder.sink import FolderSink
from tests.lab.chaos import bombs
from tests.timed_profile import BUCKET, Row, timed_profile
from tests.viewer.made_profile import made_profile

HOST = Host("node/1", "localhost")
PROCESS = Process("node/1", 7, 1, 0, "root", "executor 3", labels={"executor": "3"})
RECORDING = Recording(PROCESS, "alloc", "async-profiler", "alloc", 524288, Samples(0, 2, 0), 1.0)
FOLDED = "[main];run;byte[]_[i] 4096\n[pool-N];run;char[]_[i] 1024\n"


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    return RunFolder.create(tmp_path / "run")


@pytest.fixture
def sent(tmp_path) -> bytes:
    path = tmp_path / "alloc.hpt"
    made_profile("alloc", FOLDED).write(path, "compact")
    return path.read_bytes()


def pieces(data: bytes):
    return iter([data[:10], data[10:]])


def files(folder: RunFolder):
    return sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*") if path.is_file())


def test_a_profile_becomes_pprof_with_its_labels(folder, sent):
    kept = FolderSink(folder).profile(HOST, RECORDING, pieces(sent))
    assert kept.times is None and kept.totals == {"alloc_objects": 2, "alloc_space": 5120}
    stored = folder.profile_path("node/1", 7, "alloc")
    profile = Profile.read(stored, "pprof")
    assert profile.values == [("alloc_objects", "count"), ("alloc_space", "bytes")]
    wanted = {"host": "node/1", "pid": "7", "process": "executor 3", "executor": "3"}
    assert wanted.items() <= profile.labels.items()
    assert len(files(folder)) == 2, "nothing but it and run.json is left"


def timed(start: float) -> bytes:
    amounts = [("alloc_objects", "count"), ("alloc_space", "bytes")]
    rows = [Row(["[main]", "run"], 0, 1, (1, 512), amount=512), Row(["[main]"], 50, 2, (2, 9), amount=9)]
    return timed_profile(rows, start=int(start * 1e6), values=amounts)


def test_a_profile_with_times_is_also_kept_as_it_arrived(folder):
    sent = timed(time.time())
    kept = FolderSink(folder).profile(HOST, RECORDING, pieces(sent))
    stored = folder.times_path("node/1", 7, "alloc")
    assert stored == folder.profile_path("node/1", 7, "alloc").with_name("alloc.time")
    assert stored.read_bytes() == sent
    assert len(files(folder)) == 3, "nothing but both and run.json is left"
    times = Profile.open(stored).times
    assert (times.samples, times.end - times.start) == (3, 51 * BUCKET)
    assert kept.times == SampleTimes(times.start, BUCKET)
    assert Profile.open(folder.profile_path("node/1", 7, "alloc")).times is None


@pytest.mark.parametrize("start", [-86400, 86400])
def test_times_of_another_day_are_not_kept(folder, start):
    kept = FolderSink(folder).profile(HOST, RECORDING, pieces(timed(time.time() + start)))
    assert kept.times is None and kept.times_off > 60
    assert not folder.times_path("node/1", 7, "alloc").exists()
    assert Profile.open(folder.profile_path("node/1", 7, "alloc")).total("alloc_space") == 521


def test_a_profile_without_samples_has_no_impossible_times(folder):
    amounts = [("alloc_objects", "count"), ("alloc_space", "bytes")]
    kept = FolderSink(folder).profile(HOST, RECORDING, pieces(timed_profile([], start=0, values=amounts)))
    assert kept.times is None and kept.times_off == 0


def test_metrics_are_kept_unless_they_are_of_another_day(folder):
    sink = FolderSink(folder)
    now = int(1e6 * time.time())
    with pytest.raises(HostError, match=r"times are 86\d+ s off"):
        sink.metrics(HOST, Metrics(1.0, [now - 86_400_000_000, 1_000_000], {}, ()))
    assert not folder.metrics_path("node/1").exists()
    sink.metrics(HOST, Metrics(1.0, [now, 1], {}, ()))
    assert [*read_metrics(folder.metrics_path("node/1")).time] == [now, 1]


def test_parts_of_metrics_are_kept_until_all_come(folder):
    sink, path = FolderSink(folder), folder.metrics_path("node/1")
    now = int(1e6 * time.time())
    for at in (now, now + 9):
        sink.metrics(HOST, Metrics(1.0, [at, 1], {}, ()), True)
    assert [*read_metrics(path).time] == [now, 1, 8, 1]
    path.write_bytes(path.read_bytes()[:-30])  # as if it had been killed as it wrote
    assert [*read_metrics(path).time] == [now, 1]
    sink.metrics(HOST, Metrics(1.0, [now, 2], {}, ()))
    assert [*read_metrics(path).time] == [now, 2]


def test_without_room_for_the_times_nothing_is_kept(folder):
    folder.times_path("node/1", 7, "alloc").mkdir(parents=True)
    with pytest.raises(HostError, match="cannot write"):
        FolderSink(folder).profile(HOST, RECORDING, pieces(timed(time.time())))
    assert files(folder) == ["run.json"]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-4], lambda data: b"", lambda data: b"HPT1" + b"\xff" * 99]
)
def test_a_damaged_profile_is_refused_and_leaves_nothing(folder, sent, damage):
    with pytest.raises(ProfileError, match="the alloc profile of process 7 cannot be read: ") as caught:
        FolderSink(folder).profile(HOST, RECORDING, pieces(damage(sent)))
    assert str(folder.path) not in caught.value.reason
    assert files(folder) == ["run.json"]


@pytest.mark.parametrize("event", ["cpu", "lock", "page-faults"])
def test_a_profile_of_another_event_is_refused(folder, sent, event):
    with pytest.raises(ProfileError, match=f"the {event} profile of process 7 has other values"):
        FolderSink(folder).profile(HOST, replace(RECORDING, event=event), pieces(sent))
    assert files(folder) == ["run.json"]


def test_an_incomplete_profile_is_not_kept(folder, sent):
    def torn():
        yield sent[:20]
        raise HostError("fetch", "the connection was lost")

    sink = FolderSink(folder)
    with pytest.raises(HostError, match="lost"):
        sink.profile(HOST, RECORDING, torn())
    with pytest.raises(HostError, match="lost"):
        sink.raw(HOST, PROCESS, "recording.jfr", torn())
    assert files(folder) == ["run.json"]


def test_a_folder_that_cannot_be_written_is_named(folder, sent):
    folder.host_dir("node/1").parent.write_text("in the way")
    with pytest.raises(HostError, match=r"cannot write .*hosts") as caught:
        FolderSink(folder).profile(HOST, RECORDING, pieces(sent))
    assert caught.value.stage == "fetch" and "-o" in caught.value.remedy


def test_large_profiles_are_read_up_to_a_limit(folder):
    cpu, sink = replace(RECORDING, event="cpu"), FolderSink(folder)
    assert sink.profile(HOST, cpu, pieces(bombs.deep(400_000))).totals == {"samples": 1, "cpu": 1}
    with pytest.raises(ProfileError, match="more than 4194304"):
        sink.profile(HOST, cpu, pieces(bombs.deep(16_000_000)))


def test_impossible_amounts_are_refused(folder):
    cpu, sink = replace(RECORDING, event="cpu"), FolderSink(folder)
    half = (1 << 54) + 1
    assert sink.profile(HOST, cpu, pieces(bombs.flat(["a.B.c"], half))).totals["cpu"] == half
    again = replace(cpu, process=replace(PROCESS, pid=8))
    with pytest.raises(ProfileError, match="process 8 is impossible"):
        sink.profile(HOST, again, pieces(bombs.flat(["a.B.c"], half)))
    other = Host("n2", "localhost")
    assert sink.profile(other, cpu, pieces(bombs.flat(["a.B.c"], half))).totals["cpu"] == half
    assert len(files(folder)) == 3
