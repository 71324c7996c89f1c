"""Made-up run folders: written through the store and the binding as a run writes them, from folded text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hprofiler._flamegraph import Profile
from hprofiler.model import HostRecord
from hprofiler.runfolder import FORMAT, Coverage, RunFolder, RunRecord
from hprofiler.runfolder.schema import read
from tests.viewer.made_profile import made_profile

FREQUENCY = 300
DURATION = 60
Content = str | bytes
INTERVALS = {"cpu": 10**9 // FREQUENCY, "alloc": 524_288, "lock": 10_000, "wall": 10_000_000}


@dataclass
class MadeHost:
    """A host of a made-up run: folded text (or pprof, or a compact profile) of CPU time by pid, ledger lines,
    other events. Its processes are called `executor N` unless they have a label."""

    name: str
    processes: dict[int, Content] = field(default_factory=dict)
    outcomes: list[dict[str, object]] = field(default_factory=list)
    events: dict[str, dict[int, Content]] = field(default_factory=dict)
    label: str = ""

    def recorded(self, event: str) -> dict[int, Content]:
        return self.processes if event == "cpu" else self.events.get(event, {})

    def fails(
        self, status: str, reason: str, remedy: str = "", pid: int | None = None, lost: bool = False
    ) -> MadeHost:
        stage = "find" if status == "idle" else "start" if pid else "connect"
        line: dict[str, object] = {"host": self.name, "status": status, "stage": stage, "reason": reason}
        self.outcomes.append({**line, "remedy": remedy, "pid": pid, "label": "", "lost": lost})
        return self


def make_run(
    path: Path,
    hosts: list[MadeHost],
    selector: str = "spark-executor",
    events: Sequence[str] = ("cpu",),
    **members: object,
) -> RunFolder:
    """A run folder with these hosts and members of run.json; no report yet."""
    folder = RunFolder.create(path)
    made = [_host(host, _stored(folder, host, events)) for host in hosts]
    rewrite(folder, {**_record(made, selector, events), **members})
    folder.release()
    return folder


def content_of(folder: RunFolder) -> dict[str, Any]:
    """What run.json says, to be changed and written again."""
    content: dict[str, Any] = json.loads((folder.path / "run.json").read_bytes())
    return content


@contextmanager
def changed(folder: RunFolder) -> Iterator[dict[str, Any]]:
    """What run.json says; it is written as it is at the end."""
    content = content_of(folder)
    yield content
    rewrite(folder, content)


def rewrite(folder: RunFolder, content: Mapping[str, Any]) -> None:
    """Write this as run.json; required members that a test leaves out are filled in."""
    (folder.path / "run.json").write_text(json.dumps(_filled(content)))
    folder._record = None


def record_of(content: Mapping[str, Any]) -> RunRecord:
    return read(json.dumps(_filled(content)).encode())


def coverage_of(*results: HostRecord) -> Coverage:
    return Coverage.of(results, 1)


def _filled(content: Mapping[str, Any]) -> dict[str, Any]:
    hosts = content.get("hosts", [])
    return {
        "format": FORMAT,
        **content,
        "sampling": {"events": ["cpu"], "frequency": 99, "duration": 60, **content.get("sampling", {})},
        "target": {"kind": "hosts", "name": "", **content.get("target", {})},
        "hosts": [_filled_host(one) if isinstance(one, dict) else one for one in hosts],
    }


def _filled_host(host: dict[str, Any]) -> dict[str, Any]:
    process = {"host": "", "pid": 1, "start_time": 1, "uid": 0, "user": "", "label": ""}
    made = {"event": "cpu", "engine": "", "source": "", "interval": 0, "seconds": 0}
    made["samples"] = {"expected": 0, "taken": 0, "lost": 0}
    line = {"host": "", "status": "ok", "stage": "record", "code": "recorded"}
    return {
        **host,
        "recordings": [
            {**made, **one, "process": {**process, **one.get("process", {})}}
            for one in host.get("recordings", [])
        ],
        "outcomes": [
            {**line, **({"code": "failed"} if one.get("status") != "ok" else {}), **one}
            for one in host.get("outcomes", [])
        ],
    }


def _stored(folder: RunFolder, host: MadeHost, events: Sequence[str]) -> list[dict[str, object]]:
    """Write the host's profiles; what run.json says of them."""
    recordings = []
    for event in events:
        for pid, content in host.recorded(event).items():
            profile = _profile(event, content)
            stored = folder.profile_path(host.name, pid, event)
            stored.parent.mkdir(parents=True, exist_ok=True)
            profile.write(stored, "pprof", thread_label=True)
            if profile.times and isinstance(content, bytes):
                folder.times_path(host.name, pid, event).write_bytes(content)
            recordings.append(_recording(host, event, pid, profile))
    return recordings


