"""The page of `hprofiler diff` in a real Chromium: it opens on the comparison; links keep other views."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from tests.viewer.block import described
from tests.viewer.made_profile import made_profile
from tests.viewer.made_run import MadeHost, make_run
from tests.viewer.page_objects import box, diff_page

JOB = "java/lang/Thread.run_[j];com/acme/Job.run_[j]"


def compared(folder: Path, sides: list[Path]) -> Path:
    """The page of two runs or files."""
    diff_page(*sides, folder / "compared.html")
    return folder / "compared.html"


@pytest.fixture
def page(tmp_path):
    sides = []
    for name, hot in (("monday", ""), ("tuesday", f"{JOB};com/acme/Mask.mask_[j] 900\n")):
        text = f"{JOB};com/acme/Row.read_[j] 3000\n{hot}"
        sides.append(make_run(tmp_path / name, [MadeHost("n1", {1: text}), MadeHost("n2", {2: text})]).path)
    return compared(tmp_path, sides)


@pytest.mark.parametrize("other", [300, 99])
def test_seconds_are_shown_if_both_runs_have_one_frequency(tmp_path, other):
    sides = []
    for name, frequency in (("before", 300), ("after", other)):
        profile = made_profile("cpu", f"{JOB} {10 * frequency}\n", frequency).to_pprof()
        sides.append(make_run(tmp_path / name, [MadeHost("n1", {1: profile})]).path)
    second = described(compared(tmp_path, sides))["events"][0]["second"]
    assert (second is not None) == (other == 300)


def test_it_opens_on_the_comparison_of_both_runs(viewer, page):
    viewer.open(page)
    text = viewer.text("compare-panel")
    assert viewer.element("compare-panel").is_displayed()
    assert "com.acme.Mask.mask" in text and "+23.1 points" in text
    assert "Appeared: only in tuesday" in text
    assert box(viewer, "scope") == "tuesday: Cluster, sum"
    assert box(viewer, "compare-with") == "monday: Cluster, sum"
    assert text.splitlines()[:2] == ["tuesday: Cluster, sum", "compared with"]
    viewer.element("compare-swap").click()
    assert box(viewer, "scope") == "monday: Cluster, sum"
    text = viewer.text("compare-panel")
    assert text.splitlines()[:2] == ["monday: Cluster, sum", "compared with"]
    assert "−23.1 points" in text and "Appeared" not in text


def test_a_file_is_named_once(viewer, tmp_path):
    old, new = (Profile.from_bytes(f"main;hot {hot}\nmain;cold 40\n".encode(), "folded") for hot in (60, 90))
    old.diff(new).write(tmp_path / "x.html", None, title="x")
    viewer.open(tmp_path / "x.html")
    assert [box(viewer, one) for one in ("compare-with", "scope")] == ["before", "after"]
    run = make_run(tmp_path / "tuesday", [MadeHost(name, {1: "main;hot 60\n"}) for name in ("n1", "n2")]).path
    (tmp_path / "monday.folded").write_text("main;hot 60\n")
    viewer.open(compared(tmp_path, [tmp_path / "monday.folded", run]))
    names = [box(viewer, one) for one in ("compare-with", "scope")]
    assert names == ["monday.folded", "tuesday: Cluster, sum"]


def test_threads_are_compared_with_those_of_the_run_before(viewer, tmp_path):
    sides = []
    for name, hot in (("monday", 10), ("tuesday", 30)):
        text = f"[worker];hot {hot}\n[worker];cold 60\n[other];idle 30\n"
        sides.append(make_run(tmp_path / name, [MadeHost("n1", {1: text})]).path)
    viewer.open(compared(tmp_path, sides), "scope=1/thread:0")
    assert box(viewer, "compare-with") == "monday: worker"
    viewer.element("compare-with-input").click()
    assert {"monday: other", "tuesday: other", "monday: worker"} <= set(
        viewer.text("compare-with-list").splitlines()
    )


def test_a_link_to_another_view_shows_that(viewer, page):
    viewer.open(page, "view=graph")
    assert viewer.element("graph-panel").is_displayed()
    assert not viewer.element("compare-panel").is_displayed()
    viewer.open(page)
    viewer.element("view-graph").click()
    viewer.until("return location.hash.includes('view=graph')")
