"""What is said of a dump: groups, locks, movement, the headline."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hprofiler._flamegraph import ThreadDumps
from hprofiler.analysis.dump import BUSY, DEADLOCK, DIFFERS, HOLDER, MOST, NOTHING, SILENT, UNMOVED, analyse
from hprofiler.cli import main
from hprofiler.model import Outcome, Status
from hprofiler.report.dump import make_dump_report
from tests.unit.command import ROOT
from tests.unit.dumps import Thread, folder, pool, task

FILES = ROOT / "tests" / "unit" / "thread_dumps"
FETCH = (
    "java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:435)",
    "org.apache.spark.storage.ShuffleBlockFetcherIterator.next(ShuffleBlockFetcherIterator.scala:800)",
)
RUN = ("com.acme.Job.compute(Job.java:7)",)
PARK = (
    "jdk.internal.misc.Unsafe.park(Native Method)",
    "java.util.concurrent.locks.LockSupport.park(LockSupport.java:341)",
)


def test_most_tasks_wait_in_one_method(tmp_path: Path) -> None:
    callers = ("com.acme.Join.next(Join.java:1)", "com.acme.Sort.next(Sort.java:2)")
    tasks = [task(number, (*PARK, *FETCH, callers[number % 2]), state="WAITING") for number in range(8)]
    made = folder(
        tmp_path / "d",
        {"executor 1": [[*tasks[:4], *pool(3)]], "executor 2": [[*tasks[4:], task(9, RUN), *pool(2)]]},
    )
    found = analyse(made)
    assert found.headline.code == MOST
    most = found.most
    assert most is not None
    assert (most.threads, most.processes, most.tasks[0].stage, most.tasks[0].tasks) == (8, 2, "14.0", 8)
    assert most.wait.method == "org/apache/spark/storage/ShuffleBlockFetcherIterator.next"
    first, second, third, *rest = found.groups
    assert {first.threads, second.threads} == {4}
    assert (third.wait.code, third.threads) == ("running", 1)
    assert [one.idle for one in rest] == [True, True]  # the pool and the JVM's own
    assert (found.threads, found.idle, found.tasks) == (16, 7, 9)
    assert make_dump_report(made.path).text.splitlines()[0] == (
        "8 of 9 tasks of stage 14.0 are waiting for a queue in "
        "org.apache.spark.storage.ShuffleBlockFetcherIterator.next"
    )


def test_who_holds_and_waits_is_followed_to_the_end(tmp_path: Path) -> None:
    """B waits for A's monitor, C and D for B's: A holds up all of them."""
    threads = [
        Thread("A", ("com.acme.Db.read(Db.java:1)",), "RUNNABLE", held=1),
        Thread("B", ("com.acme.Pool.get(Pool.java:2)",), "BLOCKED", held=2, wanted=1),
        Thread("C", ("com.acme.Pool.put(Pool.java:3)",), "BLOCKED", wanted=2),
        Thread("D", ("com.acme.Pool.put(Pool.java:3)",), "BLOCKED", wanted=2),
    ]
    made = folder(tmp_path / "d", {"app": [threads]})
    found = analyse(made)
    assert found.headline.code == HOLDER
    [one] = found.holders
    assert (one.holder, one.waiting, one.waiters) == ("A", 3, ("B", "C", "D"))
    assert one.wait is not None
    assert one.wait.method == "com/acme/Db.read"


def test_a_deadlock_comes_before_all_else(tmp_path: Path) -> None:
    enter = ("com.acme.Db.lock(Db.java:1)",)
    threads = [
        Thread("A", enter, "BLOCKED", held=1, wanted=2),
        Thread("B", enter, "BLOCKED", held=2, wanted=3),
        Thread("C", enter, "BLOCKED", held=3, wanted=1),
        Thread("D", enter, "BLOCKED", wanted=1),
        Thread("E", enter, "BLOCKED", wanted=9),
        Thread("F", enter, "BLOCKED", wanted=9),
        Thread("G", enter, "BLOCKED", wanted=9),
    ]
    found = analyse(folder(tmp_path / "d", {"app": [threads]}))
    assert found.headline.code == DEADLOCK
    [one] = found.deadlocks
    assert {thread.name for thread in one.threads} == {"A", "B", "C"}
    assert one.waiting == 1
    [unknown] = found.holders
    assert (unknown.holder, unknown.waiting) == (None, 3)


LOCKS = "java.util.concurrent.locks."


@pytest.mark.parametrize(
    ("blocker", "held"),
    [
        (f"{LOCKS}ReentrantLock$NonfairSync", True),
        (f"{LOCKS}ReentrantReadWriteLock$FairSync", True),
        (f"{LOCKS}StampedLock", True),
        (f"{LOCKS}AbstractQueuedSynchronizer$ConditionObject", False),
        ("java.util.concurrent.CountDownLatch$Sync", False),
        ("java.util.concurrent.Semaphore$NonfairSync", False),
    ],
)
def test_only_locks_have_an_owner(tmp_path: Path, blocker: str, held: bool) -> None:
    """Who waits for a latch or a semaphore waits for a signal, which any thread may give."""
    waits = [Thread(f"w-{number}", (*PARK, *RUN), "WAITING", blocker=blocker) for number in range(4)]
    made = folder(tmp_path / "d", {"app": [waits]})
    found = analyse(made)
    assert [one.waiting for one in found.holders] == ([4] if held else [])
    assert found.headline.code == (HOLDER if held else MOST)


def test_a_name_that_is_cut_says_so(tmp_path: Path) -> None:
    made = folder(tmp_path / "d", {"app": [[Thread("x" * 80, RUN)]]})
    assert f"1 × {'x' * 55}…  runs in" in make_dump_report(made.path).text


def test_what_did_not_move_is_told_from_a_busy_loop(tmp_path: Path) -> None:
    def look(line: int) -> list[Thread]:
        return [
            task(1, (*PARK, *FETCH), state="WAITING", number=1),
            task(2, ("com.acme.Job.spin(Job.java:1)",), number=2),
            task(3, (f"com.acme.Job.read(Job.java:{line})",), number=3),
            *pool(1),
        ]

    cpu = {"executor 1": [{1: 1.0, 2: 1.0, 3: 1.0}, {1: 1.0, 2: 2.9, 3: 1.05}]}
    found = analyse(folder(tmp_path / "d", {"executor 1": [look(5), look(6)]}, cpu))
    [still] = found.unmoved
    assert (still.wait.method, still.tasks, still.seconds) == (
        "org/apache/spark/storage/ShuffleBlockFetcherIterator.next",
        1,
        2.0,
    )
    assert still.cpu_seconds == pytest.approx(0.0)
    [busy] = found.busy
    assert (busy.wait.method, busy.cpu_seconds) == ("com/acme/Job.spin", pytest.approx(1.9))
    assert found.headline.code == UNMOVED


NAP = ("java.lang.Thread.sleep(Native Method)", "com.acme.T.nap(T.java:1)")
LATCH = (
    *PARK,
    "java.util.concurrent.CountDownLatch.await(CountDownLatch.java:230)",
    "com.acme.T.end(T.java:2)",
)
READ = ("sun.nio.ch.SocketDispatcher.read0(Native Method)", "com.acme.T.read(T.java:3)")


@pytest.mark.parametrize(
    ("frames", "name"), [(NAP, "main"), (LATCH, "main"), (LATCH, "Driver"), (NAP, "timer")]
)
def test_what_rests_loses_against_what_burns_or_is_stuck(
    tmp_path: Path, frames: tuple[str, ...], name: str
) -> None:
    rests = Thread(name, frames, "TIMED_WAITING", number=1)
    spin = Thread("burner", ("com.acme.T.spin(T.java:4)",), number=2)
    cpu = {"app": [{1: 1.0, 2: 1.0, 3: 1.0}, {1: 1.0, 2: 2.9, 3: 1.0}]}
    made = folder(tmp_path / "burns", {"app": [[rests, spin]] * 2}, cpu)
    assert analyse(made).headline.code == BUSY
    headline, other, *_ = make_dump_report(made.path).text.splitlines()
    assert headline == (
        "1 thread of app on n1 (pid 100) used 95% of a processor for 2.0 s, running in com.acme.T.spin"
    )
    assert other.startswith("  1 thread of app on n1 (pid 100) did not move for 2.0 s, ")
    stuck = Thread("reader", READ, number=3)
    found = analyse(folder(tmp_path / "stuck", {"app": [[rests, stuck]] * 2}, cpu))
    assert [one.first.name for one in found.unmoved] == ["reader", name]
    found = analyse(folder(tmp_path / "all", {"app": [[rests, spin, stuck]] * 2}, cpu))
    assert (found.headline.code, found.unmoved[0].first.name) == (UNMOVED, "reader")


@pytest.mark.parametrize(
    ("state", "used", "sure"),
    [
        ("TIMED_WAITING", ("0.10", "0.10"), True),
        ("TIMED_WAITING", ("0.10", "0.12"), False),
        ("TIMED_WAITING", ("", ""), False),
        ("BLOCKED", ("0.10", "0.12"), True),
    ],
)
def test_who_ran_in_between_may_have_moved(
    tmp_path: Path, state: str, used: tuple[str, str], sure: bool
) -> None:
    looks = [[Thread("worker", NAP, state, cpu=cpu)] for cpu in used]
    made = folder(tmp_path / "d", {"app": looks})
    [still] = analyse(made).unmoved
    assert still.sure is sure
    text = make_dump_report(made.path).text
    assert ("did not move for 2.0 s" in text) is sure
    assert ("may have moved in 2.0 s, but all looks found it in one place" in text) is not sure


def test_only_a_busy_loop_is_no_hang(tmp_path: Path) -> None:
    spin = Thread("main", ("com.acme.Job.spin(Job.java:1)",), number=7)
    found = analyse(folder(tmp_path / "d", {"app": [[spin], [spin]]}, {"app": [{7: 0.0}, {7: 2.0}]}))
    assert (found.headline.code, found.unmoved) == (BUSY, [])


def test_one_process_that_is_elsewhere(tmp_path: Path) -> None:
    close = Thread(
        "worker", ("java.io.FileOutputStream.close0(Native Method)", "com.acme.Out.end(Out.java:3)")
    )
    made = folder(
        tmp_path / "d",
        {f"executor {number}": [[*pool(2), *([close] if number == 3 else [])]] for number in range(5)},
    )
    found = analyse(made)
    assert found.headline.code == DIFFERS
    [odd] = found.odd
    assert (odd.process.label, odd.process.name, odd.others) == ("executor 3", "worker", 4)


def test_a_lone_task_is_most_tasks(tmp_path: Path) -> None:
    made = folder(tmp_path / "d", {"app": [[task(1, (*PARK, *FETCH), state="WAITING"), *pool(9)]]})
    assert make_dump_report(made.path).text.startswith("1 of 1 task of stage 14.0 is waiting for a queue in ")


def test_a_main_thread_that_sleeps_alone_is_nothing(tmp_path: Path) -> None:
    look = [Thread("main", NAP, "TIMED_WAITING", cpu="1.0"), *pool(3)]
    found = analyse(folder(tmp_path / "d", {"app": [look, look]}))
    assert (found.headline.code, len(found.unmoved)) == (NOTHING, 1)


def test_all_idle_is_nothing(tmp_path: Path) -> None:
    found = analyse(folder(tmp_path / "d", {"app": [pool(3)]}))
    assert (found.headline.code, found.idle, found.threads) == (NOTHING, 4, 4)


def test_the_report_is_text_json_and_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = [
        Thread("A <b>", ("com.acme.Db.read(Db.java:1)",), held=1),
        *(task(number, ("com.acme.Db.lock(Db.java:2)",), state="BLOCKED", wanted=1) for number in range(3)),
        *pool(2),
    ]
    silent = Outcome(
        "n1", Status.FAILED, "fetch", "it does not answer", pid=9, label="executor 2", code="no-answer"
    )
    made = folder(tmp_path / "d", {"executor 1": [threads]}, outcomes=[silent])
    report = make_dump_report(made.path)
    headline, *rest = report.text.splitlines()
    assert headline == (
        '3 tasks of executor 1 on n1 (pid 100) wait for a lock (Lock) that "A <b>" holds, '
        "which runs in com.acme.Db.read"
    )
    assert "1 of 2 processes on 1 host; 7 threads, 3 of them idle; 3 tasks" in rest
    assert any(line.split()[:5] == ["3", "1", "3", "of", "stage"] for line in rest)
    record = json.loads(json.dumps(report.record))
    assert record["headline"] == "holder"
    assert record["holders"][0]["wait"] == {
        "does": "running",
        "kind": "running",
        "method": "com/acme/Db.read",
    }
    assert record["outcomes"][0]["code"] == "no-answer"
    page = report.page.read_text()
    assert '"hosts/n1/executor_1-100-1.txt"' in page
    assert "it does not answer" in page
    assert "A <b>" not in page
    assert main(["report", str(made.path)]) == 3
    assert capsys.readouterr().out.splitlines()[0] == headline
    assert main(["report", str(made.path), "--trim"]) == 2
    assert "is a dump" in capsys.readouterr().err


STOPPED = ("process-stopped", "process 101 is stopped (state T): it cannot answer", "continue it")
CLOSED = ("attach-disabled", "attach is disabled", "restart it")


@pytest.mark.parametrize(
    ("why", "others", "code"),
    [(STOPPED, 0, SILENT), (CLOSED, 0, SILENT), (STOPPED, 3, SILENT), (CLOSED, 3, MOST)],
)
def test_nothing_is_known_of_threads_of_a_jvm_that_did_not_answer(
    tmp_path: Path, why: tuple[str, str, str], others: int, code: str
) -> None:
    look = [Thread(name, ("syscall futex",), "WAITING") for name in ("java", "GC Thread#0", "C2")]
    other = [Thread(f"w-{number}", (*PARK, *RUN), "WAITING") for number in range(4)]
    processes = {**{f"other {number}": [other] for number in range(others)}, "app": [look, look]}
    outcome = Outcome("n1", Status.DEGRADED, "dump", why[1], why[2], pid=100 + others, code=why[0])
    found = analyse(made := folder(tmp_path / "d", processes, outcomes=[outcome], silent=["app"]))
    assert (found.headline.code, found.dumped, found.unmoved) == (code, others, [])
    assert not any("futex" in group.wait.method for group in found.groups)
    [silent] = found.silent
    assert (silent.process.label, silent.code) == ("app", why[0])
    said = f"app on n1 (pid {100 + others}) did not answer: {why[1]}; {why[2]}"
    report = make_dump_report(made.path)
    lines = report.text.splitlines()
    assert lines[0] == said or (code != SILENT and f"  {said}" in lines)
    assert report.record["silent"]
    assert not report.empty


def test_a_text_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    made = folder(tmp_path / "d", {"app": [pool(1)], "other": [pool(1)], "third": [pool(1)]})
    _, empty, gone = made.record.hosts[0].dumps
    made.text_path("n1", empty).write_text("killed\n")
    made.text_path("n1", gone).unlink()
    found = analyse(made)
    assert [where for where, _ in found.unreadable] == ["n1 pid 101", "n1 pid 102"]
    assert (found.dumped, found.whole) == (1, False)


SYNC = ("park", "java.util.concurrent.locks.ReentrantLock$NonfairSync")
MONITOR = ("monitor", "java.lang.Object")
WORKER = "Executor task launch worker for task {0}.0 in stage 0.0 (TID {0})"


@pytest.mark.parametrize(
    ("file", "name", "waits", "owner"),
    [
        ("jstack-8.log", 'second "quoted" thread', MONITOR, "first thread"),
        ("jstack-8.log", "lock-2", SYNC, "lock-1"),
        ("jcmd-25.jstack", "lock-1", SYNC, "lock-2"),
        ("dump-to-file-25.json", "first thread", MONITOR, 'second "quoted" thread'),
        ("dump-to-file-25-text.threads", "first thread", MONITOR, 'second "quoted" thread'),
        ("spark-3.json", WORKER.format(1), MONITOR, WORKER.format(0)),
        ("spark-4.json", WORKER.format(0), MONITOR, WORKER.format(1)),
        ("spark-4-page.html", WORKER.format(0), MONITOR, WORKER.format(1)),
        ("flink.json", "Map (1/4)#0", MONITOR, "Map (2/4)#0"),
    ],
)
def test_each_form_says_who_waits_for_whom(file: str, name: str, waits: tuple[str, str], owner: str) -> None:
    [threads] = ThreadDumps().read(FILES / file)
    [one] = [each for each in threads if each.name == name]
    assert one.waits is not None
    assert (one.waits[0], one.waits[2]) == waits
    assert one.owner is not None
    assert threads[one.owner].name == owner


def test_a_thread_has_numbers_state_and_lines() -> None:
    dumps = ThreadDumps()
    [threads] = dumps.read(FILES / "jstack-8.log")
    first = next(one for one in threads if one.name == "dspin")
    assert (first.number, first.java_number, first.daemon, first.state) == (0x3AB0, 18, True, "RUNNABLE")
    assert dumps.stack(first.stack)[:2] == [("Dead.spin", 12), ("Dead$$Lambda$10/81628611.run", 0)]
    assert dumps.group(first.group).frames[:2] == ["Dead.spin", "Dead$$Lambda.run"]
    waits = next(one for one in threads if one.name == "waits")
    assert waits.waits is not None
    assert (waits.waits[0], waits.holds) == ("notify", []), "it let go of the monitor"
    [newer] = dumps.read(FILES / "jcmd-25.jstack")
    spin = next(one for one in newer if one.name == "dspin")
    stacks = [dumps.group(one.group).frames[:2] for one in (first, spin)]
    assert stacks[0] == stacks[1], "lambdas have other numbers in each JVM"
    assert spin.cpu is not None


@pytest.mark.nightly
def test_two_hundred_dumps_of_a_thousand_threads(tmp_path: Path) -> None:
    """Memory stays far below the texts', as equal stacks are kept once."""
    import resource

    frames = [f"com.acme.deep.Frame{depth}.call(Frame{depth}.java:{depth})" for depth in range(25)]

    def threads(process: int) -> list[Thread]:
        busy = [
            task(number, (f"com.acme.Job.step{number % 7}(Job.java:{process})", *frames))
            for number in range(200)
        ]
        return [*busy, *pool(800)]

    made = folder(tmp_path / "d", {f"executor {number}": [threads(number)] for number in range(200)})
    size = sum(path.stat().st_size for path in made.path.rglob("*.txt"))
    pid = os.fork()
    if pid == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = analyse(made)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        os._exit(0 if found.threads == 200 * 1001 and grown < size / 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
