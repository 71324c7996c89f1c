"""The table of `hprofiler top`."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs
from rich.console import Console

from hprofiler._flamegraph import Profile
from hprofiler.app.glance import Glance
from hprofiler.cli.terminal.top_methods import methods_of
from hprofiler.cli.terminal.top_table import TopTable
from hprofiler.collect.watching import HostReading
from hprofiler.model import Host
from hprofiler.model.metrics import Metrics, Series


def busy() -> HostReading:
    """A CPU of 100 %, a queue of 128 and 236 KiB a second from a disk."""
    series = (
        Series("host", "", "user_ticks", "counter", "ticks", (0, 200)),
        Series("host", "", "idle_ticks", "counter", "ticks", (0, 0)),
        Series("host", "", "runnable", "gauge", "count", (128, 0)),
        Series("disk", "sda", "read_bytes", "counter", "bytes", (0, 236 << 10)),
    )
    facts = {"ticks_per_second": 100, "cpus": 2, "memory_total": 8 << 30}
    host = Host("a-host-with-a-long-name.example.com", "127.0.0.1", None, 22)
    return HostReading(host, (), Metrics(1.0, (1_000_000, 1_000_000), facts, series))


def lines(width: int, name: str = "a-host-with-a-long-name.example.com") -> list[str]:
    reading = replace(busy(), host=Host(name, "127.0.0.1"))
    table = TopTable([name])
    table.add(reading)
    console = Console(width=width, height=20)
    with console.capture() as captured:
        console.print(table.table(console.width, console.height))
    return [line.rstrip() for line in captured.get().splitlines() if line.strip()]


def test_a_wide_terminal_shows_all_columns() -> None:
    heads, row = lines(200)
    assert heads.split("  ")[0] == "host" and all(head in heads for head in TopTable([]).heads)
    assert "a-host-with-a-long-name.example.com" in row and "236 KiB/s" in row


def test_letters_of_two_columns_are_not_cut() -> None:
    assert any("計算機番号一号" in row for row in lines(200, "計算機番号一号"))


def test_a_narrow_terminal_has_fewer_columns_and_whole_figures() -> None:
    heads, row = lines(100)
    assert "sent" not in heads and "job CPU" in heads
    assert "100%" in row and "128" in row and "a-host-with-a-long-name.example.com" in row
    heads, row = lines(60)
    assert heads.split() == ["host", "CPU", "run", "queue", "GC", "job", "CPU", "processes"]
    assert "100%" in row and "128" in row and "a-host-" in row and "…" in row


def test_instructions_per_cycle_are_those_of_the_last_second() -> None:
    reading = busy()
    counted = (
        Series("counters", "7:ipc", name, "counter", "count", (0, value))
        for name, value in (("cycles", 1000), ("instructions", 1500), ("enabled_ns", 9), ("running_ns", 9))
    )
    table = TopTable([reading.host.name], with_ipc=True)
    table.add(
        replace(reading, metrics=structs.replace(reading.metrics, series=(*reading.metrics.series, *counted)))
    )
    assert "IPC" in table.heads and "1.50" in table.rows()[0]


def test_totals_of_methods_that_are_not_known() -> None:
    stubs = "Job.run_[j];Job.hash_[j];java/lang/String.getBytes_[i];md5 600\nJob.run_[j] 400\n"
    profile = Profile.from_bytes(stubs.encode(), "folded")
    rows = methods_of(Glance(profile, broken=False, callers_unsure=True))
    totals = {row.split()[-1]: row.split()[1] for row in rows[1:5]}
    assert totals == {
        "md5": "60.0%",
        "Job.run": "100%",
        "Job.hash": "60.0%",
        "java.lang.String.getBytes": "?",
    }
    assert rows[5].startswith("a total of ?")
    assert "?" not in "".join(methods_of(Glance(profile, broken=False, callers_unsure=False)))
    assert "total " not in "".join(methods_of(Glance(profile, broken=True, callers_unsure=True)))
