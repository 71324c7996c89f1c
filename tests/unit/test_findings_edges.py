"""What no rule may say, and what none may fail by."""

from __future__ import annotations

import pytest

from hprofiler.report import make_report
from tests.unit.test_findings import JOB, of, run_of, texts
from tests.viewer.block import facts, summaries
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

TLS = f"{JOB};sun/security/ssl/SSLSocketInputRecord.decode_[j]"


@pytest.mark.parametrize("event", ["wall", "offcpu"])
def test_time_that_waits_below_a_library_is_not_said_to_be_its_work(tmp_path, event):
    """Below the library a thread waits for the other end: it does not encrypt all the time."""
    waits = f"{TLS};sun/nio/ch/SocketDispatcher.read0_[0];__libc_read 6000000000\n{JOB} 4000000000\n"
    folder = make_run(tmp_path / "run", [MadeHost("h", events={event: {1: waits}})], events=(event,))
    run = content_of(folder)
    run["hosts"][0]["recordings"][0]["samples"]["taken"] = 1000
    rewrite(folder, run)
    assert not [text for text in texts(of(folder, event)) if "goes to" in text]
    busy = f"{TLS} 600\n{JOB} 400\n"
    assert [text for text in texts(of(run_of(tmp_path, busy))) if "goes to" in text or "encrypt" in text]


def test_idle_threads_are_left_out_and_that_is_told_with_how_many_they_are(tmp_path):
    """Two processes are recorded, each with eight threads of a pool and one that waits for others."""
    getting = "java/util/concurrent/ThreadPoolExecutor.getTask_[j];jdk/internal/misc/Unsafe.park_[0]"
    stacks = f"{JOB};java/net/Socket.read_[j] 60000000000\n{getting} 480000000000\n"
    host = MadeHost("h", events={"wall": {1: stacks, 2: stacks}})
    folder = make_run(tmp_path / "run", [host], events=("wall",))
    answer, *others = texts(of(folder, "wall"))
    assert answer == "Too few samples for shares: the hottest method is Job.run."
    left = "left out of sentences and tables, not of the graph"
    assert f"Idle threads, 88.9 % of all wall-clock time, are {left}: about 16 of 18 threads." in others
    (event,) = make_report(folder.path).events
    assert (event.hottest[0].name, event.attributed) == ("com/acme/Job.run", 120_000_000_000)
    assert event.total == 1_080_000_000_000


def of_event(tmp_path, event, text):
    """The findings of an event with this folded text, and what the terminal is told of it."""
    folder = make_run(tmp_path / "run", [MadeHost("h", events={event: {1: text}})], events=(event,))
    return texts(of(folder, event)), make_report(folder.path)


def test_off_cpu_time_is_told_by_kind_of_wait(tmp_path):
    stacks = {"sleep": 3, "lock": 5, "idle pool thread": 92}
    text = "".join(f"[worker];[{kind}];{JOB};com/acme/Job.m_[j] {n}000000000\n" for kind, n in stacks.items())
    found, report = of_event(tmp_path, "offcpu", text)
    assert found[1] == "By kind of wait besides idle threads: [lock] 62.5 %, [sleep] 37.5 %."
    (event,) = report.events
    assert event.share_of == "off-CPU time besides idle threads" and event.attributed < event.total
    page = report.page.read_text()
    assert "Shares are of off-CPU time besides idle threads; the graph has all." in page
    assert "[lock] 62.5\u202f%" in page


def test_calls_are_told_by_who_makes_them(tmp_path):
    calls = f"{JOB};com/acme/Job.load_[j];com/acme/Row.parse_[j]"
    found, report = of_event(
        tmp_path, "com.acme.Row.parse", f"{calls} 700\n{JOB};com/acme/Row.parse_[j] 300\n"
    )
    assert found[0] == "70.0 % of the calls of com.acme.Row.parse come from Job.load."
    (summary,) = summaries(report.page).values()
    assert {"text": "1,000 calls", "partial": False} in summary["chips"]
    assert summary["hottest"]["lead"].startswith("Self counts the calls that a method makes itself")
    assert facts(report.page)["Asked for"] == "com.acme.Row.parse for 60 s, engine auto"
    few, _ = of_event(tmp_path / "few", "com.acme.Row.parse", f"{calls} 3\n")
    assert few == [
        "Too few calls for shares: the hottest caller is Job.load.",
        "Only 3 calls were recorded: shares may be off by 58 points. Record longer (-t).",
    ]


def test_the_profilers_own_work_leads_nothing(tmp_path):
    own = f"{JOB};Profiler::crashHandler"
    found, report = of_event(tmp_path, "page-faults", f"{own} 70\n{JOB};com/acme/Job.m_[j] 30\n")
    assert found[0] == "100 % of page-faults besides the profiler’s own work happen in Job.m."
    assert (
        "The profiler’s own work, 70.0 % of all page-faults, is left out of sentences and tables, not of the"
        " graph." in found
    )
    assert [one.name for one in report.events[0].hottest] == ["com/acme/Job.m"]
    alone, _ = of_event(tmp_path / "alone", "page-faults", f"{own} 1\n")
    assert alone[0] == "Nothing but the profiler’s own work was sampled."
    assert alone[1].startswith("Only 1 event was recorded")
    waits = "[worker];java/util/concurrent/ThreadPoolExecutor.getTask_[j]"
    mostly_idle, _ = of_event(tmp_path / "idle", "wall", f"{own} 1\n{waits} 99\n")
    assert mostly_idle[0] == "Nothing but the profiler’s own work was sampled besides idle threads."
