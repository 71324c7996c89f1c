"""Metrics of hosts: their file, rates and derived columns by hand-computed truth, findings, exports."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hprofiler.analysis.machines import MetricFinding, host_figures, host_findings, job_cpus, worst
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.base.errors import RunFolderError
from hprofiler.model import HostRecord
from hprofiler.model.metrics import Metrics, Series, decode, encode, joined
from hprofiler.report import make_report
from hprofiler.report.machines import machines_record, machines_text
from hprofiler.runfolder.metrics_file import read_metrics, write_metrics
from tests.unit.command import exit_code
from tests.viewer.made_run import MadeHost, make_run, record_of

START = 1_800_000_000_000_000
SECOND = 1_000_000
FACTS = {"ticks_per_second": 100, "cpus": 2, "memory_total": 8 << 30}


def metrics(*series: Series, time: tuple[int, ...] = (START, SECOND, SECOND, SECOND)) -> Metrics:
    return Metrics(1.0, time, FACTS, series)


def counter(of: str, id: str, name: str, unit: str, *values: int | None) -> Series:
    return Series(of, id, name, "counter", unit, values)  # type: ignore[arg-type]


def gauge(of: str, id: str, name: str, unit: str, *values: int | None) -> Series:
    return Series(of, id, name, "gauge", unit, values)  # type: ignore[arg-type]


def test_a_file_of_metrics_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = metrics(
        counter("disk", "sda", "reads", "count", 10, 5, None), gauge("host", "", "runnable", "count", 2)
    )
    write_metrics(tmp_path / "metrics.json.gz", written)
    again = read_metrics(tmp_path / "metrics.json.gz")
    assert encode(again) == encode(written)
    assert list(again.series[0].values) == [10, 5, None]


def test_metrics_that_follow_each_other_are_one() -> None:
    first = metrics(
        counter("process", "7", "threads", "count", 5, 1),
        gauge("host", "", "runnable", "count", 3),
        time=(START, 1, 1),
    )
    then = metrics(gauge("host", "", "runnable", "count", 4, -2), time=(START + 10, 1))
    last = metrics(counter("process", "8", "threads", "count", 9, 1), time=(START + 20, 1))
    whole = joined([first, then, last])
    assert [*whole.time] == [START, 1, 1, 8, 1, 9, 1]
    read = HostMetrics(decode(encode(whole)))
    assert read.read("process", "7", "threads") == [5, 6, 6, None, None, None, None]
    assert read.read("host", "", "runnable") == [3, 3, 3, 4, 2, None, None]
    assert read.read("process", "8", "threads") == [None, None, None, None, None, 9, 10]


def test_of_too_many_readings_every_second_is_kept() -> None:
    def part(begin: int) -> Metrics:
        # Half of the readings have the time of threads, those that go.
        seldom = [value for second in range(begin, begin + 10_000, 2) for value in (None, 2)]
        times = (START + begin * SECOND, *[SECOND] * 9_999)
        every = gauge("host", "", "runnable", "count", begin, *[1] * 9_999)
        return metrics(every, counter("process", "7", "run_queue_ns", "ns", *seldom), time=times)

    whole = joined(part(begin) for begin in range(0, 40_000, 10_000))
    assert len(whole.time) == 20_000 and whole.every == 2 and {*whole.time[1:]} == {2 * SECOND}
    read = HostMetrics(whole)
    assert read.read("host", "", "runnable") == [*range(0, 40_000, 2)]
    assert read.read("process", "7", "run_queue_ns")[:4] == [None, 2, 4, 6]


@pytest.mark.parametrize("content", [b"", b"{}", gzip.compress(b"{"), gzip.compress(b"{}")[:-6]])
def test_a_damaged_file_is_an_error_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "metrics.json.gz"
    path.write_bytes(content)
    with pytest.raises(RunFolderError, match="cannot read") as caught:
        read_metrics(path)
    assert "metrics.json.gz" in caught.value.remedy


@pytest.mark.parametrize(
    "change",
    [
        {"time": [START, 0]},
        {"every": 0},
        {"facts": {"Cpus!": 1}},
        {"series": [{"values": [1 << 63]}]},
        {"series": [{"values": [1, 2, 3]}]},
        {"series": [{"id": "a\nb"}]},
        {"series": [{"name": "../x"}]},
        {"series": [{}, {}]},
        {"series": [{"id": str(one)} for one in range(101)], "time": [1] * 20_000},
    ],
    ids=lambda change: ", ".join(change),
)
def test_what_a_host_sends_is_bounded(change: dict[str, object]) -> None:
    one = msgspec.to_builtins(gauge("host", "", "runnable", "count", 1))
    good = {"every": 1.0, "time": [START, SECOND], "facts": FACTS, "series": [one]}
    decode(msgspec.json.encode(good))
    if isinstance(many := change.get("series"), list):
        change = {**change, "series": [{**one, **other} for other in many]}
    with pytest.raises(ValueError):
        decode(msgspec.json.encode({**good, **change}))


# Rates and derived columns


def column(host: HostMetrics, of: str, id: str, name: str) -> list[float | None]:
    return [None if one is None else round(one, 6) for one in host.column(of, id, name).values]


def test_a_rate_is_by_the_time_that_passed() -> None:
    late = (START, SECOND, 4 * SECOND, SECOND // 2)
    host = HostMetrics(metrics(counter("disk", "sda", "reads", "count", 100, 10, 20, 5), time=late))
    assert host.times == [START / 1e6, START / 1e6 + 1, START / 1e6 + 5, START / 1e6 + 5.5]
    assert host.rate("disk", "sda", "reads") == [None, 10, 5, 10]


def test_a_counter_that_went_backwards_and_a_gap_give_no_value() -> None:
    time = (START, *(SECOND,) * 5)
    back = counter("network", "eth0", "received_bytes", "bytes", 1000, 50, -900, 10, 10, 10)
    gap = counter("network", "eth0", "sent_bytes", "bytes", 1000, 50, None, 100, 10, 10)
    host = HostMetrics(metrics(back, gap, time=time))
    assert column(host, "network", "eth0", "received") == [None, 50, None, 10, 10, 10]
    # After the gap, differences are to the number before it; the rate begins anew.
    assert host.read("network", "eth0", "sent_bytes") == [1000, 1050, None, 1150, 1160, 1170]
    assert column(host, "network", "eth0", "sent") == [None, 50, None, None, 10, 10]


def test_a_short_series_goes_on_as_it_ended() -> None:
    host = HostMetrics(
        metrics(
            gauge("process", "7", "threads", "count", 5, 1),
            gauge("process", "8", "threads", "count", 5, None),
            counter("process", "7", "major_faults", "count", 3),
        )
    )
    assert column(host, "process", "7", "threads") == [5, 6, 6, 6]
    assert column(host, "process", "8", "threads") == [5, None, None, None]
    assert column(host, "process", "7", "major_faults") == [None, 0, 0, 0]
    assert column(host, "process", "9", "threads") == [None] * 4


def test_cpu_shares_are_of_all_modes_and_iowait_may_fall() -> None:
    def ticks(name: str, *values: int) -> Series:
        return counter("host", "", f"{name}_ticks", "ticks", *values)

    host = HostMetrics(
        metrics(
            ticks("user", 1000, 100, 50, 0),
            ticks("nice", 0),
            ticks("system", 500, 40, 30, 0),
            ticks("idle", 9000, 40, 100, 0),
            ticks("iowait", 10, 20, -5, 0),
            ticks("steal", 0, 0, 20, 0),
        )
    )
    # 200 ticks, then 200 without the iowait that fell, then none.
    assert column(host, "host", "", "cpu_user") == [None, 50, 25, None]
    assert column(host, "host", "", "cpu_system") == [None, 20, 15, None]
    assert column(host, "host", "", "cpu_iowait") == [None, 10, 0, None]
    assert column(host, "host", "", "cpu_steal") == [None, 0, 10, None]
    assert column(host, "host", "", "cpu_busy") == [None, 70, 50, None]
    assert column(host, "host", "", "cpu_irq") == [None] * 4


def test_the_busiest_and_the_idlest_core() -> None:
    host = HostMetrics(
        metrics(
            counter("cpu", "0", "busy_ticks", "ticks", 10, 100, 30, None),
            counter("cpu", "0", "idle_ticks", "ticks", 10, 0, 70, None),
            counter("cpu", "1", "busy_ticks", "ticks", 10, 20, 60, 50),
            counter("cpu", "1", "idle_ticks", "ticks", 10, 80, 40, 50),
        )
    )
    assert column(host, "host", "", "core_busiest") == [None, 100, 60, 50]
    assert column(host, "host", "", "core_idlest") == [None, 20, 30, 50]


def test_a_disk_waits_by_request_and_not_without_one() -> None:
    time = (START, 2 * SECOND, 2 * SECOND, 2 * SECOND)
    host = HostMetrics(
        metrics(
            counter("disk", "sda", "reads", "count", 0, 30, 0, 10),
            counter("disk", "sda", "writes", "count", 0, 10, 0, 0),
            counter("disk", "sda", "read_ms", "ms", 0, 300, 0, 50),
            counter("disk", "sda", "write_ms", "ms", 0, 500, 0, 0),
            counter("disk", "sda", "busy_ms", "ms", 0, 1000, 0, 100),
            counter("disk", "sda", "queue_ms", "ms", 0, 3000, 0, 50),
            counter("disk", "sda", "read_bytes", "bytes", 0, 4096, 0, 8192),
            time=time,
        )
    )
    assert column(host, "disk", "sda", "await") == [None, 20, None, 5]
    assert column(host, "disk", "sda", "operations") == [None, 20, 0, 5]
    assert column(host, "disk", "sda", "busy") == [None, 50, 0, 5]
    assert column(host, "disk", "sda", "queue") == [None, 1.5, 0, 0.025]
    assert column(host, "disk", "sda", "read") == [None, 2048, 0, 4096]
    names = [one.name for one in host.columns()]
    assert names == ["operations", "await", "queue", "reads", "writes", "busy", "read"]


def test_processes_jvms_and_cgroups() -> None:
    host = HostMetrics(
        metrics(
            counter("process", "7", "user_ticks", "ticks", 5, 150, 100, 0),
            counter("process", "7", "system_ticks", "ticks", 5, 20, 0, 0),
            counter("process", "7", "run_queue_ns", "ns", 5, 250_000_000, 0, 0),
            gauge("jvm", "7", "used_eden", "bytes", 100, 50, -120),
            gauge("jvm", "7", "used_old", "bytes", 1000, 0, 30),
            gauge("jvm", "7", "used_metaspace", "bytes", 7),
            counter("jvm", "7", "gc_young_us", "us", 5, 100_000, 0, 0),
            counter("jvm", "7", "gc_old_us", "us", 5, 0, 300_000, 0),
            counter("jvm", "7", "jit_us", "us", 5, 1_500_000, 0, 0),
            counter("cgroup", "/a", "periods", "count", 100, 10, 10, 0),
            counter("cgroup", "/a", "throttled_periods", "count", 50, 4, 0, 0),
            gauge("cgroup", "/a", "memory_used", "bytes", 100, 100),
            gauge("cgroup", "/a", "memory_limit", "bytes", 400),
        )
    )
    assert column(host, "process", "7", "cpu") == [None, 170, 100, 0]
    assert column(host, "process", "7", "run_queue") == [None, 25, 0, 0]
    assert column(host, "jvm", "7", "heap_used") == [1100, 1150, 1060, 1060]
    assert column(host, "jvm", "7", "gc") == [None, 10, 30, 0]
    assert column(host, "jvm", "7", "jit") == [None, 150, 0, 0]
    assert column(host, "cgroup", "/a", "periods_throttled") == [None, 40, 0, None]
    assert column(host, "cgroup", "/a", "memory_of_limit") == [25, 50, 50, 50]


def test_the_wait_of_threads_is_since_it_was_last_read() -> None:
    half = 500_000_000
    waited = counter("process", "7", "run_queue_ns", "ns", 0, None, None, 3 * half)
    host = HostMetrics(metrics(waited))
    assert column(host, "process", "7", "run_queue") == [None, None, None, 50]


def test_memory_swap_pressure_and_retransmits_of_a_host() -> None:
    host = HostMetrics(
        metrics(
            gauge("host", "", "memory_available", "bytes", 2 << 30),
            gauge("host", "", "swap_total", "bytes", 100),
            gauge("host", "", "swap_free", "bytes", 100, -30),
            counter("host", "", "io_pressure", "us", 5, 250_000, 0, 0),
            counter("host", "", "tcp_segments_sent", "count", 5, 200, 0, 0),
            counter("host", "", "tcp_retransmits", "count", 5, 3, 0, 0),
        )
    )
    assert column(host, "host", "", "memory_used") == [75] * 4
    assert column(host, "host", "", "swap_used") == [0, 30, 30, 30]
    assert column(host, "host", "", "io_pressure") == [None, 25, 0, 0]
    assert column(host, "host", "", "tcp_retransmitted") == [None, 1.5, None, None]


def test_no_reading_at_all() -> None:
    host = HostMetrics(metrics(gauge("host", "", "runnable", "count"), time=()))
    assert host.column("host", "", "core_busiest").values == []
    assert [*host.columns()] == [] and host_figures(host) == {}


# What stands out

THROTTLED = (
    counter("cgroup", "/a", "periods", "count", 100, 10, 10, 10),
    counter("cgroup", "/a", "throttled_periods", "count", 50, 6, 3, 6),
)
STOPPED = (counter("jvm", "7", "gc_young_us", "us", 0, 400_000, 0, 200_000),)


def found(*series: Series) -> list[str]:
    host = HostMetrics(metrics(*series))
    return [one.code for one in host_findings("n1", host_figures(host), FACTS)]


@pytest.mark.parametrize(
    ("series", "code"),
    [
        (THROTTLED, "cpu-throttled"),
        (STOPPED, "gc"),
        ((gauge("host", "", "runnable", "count", 5),), "run-queue"),
        ((counter("host", "", "major_faults", "count", 0, 1500, 1500, 1500),), "major-faults"),
        (
            (
                counter("host", "", "user_ticks", "ticks", 0, 80, 80, 80),
                counter("host", "", "steal_ticks", "ticks", 0, 20, 20, 20),
            ),
            "cpu-steal",
        ),
        (
            (
                counter("host", "", "tcp_segments_sent", "count", 0, 900, 50, 250),
                counter("host", "", "tcp_retransmits", "count", 0, 0, 20, 0),
            ),
            "retransmits",
        ),
        (
            (
                counter("disk", "sda", "reads", "count", 0, 1, 100, 0),
                counter("disk", "sda", "read_ms", "ms", 0, 10, 20_000, 0),
                counter("disk", "sda", "queue_ms", "ms", 0, 1500, 1500, 1500),
            ),
            "disk-await",
        ),
        (
            (
                counter("node", "1", "local_pages", "count", 0, 1500, 1500, 1500),
                counter("node", "1", "other_pages", "count", 0, 500, 500, 500),
            ),
            "numa-imbalance",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_threshold_is_reached_by_its_metric_alone(series: tuple[Series, ...], code: str) -> None:
    assert found(*series) == [code]


def test_figures_at_their_thresholds_are_not_worth_a_sentence() -> None:
    idle = (
        counter("cgroup", "/a", "periods", "count", 100, 10, 10, 10),
        counter("cgroup", "/a", "throttled_periods", "count", 50, 2, 2, 3),
        # All periods of idle seconds, but few of all.
        counter("cgroup", "/b", "periods", "count", 0, 1, 1, 98),
        counter("cgroup", "/b", "throttled_periods", "count", 0, 1, 1, 0),
        counter("jvm", "7", "gc_young_us", "us", 0, 100_000, 100_000, 100_000),
        gauge("host", "", "runnable", "count", 4),
        # Half of the segments again, but of few; a slow disk that nobody waits for.
        counter("host", "", "tcp_segments_sent", "count", 0, 10, 10, 10),
        counter("host", "", "tcp_retransmits", "count", 0, 5, 5, 5),
        counter("disk", "sda", "reads", "count", 0, 1, 0, 0),
        counter("disk", "sda", "read_ms", "ms", 0, 900, 0, 0),
        counter("disk", "sda", "queue_ms", "ms", 0, 900, 0, 0),
        # All pages for another node, but few.
        counter("node", "0", "local_pages", "count", 0, 0, 0, 0),
        counter("node", "0", "other_pages", "count", 0, 90, 90, 90),
    )
    assert found(*idle) == []


def test_the_worst_host_is_named_once_a_code() -> None:
    worst_first = worst(
        [
            MetricFinding("gc", "n1", 1.5, parameters={"mean": 15.0, "process": "pid 7"}),
            MetricFinding("gc", "n2", 3.0, parameters={"mean": 30.0, "process": "executor 3 (pid 8)"}),
            MetricFinding("cpu-steal", "n3", 2.0, parameters={"mean": 20.0}),
        ]
    )
    assert [one.text for one in worst_first] == [
        "n2: garbage collection paused executor 3 (pid 8) for 30 % of the time, and 1 more host is beyond "
        "the threshold.",
        "n3: the hypervisor took 20 % of the CPU time (steal).",
    ]


def test_a_run_reports_what_its_metrics_say(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [MadeHost(name, {7: "main;work 100"}) for name in ("n1", "n2", "n3")])
    write_metrics(run.metrics_path("n1"), metrics(*THROTTLED, gauge("host", "", "runnable", "count", 1)))
    write_metrics(run.metrics_path("n2"), metrics(*THROTTLED[:1], *STOPPED))
    run.metrics_path("n3").write_bytes(b"no gzip")
    analysis = make_report(run.path).analysis
    said = "n1: its CPU limit stopped /a in 50 % of its periods."
    assert [one.text for one in analysis.events[0].findings][1] == said
    assert [(one.host, one.code) for one in analysis.notes] == [("n3", "damaged-metrics")]
    lines = machines_text(analysis.machines).splitlines()
    assert lines[:5] == [
        "hosts:",
        f"  {said}",
        "    Raise or remove the CPU limit, or run fewer threads.",
        "  n2: garbage collection paused executor 7 (pid 7) for 20 % of the time.",
        "    Give it more heap, or find what allocates: -e alloc.",
    ]
    assert [line.split() for line in lines[5:]] == [
        ["host", "run", "queue", "throttled", "GC"],
        ["n1", "1.0", "50%"],
        ["n2", "20%"],
    ]
    record = machines_record(analysis.machines)
    assert record["hosts"]["n1"]["throttled"] == {"mean": 50.0, "most": 60.0, "unit": "%", "id": "/a"}  # type: ignore[index]
    assert [one["code"] for one in record["findings"]] == ["cpu-throttled", "gc"]  # type: ignore[attr-defined]


def test_an_overloaded_host_says_what_the_job_used() -> None:
    host = HostMetrics(
        metrics(
            gauge("host", "", "runnable", "count", 11),
            counter("process", "7", "user_ticks", "ticks", 0, 30, 30, 30),
            counter("process", "8", "user_ticks", "ticks", 0, 30, None, None),
        )
    )
    alike = {"recordings": [{"process": {"pid": pid}} for pid in (7, 8)]}
    cpus = job_cpus(host, recorded(alike), 3.0)
    (one,) = host_findings("n1", host_figures(host), FACTS, job_cpus=cpus)
    assert one.text == (
        "n1: the CPUs are overloaded: on average 11 threads ran or waited for 2 CPUs. "
        "The recorded processes used 0.40 CPUs."
    )


def test_what_processes_used_that_come_and_go_is_their_own_cpu_time() -> None:
    """Their counters begin at the first reading, which has what each used until then."""
    read = HostMetrics(metrics(counter("process", "7", "user_ticks", "ticks", 0, 1, None, None)))
    first = {"process": {"pid": 7}, "cpu_seconds": 1.5}
    later = {"process": {"pid": 8}, "cpu_seconds": 0.5, "joined": 6.0}
    gone = {"pid": 7, "gone": True}
    assert job_cpus(read, recorded({"recordings": [first, first, later]}), 10.0) == 0.2
    assert job_cpus(read, recorded({"recordings": [first], "outcomes": [gone]}), 10.0) == 0.15
    cut = {"pid": 8, "seconds": 1.0}
    assert job_cpus(read, recorded({"recordings": [first, later], "outcomes": [gone, cut]}), 10.0) is None


def recorded(host: dict[str, Any]) -> HostRecord:
    lines = [{"host": "n1", **one} for one in host.get("outcomes", [])]
    return record_of({"hosts": [{"name": "n1", **host, "outcomes": lines}]}).hosts[0]


def test_a_run_without_metrics_says_nothing_of_them(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [MadeHost("n1", {7: "main;work 100"})])
    write_metrics(run.metrics_path("n1"), metrics(gauge("host", "", "runnable", "count", 1)))
    assert machines_text(make_report(run.path).analysis.machines).startswith("hosts: nothing stands out")
    run.metrics_path("n1").unlink()
    machines = make_report(run.path).analysis.machines
    assert machines_text(machines) == ""
    assert machines_record(machines) == {"hosts": {}, "findings": [], "counters": {}}


# Files for other programs


@pytest.fixture
def stored(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / host / "metrics.json.gz" for host in ("n1", "n2")]
    for path in paths:
        write_metrics(
            path,
            metrics(
                counter("disk", "sda", "read_bytes", "bytes", 1000, 50, None, 5),
                counter("process", "7", "user_ticks", "ticks", 10, 50, 0, 0),
            ),
        )
    return paths


ROWS = [
    ["1800000001.0", "n1", "disk", "sda", "read", "B/s", "50.0"],
    ["1800000001.0", "n1", "process", "7", "cpu", "%", "50.0"],
    ["1800000002.0", "n1", "process", "7", "cpu", "%", "0.0"],
    ["1800000003.0", "n1", "process", "7", "cpu", "%", "0.0"],
]


def test_columns_are_written_as_csv_and_parquet(stored: list[Path], tmp_path: Path) -> None:
    assert exit_code(["convert", *stored, "-o", tmp_path / "x.csv"]) == 0
    with (tmp_path / "x.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["time", "host", "of", "id", "metric", "unit", "value"]
    assert rows == ROWS + [[row[0], "n2", *row[2:]] for row in ROWS]
    parquet = pytest.importorskip("pyarrow.parquet")
    assert exit_code(["convert", *stored, "-o", tmp_path / "x.parquet"]) == 0
    table = parquet.read_table(tmp_path / "x.parquet").to_pylist()
    assert [[str(one) for one in row.values()] for row in table] == rows


def test_readings_are_written_as_openmetrics_text(
    stored: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["convert", stored[0], "--to", "openmetrics", "-o", "-"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "# TYPE hprofiler_disk_read_bytes counter",
        'hprofiler_disk_read_bytes_total{host="n1",disk="sda"} 1000 1800000000.000',
        'hprofiler_disk_read_bytes_total{host="n1",disk="sda"} 1050 1800000001.000',
        'hprofiler_disk_read_bytes_total{host="n1",disk="sda"} 1055 1800000003.000',
        "# TYPE hprofiler_process_user_seconds counter",
        'hprofiler_process_user_seconds_total{host="n1",pid="7"} 0.1 1800000000.000',
        'hprofiler_process_user_seconds_total{host="n1",pid="7"} 0.6 1800000001.000',
        'hprofiler_process_user_seconds_total{host="n1",pid="7"} 0.6 1800000002.000',
        'hprofiler_process_user_seconds_total{host="n1",pid="7"} 0.6 1800000003.000',
        "# EOF",
    ]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-o", "x.svg"], "cannot write metrics to x.svg"),
        (["-o", "x.csv", "--to", "folded"], "cannot write metrics to x.csv"),
        (["-o", "x.csv", "--mean"], "--mean is for profiles"),
        (["-o", "-", "--to", "parquet"], "cannot write Parquet to stdout"),
        (["cpu.folded", "-o", "x.csv"], "metrics and profiles cannot be converted together"),
    ],
)
def test_what_metrics_cannot_be_is_an_error(
    stored: list[Path], words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["convert", stored[0], *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "txt", "parquet"])
def test_a_damaged_input_leaves_the_file_as_it_was(stored: list[Path], tmp_path: Path, ending: str) -> None:
    stored[1].write_bytes(b"no gzip")
    output = tmp_path / f"x.{ending}"
    output.write_text("before")
    assert exit_code(["convert", *stored, "-o", output]) != 0
    assert output.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [output.name]


def test_the_host_has_its_name_not_that_of_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "ops@node1:2222"
    run = make_run(tmp_path / "run", [MadeHost(name, {7: "main;work 100"})])
    write_metrics(run.metrics_path(name), metrics(gauge("host", "", "runnable", "count", 1)))
    assert run.host_dir(name).name != name
    for format, shown in (("openmetrics", f'host="{name}"'), ("csv", f",{name},")):
        assert exit_code(["convert", run.metrics_path(name), "--to", format, "-o", "-"]) == 0
        assert shown in capsys.readouterr().out
