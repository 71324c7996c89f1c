"""The description and the block of data in a page, compared with the profiles they come from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.report import make_report
from hprofiler.report.page import Lane, PageData, PageEvent, PageProcess
from hprofiler.runfolder import RunFolder
from tests.timed_profile import Row, timed_profile
from tests.viewer.block import Stacks, carried, described
from tests.viewer.made_run import MadeHost, changed, make_run

EXECUTOR = "[Executor task N];Job.run_[j];Job.{} {}\n"
GC = "[GC Thread#N];gc {}\n"


def cpu(work: int, gc: int) -> str:
    return EXECUTOR.format("work_[j]", work) + EXECUTOR.format("work_[0]", 3) + GC.format(gc)


@pytest.fixture
def folder(tmp_path) -> RunFolder:
    """Two hosts, three processes, two events; one of the processes allocated nothing."""
    hosts = [
        MadeHost(
            "n1", {4701: cpu(100, 20), 4702: cpu(60, 1)}, events={"alloc": {4701: "make;byte[]_[i] 4096\n"}}
        ),
        MadeHost("n2", {4703: cpu(10, 30)}, events={"alloc": {4703: "make;int[]_[i] 512\n"}}),
    ]
    return make_run(tmp_path / "run", hosts, events=("cpu", "alloc"))


def by_column(page: Path) -> dict[tuple[str, str, int, str | None], Stacks]:
    """The columns by event, host, pid and thread group."""
    record, block = described(page), carried(page)
    assert len(record["columns"]) == len(block.columns)
    found: dict[tuple[str, str, int, str | None], Stacks] = {}
    for told, stacks in zip(record["columns"], block.columns, strict=False):
        process = record["processes"][told["process"]]
        thread = None if told["thread"] is None else record["threads"][told["thread"]]
        host = record["hosts"][process["host"]]["name"]
        key = (record["events"][told["event"]]["name"], host, process["pid"], thread)
        found[key] = dict(Counter(found.get(key, {})) + Counter(stacks))
    return found


def stacks_of(profile: Profile) -> Stacks:
    """A profile's stacks with the first value, tiers together."""
    found: Counter[tuple[str, ...]] = Counter()
    for stack in profile.paths(annotate=False):
        found[tuple(stack.frames)] += stack.values[0]
    return +found


def test_every_part_of_a_run_is_a_column(folder):
    page = make_report(folder.path).page
    columns = by_column(page)
    assert columns["cpu", "n1", 4701, "Executor task N"] == {("Job.run", "Job.work"): 103}
    assert columns["cpu", "n2", 4703, "GC Thread#N"] == {("gc",): 30}
    assert columns["alloc", "n1", 4701, None] == {("make", "byte[]"): 4096}
    assert len(columns) == 8 and ("alloc", "n1", 4702, None) not in columns
    for event in ("cpu", "alloc"):
        together: Counter[tuple[str, ...]] = Counter()
        for key, stacks in columns.items():
            together.update(stacks if key[0] == event else {})
        cluster = Profile.read(folder.cluster_dir / f"{event}.folded")
        assert together == stacks_of(cluster)


HOSTILE = "</script><script>alert(1)</script><!--\u202e\"'&"
# Characters that reverse the text are replaced.
SHOWN = HOSTILE.replace("\u202e", "\ufffd")


def test_names_may_be_anything(tmp_path):
    host = MadeHost(HOSTILE, {1: f"[{HOSTILE}];{HOSTILE} 5\n"})
    folder = make_run(tmp_path / "run", [host], selector=HOSTILE)
    with changed(folder) as run:
        process = run["hosts"][0]["recordings"][0]["process"]
        process["labels"] = {"__proto__": HOSTILE, HOSTILE: "x", "": "nothing", "ok": "\ud800\x00"}
    page = make_report(folder.path).page
    record = described(page)
    assert record["title"] == SHOWN and record["hosts"][0]["name"] == SHOWN
    assert record["processes"][0]["labels"] == {
        "__proto__": SHOWN,
        SHOWN: "x",
        "ok": "\ufffd\ufffd",
        "user": "app",
    }
    assert list(by_column(page).values()) == [{(HOSTILE,): 5}]
    html = page.read_text()
    assert html.count("</script>") == 4 and "<!--" not in html.split("<main>")[1].split('type="module"')[0]


def test_a_page_says_when_samples_were_taken(tmp_path):
    """Rows of threads and slices are those of their columns, counted from the page's start."""
    start, pool = 1_800_000_000_000_000, ("[pool-N]", "run")
    rows = [
        Row(pool, 0, slice=1),
        Row(pool, 60, 2, amounts=(2, 2_000_000)),
        Row(("[gc]", "mark"), 60, slice=2),
        Row(("[gc]", "mark"), 61),
    ]
    slices = [("stage 3.0", True), ("stage 3.0", False)]
    profile = Profile.from_bytes(timed_profile(rows, start=start + 500_000, slices=slices), "compact")
    data = PageData("made")
    event = data.event(PageEvent("cpu", "CPU time", "samples", "count", "CPU time"))
    data.add(event, PageProcess(data.host("n1"), 7), profile, start)
    data.summaries[event] = {}
    data.slice_labels = {"stage 3.0": "collect at App.scala:42"}
    data.lanes = [Lane("GC pauses", "gc", [(0.5, 0.52, "G1 Young")], process=0)]
    data.write(tmp_path / "page.html")
    record, block = described(tmp_path / "page.html"), carried(tmp_path / "page.html")
    assert record["time"] == {"start": start, "seconds": 0.5 + 62 * 0.02, "width": 20_000}
    assert record["slices"] == [
        {"name": "stage 3.0", "label": "collect at App.scala:42", "certain": certain}
        for certain in (True, False)
    ]
    assert record["lanes"] == [
        {"name": "GC pauses", "kind": "gc", "process": 0, "spans": [[0.5, 0.52, "G1 Young"]]}
    ]
    found = {}
    for column, stacks in enumerate(block.columns):
        told, times = record["columns"][column], block.times[column]
        assert (times.start, times.width) == (500_000, 20_000)
        buckets = {bucket: samples for (bucket, _, _), (samples, _) in times.rows.items()}
        found[record["threads"][told["thread"]], told["slice"]] = (sum(stacks.values()), buckets)
    assert found == {
        ("pool-N", 0): (1, {0: 1}),
        ("pool-N", None): (2, {60: 2}),
        ("gc", 1): (1, {60: 1}),
        ("gc", None): (1, {61: 1}),
    }
