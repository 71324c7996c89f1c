"""What stands out in made-up runs: each rule where it speaks, and where it must not."""

from __future__ import annotations

import random
import re

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis.attribution import attribute
from hprofiler.analysis.facts import read_facts
from hprofiler.analysis.findings import MOST, findings
from hprofiler.analysis.outliers import Comparison
from hprofiler.analysis.subject import Evidence
from hprofiler.model.measures import measure_of
from hprofiler.report import make_report
from tests.unit.test_outliers import identical
from tests.viewer.block import facts, summaries
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite, spark_folded, spark_run

JOB = "java/lang/Thread.run_[j];com/acme/Job.run_[j]"
GC_THREAD = "start_thread;GangWorker::run_task(WorkData);G1ParScanThreadState::trim_queue()"
JIT_THREAD = "start_thread;CompileBroker::compiler_thread_loop();Compile::Compile()"


def of(folder, event="cpu"):
    """The findings of an event of a run folder, as a report has them."""
    facts = read_facts(folder.record).of(event)
    comparison, evidence, cluster = Comparison(event), Evidence(facts), None
    for host in facts.hosts:
        whole, behind = None, 0
        for recording in host.recordings:
            path = folder.profile_path(host.name, recording.pid, event)
            profile = Profile.open(path).canonical().select(measure_of(event).shown_first)
            evidence.add(host, recording, profile)
            behind += comparison.add_process(host, recording, profile, comparison.whole(profile))
            whole = merged(whole, profile)
        if whole is not None:
            comparison.add_host(host, whole, behind)
            cluster = merged(cluster, whole)
    return findings(facts, cluster, attribute(facts, cluster), comparison.finish(), evidence)


def merged(into, profile):
    return Profile.merged([into, profile]) if into is not None else profile


def texts(found):
    return [one.text.replace("\u202f", " ") for one in found]


def busy(found):
    """All but that made-up processes, of few samples in a minute, are idle."""
    return [text for text in texts(found) if not text.startswith("Mostly idle")]


def run_of(tmp_path, *folded, **options):
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
        "The hottest method by itself is Pattern.sequence: 20.1 %.",
    ]
    assert [one.method for one in found] == [
        "com/example/etl/AvroUtil.toAvroIdentifier",
        None,
        "java/util/regex/Pattern.sequence",
        None,
        "java/util/regex/Pattern.sequence",
    ]
    assert [one.host for one in found] == [None, None, "worker08.prod.example", None, None]


def test_identical_hosts_have_an_answer_and_nothing_else(tmp_path):
    dice = random.Random(1)
    for number in range(6):
        folder = make_run(tmp_path / str(number), identical(dice, 3 + number % 3, 300))
        (answer,) = busy(of(folder))
        assert re.fullmatch(r"[23]\d\.\d % of CPU time is spent in Job\.m0\.", answer)


def test_the_answer_is_what_the_hottest_own_method_does(tmp_path):
    row = f"{JOB};com/acme/Row.id_[j]"
    text = f"{row};java/util/regex/Pattern.compile_[j];java/util/regex/Pattern.expr_[i] 450\n"
    text += f"{row};java/util/HashMap.get_[j] 50\n{JOB};com/acme/Row.sum_[j] 500\n"
    assert texts(of(run_of(tmp_path, text)))[:2] == [
        "50.0 % of CPU time is spent in Row.id, of which 45.0 points compile regular expressions.",
        "The hottest method by itself is Row.sum: 50.0 %.",
    ]
    more = text.replace("Row.sum_[j] 500", "Row.sum_[j] 501")
    assert texts(of(run_of(tmp_path / "more", more)))[:2] == [
        "50.0 % of CPU time is spent in Row.sum.",
        "45.0 % of CPU time goes to compiling regular expressions.",
    ], "the hottest method takes more by itself than all that the other calls"


def test_what_a_library_calls_back_is_not_the_librarys(tmp_path):
    """A reader of JSON that calls the job's own code: that time is the job's."""
    reader = f"{JOB};com/fasterxml/jackson/databind/ObjectMapper.readValue_[j]"
    text = f"{reader};com/acme/Row.set_[j] 600\n{reader};java/util/HashMap.put_[j] 50\n{JOB} 350\n"
    assert texts(of(run_of(tmp_path, text))) == ["60.0 % of CPU time is spent in Row.set."]


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


