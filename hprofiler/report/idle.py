"""Threads that wait for work, told apart from those that wait for something.

Off-CPU time has a frame for them. A wall-clock profile has none, and its stacks are judged here, by all
methods by which that frame is given (flamegraph's jfr/waits.rs; a test finds one that is missing here) and by
some for which that looks at the whole stack.
"""

from __future__ import annotations

from hprofiler._flamegraph import Profile

_OFF_CPU = (r"^\[idle pool thread\]$",)
# Methods and functions that do nothing but wait for work: wherever they are on a stack, the thread is idle.
_METHODS = (
    r"^java[./]util[./]concurrent[./](?:ThreadPoolExecutor\.getTask"
    r"|ScheduledThreadPoolExecutor\$DelayedWorkQueue\.take|ForkJoinPool\.awaitWork)$",
    r"^java[./]lang[./]ref[./](?:Reference\.waitForReferencePendingList|ReferenceQueue\.remove)$",
    r"io[./]netty[./]channel[./](?:nio[./]Nio(?:EventLoop|IoHandler)\.select$|epoll[./]Native\.epoll(?:Busy)?Wait)",
    r"io[./]netty[./]util[./](?:concurrent[./](?:SingleThread|Global)EventExecutor\.takeTask"
    r"|HashedWheelTimer\$Worker\.waitForNextTick)$",
    r"jetty[./](?:util[./]thread[./](?:QueuedThreadPool\.idleJobPoll"
    r"|ReservedThreadExecutor\$ReservedThread\.reservedWait)|io[./]ManagedSelector(?:.*\.select|\.nioSelect))$",
    r"^org[./]apache[./]tomcat[./]util[./]threads[./]TaskQueue\.(?:take|poll)$",
    r"^org[./]apache[./]hadoop[./](?:ipc[./](?:CallQueueManager\.take|Client\$Connection\.waitForWork)"
    r"|hbase[./]ipc[./]RpcHandler\.getCallRunner|net[./]unix[./]DomainSocketWatcher\.doPoll0)$",
    r"^org[./]apache[./]flink[./]streaming[./]runtime[./]tasks[./]mailbox[./]TaskMailboxImpl\.take$",
)
# The JVM's own threads; the engine's; the launcher. A Java thread in these waits for something: for ZGC.
_OF_THE_JVM = (
    r"^(?:Monitor::wait_without_safepoint_check|PosixSemaphore::wait|CompileQueue::get|\w*AttachListener::dequeue"
    r"|os::signal_wait\w*|Profiler::timerLoop|JLI_Launch)(?:\(|$)",
)
_JAVA = r"^(?:[\w$]+[./])*[A-Z][\w$]*\.[a-z_$<][\w$<>]*$"


def busy(event: str, profile: Profile) -> Profile:
    """The stacks of threads that are not idle; there may be none. All of an event that counts no waits."""
    if event == "offcpu":
        return profile.filter(exclude=list(_OFF_CPU))
    if event != "wall":
        return profile
    at_work = profile.filter(exclude=list(_METHODS))
    native = at_work.filter(exclude=[_JAVA, *_OF_THE_JVM])
    return Profile.merged([at_work.filter(include=_JAVA), native])
