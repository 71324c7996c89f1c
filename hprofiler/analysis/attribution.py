"""Which method a cost belongs to.

The stack of a thread that waits ends in the scheduler, whatever it waits for. Every allocation of native
memory ends in malloc, and every call of a counted method in that method. Pictures show these frames; tables
and sentences name who waits, who allocates, who calls. They leave out idle threads and the profiler's own
work.

Off-CPU profiles have a frame for idle threads. A wall-clock profile has none: its stacks are judged by the
same rules, `flamegraph/rules/frames.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hprofiler._flamegraph import Method, Profile
from hprofiler.analysis.facts import ASYNC_PROFILER, RunFacts, root_patterns
from hprofiler.model.event_names import is_function, is_method, is_tracepoint
from hprofiler.model.measures import measure_of

_EVERYTHING = 2**31 - 1
_LIBRARIES = r"(?:^|/)(?:ld-|libc[.-]|libpthread|libjvm)[^/]*$"

# The C library's own names for a function, and what may stand behind it.
_C = r"^_*(?:GI_)?_*(?:libc_)?"
_END = r"(?:64)?(?:_nocancel|_cancel)?(?:@.*)?$"

# How threads wait: the C library, the JVM, the JDK's ways to block. Who calls these is who waits.
_WAITS = (
    _LIBRARIES,
    r"^_*(?:GI_)?_*(?:futex_(?:abstimed_)?wait\w*|lll_lock_wait\w*|pthread_(?:cond|mutex|rwlock|join)\w*)(?:@.*)?$",
    r"^_*(?:GI_)?_*(?:(?:new_)?sem_(?:timed|clock)?wait\w*(?:\.constprop\.\d+)?|syscall|start_thread|clone3?)$",
    rf"{_C}(?:clock_nanosleep|nanosleep|usleep|sleep|epoll_p?wait2?|p?poll|p?select|accept4?|connect){_END}",
    rf"{_C}(?:recv|send)(?:from|to|m?msg)?{_END}",
    rf"{_C}(?:p?readv?|p?writev?|fsync|fdatasync){_END}",
    r"^(?:Parker|ParkEvent|ObjectMonitor|ObjectSynchronizer|Monitor|Mutex|Semaphore|PosixSemaphore|LockTracer)::",
    r"^(?:os::)?(?:Platform(?:Event|Parker|Monitor|Mutex)|LinuxWaitBarrier)::",
    r"^(?:os|JavaThread|OSThread)::\w*(?:park|sleep|wait)",
    r"^(?:Unsafe_Park$|JVM_Sleep|JVM_MonitorWait$|Java_(?:java|sun|jdk)_|handleRead$|readBytes$|writeBytes$)",
    r"^(?:SharedRuntime|InterpreterRuntime|Runtime1|OptoRuntime)::|Runtime1 stub$",
    r"^(?:sun|jdk)[./]",
    r"^java[./](?:io|net|nio)[./]",
    r"^java[./]lang[./](?:Object\.wait|Thread\.(?:sleep|join|park))",
    r"^java[./]util[./]concurrent[./](?:locks[./]|\w*Queue|CountDownLatch|CyclicBarrier|Phaser|Semaphore)",
    r"^java[./]util[./]concurrent[./](?:FutureTask|CompletableFuture|ForkJoin\w*)[.$]"
    r"(?:get|join|await|Signaller|managedBlock|unmanagedBlock)",
)
# How native memory is allocated: the engine's own functions, the C library's, the JVM's, the JDK's.
_ALLOCATORS = (
    _LIBRARIES,
    r"^_*(?:libc_)?(?:m|c|re)alloc(?:_hook)?$",
    r"^(?:posix_memalign|aligned_alloc|memalign)(?:_hook)?$",
    r"^(?:os::(?:m|re)alloc|AllocateHeap|Unsafe_AllocateMemory|Unsafe_ReallocateMemory|operator new)",
    r"^(?:sun|jdk)[./].*[./]Unsafe\.|^java[./]lang[./]invoke[./]",
)
_HOW: dict[str, tuple[str, ...]] = {"offcpu": _WAITS, "wall": _WAITS, "nativemem": _ALLOCATORS}
_Ends = tuple[list[str], bool]
"""What stacks end in: patterns, and whether the kernel's frames are of it."""
# The work of async-profiler in the threads that it samples, and while it starts and ends. Programs may have
# a Profiler::run or Profiler::recordSample, too: its own are above or below one of these.
_PROFILER = (
    r"^(?:WallClock|ITimer|CTimer|CpuEngine|PerfEvents|J9WallClock)::(?:signalHandler|sharedSignalHandler)\b",
    r"^Profiler::(?:runInternal|(?:crash|wakeup)Handler|recordExternalSample|getJavaTraceAsync|getNativeTrace)(?:\(|$)",
    r"^StackWalker::walkVM(?:\(|$)",
)


