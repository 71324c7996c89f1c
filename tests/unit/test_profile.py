"""hprofiler.Profile as its users meet it: opening, merging, operations, tables, differences, files."""

from __future__ import annotations

import pytest

import hprofiler
from hprofiler import Profile
from hprofiler._flamegraph import WRITE_FORMATS, OptionError

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
    with pytest.raises(ValueError, match=r"/bad: folded text, line 1: "):
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
