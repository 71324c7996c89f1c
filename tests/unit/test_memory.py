"""The memory of processes: what stands out, what is printed, and what is refused of an agent."""

from __future__ import annotations

import json
import threading

import pytest

from hprofiler.agent.messages import BadEvent, MemoryMessage, decode
from hprofiler.analysis.memory import analyse_memory
from hprofiler.app.memory import executor_limits
from hprofiler.base.errors import UsageError
from hprofiler.cli.commands.memory import refuse_unasked
from hprofiler.collect.measuring import HostMeasured, Looks, measure
from hprofiler.collect.stop import Stop
from hprofiler.model import Process, Status
from hprofiler.model.memory import (
    Amount,
    ClassMemory,
    GroupMemory,
    Histogram,
    JvmMemory,
    MeasuredProcess,
    Memory,
)
from hprofiler.report.memory import finding_lines, memory_lines, memory_record
from hprofiler.resolve import SparkDriver
from hprofiler.spark.memory import Limits
from tests.unit.stand_in import ANY, Fleet

MIB, GIB = 1 << 20, 1 << 30
HEAP = JvmMemory(True, 4 * GIB, 5 * GIB, 60 * MIB, 64 * MIB, {"MaxHeapSize": 8 * GIB, "UseG1GC": 1})


def memory(jvm=HEAP, group=None, arenas=2, threads=50, **parts):
    sizes = {"heap": 4 * GIB, "anonymous": 100 * MIB, **parts}
    amounts = {name: Amount(size) for name, size in sizes.items() if size}
    return Memory(0.01, amounts, sum(sizes.values()), 500, arenas, threads, (), jvm, group)


def measured(pid, *looks, **labels):
    process = Process("n1", pid, 1, 0, "yarn", f"executor {pid}", "a.Executor", labels=labels)
    return MeasuredProcess(process, tuple((100.0 + 60 * number, look) for number, look in enumerate(looks)))


def findings(*processes, limits=None):
    return {one.code: one for one in analyse_memory(processes, limits).findings}


def group(limit, used, file=0, **members):
    known = {"id": "/yarn/c1", "anonymous": used - file, "oom_kills": 0, **members}
    return GroupMemory(limit=limit, used=used, file=file, **known)


def test_a_process_without_a_limit_that_is_as_usual():
    assert not findings(measured(1, memory(group=group(None, 5 * GIB))))


def test_a_heap_that_may_become_larger_than_what_is_left():
    rest = 2 * GIB
    known = findings(measured(1, memory(group=group(9 * GIB, 7 * GIB, file=GIB, oom_kills=2))))
    over = known["heap-does-not-fit"]
    assert over.severity == "warning" and (over.pid, over.scope) == (1, "/yarn/c1")
    figures = dict(over.figures)
    assert figures["now"] == 6 * GIB and figures["rest"] == rest and figures["over"] == rest - GIB
    assert known["oom-kills"].figures["kills"] == 2 and "limit-near" not in known
    fits = findings(measured(1, memory(group=group(11 * GIB, 7 * GIB, file=GIB))))
    assert not fits


def test_a_heap_that_is_committed_beyond_the_limit_is_an_error():
    full = JvmMemory(True, 4 * GIB, 8 * GIB, flags={"MaxHeapSize": 8 * GIB})
    over = findings(measured(1, memory(full, group(9 * GIB, 6 * GIB))))["heap-does-not-fit"]
    ((severity, text, remedy),) = finding_lines([over])
    assert (over.severity, severity) == ("error", "error") and "-Xmx" in remedy
    assert text == (
        "n1 pid 1 (executor 1): 2 GiB in use beside its heap and -Xmx 8 GiB are 1 GiB more than the limit of "
        "9 GiB: it will be killed if the heap fills; 8 GiB of it are committed already"
    )


