"""Runs whose samples have times: what a range of it is, in reports, comparisons and single files."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.time_part import recorded_in
from hprofiler.base.time_range import TimeRange
from hprofiler.model import Process, Recording, Samples, SampleTimes
from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.timed_profile import Row, timed_profile
from tests.unit.command import hprofiler
from tests.viewer.block import Times, carried, described
from tests.viewer.made_run import MadeHost, changed, make_run

START = 1_800_000_000_000_000
LOCK = [("contentions", "count"), ("delay", "nanoseconds")]


def half_seconds(first: str, second: str, start: float = 0.0, samples: int = 1) -> bytes:
    """CPU samples of four seconds, each method for 500 ms by turns, from `start` seconds on."""
    rows = [
        Row(["[pool-N]", "Job.run", first if bucket % 50 < 25 else second], bucket, samples)
        for bucket in range(200)
    ]
    rows = [Row(one.stack, one.bucket, samples, (samples, samples * 3_000_000)) for one in rows]
    return timed_profile(rows, start=START + round(start * 1e6))


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """Two hosts, the second half a second later: at each time one runs `a`, the other `b`."""
    waits = [
        Row(["wait"], 10, 1, (1, 700), band=4, amount=700),
        Row(["wait"], 90, 2, (2, 20), band=2, amount=20),
        Row(["rest"], 90, 1, (1, 280), band=3, amount=280),
    ]
    lock = timed_profile(waits, start=START + 200_000, values=LOCK)
    hosts = [
        MadeHost("n1", {7: half_seconds("a", "b")}, events={"lock": {7: lock}}),
        MadeHost("n2", {8: half_seconds("a", "b", start=0.5, samples=2)}),
    ]
    return make_run(tmp_path / "run", hosts, events=("cpu", "lock"))


def leaves(profile: Profile, value: int = 0) -> dict[str, int]:
    found: Counter[str] = Counter()
    for stack in profile.paths(annotate=False):
        found[stack.frames[-1]] += stack.values[value]
    return dict(found)


def test_the_page_has_the_times_of_all_samples(folder):
    page = make_report(folder.path).page
    record, block = described(page), carried(page)
    assert record["time"] == {"start": START, "seconds": 60.5, "width": 20_000}
    seen: Counter[tuple[str, str, float]] = Counter()
    for number, column in enumerate(record["columns"]):
        event = record["events"][column["event"]]["name"]
        times = block.times[number]
        for (bucket, stack, _), (samples, amount) in times.rows.items():
            assert (amount > 0) == (event == "lock")
            second = (times.start + bucket * times.width) / 1e6
            seen[event, stack[-1], second // 0.5] += amount if event == "lock" else samples
    assert seen["cpu", "a", 0.0] == 25 and seen["cpu", "b", 1.0] == 25 and seen["cpu", "a", 1.0] == 50
    assert seen["lock", "wait", 0.0] == 700 and seen["lock", "rest", 4.0] == 280
    sums = dict.fromkeys(("cpu", "lock"), 0)
    for (event, _, _), amount in seen.items():
        sums[event] += amount
    assert sums == {"cpu": 600, "lock": 1000}


@pytest.mark.parametrize("how", [{}, {"threads": True}, {"trim": True}, {"raw_names": True}])
def test_without_times_the_report_is_the_same(folder, how):
    with_times = make_report(folder.path, **how)
    columns = carried(with_times.page).columns
    for file in folder.path.glob("hosts/*/*/*.time"):
        file.unlink()
    without = make_report(folder.path, **how)
    assert carried(without.page).columns == columns
    assert described(without.page)["time"] is None
    assert without.events[0].totals == with_times.events[0].totals


@pytest.mark.parametrize("damage", [b"HPT2???", half_seconds("x", "x", samples=9)])
def test_damaged_times_are_in_the_ledger(folder, damage):
    folder.times_path("n2", 8, "cpu").write_bytes(damage)
    report = make_report(folder.path)
    assert report.events[0].totals["samples"] == 600 and not report.analysis.problems
    lines = described(report.page)["run"]["ledger"]["lines"]
    said = [line for line in lines if "times of its samples of cpu" in line["reason"]]
    assert [(line["status"], line["host"], line["pid"]) for line in said] == [("degraded", "n2", 8)]


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_damaged_profile_is_read_from_its_times(folder, damage):
    path = folder.profile_path("n2", 8, "cpu")
    stored = path.read_bytes()
    path.unlink()
    if damage == "damaged":
        path.write_bytes(stored[:-20])
    report = make_report(folder.path)
    assert report.events[0].totals["samples"] == 600 and not report.analysis.problems
    lines = described(report.page)["run"]["ledger"]["lines"]
    (line,) = [one for one in lines if f"cpu.pb.gz is {damage}" in one["reason"]]
    assert (line["status"], line["pid"]) == ("degraded", 8)


@pytest.mark.parametrize(
    "time,expected",
    [((1, 5), (2, 5)), ((5, 20), (5, 12)), ((3, 4), (3, 4)), ((13, 14), (13, 13)), (None, (2, 12))],
)
def test_a_process_counts_only_for_the_part_of_a_range_in_which_it_was_recorded(time, expected):
    process = Process("n1", 7, 1, 0, "root", "Job")
    times = SampleTimes(START + 2_000_000, 20_000)
    recording = Recording(process, "cpu", "", "", 1, Samples(1, 1, 0), seconds=10, times=times)
    assert recorded_in(recording, START, time and TimeRange(*time)) == expected


def test_a_report_of_a_range(folder):
    report = make_report(folder.path, time=TimeRange(0.5, 1.0))
    cpu, lock = report.events
    assert cpu.totals == {"samples": 75, "cpu": 225_000_000}
    assert lock.totals == {} and lock.total == 0
    assert leaves(Profile.read(folder.cluster_dir / "cpu.folded")) == {"b": 25, "a": 50}
    chips = [chip["text"] for chip in described(report.page)["summaries"][0]["chips"]]
    assert "only 0.5-1 s" in chips and "300 Hz for 500 ms" in chips
    rows = described(report.page)["summaries"][0]["hosts"]["rows"]
    assert {row["name"]: row["taken"] for row in rows} == {"n1": 25, "n2": 50}
    assert report.events[0].coverage.complete


def test_ranges_add_up(folder):
    parts = [make_report(folder.path, time=TimeRange.of(text)).events[1] for text in ("0-2", "2-")]
    assert [part.totals["delay"] for part in parts] == [700, 300]


def convert(*arguments: object, status: int = 0) -> str:
    done = hprofiler("convert", *map(str, arguments), "-o", "-", "--to", "folded")
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def test_convert_finds_times_beside_stored_profiles(folder):
    make_report(folder.path)
    process = folder.profile_path("n2", 8, "cpu")
    # Seconds are of the run, not of the process, which began later.
    assert convert(process, "--time", "0.5-1") == "Job.run;a 50\n"
    assert convert(process.with_suffix("").with_suffix(".time"), "--time", "0.5-1") == "Job.run;a 50\n"
    assert convert(process, "--time", "0.5-1", "--threads") == "[pool-N];Job.run;a 50\n"
    both = "Job.run;a 50\nJob.run;b 25\n"
    assert convert(*folder.path.glob("hosts/*/*/cpu.pb.gz"), "--time", "0.5-1") == both
    assert convert(folder.cluster_dir / "cpu.pb.gz", "--time", "0.5-1") == both
    assert convert(folder.host_dir("n1") / "cpu.pb.gz", "--time", "0.5-1") == "Job.run;b 25\n"


def test_convert_says_where_times_are_not_known(folder, tmp_path):
    make_report(folder.path)
    bare = tmp_path / "bare.pb.gz"
    bare.write_bytes(folder.profile_path("n1", 7, "cpu").read_bytes())
    for path in (bare, folder.cluster_dir / "cpu-mean.pb.gz"):
        said = convert(path, "--time", "1-2", status=2)
        assert f"it is not known when the samples of {path} were taken" in said and "EVENT.time" in said
    folder.times_path("n1", 7, "cpu").unlink()
    assert "cpu.time is missing" in convert(folder.cluster_dir / "cpu.pb.gz", "--time", "1-2", status=4)
    assert "not FROM-TO" in hprofiler("convert", bare, "--time", "2-1", "-o", "-", "--to", "folded").stderr


def start_of(times: Times) -> int:
    """When the first of the samples were taken, in microseconds since the start."""
    return times.start + min(bucket for bucket, _, _ in times.rows) * times.width


def test_a_file_of_its_own_has_a_page_with_times(tmp_path):
    (tmp_path / "copied.time").write_bytes(half_seconds("a", "b", start=77))
    done = hprofiler("convert", tmp_path / "copied.time", "--time", "1-1.5", "-o", tmp_path / "one.html")
    assert done.returncode == 0, done.stderr
    record, block = described(tmp_path / "one.html"), carried(tmp_path / "one.html")
    assert record["time"] == {"start": START + 77_000_000, "seconds": 1.5, "width": 20_000}
    assert block.columns[0] == {("Job.run", "a"): 25} and start_of(block.times[0]) == 1_000_000


def test_diff_compares_ranges(folder, tmp_path):
    path = str(folder.path)
    done = hprofiler("diff", path, path, "-e", "cpu", "--time", "0-0.5", "--time", "0.5-1", "--json")
    assert done.returncode == 0, done.stderr
    changes = json.loads(done.stdout)
    assert changes["before"]["total"] == 25 and changes["after"]["total"] == 75
    assert changes["before"]["name"] == f"{path} (0-0.5 s)"
    folded = [folder.profile_path("n1", 7, "cpu"), folder.profile_path("n2", 8, "cpu")]
    done = hprofiler("diff", *map(str, folded), "--time", "0.5-1", "--json")
    assert json.loads(done.stdout)["after"]["total"] == 50
    done = hprofiler("diff", path, path, "--time", "1-2", "-o", tmp_path / "diff.html")
    assert done.returncode == 0, done.stderr
    page = tmp_path / "diff.html"
    assert described(page)["time"] == {"start": START, "seconds": 2.0, "width": 20_000}
    times = carried(page).times
    assert len(times) == 4 and all(1_000_000 <= start_of(one) < 2_000_000 for one in times.values())
    done = hprofiler("diff", path, path, "--time", "99-", "--json")
    assert done.returncode == 2 and "no samples from 99 s on" in done.stderr


def test_runs_without_times_have_no_ranges(tmp_path):
    folder = make_run(tmp_path / "run", [MadeHost("n1", {7: "a;b 5\n"})])
    done = hprofiler("report", folder.path, "--time", "0-1")
    assert done.returncode == 2 and "it is not known when the samples of" in done.stderr
    assert "--no-timeline" in done.stderr


def test_pauses_and_clocks_are_in_the_page(folder):
    pauses = {"pid": 7, "collectors": ["G1 Young"], "collector": [0, 0, 0], "left_out": 0}
    pauses |= {"end": [START - 5, START + 1_250_000], "duration": [9, 250_000, 5]}
    # What a host says of another day is not shown.
    pauses["end"].append(START + 86_400_000_000)
    with changed(folder) as run:
        run["hosts"][0] |= {"pauses": [pauses], "clock": {"offset": 0.0, "uncertainty": 0.0003}}
        run["hosts"][1] |= {"clock": {"offset": -2.0, "uncertainty": 0.0001}}
    record = described(make_report(folder.path).page)
    (lane,) = record["lanes"]
    assert record["processes"][lane["process"]]["pid"] == 7
    assert (lane["name"], lane["kind"]) == ("GC pauses", "gc")
    assert lane["spans"] == [[1.0, 1.25, "G1 Young"]]
    assert record["clock"] == "hosts' times are put together within 400 µs; the clock of n2 is 2 s behind"
    facts = {label: lines for label, _, lines in record["run"]["facts"]}
    assert facts["Times"] == ["times of samples in steps of 20 ms", record["clock"]]
    with changed(folder) as run:
        run["hosts"][1]["clock"]["offset"] = 0.0
    clock = described(make_report(folder.path).page)["clock"]
    assert clock == "hosts' clocks agree within 400 µs"


def test_ranges_are_half_open_and_exact():
    assert TimeRange.of("5-12.5") == (5, 12.5) and str(TimeRange.of("5-12.5")) == "5-12.5 s"
    assert str(TimeRange.of("10-")) == "from 10 s on"
    assert TimeRange.of("500ms-1.5m") == (0.5, 90)
    assert TimeRange.of("5086.2-5086.22").microseconds(START) == (
        START + 5_086_200_000,
        START + 5_086_220_000,
    )
    for wrong in ("5", "-5", "5-5", "6-5", "nan-", "a-b", " 1-2", "inf-"):
        with pytest.raises(ValueError):
            TimeRange.of(wrong)


def test_a_process_that_ended_before_a_range_was_not_recorded_in_it(tmp_path):
    rows = [Row(("a",), 0), Row(("b",), 50)]
    hosts = [MadeHost(name, {pid: timed_profile(rows, start=START)}) for name, pid in (("n1", 7), ("n2", 8))]
    folder = make_run(tmp_path / "run", hosts)
    with changed(folder) as run:
        run["hosts"][1]["recordings"][0]["seconds"] = 0.5
    report = make_report(folder.path, time=TimeRange.of("0.6-2"))
    assert report.coverage == "1 of 2 processes on 1 of 2 hosts"
    (asked,) = (lines for label, _, lines in described(report.page)["run"]["facts"] if label == "Requested")
    assert asked[0].endswith("in 0.6-2 s, engine auto")
