"""The charts and figures of the page's view *Machines*, by made-up series."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hprofiler.model.metrics import Metrics, Series
from hprofiler.report import make_report
from hprofiler.report.machines import machines_record
from hprofiler.runfolder.metrics_file import write_metrics
from tests.timed_profile import Row, timed_profile
from tests.unit.test_metrics import FACTS, SECOND, START, counter, gauge
from tests.viewer.block import described
from tests.viewer.made_run import DURATION, MadeHost, make_run


def charts(tmp_path: Path, *series: Series, first: int = 0, readings: int = 7) -> dict[str, Any]:
    """The charts by title, of a run that begins at START; the first reading is later by `first`."""
    host = MadeHost("n1", {7: timed_profile([Row(("a",), 0)], start=START)})
    run = make_run(tmp_path / "run", [host])
    time = (START + first, *[SECOND] * (readings - 1))
    write_metrics(run.metrics_path("n1"), Metrics(1.0, time, FACTS, series))
    report = make_report(run.path)
    page = described(report.page)["machines"]
    shown = machines_record(report.analysis.machines)["hosts"]
    return {one["title"]: one for one in page["charts"]} | {"json": shown["n1"], "page": page}  # type: ignore[index]


@pytest.mark.parametrize(
    ("first", "paused"),
    [
        # The collector ran from 2.0 to 2.64 s.
        (0, (0, 0, 640_000, 0, 0, 0)),
        (300_000, (0, 300_000, 340_000, 0, 0, 0)),
        (800_000, (0, 640_000, 0, 0, 0, 0)),
    ],
)
def test_a_peak_is_in_the_second_in_which_it_was(tmp_path: Path, first: int, paused: tuple[int, ...]) -> None:
    found = charts(tmp_path, counter("jvm", "7", "gc_young_us", "us", 5, *paused), first=first)
    values = found["GC, worst JVM"]["values"][0]
    assert max(range(6), key=lambda second: values[second] or 0) == 2
    assert values[3] == 0


def test_a_level_is_in_the_second_in_which_it_was_read(tmp_path: Path) -> None:
    found = charts(tmp_path, gauge("host", "", "runnable", "count", 1, 0, 27, -27), first=50_000)
    assert found["run queue"]["values"][0][:6] == [1, 1, 28, 1, 1, 1]


def test_a_level_after_a_pause_of_readings_is_not_spread(tmp_path: Path) -> None:
    run = charts(tmp_path, gauge("host", "", "runnable", "count", 1, 1, None, None, 7, -8, 0))
    assert run["run queue"]["values"][0][:6] == [1, 2, None, None, 9, 1]


def test_readings_leave_no_gap_and_the_last_one_is_in_the_last_bucket(tmp_path: Path) -> None:
    """The end of the run is that of the last bucket: a reading at that moment has no bucket of its own."""
    ticks = [
        counter("host", "", "user_ticks", "ticks", 0, *[50] * DURATION),
        counter("host", "", "idle_ticks", "ticks", 0, *[50] * DURATION),
        gauge("host", "", "runnable", "count", *[1] + [0] * (DURATION - 1), 90),
    ]
    found = charts(tmp_path, *ticks, first=2000, readings=DURATION + 1)
    assert found["CPU"]["values"][0] == [50] * DURATION
    assert found["run queue"]["values"][0] == [1] * (DURATION - 1) + [91]


def test_means_are_those_of_the_terminal_and_json(tmp_path: Path) -> None:
    """100 requests of 200 ms in one second, a request of 10 ms in each other one; traffic of two disks."""
    found = charts(
        tmp_path,
        counter("disk", "vda", "reads", "count", 0, 100, 1, 1, 1, 1, 1),
        counter("disk", "vda", "read_ms", "ms", 0, 20_000, 10, 10, 10, 10, 10),
        counter("disk", "vda", "queue_ms", "ms", 0, *[4000] * 6),
        counter("disk", "vda", "read_bytes", "bytes", 0, *[4000] * 6),
        counter("disk", "vdb", "read_bytes", "bytes", 0, *[1000] * 6),
        counter("jvm", "7", "gc_young_us", "us", 0, 600_000, 0, 0, 0, 0, 0),
        counter("jvm", "8", "gc_young_us", "us", 0, *[50_000] * 6),
    )
    for title, name in (("disk await, worst disk", "disk_await"), ("GC, worst JVM", "gc")):
        figure = found["json"][name]
        assert found[title]["figures"] == [[round(figure["mean"], 2), round(figure["most"], 2)]]
    assert found["disk await, worst disk"]["figures"] == [[190.95, 200]]
    assert found["GC, worst JVM"]["figures"] == [[10, 60]]
    assert found["disk read and written, sum of disks"]["figures"] == [[5000, 5000]]
    assert found["json"]["disk_read"]["mean"] == 4000


def test_instructions_per_cycle_are_those_of_the_table_of_counters(tmp_path: Path) -> None:
    found = charts(
        tmp_path,
        gauge("host", "", "runnable", "count", 1),
        counter("counters", "7:ipc", "enabled_ns", "ns", 0, *[5] * 6),
        counter("counters", "7:ipc", "running_ns", "ns", 0, *[5] * 6),
        counter("counters", "7:ipc", "cycles", "count", 0, 1000, 10, 10, 10, 10, 10),
        counter("counters", "7:ipc", "instructions", "count", 0, 500, 20, 20, 20, 20, 20),
    )
    assert found["instructions per cycle"]["figures"] == [[0.57, 2]]
    assert found["page"]["counters"]["rows"][0][2] == "0.57"


def test_the_page_says_which_counters_hosts_lack(tmp_path: Path) -> None:
    hosts = [MadeHost(name, {7: timed_profile([Row(("a",), 0)], start=START)}) for name in ("n1", "n2", "n3")]
    lacking = {"status": "degraded", "stage": "record", "code": "counter-missing", "pid": None}
    for one in hosts[1:]:
        reason = "this machine has no hardware counters: ipc cannot be counted"
        one.outcomes.append({"host": one.name, **lacking, "reason": reason, "parameters": {"events": "ipc"}})
    run = make_run(tmp_path / "run", hosts)
    for one in hosts:
        level = gauge("host", "", "runnable", "count", 1)
        write_metrics(run.metrics_path(one.name), Metrics(1.0, (START, SECOND), FACTS, (level,)))
    assert described(make_report(run.path).page)["machines"]["not_counted"] == [
        "n2 and 1 more: this machine has no hardware counters: ipc cannot be counted."
    ]


def test_processes_have_a_table_and_what_is_always_zero_is_named(tmp_path: Path) -> None:
    hertz = FACTS["ticks_per_second"]
    found = charts(
        tmp_path,
        counter("process", "7", "user_ticks", "ticks", 0, *[hertz // 2] * 6),
        counter("process", "7", "system_ticks", "ticks", 0, *[0] * 6),
        counter("process", "8", "user_ticks", "ticks", 0, *[hertz] * 3, *[2 * hertz] * 3),
        counter("process", "8", "system_ticks", "ticks", 0, *[0] * 6),
        gauge("process", "8", "memory_bytes", "bytes", 100, *[0] * 6),
        counter("jvm", "7", "gc_young_us", "us", 0, *[0] * 6),
    )["page"]
    assert found["always_zero"] == ["GC, worst JVM"]
    table = found["processes"]
    assert [one["label"] for one in table["columns"]] == ["CPU", "CPU, most", "memory", "GC"]
    rows = [(one["process"], one["values"]) for one in table["rows"]]
    assert rows == [(None, [150, 200, 100, None]), (0, [50, 50, None, 0])]  # the first one was not recorded