@dataclass(frozen=True)
class Attribution:
    """A profile whose stacks end where there is something to look at.

    `original` is the profile as it is drawn. `idle` and `profiler` are the values of idle threads and of the
    profiler's own work, which are left out; with `only_profiler` there is nothing else, and it stays.
    """

    event: str
    original: Profile
    profile: Profile
    idle: int
    profiler: int
    only_profiler: bool

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """All methods, hottest by self first."""
        return tuple(self.profile.top(_EVERYTHING))

    @cached_property
    def attributed(self) -> int:
        return self.profile.total()

    @property
    def besides(self) -> str:
        """What was left out, "" for nothing: " besides idle threads"."""
        left = {"idle threads": self.idle, "the profiler’s own work": self.profiler}
        named = " and ".join(name for name, value in left.items() if value)
        return f" besides {named}" if named else ""

    @property
    def share_of(self) -> str:
        """What the profile's total is."""
        return measure_of(self.event).share_of + self.besides


def attribute(facts: RunFacts, profile: Profile) -> Attribution:
    """Give the costs of a run's profile to the callers that tables name.

    Idle threads are left out of events that count waits, unless all are idle. The profiler's own work is left
    out if there is other work.
    """
    recordings = [one for host in facts.hosts for one in host.recordings]
    sampled_itself = any(one.engine == ASYNC_PROFILER for one in recordings)
    return _attribute(facts.event, profile, _ends_of_run(facts.event), _PROFILER if sampled_itself else ())


def attribute_file(profile: Profile) -> Attribution:
    """The same for a file. It is not known what recorded it: any frame may be the program's own.

    Its value may be called `time` and be no event; a frame of that name is no function that was counted.
    """
    event = profile.values[0][0]
    return _attribute(event, profile, _ends(event), ())


def _attribute(event: str, profile: Profile, ends: _Ends, profiler: Sequence[str]) -> Attribution:
    busy = _unless_empty(_busy(event, profile), profile)
    own = busy.filter(include=list(profiler)).total() if profiler else 0
    others = _unless_empty(busy.filter(exclude=list(profiler)), busy) if own else busy
    how, kernel = ends
    return Attribution(
        event=event,
        original=profile,
        profile=others.into_callers(how, kernel=kernel) if how else others,
        idle=profile.total() - busy.total(),
        profiler=busy.total() - others.total(),
        only_profiler=0 < own == others.total() == busy.total(),
    )


def _busy(event: str, profile: Profile) -> Profile:
    """Where waits are counted, the stacks of threads that do not merely wait for work."""
    if event == "offcpu":
        return profile.filter(exclude=r"^\[idle pool thread\]$")
    return profile.without_idle() if event == "wall" else profile


def _unless_empty(part: Profile, whole: Profile) -> Profile:
    return part if part.total() else whole


def _ends(event: str) -> _Ends:
    """What the stacks of an event end in, except for functions."""
    if event in _HOW:
        return list(_HOW[event]), event != "nativemem"
    if is_tracepoint(event):
        return list(_WAITS), True
    return (root_patterns([event]) if is_method(event) else []), False


def _ends_of_run(event: str) -> _Ends:
    """The same, and the counted function if the event is one."""
    return ([f"{_C}{re.escape(event)}{_END}"], False) if is_function(event) else _ends(event)