def _profile(event: str, content: Content) -> Profile:
    if isinstance(content, bytes) and content.startswith(b"HPT"):
        return Profile.from_bytes(content, "compact")
    if isinstance(content, bytes):
        return Profile.from_bytes(content, "pprof", threads="groups")
    return made_profile(event, content)


def _record(hosts: list[dict[str, object]], selector: str, events: Sequence[str]) -> dict[str, object]:
    return {
        "format": FORMAT,
        "hprofiler": "0.1.0",
        "command": f"hprofiler -f {FREQUENCY} -t {DURATION} -j {selector} -H hosts.txt".split(),
        "target": {"kind": "hosts", "name": "hosts.txt"},
        "selector": selector,
        "sampling": {
            "engine": "auto",
            "events": list(events),
            "frequency": FREQUENCY,
            "duration": DURATION,
        },
        "started": "2026-11-20T06:12:03+00:00",
        "finished": "2026-11-20T06:13:05+00:00",
        "interrupted": False,
        "coverage": {},
        "hosts": hosts,
    }


def _host(host: MadeHost, recordings: list[dict[str, object]]) -> dict[str, object]:
    return {
        "name": host.name,
        "address": host.name,
        "labels": {},
        "facts": None,
        "timings": {},
        "bytes_sent": 0,
        "bytes_received": 0,
        "recordings": recordings,
        "outcomes": host.outcomes,
    }


def _recording(host: MadeHost, event: str, pid: int, profile: Profile) -> dict[str, object]:
    taken = profile.total(0)
    process = {
        "host": host.name,
        "pid": pid,
        "start_time": 1,
        "uid": 1000,
        "user": "app",
        "jvm_version": "17.0.9",
    }
    process.update(
        label=host.label or f"executor {pid % 100}",
        labels={"executor": str(pid % 100)},
        main_class="org.apache.spark.executor.CoarseGrainedExecutorBackend",
    )
    return {
        "process": process,
        "event": event,
        "engine": "async-profiler",
        "source": "perf_events" if event == "cpu" else event,
        "interval": INTERVALS.get(event, 0),
        "samples": {"expected": round(taken * 1.02), "taken": taken, "lost": 3},
        "seconds": DURATION,
        "cpu_seconds": taken / FREQUENCY,
        "totals": {name: profile.total(name) for name, _ in profile.values},
        "times": {"start": times.start, "width": times.width} if (times := profile.times) else None,
    }