def test_an_odd_host_has_its_garbage_collection_as_the_reason(tmp_path):
    hosts = [MadeHost(f"host{n}", {n: spark_folded(300, gc=100)}) for n in range(1, 7)]
    hosts.append(MadeHost("host7", {7: spark_folded(300, gc=600)}))
    found = of(make_run(tmp_path / "run", hosts))
    odd = next(one for one in found if one.host)
    assert odd.text.replace("\u202f", " ") == (
        "host7 spends 4.2 times the others’ share in GC: 35.1 % against 8.3 %."
    )
    assert odd.host == "host7"


def test_few_samples_are_a_finding(tmp_path):
    found = texts(of(run_of(tmp_path, f"{JOB};com/acme/Job.a_[j] 20\n{JOB};com/acme/Job.b_[j] 5\n")))
    assert found == [
        "80.0 % of CPU time is spent in Job.a.",
        "Only 25 samples were taken: shares may be off by 20 points. Record longer (-t) or more often.",
        "Mostly idle: 1 process used 0.0014 CPUs. What they wait for: -e offcpu.",
    ]


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


def test_alloc_and_locks_tell_who_and_what(tmp_path):
    alloc = f"{JOB};com/acme/Row.copy_[j];java/util/Arrays.copyOf_[j];byte[]_[i] {700 << 20}\n"
    alloc += f"{JOB};com/acme/Row.of_[j];com.acme.Row_[i] {300 << 20}\n"
    lock = f"{JOB};com/acme/Pool.take_[j];com.acme.Pool_[i] 9000000\n{JOB};java.lang.Object_[i] 1000000\n"
    hosts = [MadeHost("h", events={"alloc": {1: alloc}, "lock": {1: lock}})]
    folder = make_run(tmp_path / "run", hosts, events=("alloc", "lock"))
    run = content_of(folder)
    for recording in run["hosts"][0]["recordings"]:
        recording["samples"]["taken"] = 1000
    rewrite(folder, run)
    assert texts(of(folder, "alloc")) == [
        "70.0 % of allocated memory goes to byte[].",
        "Allocated most by Row.copy: 70.0 %.",
    ]
    # Two waits are all that is known of them.
    few = texts(of(folder, "lock"))
    assert few[0] == "Too few samples for shares: the hottest class is Pool."
    assert few[1].startswith("Only 2 samples were taken")


def test_names_and_reasons_from_hosts_keep_their_place(tmp_path):
    hosts = [MadeHost("<b>", {1: f"{JOB};com/acme/{'x' * 10_000}_[j] 900\n"})]
    hosts.append(MadeHost("h").fails("failed", "no " * 10_000))
    found = of(make_run(tmp_path / "run", hosts))
    assert len(found) <= MOST and all(len(one.text) < 600 for one in found)
    hosts = identical(random.Random(1), 4, 3000)
    hosts[0] = MadeHost("odd", {1: f"main;{'y' * 10_000} 3000\n"})
    assert all(len(one.text) < 600 for one in of(make_run(tmp_path / "odd", hosts)))


TLS = f"{JOB};sun/security/ssl/SSLSocketInputRecord.decode_[j]"


@pytest.mark.parametrize("event", ["wall", "offcpu"])
def test_waits_below_a_library_are_not_its_work(tmp_path, event):
    """Below the library a thread waits for the other end: it does not encrypt all the time."""
    waits = f"{TLS};sun/nio/ch/SocketDispatcher.read0_[0];__libc_read 6000000000\n{JOB} 4000000000\n"
    folder = make_run(tmp_path / "run", [MadeHost("h", events={event: {1: waits}})], events=(event,))
    run = content_of(folder)
    run["hosts"][0]["recordings"][0]["samples"]["taken"] = 1000
    rewrite(folder, run)
    assert not [text for text in texts(of(folder, event)) if "goes to" in text]
    busy = f"{TLS} 600\n{JOB} 400\n"
    assert [text for text in texts(of(run_of(tmp_path, busy))) if "goes to" in text or "encrypt" in text]


def test_idle_threads_are_left_out_and_counted(tmp_path):
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


def test_off_cpu_time_is_split_by_kind_of_wait(tmp_path):
    stacks = {"sleep": 3, "lock": 5, "idle pool thread": 92}
    text = "".join(f"[worker];[{kind}];{JOB};com/acme/Job.m_[j] {n}000000000\n" for kind, n in stacks.items())
    found, report = of_event(tmp_path, "offcpu", text)
    assert found[1] == "By kind of wait besides idle threads: [lock] 62.5 %, [sleep] 37.5 %."
    (event,) = report.events
    assert event.share_of == "off-CPU time besides idle threads" and event.attributed < event.total
    page = report.page.read_text()
    assert "Shares are of off-CPU time besides idle threads; the graph has all." in page
    assert "[lock] 62.5\u202f%" in page


def test_calls_are_attributed_to_their_callers(tmp_path):
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
