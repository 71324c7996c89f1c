"""Counters of processors: ratios by hand-computed truth, scaling, what was not counted, table and JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler.analysis.counters import BANDWIDTH, Group, added, low_ipc, ratios, totals, with_slots
from hprofiler.analysis.machines import Machines
from hprofiler.analysis.metrics import HostMetrics
from hprofiler.cli.options.sampling import PRESETS
from hprofiler.model.metrics import Metrics, Series
from hprofiler.report import make_report
from hprofiler.report.counters import counter_rows, counters_record, counters_text
from hprofiler.runfolder.metrics_file import write_metrics
from tests.unit.command import exit_code
from tests.unit.test_metrics import SECOND, START, column
from tests.viewer.made_run import MadeHost, make_run

HALF = SECOND // 2 * 1000
"""Half a second in nanoseconds."""


def group(owner: str, name: str, running: tuple[int, ...], **counts: tuple[int, ...]) -> list[Series]:
    """A group that was to count all the time, with the increases of its counters, the first from 0."""
    times = {"enabled_ns": (2 * HALF,) * len(running), "running_ns": running}
    return [
        Series(
            "counters",
            f"{owner}:{name}",
            one,
            "counter",
            "ns" if one.endswith("_ns") else "count",
            (0, *values),
        )
        for one, values in {**times, **counts}.items()
    ]


def host(*groups: list[Series], **facts: int) -> HostMetrics:
    series = tuple(one for series in groups for one in series)
    return HostMetrics(Metrics(1.0, (START, SECOND, SECOND), {"cpus": 2, **facts}, series))


IPC = group(
    "7", "ipc", (2 * HALF, HALF), cycles=(1000, 400), instructions=(500, 800), stalls_backend=(100, 4)
)


def test_ratios_are_of_the_same_moments_and_counts_are_scaled() -> None:
    metrics = host(IPC)
    # In the second second half of the time was counted: the counts are doubled, ratios are as they were.
    assert column(metrics, "counters", "7:ipc", "cycles") == [None, 1000, 800]
    assert column(metrics, "counters", "7:ipc", "counted") == [None, 100, 50]
    assert column(metrics, "process", "7", "ipc") == [None, 0.5, 2]
    assert column(metrics, "process", "7", "stalls_backend_pkc") == [None, 100, 10]
    assert column(metrics, "process", "7", "retiring") == [None] * 3
    counters = metrics.counters()
    assert counters is not None and counters.seconds == 2
    # Of the whole: 1400 cycles in three quarters of the time.
    assert totals(counters.processes["7"])["cycles"] == (pytest.approx(1400 * 4 / 3), 0.75)
    assert ratios(counters.all)["ipc"] == pytest.approx(1300 / 1400)


def test_a_ratio_needs_both_of_its_counters_in_one_group() -> None:
    apart = host(
        group("7", "a", (1, 1), instructions=(10, 10)),
        group("7", "b", (1, 1), cycles=(10, 10), branch_misses=(1, 1)),
    )
    assert column(apart, "process", "7", "ipc") == [None] * 3
    assert column(apart, "process", "7", "branch_mpki") == [None] * 3
    counters = apart.counters()
    assert counters is not None and not ratios(counters.all)


def test_what_was_never_counted_is_not_zero_but_a_process_that_slept_is() -> None:
    never = host(group("7", "ipc", (0, 0), cycles=(0, 0), instructions=(0, 0)))
    assert column(never, "counters", "7:ipc", "cycles") == [None] * 3
    assert never.counters() is None
    slept = [
        Series("counters", "7:ipc", name, "counter", "count", (5,))
        for name in ("enabled_ns", "running_ns", "cycles", "instructions")
    ]
    assert column(host(slept), "counters", "7:ipc", "cycles") == [None, 0, 0]
    assert column(host(slept), "process", "7", "ipc") == [None] * 3


def test_a_hosts_ratios_are_of_the_sums_of_its_processes() -> None:
    other = group("8", "ipc", (2 * HALF, 2 * HALF), cycles=(3000, 0), instructions=(3500, 0))
    metrics = host(IPC, other)
    assert column(metrics, "host", "", "ipc") == [None, 1, 2]
    counters = metrics.counters()
    assert counters is not None
    assert counters.all["ipc"].counts["cycles"] == pytest.approx(3000 + 1400 * 4 / 3)


def shares(slots: int = 0, **counts: int) -> dict[str, int]:
    found = ratios({"topdown": Group(with_slots(counts, slots), 1, 1)})
    return {name: round(value) for name, value in found.items() if name != "ipc"}


def test_top_down_of_ice_lake_and_later() -> None:
    found = shares(
        slots=0, topdown_retiring=40, topdown_bad_spec=10, topdown_fe_bound=20, topdown_be_bound=30
    )
    assert found == {"retiring": 40, "bad_speculation": 10, "frontend_bound": 20, "backend_bound": 30}


def test_top_down_of_zen_4_and_later() -> None:
    counts = {"idle_slots_frontend": 120, "idle_slots_backend": 180, "idle_slots_smt": 30, "retired_ops": 210}
    found = shares(slots=6, cycles=100, **counts)
    # 600 slots: 60 are of none of these.
    want = {
        "retiring": 35,
        "bad_speculation": 10,
        "frontend_bound": 20,
        "backend_bound": 30,
        "smt_contention": 5,
    }
    assert found == want
    assert shares(slots=0, cycles=100, **counts) == {}, "unknown without the slots of a cycle"


def test_top_down_of_neoverse_v1_and_later() -> None:
    counts = {"idle_slots_frontend": 160, "idle_slots_backend": 240, "retired_ops": 300, "issued_ops": 400}
    found = shares(slots=8, cycles=100, **counts)
    # 800 slots, half of them used, three quarters of these for what retired.
    assert found == {"retiring": 38, "bad_speculation": 12, "frontend_bound": 20, "backend_bound": 30}


def bytes_of(name: str, *values: int) -> Series:
    return Series("counters", "machine:memory", name, "counter", "bytes", (0, *values))


def test_traffic_of_memory_is_the_machines_or_an_estimate_that_is_called_one() -> None:
    controllers = [bytes_of("memory_read_sch0_bytes", 100, 100), bytes_of("memory_read_sch1_bytes", 20, 20)]
    metrics = host([*controllers, bytes_of("memory_written_bytes", 40, 40)])
    assert column(metrics, "host", "", "memory_traffic") == [None, 160, 160]
    assert column(metrics, "host", "", "memory_traffic_read") == [None, 120, 120]
    counters = metrics.counters()
    assert counters is not None and counters.memory == {"read": 120, "written": 40}
    assert (
        counters.memory_of_peak is None and column(metrics, "host", "", "memory_traffic_of_peak")[1] is None
    )
    metrics.facts = {**metrics.facts, BANDWIDTH: 200}
    assert column(metrics, "host", "", "memory_traffic_of_peak") == [None, 80, 80]
    counters = metrics.counters()
    assert counters is not None and "80%" in counters_text(Machines(counters={"n1": counters}))
    resctrl = host([bytes_of("memory_bytes", 10, 30)]).counters()
    assert resctrl is not None and resctrl.memory == {"total": 20}
    misses = host(group("7", "memory", (1, 1), instructions=(1, 1), llc_misses=(1, 3)))
    assert column(misses, "host", "", "memory_traffic_estimate")[0] is None
    counters = host(group("7", "memory", (2 * HALF, 2 * HALF), llc_misses=(1, 3))).counters()
    assert counters is not None and counters.memory == {"estimate": 64 * 4 / 2}


def test_energy_of_the_machine_is_shown_as_power() -> None:
    energy = [
        Series("counters", "machine:energy", name, "counter", "count", (0, *values))
        for name, values in (("energy_sockets_uj", (90_000_000, 110_000_000)), ("energy_memory_uj", (5, 5)))
    ]
    metrics = host(energy)
    assert column(metrics, "host", "", "power") == [None, 90.000005, 110.000005]
    counters = metrics.counters()
    assert counters is not None and counters.watts == pytest.approx(100.000005)
    assert "100 W" in counters_text(Machines(counters={"n1": counters}))


def test_the_table_has_all_hosts_and_each_process(tmp_path: Path) -> None:
    software = group(
        "7", "software", (2 * HALF,) * 2, task_clock_ns=(HALF, HALF), context_switches=(2000, 4000)
    )
    one, other = (
        host(IPC, software, group("8", "ipc", (1, 1), cycles=(1, 1), instructions=(1, 1))).counters(),
        host(group("9", "ipc", (1, 1), cycles=(9, 9), instructions=(9, 9))),
    )
    two = other.counters()
    assert one is not None and two is not None
    machines = Machines(counters={"n1": one, "n2": two}, labels={("n1", "7"): "executor 3"})
    rows = counter_rows(machines)
    # A host with one process has one row.
    assert [(row.host, row.process) for row in rows][1:] == [
        ("n1", ""),
        ("n1", "executor 3 (pid 7)"),
        ("n1", "pid 8"),
        ("n2", "pid 9"),
    ]
    lines = counters_text(machines).splitlines()
    assert " ".join(lines[1].split()) == "host process CPUs IPC backend stalls/1k switches/s counted"
    assert lines[4].split() == ["executor", "3", "(pid", "7)", "0.50", "0.93", "74", "3.0k", "75%"]
    assert lines[6].split()[:4] == ["n2", "pid", "9", "1.00"]
    record = counters_record(machines)["n1"]
    assert record["processes"]["7"]["counts"]["context_switches"]["per_second"] == 3000
    assert counters_text(Machines()) == ""


def test_a_run_shows_its_counters_in_text_and_page(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [MadeHost("n1", {7: "main;work 100"})])
    write_metrics(run.metrics_path("n1"), Metrics(1.0, (START, SECOND, SECOND), {"cpus": 2}, tuple(IPC)))
    analysis = make_report(run.path).analysis
    assert "0.93" in counters_text(analysis.machines)
    assert list(analysis.machines.counters["n1"].processes) == ["7"]


def test_groups_of_hosts_that_differ_are_added_by_name() -> None:
    all_ = added(
        [{"a": Group({"x": 1.0}, 2, 1)}, {"a": Group({"x": 2.0, "y": 5.0}, 2, 2), "b": Group({}, 1, 1)}]
    )
    assert all_ == {"a": Group({"x": 3.0, "y": 5.0}, 4, 3), "b": Group({}, 1, 1)}


def test_a_host_with_a_low_ipc_is_named_beside_the_others() -> None:
    usual = {"n1": 1.1, "n2": 1.15, "n3": 1.05, "n4": 1.12}
    ((host, ipc, others, times),) = low_ipc({**usual, "n7": 0.4})
    assert (host, ipc, others) == ("n7", 0.4, 1.1) and times > 1
    assert low_ipc(usual) == []
    assert low_ipc({"n1": 1.1, "n2": 1.1, "n7": 0.4}) == [], "too few to say who is unlike the others"
    assert low_ipc({**usual, "n7": 2.5}) == [], "more is no problem"
    equal = dict.fromkeys(("n1", "n2", "n3", "n4"), 1.0)
    assert [one[0] for one in low_ipc({**equal, "n5": 0.8})] == []
    assert [one[0] for one in low_ipc({**equal, "n5": 0.7})] == ["n5"]


def test_a_low_ipc_is_a_finding_of_the_run(tmp_path: Path) -> None:
    names = ("n1", "n2", "n3", "n4")
    run = make_run(tmp_path / "run", [MadeHost(name, {7: "main;work 100"}) for name in names])
    for name in names:
        slow = group("7", "ipc", (2 * HALF,), cycles=(1000,), instructions=(1100 if name != "n3" else 400,))
        write_metrics(run.metrics_path(name), Metrics(1.0, (START, SECOND), {"cpus": 2}, tuple(slow)))
    machines = make_report(run.path).analysis.machines
    said = "n3: 0.40 instructions per cycle, the median of the hosts is 1.10."
    assert [(one.code, one.text) for one in machines.findings] == [("low-ipc", said)]
    assert "n3" in counters_text(machines).splitlines()[3], "the host with the lowest comes first"


# The option


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ([], ()),
        (["--counters"], PRESETS),
        (["--counters", "ipc,cpu/mem-loads,ipc"], ("ipc", "cpu/mem-loads")),
    ],
)
def test_counters_are_presets_and_events(words: list[str], want: tuple[str, ...]) -> None:
    from hprofiler.cli.options import objects
    from hprofiler.cli.options.parser import parse

    assert objects.sampling(parse(["run", "-j", "x", *words])).counters == want


@pytest.mark.parametrize(
    "words", [["--counters", "-x"], ["--counters", "a b"], ["--counters", "ipc", "--no-metrics"]]
)
def test_counters_that_are_refused(words: list[str]) -> None:
    assert exit_code(["run", "-j", "x", *words]) == 2
