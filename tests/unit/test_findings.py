"""Findings in made-up runs: where each rule applies, and where it must not."""

from __future__ import annotations

import pytest

from hprofiler.model.metrics import Metrics, Series
from hprofiler.report import make_report
from hprofiler.runfolder.metrics_file import write_metrics
from tests.viewer.made_profile import counted
from tests.viewer.made_run import MadeHost, changed, make_run, spark_run

JOB = "java/lang/Thread.run_[j];com/acme/Job.run_[j]"
GC_THREAD = "start_thread;GangWorker::run_task(WorkData);G1ParScanThreadState::trim_queue()"
JIT_THREAD = "start_thread;CompileBroker::compiler_thread_loop();Compile::Compile()"


def of(folder, event="cpu"):
    """The findings of one event in the report of a run folder."""
    (found,) = [one.findings for one in make_report(folder.path).events if one.event == event]
    return list(found)


def texts(found):
    return [one.text.replace("\u202f", " ") for one in found]


def run_of(tmp_path, *folded):
    return make_run(tmp_path / "run", [MadeHost(f"h{n}", {n + 1: text}) for n, text in enumerate(folded)])


def test_the_findings_of_a_cluster(tmp_path):
    found = of(spark_run(tmp_path / "run"))
    assert texts(found) == [
        "30.1 % of CPU time is spent in AvroUtil.toAvroIdentifier, of which 20.1 points compile regular"
        " expressions.",
        "1 of 16 processes and 1 of 9 hosts are missing here: the JVM was started with"
        " -XX:+DisableAttachMechanism, and 1 other reason.",
        "worker08.prod.example is unlike the others: Pattern.sequence 43.1 % here, 15.5 % usually.",
        "Garbage collection takes 14.9 % of CPU time.",
        "The method with the highest self cost is Pattern.sequence: 20.1 %.",
    ]
    assert [one.method for one in found] == [
        "com/example/etl/AvroUtil.toAvroIdentifier",
        None,
        "java/util/regex/Pattern.sequence",
        None,
        "java/util/regex/Pattern.sequence",
    ]
    assert [one.host for one in found] == [None, None, "worker08.prod.example", None, None]
    assert [one.code for one in found] == ["own-method", "missing", "unlike-host", "gc", "hottest-itself"]
    assert found[0].parts[0] == ("share", "30.1\u202f%")
    assert found[0].parts[2] == ("method", "AvroUtil.toAvroIdentifier")


def test_the_answer_names_the_hottest_method_of_the_job(tmp_path):
    row = f"{JOB};com/acme/Row.id_[j]"
    text = f"{row};java/util/regex/Pattern.compile_[j];java/util/regex/Pattern.expr_[i] 450\n"
    text += f"{row};java/util/HashMap.get_[j] 50\n{JOB};com/acme/Row.sum_[j] 500\n"
    assert texts(of(run_of(tmp_path, text)))[:2] == [
        "50.0 % of CPU time is spent in Row.id, of which 45.0 points compile regular expressions.",
        "The method with the highest self cost is Row.sum: 50.0 %.",
    ]
    more = text.replace("Row.sum_[j] 500", "Row.sum_[j] 501")
    assert texts(of(run_of(tmp_path / "more", more)))[:2] == [
        "50.0 % of CPU time is spent in Row.sum.",
        "45.0 % of CPU time goes to compiling regular expressions.",
    ], "the hottest method takes more by itself than all that the other calls"


@pytest.mark.parametrize(
    ("costs", "first"),
    [
        ([100] * 6, "6 methods are alike, such as Job.m0: 16.7 % of CPU time."),
        ([1000, 940, 900, 100], "34.0 % of CPU time is spent in Job.m0."),
        ([9, 2, 1], "75.0 % of CPU time is spent in Job.m0."),
        ([7, 6, 5], "Too few samples for shares: the hottest method is Job.m0."),
    ],
)
def test_what_the_headline_says_of_methods_that_are_alike_and_of_few_samples(tmp_path, costs, first):
    """A share is in the headline if it is more than chance, and names one of several only if it is more."""
    text = "".join(f"{JOB};com/acme/Job.m{number}_[j] {cost}\n" for number, cost in enumerate(costs))
    assert texts(of(run_of(tmp_path, text)))[0] == first


@pytest.mark.parametrize(("gc", "told"), [(200, True), (100, False), (0, False)])
def test_garbage_collection_is_a_finding_from_a_tenth_on(tmp_path, gc, told):
    found = texts(of(run_of(tmp_path, f"{JOB} {1000 - gc}\n{GC_THREAD} {max(gc, 1)}\n")))
    assert ("Garbage collection takes 20.0 % of CPU time." in found) == told and len(found) == 1 + told


