"""Reports of several events: one page, and pictures of each event in its units."""

from __future__ import annotations

import re

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.report import make_report
from hprofiler.runfolder import RunFolder
from tests.viewer.block import summaries, words
from tests.viewer.made_run import MadeHost, make_run

MIB = 1 << 20
EVENTS = ("cpu", "alloc", "lock", "page-faults")
ALLOC = f"run;make;byte[]_[i] {6 * MIB}\nrun;java/lang/String_[i] {2 * MIB}\n"
LOCK = "run;java/util/Hashtable.get;java/util/Hashtable 3000000000\n"


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    hosts = [
        MadeHost(
            "a",
            {1: "run;work 270\nrun;rest 30\n", 2: "run;work 300\n"},
            events={"alloc": {1: ALLOC, 2: ALLOC}, "lock": {1: LOCK}, "page-faults": {1: "run;touch 70\n"}},
        ),
        MadeHost("b", {3: "run;work 30\n"}, events={"alloc": {3: ALLOC}, "lock": {3: ""}}),
    ]
    return make_run(tmp_path / "run", hosts, events=EVENTS)


def sections(page) -> dict[str, str]:
    """What the page says of each event."""
    return {event: words(summary) for event, summary in summaries(page).items()}


def test_all_events_are_in_one_page_and_have_pictures(folder):
    report = make_report(folder.path)
    assert report.page == folder.path / "report.html"
    assert [path.name for path in folder.path.glob("*.html")] == ["report.html"]
    assert tuple(sections(report.page)) == EVENTS
    for event in EVENTS:
        for name in (f"cluster/{event}", f"cluster/{event}-mean", f"hosts/a/{event}"):
            for kind in (".svg", ".folded", ".pb.gz"):
                assert (folder.path / f"{name}{kind}").is_file(), name + kind
    assert not (folder.path / "hosts/b/lock.svg").exists(), "a host without a sample has no picture"


def test_pictures_show_the_value_that_matters(folder):
    make_report(folder.path)
    assert (folder.path / "cluster/alloc.folded").read_text().splitlines() == [
        f"run;java/lang/String_[i] {6 * MIB}",
        f"run;make;byte[]_[i] {18 * MIB}",
    ]
    assert "18,432 KiB allocated" in (folder.path / "cluster/alloc.svg").read_text()
    assert "3,000 ms waited" in (folder.path / "cluster/lock.svg").read_text()
    assert "600 samples" in (folder.path / "cluster/cpu.svg").read_text()
    titles = re.findall(r"[^>]* · cluster, every[^<]*", (folder.path / "cluster/lock.svg").read_text())
    assert titles and titles[0].endswith("· lock waits")
    pprof = Profile.read(folder.path / "cluster/alloc.pb.gz")
    assert pprof.values == [("alloc_objects", "count"), ("alloc_space", "bytes")]
    assert (pprof.total(0), pprof.total(1)) == (6, 24 * MIB)


def test_the_json_of_a_run(folder):
    report = make_report(folder.path)
    assert report.coverage == "3 of 3 processes on 2 of 2 hosts"
    totals = {event.event: dict(event.totals) for event in report.events}
    assert totals["alloc"] == {"alloc_space": 24 * MIB, "alloc_objects": 6}
    assert totals["lock"] == {"delay": 3_000_000_000, "contentions": 1}
    alloc = report.events[1]
    assert (alloc.total, alloc.hottest[0].name, alloc.hottest[0].self_value) == (24 * MIB, "byte[]", 18 * MIB)


def test_thread_groups_are_in_the_pictures_when_asked_for(tmp_path):
    hosts = [MadeHost("a", {1: "[main];run 3\n[pool-1-thread-7];run 1\n[pool-1-thread-9];run 2\n"})]
    folder = make_run(tmp_path / "run", hosts)
    make_report(folder.path)
    assert (folder.path / "cluster/cpu.folded").read_text() == "run 6\n"
    make_report(folder.path, threads=True)
    assert (folder.path / "cluster/cpu.folded").read_text().splitlines() == [
        "[main];run 3",
        "[pool-N-thread-N];run 3",
    ]
    pprof = folder.path / "hosts/a/cpu.pb.gz"
    assert Profile.read(pprof).to_folded() == b"run 6\n", "pprof has the thread as a label"
    assert len(Profile.open(pprof, threads="groups").paths()) == 2


def test_an_event_without_a_sample_says_so(tmp_path):
    hosts = [MadeHost("a", {1: "x 1\n"}, events={"lock": {1: ""}})]
    report = make_report(make_run(tmp_path / "run", hosts, events=("cpu", "lock")).path)
    cpu, lock = report.events
    assert not report.empty and cpu.total == 1
    assert (lock.recorded, lock.total, lock.hottest) == (1, 0, ())
    page = sections(report.page)["lock"]
    assert "No samples of lock waits" in page and "no picture" not in page
    assert "1 process never waited for a contended lock." in page


def test_pictures_that_nothing_is_left_for_are_removed(folder):
    make_report(folder.path)
    for host, pid in (("a", 1), ("a", 2), ("b", 3)):
        folder.profile_path(host, pid, "alloc").unlink()
    (folder.cluster_dir / "mine.svg").write_text("kept")
    report = make_report(folder.path)
    assert (report.events[1].recorded, report.events[1].total, len(report.analysis.problems)) == (0, 0, 3)
    left = {str(path.relative_to(folder.path)) for path in folder.path.rglob("*alloc*")}
    assert not left
    assert (folder.cluster_dir / "mine.svg").exists() and (folder.cluster_dir / "cpu.svg").exists()
    assert report.coverage == "3 of 3 processes on 2 of 2 hosts", "their CPU time was recorded"
