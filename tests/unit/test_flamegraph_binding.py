"""The Rust core as Python sees it: every function of hprofiler/_flamegraph.pyi, and its errors."""

import gzip
import threading

import pytest

from hprofiler._flamegraph import Profile

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


@pytest.mark.parametrize(
    ("data", "format", "reason"),
    [
        (b"<html>\n", None, "folded text, line 1: "),
        (b"a 1\nb 9223372036854775807\n", None, "folded text, line 2: "),
        (b"\x1f\x8b\x08", None, "gzip: "),
        (b"\x0a\x02\x08\x01", None, "pprof: string 1 does not exist"),
        (TEXT, "pprof", "pprof: "),
        (TEXT, "xml", 'unknown format "xml"; known are: '),
    ],
)
def test_bad_input_is_a_value_error_with_its_reason(data, format, reason):
    with pytest.raises(ValueError) as caught:
        Profile.from_bytes(data, format)
    assert str(caught.value).startswith(reason)


def test_merge_adds_up_and_drops_labels_that_disagree(profile):
    ours = profile.with_labels({"host": "a", "job": "j"})
    ours.merge(profile.with_labels({"host": "b", "job": "j"}))
    assert ours.total() == 200
    assert ours.labels == {"job": "j"}
    ours.merge(ours)
    assert ours.total() == 400
    with pytest.raises(ValueError, match=r"unlike values .* samples \(count\) and before \(count\)"):
        ours.merge(Profile.from_bytes(b"a 1 2\n"))


def test_top_merges_tiers(profile):
    first, second, third = profile.top(3)
    assert (first.name, first.kind, first.self_value, first.total_value) == ("mix", "inlined", 80, 80)
    assert (second.name, second.kind, second.self_value, second.total_value) == ("vfs_read", "kernel", 20, 20)
    assert (third.name, third.self_value, third.total_value) == ("run", 0, 100)
    with pytest.raises(ValueError, match="no value 1 in this profile"):
        profile.top(1, value=1)


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