def test_a_warning_does_not_hide_an_error():
    full = JvmMemory(True, 4 * GIB, 8 * GIB, flags={"MaxHeapSize": 8 * GIB})
    empty = JvmMemory(True, 4 * GIB, 4 * GIB, flags={"MaxHeapSize": 20 * GIB})
    sure = measured(1, memory(full, group(9 * GIB, 6 * GIB, id="/one")))
    later = measured(2, memory(empty, group(9 * GIB, 6 * GIB, id="/two")))
    lines = finding_lines(analyse_memory([later, sure]).findings)
    assert [(severity, text.split(":")[0]) for severity, text, _ in lines] == [
        ("error", "n1 pid 1 (executor 1)"),
        ("warning", "n1 pid 2 (executor 2)"),
    ]


def test_of_those_near_their_limit_the_fullest_is_named():
    near = [
        measured(pid, memory(None, group(10 * GIB, used * GIB, id=f"/{pid}")))
        for pid, used in ((1, 9.2), (2, 9.8))
    ]
    ((_, text, _),) = finding_lines(analyse_memory(near).findings)
    assert text.startswith("n1 pid 2 ") and "(1 more alike)" in text


def test_processes_share_the_limit_of_their_group():
    shared = memory(group=group(18 * GIB, 11 * GIB))
    over = findings(measured(1, shared), measured(2, shared))["heap-does-not-fit"]
    assert over.pid is None and over.figures["heap_max"] == 16 * GIB and over.figures["rest"] == 3 * GIB
    ((_, text, _),) = finding_lines([over])
    assert text == (
        "n1 /yarn/c1: 3 GiB in use beside the heaps and all -Xmx, 16 GiB, are 1 GiB more than the limit of "
        "18 GiB: one will be killed if the heaps fill"
    )


def test_what_the_kernel_can_take_back_does_not_count():
    cached = group(11 * GIB, int(10.9 * GIB), anonymous=4 * GIB, file=5 * GIB, shared=GIB)
    (scope,) = analyse_memory([measured(1, memory(group=cached))]).scopes
    assert scope.now == 5 * GIB and not findings(measured(1, memory(group=cached)))


def test_nothing_is_claimed_of_a_heap_that_is_not_known():
    silent = JvmMemory(False, 4 * GIB, 8 * GIB)
    known = findings(measured(1, memory(silent, group(9 * GIB, int(8.5 * GIB)), heap=0, anonymous=8 * GIB)))
    assert set(known) == {"limit-near"}


def test_without_a_group_the_limit_is_that_of_sparks_container():
    limits = {("n1", 1): Limits(8 * GIB, 4 * GIB, 0, GIB, 0, 9 * GIB)}
    jvm = measured(1, memory(anonymous=600 * MIB))
    worker = measured(2, memory(None, heap=0, anonymous=900 * MIB), parent="1")
    assert "heap-does-not-fit" not in findings(jvm, limits=limits)
    result = analyse_memory([jvm, worker], limits)
    (scope,) = result.scopes
    assert (scope.limit, scope.rest, len(scope.processes)) == (9 * GIB, 1500 * MIB, 2)
    assert scope.most == 8 * GIB + 1500 * MIB
    assert "Spark: heap 8 GiB, unified pool in it 4 GiB, overhead 1 GiB, container 9 GiB" in "\n".join(
        memory_lines(result)
    )


def test_the_driver_is_asked_for_the_sizes_of_its_executors():
    settings = [
        ["spark.executor.memory", "8g"],
        ["spark.executor.memoryOverhead", "1g"],
        ["spark.master", "yarn"],
    ]
    answers = {
        "/applications/app": {"id": "app", "name": "n", "attempts": [{"appSparkVersion": "4.1.1"}]},
        "/applications/app/environment": {"sparkProperties": settings},
        "/applications/app/allexecutors": [{"id": "3", "hostPort": "n1:7"}],
    }
    driver = SparkDriver("app", lambda path, parameters: (answers[path], None))
    own, other = measured(1, memory(), executor="3", application="app"), measured(2, memory(), executor="4")
    foreign = measured(5, memory(), executor="3", application="another")
    limits = executor_limits(driver, [own, other, foreign])
    assert set(limits) == {("n1", 1)} and limits["n1", 1].container == 9 * GIB


