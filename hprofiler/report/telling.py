"""What of a profile names the method to look at.

The stack of a thread that waits ends in the scheduler, whatever it waits for, and every allocation of native
memory ends in malloc. Pictures show that; tables and sentences name who waits, and who allocates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Tuple

from hprofiler._flamegraph import Profile
from hprofiler.measures import measure_of
from hprofiler.report import idle

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
_HOW: Dict[str, Tuple[str, ...]] = {"offcpu": _WAITS, "wall": _WAITS, "nativemem": _ALLOCATORS}


@dataclass(frozen=True)
class Telling:
    """A profile whose stacks end where there is something to look at; `share_of` says what its total is."""

    profile: Profile
    share_of: str


def telling(event: str, profile: Profile) -> Telling:
    """A profile of the event without what all its stacks end in, and without idle threads where threads wait.

    Where all of them are idle nothing is left out.
    """
    share_of = measure_of(event).share_of
    if event not in _HOW:
        return Telling(profile, share_of)
    busy = idle.busy(event, profile)
    if 0 < busy.total() < profile.total():
        profile, share_of = busy, f"{share_of} besides idle threads"
    return Telling(profile.into_callers(list(_HOW[event]), kernel=event != "nativemem"), share_of)
