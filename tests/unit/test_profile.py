"""hprofiler.Profile as its users meet it: opening, merging, operations, tables, differences, files."""

from __future__ import annotations

import gzip
import io
import json
import threading

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
        lambda job, number: job.pruned(frames=number),
        lambda job, number: job.scale(-abs(number)),
        lambda job, number: job.diff(job).changes(number),
        lambda job, number: job.to_svg(width=number),
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


TEXT = b"run_[j];mix_[i] 70\nrun_[0];mix_[j] 10\nrun_[j];read;vfs_read_[k] 20\n"


@pytest.fixture
def profile():
    return Profile.from_bytes(TEXT)


def test_folded_text_in_and_out(profile):
    assert profile.values == [("samples", "count")]
    assert profile.labels == {}
    assert (profile.total(), profile.node_count(), profile.malformed_lines) == (100, 6, 0)
    assert sorted(profile.to_folded().splitlines()) == sorted(TEXT.splitlines())
    assert profile.to_folded(annotate=False) == b"run;mix 80\nrun;read;vfs_read 20\n"


def test_pprof_keeps_values_labels_and_kinds(profile):
    labelled = profile.with_labels({"host": "h1", "pid": "7"})
    assert profile.labels == {}, "with_labels makes another profile"
    back = Profile.from_bytes(labelled.to_pprof())
    assert back.labels == {"host": "h1", "pid": "7"}
    assert back.values == profile.values
    assert back.to_folded() == profile.to_folded()
    assert labelled.to_pprof() == back.to_pprof(), "the same profile gives the same bytes"


def test_files_are_detected_by_content(profile, tmp_path):
    for name, data in [
        ("a.txt", TEXT),
        ("b.gz", gzip.compress(TEXT)),
        ("c", profile.to_pprof()),
        ("d", gzip.decompress(profile.to_pprof())),
    ]:
        (tmp_path / name).write_bytes(data)
        assert Profile.read(str(tmp_path / name)).to_folded() == profile.to_folded(), name
    assert Profile.read(str(tmp_path / "b.gz"), format="folded").total() == 100


def test_merge_adds_up_and_drops_labels_that_disagree(profile):
    ours = profile.with_labels({"host": "a", "job": "j"})
    ours.merge(profile.with_labels({"host": "b", "job": "j"}))
    assert ours.total() == 200
    assert ours.labels == {"job": "j"}
    ours.merge(ours)
    assert ours.total() == 400
    with pytest.raises(ValueError, match=r"unlike values .* samples \(count\) and before \(count\)"):
        ours.merge(Profile.from_bytes(b"a 1 2\n"))


def test_svg_and_its_refusals(profile):
    picture = profile.to_svg(title="<t>", subtitle="s", inverted=True, width=800).decode()
    assert picture.startswith("<?xml") and "&lt;t&gt;" in picture and 'width="800"' in picture
    with pytest.raises(ValueError, match="nothing to draw"):
        Profile.from_bytes(b"").to_svg()
    with pytest.raises(ValueError, match="unknown palette"):
        profile.to_svg(colors="rainbow")


def test_profiles_can_be_used_by_many_threads(profile):
    target = Profile.from_bytes(TEXT)
    threads = [threading.Thread(target=lambda: [target.merge(profile) for _ in range(50)]) for _ in range(4)]
    readers = [threading.Thread(target=target.to_pprof) for _ in range(4)]
    for thread in threads + readers:
        thread.start()
    for thread in threads + readers:
        thread.join()
    assert target.total() == 100 * (1 + 4 * 50)


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


def test_writing_to_bytes_and_to_files_is_the_same(job, tmp_path):
    for name, data in [
        ("folded", job.to_folded()),
        ("pprof", job.to_pprof()),
        ("svg", job.to_svg()),
        ("json", job.to_json()),
        ("speedscope", job.to_speedscope()),
    ]:
        file = io.BytesIO()
        job.write(file, name)
        assert file.getvalue() == data, name
    json.loads(job.to_json())


def test_what_cannot_be_written_is_an_os_error(job, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        job.write(tmp_path / "no" / "x.svg")
    assert str(caught.value.filename).endswith("x.svg")
    (tmp_path / "d.svg").mkdir()
    with pytest.raises(OSError):
        job.write(tmp_path / "d.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["d.svg"], "nothing half-written is left"


def test_a_writer_that_fails_leaves_the_old_file(tmp_path):
    path = tmp_path / "x.svg"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="nothing to draw"):
        Profile.from_bytes(b"").write(path)
    assert path.read_bytes() == b"old"


def test_formats_that_nobody_knows(job, tmp_path):
    with pytest.raises(ValueError, match=r"the name does not tell the format; known are: .*svg \(\.svg\)"):
        job.write(tmp_path / "x.png")
    with pytest.raises(ValueError, match='unknown format "png"; known are: '):
        job.write(tmp_path / "x", "png")
    with pytest.raises(ValueError, match="the format must be named"):
        job.write(io.BytesIO())
    with pytest.raises(ValueError, match="the page needs a path"):
        job.write(io.BytesIO(), "html")