def test_memory_that_nothing_explains():
    off = findings(measured(1, memory(anonymous=3 * GIB, malloc=GIB)))["off-heap"]
    assert off.figures == {"bytes": 4 * GIB, "nameless": 4 * GIB, "direct_max": 8 * GIB}
    tracking = JvmMemory(
        True, flags={"MaxHeapSize": 8 * GIB}, native={"Java Heap": 5 * GIB, "GC": GIB, "Other": 2 * GIB}
    )
    off = findings(measured(1, memory(tracking, anonymous=4 * GIB, malloc=GIB)))["off-heap"]
    assert off.figures == {"bytes": 2 * GIB, "nameless": 5 * GIB, "tracked": 3 * GIB}
    ((_, text, _),) = finding_lines([off])
    assert "2 GiB off the heap that nothing explains: 5 GiB, of which the JVM tracks 3 GiB" in text
    explained = JvmMemory(True, native={"GC": GIB, "Other": 3 * GIB})
    assert "off-heap" not in findings(measured(1, memory(explained, anonymous=3 * GIB, malloc=GIB)))


def test_a_heap_that_is_known_by_its_name_alone():
    """ZGC's."""
    zgc = JvmMemory(False, flags={"MaxHeapSize": 8 * GIB})
    ((_, text, _),) = finding_lines([findings(measured(1, memory(zgc, anonymous=3 * GIB)))["off-heap"]])
    assert text.endswith(
        "3 GiB off the heap that nothing explains; it may be direct buffers, of which the JVM allows 8 GiB"
    )
    assert not findings(measured(1, memory(zgc, heap=0, anonymous=3 * GIB)))


def test_what_spark_has_off_the_heap_is_explained():
    limits = {("n1", 1): Limits(8 * GIB, off_heap=3 * GIB)}
    assert not findings(measured(1, memory(anonymous=3 * GIB)), limits=limits)
    off = findings(measured(1, memory(anonymous=5 * GIB)), limits=limits)["off-heap"]
    assert off.figures["bytes"] == 2 * GIB and off.figures["nameless"] == 5 * GIB


def test_arenas_threads_and_swap():
    swapped = {"heap": Amount(4 * GIB, 200 * MIB), "malloc": Amount(GIB)}
    one = Memory(0.01, swapped, GIB, 500, 40, 2500, (), HEAP)
    known = findings(measured(1, one))
    assert known["arenas"].figures == {"arenas": 40, "bytes": GIB}
    assert known["many-threads"].figures["threads"] == 2500
    assert known["swapped"].figures["bytes"] == 200 * MIB


def test_what_grew_between_two_looks():
    grew = findings(measured(1, memory(), memory(heap=5 * GIB), memory(heap=3 * GIB, malloc=2 * GIB)))["grew"]
    assert grew.figures == {"bytes": GIB, "seconds": 120} and grew.parts == {"malloc": 2 * GIB}
    ((severity, text, _),) = finding_lines([grew])
    assert severity == "info" and "grew by 1 GiB in 2.0 min: small pieces of malloc 2 GiB" in text
    assert not findings(measured(1, memory(), memory(heap=4 * GIB + MIB)))


def test_one_that_is_larger_than_the_others():
    usual = [measured(pid, memory()) for pid in range(1, 6)]
    known = findings(*usual, measured(9, memory(stacks=100 * MIB, shared=4 * GIB)))
    assert (known["differs"].pid, list(known["differs"].parts)) == (9, ["shared", "stacks"])
    assert "differs" not in findings(*usual[:2], measured(9, memory(shared=4 * GIB)))


def test_programs_without_a_main_class_are_compared_by_their_names():
    def native(pid, label, size):
        looks = ((100.0, memory(None, heap=0, anonymous=size)),)
        return MeasuredProcess(Process("n1", pid, 1, 0, "yarn", label), looks)

    shells = [native(pid, "bash", MIB) for pid in range(1, 6)]
    assert not findings(*shells, native(9, "python3", GIB))
    assert set(findings(*shells, native(9, "bash", GIB))) == {"differs"}


