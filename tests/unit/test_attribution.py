"""Tables and sentences name the methods that wait and allocate, not the functions of JVM and kernel below."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler import Profile
from hprofiler.analysis.attribution import Attribution, Method, attribute
from hprofiler.analysis.facts import read_facts
from hprofiler.analysis.heaviest import heaviest
from hprofiler.analysis.profiles import Names
from hprofiler.analysis.result import ProfileSink, analyze_event
from hprofiler.analysis.subject import Walk
from tests.viewer.made_run import MadeHost, make_run, record_of

KERNEL = "entry_SYSCALL_64_[k];do_futex_[k];futex_wait_queue_[k];schedule_[k]"
PARKED = f"Unsafe_Park;Parker::park;pthread_cond_timedwait;__futex_abstimed_wait_common64;{KERNEL}"
PARK = f"java/util/concurrent/locks/LockSupport.park_[j];jdk/internal/misc/Unsafe.park_[0];{PARKED}"


def of_run(event: str, profile: Profile, *engines: str) -> Attribution:
    """The attribution in a run of one host with a process per engine."""
    recordings = [
        {"process": {"pid": pid}, "event": event, "engine": engine}
        for pid, engine in enumerate(engines or ["async-profiler"], 1)
    ]
    facts = read_facts(
        record_of({"sampling": {"events": [event]}, "hosts": [{"name": "h", "recordings": recordings}]})
    )
    return attribute(facts, profile)


def own_values(told: Attribution) -> dict[str, int]:
    """The methods with a value of their own."""
    return {one.name: one.self_value for one in told.profile.top(20) if one.self_value}


def told(event: str, *stacks: str) -> dict[str, int]:
    return own_values(of_run(event, Profile.from_bytes("\n".join(stacks).encode(), "folded")))


@pytest.mark.parametrize("event", ["offcpu", "wall"])
def test_waits_are_named_by_what_is_waited_for_and_by_whom(event: str) -> None:
    stacks = [
        f"Shop.sell_[j];java/util/concurrent/locks/ReentrantLock.lock_[j];{PARK} 5",
        f"Shop.buy_[j];java/util/concurrent/LinkedBlockingQueue.take_[j];{PARK} 3",
        f"Shop.nap_[0];java/lang/Thread.sleep_[0];JVM_Sleep;os::sleep;/lib/x86_64/libc.so.6;{KERNEL} 2",
        "Shop.ask_[j];java/net/Socket.read_[0];sun/nio/ch/Net.poll_[0];Java_sun_nio_ch_Net_poll;__poll;"
        f"{KERNEL} 7",
        f"Shop.lock_[1];monitorenter_nofpu Runtime1 stub;Runtime1::monitorenter;ObjectMonitor::enter;"
        f"os::PlatformEvent::park;___pthread_cond_wait;{KERNEL} 4",
        "start_thread;JavaThread::run;CompileQueue::get;Monitor::wait;os::PlatformMonitor::wait 1",
    ]
    expected = {
        "waits for the network in Shop.ask": 7,
        "waits for a lock in Shop.sell": 5,
        "waits for a monitor in Shop.lock": 4,
        "waits for a queue in Shop.buy": 3,
        "sleeps in Shop.nap": 2,
    }
    # Off-CPU time marks idle threads with a frame, which this stack lacks.
    of_the_jvm = {"waits for work in CompileQueue::get": 1} if event == "offcpu" else {}
    assert told(event, *stacks) == {**expected, **of_the_jvm}


RUN = "java/lang/Thread.run_[j];java/util/concurrent/ThreadPoolExecutor.runWorker_[j]"
NATIVE = "clone3;start_thread;thread_native_entry;Thread::call_run"
MUTEX = f"os::PlatformMonitor::wait;___pthread_cond_wait;{KERNEL}"


@pytest.mark.parametrize(
    "idle",
    [
        f"{RUN};java/util/concurrent/ThreadPoolExecutor.getTask_[j];"
        f"java/util/concurrent/LinkedBlockingQueue.take_[0];{PARK}",
        "io/netty/channel/nio/NioEventLoop.run_[j];io/netty/channel/nio/NioEventLoop.select_[j];"
        "sun/nio/ch/SelectorImpl.select_[j];sun/nio/ch/EPoll.wait_[0];epoll_wait",
        f"{NATIVE};VMThread::run;VMThread::wait_for_operation;Monitor::wait_without_safepoint_check;{MUTEX}",
    ],
)
def test_idle_threads_are_left_out_of_the_wall_clock(idle: str) -> None:
    stacks = [
        f"{idle} 83",
        f"{RUN};Shop.sell_[j];java/util/concurrent/LinkedBlockingQueue.take_[0];{PARK} 5",
        "Shop.serve_[j];sun/nio/ch/SelectorImpl.select_[j];sun/nio/ch/EPoll.wait_[0];epoll_wait 4",
        f"{RUN};Shop.count_[j] 3",
        f"{NATIVE};GangWorker::loop;GangWorker::run_task;G1ParScanThreadState::trim_queue 3",
        f"{NATIVE};CompileBroker::compiler_thread_loop();Compile::Compile 2",
    ]
    assert told("wall", *stacks) == {
        "waits for a queue in Shop.sell": 5,
        "waits for the network in Shop.serve": 4,
        "Shop.count": 3,
        "G1ParScanThreadState::trim_queue": 3,
        "Compile::Compile": 2,
    }
    profile = Profile.from_bytes("\n".join(stacks).encode(), "folded")
    assert of_run("wall", profile).share_of == "wall-clock time besides idle threads"
    assert profile.total() == 100, "the picture has all"
    assert of_run("cpu", profile).profile.total() == 100


@pytest.mark.parametrize("event", ["com.acme.Row.parse", "com.acme.Row.*"])
def test_calls_belong_to_the_caller(event: str) -> None:
    stacks = [
        "java/lang/Thread.run_[j];com/acme/Job.load_[j];com/acme/Row.parse_[i] 7",
        "java/lang/Thread.run_[j];com/acme/Job.check_[0];com/acme/Row.parse_[j] 2",
        "com/acme/Row.parse_[j] 1",
    ]
    assert told(event, *stacks) == {"com/acme/Job.load": 7, "com/acme/Job.check": 2, "com/acme/Row.parse": 1}


HANDLER = (
    "__restore_rt;WallClock::signalHandler(int, siginfo_t*, void*);Profiler::recordSample;StackWalker::walkVM"
)


@pytest.mark.parametrize(
    "own",
    [
        f"Shop.sell_[j];{HANDLER}",
        "Shop.sell_[j];Profiler::crashHandler",
    ],
)
def test_the_profilers_own_work_is_not_named(own: str) -> None:
    both = Profile.from_bytes(f"{own} 3\nShop.sell_[j];Shop.buy_[j] 1\n".encode(), "folded")
    of_both = of_run("cpu", both)
    assert [one for one in of_both.methods if one.self_value] == [Method("Shop.buy", 1, 1)]
    assert (of_both.methods[1], of_both.attributed) == (Method("Shop.sell", 0, 4), 4), (
        "shares as in the graph"
    )
    assert (of_both.profiler, of_both.only_profiler) == (3, False)
    assert of_both.share_of == "CPU time"
    alone = of_run("cpu", Profile.from_bytes(f"{own} 3\n".encode(), "folded"))
    assert (alone.profile.total(), alone.profiler, alone.only_profiler, alone.besides) == (3, 0, True, "")
    idle = "VMThread::run;Monitor::wait_without_safepoint_check;futex_wait 9"
    mixed = Profile.from_bytes(f"{idle}\n{own} 3\nShop.sell_[j];Shop.buy_[j] 1\n".encode(), "folded")
    assert of_run("wall", mixed).besides == " besides idle threads"


def test_the_heaviest_processes_and_their_hottest_methods(tmp_path: Path) -> None:
    texts: dict[int, str | bytes] = {7: "main;x 3\nmain;y 5\n", 8: "main;z 20\n", 9: "main;w 2\n"}
    run = make_run(tmp_path / "run", [MadeHost("h", texts)])
    found = heaviest(run, analyze_event(run, read_facts(run.record), Names(), ProfileSink()), 2)
    assert [(one.process.pid, one.cost, *one.hottest[:2]) for one in found] == [
        (8, 20, "z", 20),
        (7, 8, "y", 5),
    ]


def test_idle_threads_make_no_process_heavy(tmp_path: Path) -> None:
    idle = "java/util/concurrent/ThreadPoolExecutor.getTask_[j];jdk/internal/misc/Unsafe.park_[0]"
    texts: dict[int, str | bytes] = {7: f"{idle} 90\n", 8: f"{idle} 80\nmain;x 1\n", 9: "main;y 3\n"}
    run = make_run(tmp_path / "run", [MadeHost("h", events={"wall": texts})], events=("wall",))
    event = analyze_event(run, read_facts(run.record), Names(), ProfileSink())
    found = heaviest(run, event, 2)
    assert [(one.process.pid, one.cost, one.hottest.name) for one in found] == [(9, 3, "y"), (8, 1, "x")]
    assert sum(one.cost for one in found) == event.attributed


def test_what_is_left_out_of_a_large_tree_is_not_its_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of what sorts is for Cold, on many small paths; Hot has the largest one."""
    monkeypatch.setattr("hprofiler.analysis.subject._MOST_NODES", 20)
    paths = [
        f"a/Hot.run_[j];a/P{one}.visit_[j];a/Cold.make_[j];java/util/Arrays.sort_[j] 10" for one in range(100)
    ]
    text = "\n".join([*paths, "a/Hot.run_[j];java/util/Arrays.sort_[j] 900"])
    made = of_run("cpu", Profile.from_bytes(text.encode(), "folded"))
    walk = Walk(made.profile)
    assert walk.owners["a/Hot.run"] in (0, 900)
    assert walk.owner_of(made.methods[0]) == ""