def test_compilers_and_kernel_code(tmp_path):
    text = f"{JOB};java/io/FileInputStream.read_[j];__libc_read;do_syscall_64_[k];vfs_read_[k] 600\n"
    found = of(run_of(tmp_path, f"{text}{JIT_THREAD} 300\n{JOB} 100\n"))
    assert texts(found) == [
        "60.0 % of CPU time is spent in vfs_read, most of it for Job.run.",
        "The JIT compilers take 30.0 % of CPU time, as while JVMs warm up.",
        "Kernel code takes 60.0 % of CPU time, most of it called by __libc_read.",
    ]
    assert found[2].method == "__libc_read"


def test_few_samples_are_a_finding(tmp_path):
    found = texts(of(run_of(tmp_path, f"{JOB};com/acme/Job.a_[j] 20\n{JOB};com/acme/Job.b_[j] 5\n")))
    assert found == [
        "80.0 % of CPU time is spent in Job.a.",
        "Only 25 samples were taken: shares may be off by 20 points. Record longer (-t) or more often.",
        "Mostly idle: 1 process used 0.0014 CPUs. What they wait for: -e offcpu.",
    ]


def test_who_keeps_what_it_allocates_is_named_also_where_garbage_leads(tmp_path):
    decode, put = (f"{JOB};com/acme/{name}_[j];byte[]_[i]" for name in ("Job.decode", "Cache.put"))
    live = f"{decode} {80 << 20}\n{put} {10 << 20}\n"
    alloc = f"{decode} {900 << 20}\n{put} {11 << 20}\n"
    for events in (("live", "alloc"), ("live",)):
        stacks = {"live": {7: live}, "alloc": {7: alloc}}
        host = MadeHost("h", events={event: stacks[event] for event in events})
        folder = make_run(tmp_path / "-".join(events), [host], events=events)
        start = 1_795_000_000_000_000
        steps = [30 << 20, *[2 << 20] * 7]  # 2 MiB more a second
        heap = [
            Series("jvm", "7", name, "gauge", "bytes", tuple(values))
            for name, values in (("used_eden", [9, *[0] * 7]), ("used_old", steps))
        ]
        write_metrics(folder.metrics_path("h"), Metrics(1.0, (start, *[10**6] * 7), {"cpus": 2}, tuple(heap)))
        (text,) = texts(one for one in of(folder, "live") if one.code == "live-kept")
        grew = "he heap without eden grew from 30 MiB to 42 MiB"
        if events == ("live",):
            assert text == f"T{grew}. With -e live,alloc the report says who keeps what it allocates."
        else:
            keeps = "Cache.put keeps 90.9 % of what it allocated, 10 MiB: a leak, if that goes on."
            assert text == f"{keeps} Meanwhile t{grew}."


SLEEP = f"{JOB};com/acme/Job.pace_[j];java/lang/Thread.sleep_[j]"
IN_LOCK = "_complete_monitor_locking_Java;ObjectMonitor::enter;___pthread_cond_wait"
MONITOR = f"{JOB};com/acme/Job.update_[j];{IN_LOCK}"


def test_a_run_that_waits_begins_with_what_it_waits_for(tmp_path):
    wall = {1: counted("wall", f"{SLEEP} 800\n{MONITOR} 150\n{JOB} 50\n")}
    host = MadeHost("h", {1: f"{JOB} 20\n"}, events={"wall": wall})
    folder = make_run(tmp_path / "run", [host], events=("cpu", "wall"))
    first, cpu = make_report(folder.path).events
    assert (first.event, cpu.event) == ("wall", "cpu")
    assert texts(cpu.findings)[-1].endswith("CPUs. What they wait for is in wall.")
    # A sleep is deliberate: it leads only where there is nothing else.
    answer = texts(first.findings)[0]
    assert answer == "15.0 % of wall-clock time is spent waiting for a monitor in Job.update."
    more = "More is spent sleeping in Job.pace (80.0 %). Then Job.run (5.0 %)."
    assert first.second.replace("\u202f", " ") == more
    only = {"wall": {1: counted("wall", f"{SLEEP} 990\n{MONITOR} 10\n")}}
    folder = make_run(tmp_path / "only", [MadeHost("h", events=only)], events=("wall",))
    assert "99.0 % of wall-clock time is spent sleeping in Job.pace." in texts(of(folder, "wall"))


def perf_run(tmp_path, notes):
    hosts = [MadeHost("h", dict.fromkeys(range(1, 11), f"{JOB} 4000\n"))]
    for pid, (event, share) in enumerate(notes, 1):
        hosts[0].fails("degraded", "any words", "restart it", pid=pid)
        note = {"code": "no-frame-pointers", "reason": "any words", "remedy": "restart it"}
        hosts[0].outcomes[-1]["notes"] = [{**note, "parameters": {"event": event, "share": share}}]
    return make_run(tmp_path / "run", hosts)