def test_histograms_are_merged():
    def counted(pid, *rows):
        classes = tuple(ClassMemory(name, 10, size) for name, size in rows)
        jvm = JvmMemory(True, histogram=Histogram(0.5, 10, 10, classes))
        return measured(pid, memory(jvm))

    result = analyse_memory(
        [counted(1, ("[B", 50), ("a.A", 20)), counted(2, ("[B", 70)), counted(3, ("[B", 60), ("a.A", 1))]
    )
    first, second = result.classes
    assert (first.name, first.bytes, first.median, first.largest) == ("[B", 180, 60, 70)
    assert (second.name, second.median, second.largest_process.process.pid) == ("a.A", 1, 1)
    text = "\n".join(memory_lines(result))
    assert "70 bytes (pid 2)" in text and "n1 pid 3 stood still for 500 ms" in text


def test_the_parts_are_all_that_is_resident():
    result = analyse_memory([measured(1, memory(stacks=MIB, files=2 * MIB)), measured(2, memory())])
    head, first, second, total, middle, *_ = (line.split() for line in memory_lines(result))
    assert head == ["HOST", "PID", "LIMIT", "RESIDENT", "HEAP", "STACKS", "ANONYMOUS", "FILES", "PROCESS"]
    assert first[:5] == ["n1", "1", "-", "4.1", "GiB"] and second[0] == "n1"
    assert (total[0], middle[0]) == ("all", "median")
    record = json.loads(json.dumps(memory_record(result)))
    look = record["processes"][0]["looks"][0]
    assert look["resident"] == sum(part["resident"] for part in look["parts"].values())


ONCE = Looks()
SAYS = """
import time
def amounts(pid, code="measured", status="ok", **parts):
    amount = {name: {"resident": size, "swap": 0} for name, size in parts.items()}
    memory = dict(seconds=0.1, parts=amount, proportional=1, mappings=9, arenas=1, threads=2, files=[],
                  jvm=None, group=None)
    return dict(pid=pid, status=status, stage="measure", code=code, reason=code, remedy="",
                memory=memory if parts else None)
def memory(*processes): say("memory", time=time.time(), processes=list(processes))
hello()
"""


@pytest.fixture
def measured_by(stand_ins):
    def measured_by(body, looks=ONCE, stop=None) -> HostMeasured:
        fleet = Fleet(stand_ins, 20, {"n1": SAYS + body})
        (host,) = measure(fleet.hosts, ANY, looks, fleet.reach, fleet.listener, stop)
        return host

    return measured_by


def test_looks_of_a_process_and_one_that_ends(measured_by):
    host = measured_by(
        "found(7, 8)\nread(); memory(amounts(7, heap=5), amounts(8, heap=9))\n"
        "read(); memory(amounts(7, heap=6), amounts(8, 'process-ended', 'failed'))\n"
        "asked = read(); assert len(asked['processes']) == 1 and asked['heap']\n"
        "memory(amounts(7, heap=7))\nread()",
        Looks(3, 0.1, heap=True),
    )
    assert [[look.resident for _, look in one.looks] for one in host.processes] == [[5, 6, 7], [9]]
    (ended,) = host.outcomes
    assert (ended.pid, ended.status, ended.reason) == (8, Status.DEGRADED, "look 2 of 3: process-ended")


def test_of_many_looks_only_the_last_names_files(measured_by):
    host = measured_by(
        "found(7)\nfor look in range(3):\n    said = amounts(7, heap=5)\n"
        "    said['memory']['files'] = [{'path': '/lib/a.so', 'resident': 1}]\n"
        "    read(); memory(said)\nread()",
        Looks(3, 0.1),
    )
    (one,) = host.processes
    assert [[file.path for file in look.files] for _, look in one.looks] == [[], [], ["/lib/a.so"]]
    assert [look.resident for _, look in one.looks] == [5, 5, 5]


