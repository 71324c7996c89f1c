"""hprofiler.Profile as its users meet it: opening, merging, operations, tables, differences, files."""

from __future__ import annotations

import pytest

import hprofiler
from hprofiler import Profile
from hprofiler._flamegraph import WRITE_FORMATS, OptionError
from tests.timed_profile import Row, timed_profile

JOB = b"main;parse;match_[j] 5\nmain;read 3\nmain 1\nidle;wait 7\n"


@pytest.fixture
def job():
    return Profile.from_bytes(JOB)


def lines(profile, value=0):
    return profile.to_folded(value).decode().splitlines()


def test_profile_is_loaded_when_it_is_asked_for():
    assert hprofiler.Profile is Profile
    assert "Profile" in dir(hprofiler)
    with pytest.raises(AttributeError, match="has no attribute 'profile'"):
        hprofiler.profile  # noqa: B018


def test_open_says_what_is_wrong_and_with_which_file(tmp_path):
    (tmp_path / "bad").write_bytes(b"<html>\n")
    with pytest.raises(ValueError, match=r"/bad: not a profile that can be read, but a page"):
        Profile.open([tmp_path / "bad"])
    with pytest.raises(ValueError, match=r"/none: No such file or directory$"):
        Profile.open(tmp_path / "none")
    with pytest.raises(ValueError, match="no file to open"):
        Profile.open([])
    with pytest.raises(TypeError, match='unknown keyword "thread"; known are: format, threads'):
        Profile.open(tmp_path / "bad", thread=True)


def test_values_go_by_name_and_by_index():
    both = Profile.from_bytes(b"a;b 1 2\na 0 5\n")
    assert both.total("after") == both.total(1) == 7
    assert both.select("after").values == [("after", "count")]
    assert both.select(["after", 0]).values == [("after", "count"), ("before", "count")]
    assert lines(both.select(1)) == ["a 5", "a;b 2"]
    assert both.top(1, "after")[0].name == "a"
    with pytest.raises(ValueError, match='no value "cpu" in this profile; there are: before'):
        both.total("cpu")


def test_wrong_arguments_are_option_errors(job, tmp_path):
    (tmp_path / "job.folded").write_bytes(JOB)
    for wrong in (
        lambda: job.total("cpu"),
        lambda: job.total(7),
        lambda: job.trim("("),
        lambda: job.to_svg(bgcolors="pink"),
        lambda: Profile.open(tmp_path / "job.folded", time=(1, 2)),
        lambda: Profile.from_bytes(JOB, off_cpu=True),
        lambda: Profile.from_bytes(b"PERFILE2" + bytes(96), estimate=True),
    ):
        with pytest.raises(OptionError):
            wrong()
    for number in (-1, 1, 2**70):
        with pytest.raises(OptionError, match=rf"^no value {number} in this profile; there are: samples "):
            job.total(number)
    (tmp_path / "bad.folded").write_bytes(b"<html>")
    with pytest.raises(ValueError, match=r"bad\.folded: ") as bad:
        Profile.open(tmp_path / "bad.folded")
    assert bad.type is ValueError
    with pytest.raises(TypeError):
        job.total(1.5)


def test_every_format_is_written_by_extension(job, tmp_path):
    for name, ending in WRITE_FORMATS.items():
        path = tmp_path / f"out{ending}"
        job.write(path)
        assert path.stat().st_size > 0
        again = tmp_path / "again"
        job.write(again, name, title=path.name)
        if name == "html":
            assert b"out.html" in again.read_bytes()
        else:
            assert again.stat().st_size > 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_operations_of_the_python_interface(job):
    assert Profile.merged([job, job.scale(3)]).total() == 64
    assert lines(job.invert().invert()) == lines(job) and job.total() == 16
    assert lines(Profile.from_bytes(b"[w-1 tid=5];run 1\n[w-2 tid=6];run 2\n").threads()) == ["[w-N];run 3"]
    labelled = job.with_labels({"host": "h1"})
    assert (job.labels, Profile.from_bytes(labelled.to_pprof()).labels) == ({}, {"host": "h1"})
    diff = job.diff(Profile.from_bytes(b"main;parse;match_[0] 18\nmain;write 14\n"))
    assert (diff.normalized, diff.before_total, diff.after_total) == (True, 16, 32)
    assert [change.path for change in diff.appeared()] == [("main", "write")]
    with pytest.raises(ValueError, match="unknown palette"):
        job.to_svg(colors="rainbow")
    with pytest.raises(TypeError):
        Profile.merged([job, "b"])


def test_a_failed_write_keeps_the_old_file(job, tmp_path):
    path = tmp_path / "x.svg"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="nothing to draw"):
        Profile.from_bytes(b"").write(path)
    with pytest.raises(FileNotFoundError):
        job.write(tmp_path / "no" / "x.svg")
    assert path.read_bytes() == b"old" and [one.name for one in tmp_path.iterdir()] == ["x.svg"]


def test_a_range_of_time_has_its_samples():
    def burning(method, bucket, samples=2):
        return Row(("[main]", method), bucket, samples, (samples, samples * 1000))

    rows = [burning("first", 0), burning("first", 1), burning("second", 1), burning("second", 3, 5)]
    start = 1_700_000_000_000_000
    job = Profile.from_bytes(timed_profile(rows, start=start, slices=[("stage 1", True)]))
    times = job.times
    assert times is not None and times.slices == [("stage 1", True)]
    assert (times.start, times.width, times.end) == (start, 20_000, start + 80_000)
    assert (times.samples, times.rows, times.has_amounts, times.has_bands) == (11, 4, False, False)
    early, late = job.in_range(0, start + 20_000), job.in_range(start + 20_000, start + 80_000)
    assert lines(early, "cpu") == ["[main];first 2000"]
    assert lines(late) == ["[main];first 2", "[main];second 7"]
    below = late.below("second")
    assert below.times.samples == 7 and lines(below.in_range(start + 60_000, start + 60_001)) == [
        "[main];second 5"
    ]


def test_slices_and_bands_of_waits_add_up(tmp_path):
    values = [("contentions", "count"), ("delay", "nanoseconds")]
    rows = [
        Row(("lock",), 0, 1, (1, 3000), slice=1, band=2, amount=3000),
        Row(("lock",), 0, 1, (1, 900_000), slice=1, band=10, amount=900_000),
        Row(("lock",), 5, 2, (2, 10), amount=10),
    ]
    waits = Profile.from_bytes(timed_profile(rows, values=values, slices=[("a", True)]))
    assert waits.times.has_amounts and waits.times.has_bands
    assert [waits.in_slice(number).total("delay") for number in (0, 1)] == [10, 903_000]
    assert [waits.in_bands(*bands).total("delay") for bands in ((0, 3), (3, 64))] == [3010, 900_000]
    waits.write(tmp_path / "waits.hpt")
    assert Profile.open(tmp_path / "waits.hpt").in_bands(10, 11).total("contentions") == 1
    merged = Profile.open([tmp_path / "waits.hpt"] * 2)
    assert merged.total("delay") == 2 * 903_010 and merged.times is None
    with pytest.raises(OptionError, match="not known when its samples were taken"):
        merged.in_slice(0)