def test_broken_stacks_are_weighed_by_samples(tmp_path):
    found = texts(of(perf_run(tmp_path, [("cpu", 0.4)] * 3)))
    assert "About 12 % of the stacks are broken: PreserveFramePointer is off on 3 processes." in found
    few = [("page-faults", 0.4), ("cpu", 0.001)]
    assert len(of(perf_run(tmp_path / "of another event", few))) == 1


def test_findings_of_alloc_and_lock(tmp_path):
    alloc = f"{JOB};com/acme/Row.copy_[j];java/util/Arrays.copyOf_[j];byte[]_[i] {700 << 20}\n"
    alloc += f"{JOB};com/acme/Row.of_[j];com.acme.Row_[i] {300 << 20}\n"
    lock = f"{JOB};com/acme/Pool.take_[j];com.acme.Pool_[i] 9000000\n{JOB};java.lang.Object_[i] 1000000\n"
    hosts = [MadeHost("h", events={"alloc": {1: alloc}, "lock": {1: lock}})]
    folder = make_run(tmp_path / "run", hosts, events=("alloc", "lock"))
    with changed(folder) as run:
        for recording in run["hosts"][0]["recordings"]:
            recording["samples"]["taken"] = 1000
    assert texts(of(folder, "alloc")) == [
        "70.0 % of allocated memory goes to byte[].",
        "Allocated most by Row.copy: 70.0 %.",
    ]
    # There were two waits only.
    few = texts(of(folder, "lock"))
    assert few[0] == ("Too few samples for shares: most time is spent waiting for a monitor in Pool.take.")
    assert few[1:2] == ["By lock: Pool 90.0 %, Object 10.0 %."]
    assert few[2].startswith("Only 2 samples were taken")


def test_what_pythons_threads_did(tmp_path):
    """Beside a JVM's thread."""
    stacks = "[T];[holds the GIL];f (a.py) 3000000000\n[T];[runs without the GIL];g (a.py) 1000000000\n"
    stacks += f"[T];[waiting];f (a.py) 6000000000\n{JOB};com/acme/Job.a_[j] 9000000000\n"
    folder = make_run(tmp_path / "run", [MadeHost("h", events={"wall": {1: stacks}})], events=("wall",))
    (finding,) = [one for one in of(folder, "wall") if one.code == "gil"]
    (text,) = texts([finding])
    assert text == (
        "Python’s threads spend 30.0 % of their time with the GIL, 10.0 % running without it, 60.0 % waiting."
    )


def test_idle_threads_are_left_out_and_counted(tmp_path):
    """Two processes, each with eight threads of a pool and one that waits for others."""
    getting = "java/util/concurrent/ThreadPoolExecutor.getTask_[j];jdk/internal/misc/Unsafe.park_[0]"
    stacks = f"{JOB};java/net/Socket.read_[j] 60000000000\n{getting} 480000000000\n"
    host = MadeHost("h", events={"wall": {1: stacks, 2: stacks}})
    folder = make_run(tmp_path / "run", [host], events=("wall",))
    answer, *others = texts(of(folder, "wall"))
    assert answer == "Too few samples for shares: the hottest method is Job.run."
    left = "left out of sentences, tables and the page"
    assert f"Idle threads, 88.9 % of all wall-clock time, are {left}: about 16 of 18 threads." in others


def test_off_cpu_time_is_split_by_kind_of_wait(tmp_path):
    stacks = {"sleep": 3, "lock": 5, "idle pool thread": 92}
    text = "".join(f"[worker];[{kind}];{JOB};com/acme/Job.m_[j] {n}000000000\n" for kind, n in stacks.items())
    host = MadeHost("h", events={"offcpu": {1: text}})
    found = texts(of(make_run(tmp_path / "run", [host], events=("offcpu",)), "offcpu"))
    assert found[1] == "By kind of wait besides idle threads: locks 62.5 %, sleep 37.5 %."


@pytest.mark.parametrize(
    ("engine", "of_worker", "told"),
    [
        (
            "async-profiler",
            None,
            "3 Python workers used 6.0 s of CPU and were not recorded; what is recorded used 4.0 s.",
        ),
        ("auto", 2.0, "Python workers used 4.0 s of CPU and were not recorded; what is recorded used 6.0 s."),
        ("auto", 5.0, None),
    ],
)
def test_python_workers_that_were_not_recorded(tmp_path, engine, of_worker, told):
    pids = {7: f"{JOB} 90\n"} | ({} if of_worker is None else {8: f"{JOB} 10\n"})
    folder = make_run(tmp_path / "run", [MadeHost("h", pids)])
    with changed(folder) as record:
        record["sampling"]["engine"] = engine
        jvm, *workers = sorted(record["hosts"][0]["recordings"], key=lambda one: one["process"]["pid"])
        jvm["cpu_seconds"] = 4.0
        for one in workers:
            one["cpu_seconds"] = of_worker
            one["process"]["labels"] = {"parent": "7"}
    series = [
        Series("process", "7", "python_ticks", "counter", "ticks", (100, 250, 350)),
        Series("process", "7", "python_workers", "gauge", "count", (0, 3, -1)),
    ]
    metrics = Metrics(1.0, (10**15, 10**6, 10**6), {"ticks_per_second": 100}, tuple(series))
    write_metrics(folder.metrics_path("h"), metrics)
    found = [one for one in of(folder) if one.code == "python-not-recorded"]
    assert [one.text.startswith(str(told)) for one in found] == [True] * (told is not None)
    figures = (told or "").split()
    seconds = [float(figures[at - 1]) for at, word in enumerate(figures) if word in ("s", "s.")]
    assert [list(one.parameters.values()) for one in found] == ([seconds] if told else [])