def test_no_more_are_asked_than_there_is_time_for_if_none_answers(measured_by):
    host = measured_by(
        "found(*range(1, 10))\nfor some in (range(1, 9), range(9, 10)):\n"
        "    asked = [one['pid'] for one in read()['processes']]; assert asked == list(some)\n"
        "    memory(*(amounts(pid, heap=5) for pid in asked))\nread()"
    )
    assert len(host.processes) == 9 and not host.outcomes


def test_with_a_histogram_jvms_are_asked_one_by_one(measured_by):
    host = measured_by(
        "found(7, 8)\nfor pid in (7, 8):\n    asked = read(); assert asked['heap']\n"
        "    assert [one['pid'] for one in asked['processes']] == [pid]\n"
        "    memory(amounts(pid, heap=5))\nread()",
        Looks(heap=True),
    )
    assert len(host.processes) == 2 and not host.outcomes


def test_one_that_cannot_be_read_and_a_host_that_is_lost(measured_by):
    refused = "found(7, 8)\nread(); memory(amounts(7, heap=5), amounts(8, 'not-permitted', 'failed'))\nread()"
    host = measured_by(refused)
    (outcome,) = host.outcomes
    assert (outcome.pid, outcome.code) == (8, "not-permitted") and len(host.processes) == 1
    lost = measured_by("found(7)\nread(); sys.exit(3)")
    assert {(one.pid, one.status, one.lost) for one in lost.outcomes} == {
        (None, Status.FAILED, False),
        (7, Status.FAILED, True),
    }


def test_an_interrupt_keeps_what_there_is(measured_by):
    stop = Stop()
    threading.Timer(0.5, stop.request, [2]).start()
    host = measured_by("found(7)\nread(); memory(amounts(7, heap=5))\nread()", Looks(5, 600.0), stop)
    assert len(host.processes) == 1 and len(host.processes[0].looks) == 1


def test_many_jvms_stand_still_only_if_the_user_agrees(stand_ins):
    def ask(*pids):
        fleet = Fleet(stand_ins, 20, {"n1": f"hello()\nfound(*{pids})\nread()"})
        refuse_unasked(fleet.hosts, ANY, fleet.reach)

    ask(1, 2, 3, 4)
    with pytest.raises(UsageError) as refused:
        ask(1, 2, 3, 4, 5)
    assert "5 JVMs will stand still" in refused.value.reason and "--yes" in refused.value.remedy


USUAL = {"seconds": 1, "parts": {}, "proportional": 1, "mappings": 1, "arenas": 0, "threads": 1, "files": []}


@pytest.mark.parametrize(
    "wrong",
    [
        {"parts": {"unheard": {"resident": 1, "swap": 0}}},
        {"parts": {"heap": {"resident": -1, "swap": 0}}},
        {"files": [{"path": "x", "resident": 1}] * 101},
        {"jvm": {"heap_found": True, "flags": {"\x1b[2J": 1}}},
    ],
)
def test_what_an_agent_may_not_say(wrong):
    usual = {
        "seconds": 1,
        "parts": {},
        "proportional": 1,
        "mappings": 1,
        "arenas": 0,
        "threads": 1,
        "files": [],
    }
    process = {"pid": 7, "status": "ok", "stage": "measure", "memory": usual}
    line = {"type": "memory", "time": 1, "processes": [process]}
    assert isinstance(decode(json.dumps(line).encode()), MemoryMessage)
    process["memory"] = {**USUAL, **wrong}
    with pytest.raises(BadEvent):
        decode(json.dumps(line).encode())


def test_names_are_printed_in_one_line():
    files = [{"path": "/a\nb", "resident": 1}]
    process = {"pid": 7, "status": "ok", "stage": "measure", "memory": {**USUAL, "files": files}}
    event = decode(json.dumps({"type": "memory", "time": 1, "processes": [process]}).encode())
    assert isinstance(event, MemoryMessage)
    (one,) = event.processes
    assert one.memory and one.memory.files[0].path == "/a b"
