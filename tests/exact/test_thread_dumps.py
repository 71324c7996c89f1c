"""What dumps of real JVMs say, where it is known what they hang in."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from hprofiler import Profile
from hprofiler._flamegraph import ThreadDumps
from hprofiler.analysis.dump import DEADLOCK, DIFFERS, HOLDER, DumpAnalysis, analyse
from hprofiler.model import Process
from hprofiler.model.dump import Dump, DumpedHost
from hprofiler.report.dump import make_dump_report
from hprofiler.runfolder.dumps import DumpFolder, DumpRecord
from tests.exact.jfr_recordings import compiled_java
from tests.lab import jdks
from tests.needed import lacking

TICKS = 100


@contextmanager
def hanging(jdk: int, *what: str) -> Iterator[int]:
    """A JVM that hangs so; its pid."""
    words = [jdks.java(jdk), "-Xmx200m", "-Xss256k", "-cp", str(compiled_java("Hang")), "Hang", *what]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:
        try:
            assert jvm.stdout is not None
            assert jvm.stdout.readline() == "ready\n"
            yield jvm.pid
        finally:
            jvm.kill()


def jstack(pid: int, *options: str) -> bytes:
    command = shutil.which("jstack") or lacking("jstack")
    return subprocess.run([command, *options, str(pid)], capture_output=True, check=True, timeout=60).stdout


def cpu_of(pid: int) -> dict[int, float]:
    """CPU seconds of each thread."""
    used = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        used[int(task.name)] = (int(fields[11]) + int(fields[12])) / TICKS
    return used


def dumped(path: Path, pids: list[int], looks: int = 1, options: tuple[str, ...] = ()) -> DumpFolder:
    """The folder of a dump of JVMs, as the command makes it. Looks are taken when enough time went by."""
    folder = DumpFolder.create(path)
    dumps = []
    for look in range(1, looks + 1):
        for number, pid in enumerate(pids):
            process = Process("n1", pid, 1, 0, "root", f"executor {number}", is_jvm=True)
            dump = Dump(process, look, time.time(), "jvm", 0.1, cpu_of(pid))
            dumps.append(folder.keep("n1", dump, iter([jstack(pid, *options)])))
        if look < looks:
            before = sum(cpu_of(pids[-1]).values())
            while sum(cpu_of(pids[-1]).values()) < before + 0.3:  # the busy one is the last
                time.sleep(0.05)
    folder.write(DumpRecord(looks=looks, hosts=(DumpedHost(name="n1", dumps=tuple(dumps)),)))
    folder.release()
    return DumpFolder.open(path)


def of(found: DumpAnalysis, method: str) -> Counter[str]:
    """How many threads do what in a method."""
    done: Counter[str] = Counter()
    for one in found.groups:
        if one.wait.method == method:
            done[one.wait.code] += one.threads
    return done


@pytest.mark.parametrize("jdk", jdks.VERSIONS)
def test_a_deadlock_names_its_threads_and_locks(jdk: int, tmp_path: Path) -> None:
    with hanging(jdk, "deadlock", "idle") as pid:
        found = analyse(dumped(tmp_path / "d", [pid]))
    assert found.headline.code == DEADLOCK
    pairs = {frozenset(thread.name for thread in one.threads) for one in found.deadlocks}
    assert pairs == {frozenset({"left hand", 'right "hand"'}), frozenset({"lock-1", "lock-2"})}
    [monitors] = [one for one in found.deadlocks if "left hand" in {each.name for each in one.threads}]
    assert {one.lock_class for one in monitors.threads} == {"java.lang.Object"}
    assert {one.wait.method for one in monitors.threads} == {"Hang.both"}
    assert {one.wait.code for one in monitors.threads} == {"monitor"}
    assert found.holders == []
    assert of(found, "Hang.bothLocks") == {"lock": 2}
    pool = [one for one in found.groups if one.names == (("pool-N-thread-N", 3),)]
    assert [one.idle for one in pool] == [True]


@pytest.mark.parametrize("jdk", jdks.VERSIONS)
@pytest.mark.parametrize("options", [(), ("-l",)], ids=["plain", "owners"])
def test_one_holds_a_monitor_that_twenty_wait_for(jdk: int, options: tuple[str, ...], tmp_path: Path) -> None:
    with hanging(jdk, "holder") as pid:
        folder = dumped(tmp_path / "d", [pid], options=options)
    report = make_dump_report(folder.path)
    found = report.analysis
    assert found.headline.code == HOLDER
    [one] = found.holders
    assert (one.holder, one.waiting, one.tasks, one.lock_class) == ("keeper", 20, 20, "java.lang.Object")
    assert one.wait is not None
    assert (one.wait.code, one.wait.method) == ("sleep", "Hang.keep")
    assert [(stage.stage, stage.tasks) for stage in found.groups[0].tasks] == [("14.0", 20)]
    headline = report.text.splitlines()[0]
    assert headline == (
        f'20 tasks of executor 0 on n1 (pid {pid}) wait for a lock (Object) that "keeper" holds, '
        "which sleeps in Hang.keep"
    )
    assert report.record["headline"] == "holder"


def test_one_of_three_is_stuck_and_a_busy_loop_is_not(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pids = [stack.enter_context(hanging(17, "idle")) for _ in range(2)]
        pids.append(stack.enter_context(hanging(17, "idle", "stuck", "busy")))
        found = analyse(dumped(tmp_path / "d", pids, looks=2))
    assert found.headline.code == DIFFERS
    [odd] = found.odd
    assert (odd.process.pid, odd.wait.method, odd.others) == (pids[2], "Hang.stuck", 2)
    unmoved = {one.wait.method: one for one in found.unmoved}
    assert unmoved["Hang.stuck"].threads == 1
    [busy] = found.busy
    assert "Hang.spin" in busy.frames
    assert busy.cpu_seconds is not None
    assert busy.cpu_seconds >= 0.2
    assert "Hang.spin" not in unmoved


def test_a_thousand_threads_are_one_group(tmp_path: Path) -> None:
    with hanging(25, "thousand") as pid:
        folder = dumped(tmp_path / "d", [pid])
    found = analyse(folder)
    [pool] = [one for one in found.groups if one.names[0][0] == "pool-N-thread-N"]
    assert (pool.threads, pool.idle, pool.processes) == (1000, True, 1)
    [dump] = folder.record.hosts[0].dumps
    profile = Profile.open(folder.text_path("n1", dump), threads="groups")
    assert profile.values == [("threads", "count")]
    assert profile.total("threads") == found.threads


@pytest.mark.parametrize("form", ["json", "plain"])
@pytest.mark.parametrize("jdk", [21, 25])
def test_virtual_threads_are_in_files_of_dumps(jdk: int, form: str, tmp_path: Path) -> None:
    file = tmp_path / "dump"
    with hanging(jdk, "virtual") as pid:
        command = shutil.which("jcmd") or lacking("jcmd")
        options = ["-format=json"] if form == "json" else []
        subprocess.run(
            [command, str(pid), "Thread.dump_to_file", *options, str(file)], check=True, timeout=60
        )
        [threads] = ThreadDumps().read(file)
    virtual = [one for one in threads if one.name.startswith("virtual-")]
    assert len(virtual) == 50
    assert len({one.group for one in virtual}) == 1
    profile = Profile.open(file, threads="groups")
    of_virtual = [stack for stack in profile.paths() if stack.frames[0] == "[virtual-N]"]
    assert [(stack.values, "Hang.stuck" in stack.frames) for stack in of_virtual] == [((50,), True)]


def test_dumps_in_the_output_of_a_program_are_read_one_after_the_other(tmp_path: Path) -> None:
    """As `kill -3` leaves them, with lines of the program in between."""
    with hanging(17, "deadlock") as pid:
        texts = [jstack(pid), jstack(pid)]
    file = tmp_path / "stdout"
    noise = b"2026-11-29 12:00:00 INFO started 3\njava.lang.RuntimeException: x\n\tat a.B.c(B.java:1)\n"
    file.write_bytes(noise + texts[0] + noise + texts[1] + noise)
    first, second = ThreadDumps().read(file)
    assert [one.stack for one in first if one.name == "left hand"] == [
        one.stack for one in second if one.name == "left hand"
    ]
    names = [one.name for one in first]
    assert names[names.index("left hand")] == "left hand"
    owner = first[names.index("left hand")].owner
    assert owner is not None
    assert names[owner] == 'right "hand"'
