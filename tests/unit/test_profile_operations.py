"""hprofiler.Profile as its users meet it: opening, merging, operations, tables, differences."""

from __future__ import annotations

import gzip

import pytest

import hprofiler
from hprofiler import Profile
from hprofiler._flamegraph import OptionError

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


def test_many_files_are_opened_as_one(job, tmp_path):
    (tmp_path / "a.folded").write_bytes(JOB)
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"main 16\n"))
    paths = [tmp_path / "a.folded", tmp_path / "b.gz"]
    assert Profile.open(paths).total() == 32
    mean = Profile.open([str(path) for path in paths], mean=True)
    assert mean.total() == 16
    assert "main 9" in lines(mean) or "main 8" in lines(mean)
    assert Profile.open(paths[0]).total() == 16
    assert Profile.open(str(paths[0]), "folded").total() == 16


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


def test_profiles_are_merged_from_any_iterable(job):
    assert Profile.merged(job for _ in range(3)).total() == 48
    assert Profile.merged([job, job.scale(3)], mean=True).total() == 32
    assert job.total() == 16, "the first one is not the sum"
    with pytest.raises(ValueError, match="a sum of no profiles"):
        Profile.merged([])
    with pytest.raises(ValueError, match="a mean of no profiles"):
        Profile.merged([], mean=True)
    with pytest.raises(TypeError):
        Profile.merged([job, "b"])


def test_threads_invert_and_scale(job):
    threads = Profile.from_bytes(b"[w-1 tid=5];run 1\n[w-2 tid=6];run 2\n")
    assert lines(threads.threads()) == ["[w-N];run 3"]
    with pytest.raises(ValueError, match="no stack starts with a thread frame"):
        job.threads()
    assert lines(job.invert())[0] == "main 1"
    assert lines(job.invert().invert()) == lines(job)
    assert job.scale(1_000_000).total() == 16_000_000
    with pytest.raises(ValueError, match="a factor is above zero"):
        job.scale(0)


def test_values_go_by_name_and_by_index():
    both = Profile.from_bytes(b"a;b 1 2\na 0 5\n")
    assert both.total("after") == both.total(1) == 7
    assert both.select("after").values == [("after", "count")]
    assert both.select(["after", 0]).values == [("after", "count"), ("before", "count")]
    assert lines(both.select(1)) == ["a 5", "a;b 2"]
    assert both.top(1, "after")[0].name == "a"
    with pytest.raises(ValueError, match='no value "cpu" in this profile; there are: before'):
        both.total("cpu")


def test_canonical_names_and_what_they_were():
    raw = "J$$Lambda$4/0x0000000800c03000.run"
    profile = Profile.from_bytes(f"{raw} 1\nmain;x9 2\n".encode())
    assert lines(profile.canonical()) == ["J$$Lambda.run 1", "main;x9 2"]
    assert profile.canonical().raw_names() == {"J$$Lambda.run": [raw]}
    assert profile.raw_names() == {}
    assert lines(profile.canonical("[names]\n\\bx\\d => x\n")) == [f"{raw} 1", "main;x 2"]
    with pytest.raises(ValueError, match="name rules, line 1: "):
        profile.canonical("x => y")


def test_tables(job):
    tiers = Profile.from_bytes(b"run_[j];mix_[i] 70\nrun_[0];mix_[j] 10\n")
    assert [(f.name, f.kind, f.self_value, f.total_value) for f in tiers.frames()] == [
        ("mix", "jit", 10, 10),
        ("mix", "inlined", 70, 70),
        ("run", "interpreted", 0, 10),
        ("run", "jit", 0, 70),
    ]
    assert [(s.frames, s.values) for s in tiers.paths()] == [
        (("run_[0]", "mix_[j]"), (10,)),
        (("run_[j]", "mix_[i]"), (70,)),
    ]
    assert tiers.paths(annotate=False)[0].frames == ("run", "mix")
    root, run, mix = tiers.merged_tiers().nodes()
    assert (root.name, root.parent, root.depth, root.total_value, root.tiers) == ("", 0, 0, 80, {})
    assert (run.name, run.kind, run.tiers) == ("run", "jit", {"interpreted": 10, "jit": 70})
    assert (mix.parent, mix.depth, mix.self_value) == (1, 2, 80)
    assert "wait" in repr(job.top(1)) and "16" in repr(job)


def test_differences(job):
    after = Profile.from_bytes(b"main;parse;match_[0] 18\nmain;write 14\n")
    diff = job.diff(after)
    assert (diff.normalized, diff.before_total, diff.after_total) == (True, 16, 32)
    assert [(c.name, c.self_before, c.self_after) for c in diff.changes(3)] == [
        ("wait", 14, 0),
        ("write", 0, 14),
        ("match", 10, 18),
    ]
    assert [c.path for c in diff.appeared()] == [("main", "write")]
    assert [c.path for c in diff.vanished()] == [("idle",), ("main", "read")]
    assert diff.vanished()[0].total_before == 14
    assert sum(node.self_after for node in diff.nodes()) == 32
    assert diff.profile.values == [("before", "count"), ("after", "count")]
    assert b"main;parse;match_[0] 10 18\n" in diff.to_folded()
    assert b"main;parse;match_[0] 5 18\n" in job.diff(after, normalize=False).to_folded()
    assert Profile.from_bytes(diff.to_folded()).total("before") == 32
    assert job.diff(job).changes() == []
    with pytest.raises(ValueError, match=r"nothing to compare: no samples \(count\) before"):
        Profile.from_bytes(b"").diff(job)


def test_the_table_for_pandas(job):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: its tables are not made here")
    frame = job.to_pandas(annotate=False)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["stack", "samples"]
    assert frame.attrs["units"] == {"samples": "count"}
    assert frame["samples"].sum() == 16
    assert "main;parse;match" in set(frame["stack"])


@pytest.mark.parametrize("number", [-1, 2**64, -(2**70)])
@pytest.mark.parametrize(
    "use",
    [
        lambda job, number: job.total(number),
        lambda job, number: job.top(number),
        lambda job, number: job.select([number]),
        lambda job, number: job.select(number),
        lambda job, number: job.to_folded(number),
        lambda job, number: job.pruned(frames=number),
        lambda job, number: job.pruned(share=number),
        lambda job, number: job.scale(-abs(number)),
        lambda job, number: job.diff(job, number),
        lambda job, number: job.diff(job).changes(number),
        lambda job, number: job.to_svg(width=number),
        lambda job, number: job.to_svg(total=number),
        lambda job, number: job.to_svg(font_size=10**400 + number),
        lambda job, number: Profile.from_bytes(JOB, time=(10**400, number)),
    ],
)
def test_a_number_out_of_bounds_is_a_value_error(job, use, number):
    with pytest.raises(ValueError):
        use(job, number)


def test_what_was_asked_for_wrongly_is_an_option_error(job, tmp_path):
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
