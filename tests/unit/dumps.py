"""Dumps that are made up: texts as jstack prints them, in the folder of a dump."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hprofiler.model import Outcome, Process, Target
from hprofiler.model.dump import Dump, DumpedHost
from hprofiler.runfolder.dumps import DumpFolder, DumpRecord

POOL = (
    "jdk.internal.misc.Unsafe.park(Native Method)",
    "java.util.concurrent.locks.LockSupport.park(LockSupport.java:341)",
    "java.util.concurrent.LinkedBlockingQueue.take(LinkedBlockingQueue.java:435)",
    "java.util.concurrent.ThreadPoolExecutor.getTask(ThreadPoolExecutor.java:1062)",
    "java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1122)",
    "java.lang.Thread.run(Thread.java:840)",
)
TASK = (
    "org.apache.spark.executor.Executor$TaskRunner.run(Executor.scala:624)",
    "java.util.concurrent.ThreadPoolExecutor.runWorker(ThreadPoolExecutor.java:1136)",
    "java.lang.Thread.run(Thread.java:840)",
)


@dataclass(frozen=True)
class Thread:
    """A thread of a text; `held` and `wanted` are numbers of monitors, `blocker` is what it is parked for.

    `cpu` is its CPU time so far in milliseconds, as JVMs say it since 11."""

    name: str
    frames: Sequence[str]
    state: str = "RUNNABLE"
    held: int = 0
    wanted: int = 0
    number: int = 0
    blocker: str = ""
    cpu: str = ""


def task(index: int, frames: Sequence[str], stage: str = "14.0", **more: object) -> Thread:
    name = f"Executor task launch worker for task {index}.0 in stage {stage} (TID {index})"
    return Thread(name, (*frames, *TASK), **more)  # type: ignore[arg-type]


def pool(count: int) -> list[Thread]:
    return [Thread(f"pool-1-thread-{number}", POOL, "WAITING") for number in range(count)]


def text(threads: Iterable[Thread]) -> bytes:
    lines = ["2026-11-29 12:00:00", "Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6 mixed mode):", ""]
    for place, one in enumerate(threads, 1):
        number = one.number or place
        cpu = f"cpu={one.cpu}ms " if one.cpu else ""
        lines.append(f'"{one.name}" #{place} prio=5 os_prio=0 {cpu}tid=0x{place:x} nid=0x{number:x} x')
        lines.append(f"   java.lang.Thread.State: {one.state}")
        for depth, frame in enumerate(one.frames):
            lines.append(f"\tat {frame}")
            if depth == 0 and one.wanted:
                lines.append(f"\t- waiting to lock <0x{one.wanted:016x}> (a com.acme.Lock)")
            if depth == 0 and one.blocker:
                lines.append(f"\t- parking to wait for  <0x{1:016x}> (a {one.blocker})")
            if depth == 0 and one.held:
                lines.append(f"\t- locked <0x{one.held:016x}> (a com.acme.Lock)")
        lines.append("")
    lines += [
        '"VM Thread" os_prio=0 tid=0x1 nid=0xffff runnable',
        "",
        "JNI global refs: 15",
        "",
    ]
    return "\n".join(lines).encode()


Look = Sequence[Thread]


def folder(
    path: Path,
    processes: Mapping[str, Sequence[Look]],
    cpu: Mapping[str, Sequence[Mapping[int, float]]] | None = None,
    outcomes: Sequence[Outcome] = (),
    seconds: float = 2.0,
    silent: Collection[str] = (),
) -> DumpFolder:
    """The folder of a dump; `processes` have the threads of each look, which are so many seconds apart.

    Of those that are `silent` the texts are the kernel's account.
    """
    made = DumpFolder.create(path)
    dumps = []
    for pid, (label, looks) in enumerate(processes.items(), 100):
        for look, threads in enumerate(looks):
            process = Process("n1", pid, 1, 0, "ann", label, is_jvm=True)
            used = cpu[label][look] if cpu and label in cpu else {}
            kind = "native" if label in silent else "jvm"
            dump = Dump(process, look + 1, 1_700_000_000 + look * seconds, kind, 0.01, used)
            dumps.append(made.keep("n1", dump, iter([text(threads)])))
    host = DumpedHost(name="n1", dumps=tuple(dumps), outcomes=tuple(outcomes))
    made.write(DumpRecord(target=Target("hosts", "n1"), hosts=(host,)))
    made.release()
    return DumpFolder.open(path)