TASK = (
    "java/lang/Thread.run_[j]",
    "java/util/concurrent/ThreadPoolExecutor$Worker.run_[j]",
    "org/apache/spark/executor/Executor$TaskRunner.run_[j]",
    "org/apache/spark/scheduler/Task.run_[j]",
)
SQL = "org/apache/spark/sql/execution"
STAGE = (
    *TASK,
    f"{SQL}/WholeStageCodegenExec$$anon$1.hasNext_[j]",
    "org/apache/spark/sql/catalyst/expressions/GeneratedClass$GeneratedIteratorForCodegenStage1.processNext_[j]",
)
AVRO = (*STAGE, "com/example/etl/AvroUtil.toAvroIdentifier_[j]", "java/lang/String.replaceAll_[i]")
COMPILE = (*AVRO, "java/util/regex/Pattern.compile_[j]", "java/util/regex/Pattern.expr_[j]")
FIND = (*AVRO, "java/util/regex/Matcher.replaceAll_[j]", "java/util/regex/Matcher.find_[j]")
SCAN = (*STAGE, f"{SQL}/datasources/parquet/VectorizedParquetRecordReader.nextBatch_[j]")
SNAPPY = (
    *SCAN,
    "org/xerial/snappy/SnappyNative.rawUncompress_[0]",
    "Java_org_xerial_snappy_SnappyNative_rawUncompress",
)
READ = (
    *SCAN,
    "org/apache/hadoop/hdfs/DFSInputStream.read_[j]",
    "sun/nio/ch/SocketDispatcher.read0_[0]",
    "__libc_read",
)
KERNEL = (
    "entry_SYSCALL_64_[k]",
    "do_syscall_64_[k]",
    "ksys_read_[k]",
    "sock_read_iter_[k]",
    "tcp_recvmsg_[k]",
)
VM_THREAD = ("start_thread", "thread_native_entry(Thread*)")
GC = (*VM_THREAD, "GangWorker::run_task(WorkData)", "G1ParEvacuateFollowersClosure::do_void()")
JIT = (*VM_THREAD, "CompileBroker::compiler_thread_loop()", "Compile::Compile(ciEnv*)")
AGGREGATE = (*STAGE, f"{SQL}/aggregate/HashAggregateExec.doConsume_[1]")
SHUFFLE = (*TASK, "org/apache/spark/shuffle/sort/UnsafeShuffleWriter.write_[j]")


def spark_folded(regex: int, parquet: int = 400, gc: int = 200) -> str:
    """What a Spark executor might be doing; `regex` samples are below String.replaceAll."""
    compiling = regex * 2 // 3
    stacks = [
        ((*COMPILE, "java/util/regex/Pattern.sequence_[i]"), compiling),
        ((*FIND, "java/util/regex/Pattern$GroupCurly.match0_[j]"), regex - compiling),
        (
            (*SCAN, "org/apache/parquet/column/values/rle/RunLengthBitPackingHybridDecoder.readInt_[i]"),
            parquet // 2,
        ),
        ((*SNAPPY, "snappy::RawUncompress(snappy::Source*, char*)"), parquet // 3),
        ((*READ, *KERNEL, "copy_user_generic_string_[k]"), parquet // 6),
        ((*STAGE, "org/apache/spark/unsafe/hash/Murmur3_x86_32.hashUnsafeBytes_[i]"), 140),
        ((*AGGREGATE, "org/apache/spark/unsafe/map/BytesToBytesMap.safeLookup_[j]"), 120),
        ((*GC, "G1ParScanThreadState::copy_to_survivor_space(InCSetState, oop, markOop)"), gc),
        ((*JIT, "PhaseChaitin::Register_Allocate()"), 60),
        ((*SHUFFLE, "org/apache/spark/util/collection/unsafe/sort/RadixSort.sort_[j]"), 90),
    ]
    return "".join(f"{';'.join(stack)} {count}\n" for stack, count in stacks)


def spark_run(path: Path) -> RunFolder:
    """Ten hosts: eight recorded, one of them hot; one idle, one unreachable; one executor refused."""
    hosts = [
        MadeHost(
            f"worker{n:02}.prod.example", {4000 + n: spark_folded(300 + 9 * n), 5000 + n: spark_folded(270)}
        )
        for n in range(1, 8)
    ]
    hosts.append(MadeHost("worker08.prod.example", {4008: spark_folded(2400, gc=500)}))
    hosts[3].fails(
        "failed", "the JVM was started with -XX:+DisableAttachMechanism", "restart it without", pid=6004
    )
    reason = "perf events are not permitted: sampled with ctimer, without kernel frames"
    hosts[5].fails("degraded", reason, "sysctl kernel.perf_event_paranoid=1", pid=4006)
    hosts.append(
        MadeHost("worker09.prod.example").fails("failed", "no route to host", "check name and network")
    )
    hosts.append(MadeHost("worker10.prod.example").fails("idle", "no process matches spark-executor"))
    return make_run(path, hosts)