def test_live_objects_that_may_be_garbage_or_were_cut(tmp_path):
    stack = f"{JOB};byte[]_[i]"
    folder = make_run(
        tmp_path / "run", [MadeHost("h", events={"live": {7: f"{stack} 90\n"}})], events=("live",)
    )
    start = 1_700_000_000_000_000
    pauses = {"pid": 7, "collectors": ["G1"], "collector": [0], "end": [start + 7_500_000], "duration": [900]}
    with changed(folder) as record:
        record["hosts"][0]["recordings"][0] |= {"seconds": 10.0, "times": {"start": start, "width": 20_000}}
    plain = "Objects that no collection has freed yet count as live, garbage too"
    assert plain + "." in texts(of(folder, "live"))
    with changed(folder) as record:
        record["hosts"][0]["pauses"] = [pauses]
    assert f"{plain}: the collectors last ran 2.5 s before the end." in texts(of(folder, "live"))
    heap = [
        Series("jvm", "7", name, "gauge", "bytes", values)
        for name, values in (("used_eden", (9, 1 << 30)), ("used_old", (9, -4)))
    ]
    write_metrics(folder.metrics_path("h"), Metrics(1.0, (start, 10**6), {"cpus": 2}, tuple(heap)))
    left = "The heap without eden had 5 bytes in use at the end, less than these "
    assert any(text.startswith(left) for text in texts(of(folder, "live")))
    of_zgc = Metrics(1.0, (start, 10**6), {"cpus": 2}, tuple(heap[1:]))
    write_metrics(folder.metrics_path("h"), of_zgc)
    assert not any(" without eden " in text for text in texts(of(folder, "live"))), "it is not known"
    write_metrics(folder.metrics_path("h"), Metrics(1.0, (start, 10**6), {"cpus": 2}, tuple(heap)))
    with changed(folder) as record:
        record["hosts"][0]["pauses"] = [{**pauses, "collector": [], "end": [], "duration": []}]
        reason, parameters = "live objects were cut at 1024 samples", {"event": "live", "bytes": 4 << 20}
        line = {"host": "h", "pid": 7, "status": "degraded", "code": "live-cut", "reason": reason}
        record["hosts"][0]["outcomes"] = [{**line, "parameters": parameters}]
    cut, garbage = (one.text for one in of(folder, "live") if one.caveat)
    assert cut == "Live objects were cut in 1 process: record with --alloc-interval 4m."
    assert garbage == f"{plain}: no collector ran during the recording."
    assert not any(text.startswith(left) for text in texts(of(folder, "live"))), "nothing was collected"
    with changed(folder) as record:
        record["hosts"][0]["outcomes"] = [{**line, "parameters": {**parameters, "bytes": "x"}}]
    assert any("with a larger --alloc-interval" in text for text in texts(of(folder, "live")))
    assert "live objects were cut" in (folder.path / "cluster/live.svg").read_text()


@pytest.mark.parametrize(("compiled", "leads"), [(520, True), (310, False), (290, False)])
def test_the_jit_compilers_are_the_answer_where_no_method_takes_as_much(tmp_path, compiled, leads):
    amounts = {"m0": 320, "m1": 20, "m2": 10}
    text = "".join(f"{JOB};com/acme/Job.{name}_[j] {amount}\n" for name, amount in amounts.items())
    text += "".join(f"{JIT_THREAD};Phase{at}::run {compiled // 10}\n" for at in range(10))
    found = texts(of(run_of(tmp_path, text)))
    share, of_method = (f"{100 * part / (compiled + 350):.1f}" for part in (compiled, 320))
    answer = f"{share} % of CPU time is spent in the JIT compilers, as while JVMs warm up."
    also = f"The JIT compilers take {share} % of CPU time, as while JVMs warm up."
    method = f"{of_method} % of CPU time is spent in Job.m0."
    assert found[:2] == ([answer, method] if leads else [method, also])
    assert sum("JIT" in one for one in found) == 1
