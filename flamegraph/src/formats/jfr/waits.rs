//! What a thread waits for that does not run, by the frames at the leaf's side of its stack.
//!
//! The tables below are all there is to it. A pattern is a name, with `*` at either end for any text.

use crate::profile::Kind;

/// A frame as far as it matters here.
#[derive(Clone, Copy)]
pub(super) struct Waiting<'a> {
    pub(super) name: &'a str,
    pub(super) kind: Kind,
}

pub(super) const LOCK: &str = "[lock]";
pub(super) const PARK: &str = "[park]";
pub(super) const SLEEP: &str = "[sleep]";
pub(super) const NETWORK: &str = "[network]";
pub(super) const DISK: &str = "[disk]";
pub(super) const IDLE: &str = "[idle pool thread]";
pub(super) const WAIT: &str = "[wait]";
pub(super) const OTHER: &str = "[other]";

/// Functions of the JVM that enter a monitor; `Object.wait` does so too before it returns.
const MONITORS: &[&str] = &[
    "ObjectMonitor::enter*",
    "ObjectMonitor::EnterI",
    "ObjectMonitor::ReenterI",
    "ObjectMonitor::reenter*",
    "ObjectSynchronizer::*enter",
    "*Runtime::complete_monitor*",
    "*Runtime::monitorenter*",
    "*Runtime1::monitorenter*",
];

/// Methods that do nothing but wait for work: wherever on the stack they are, the thread is idle.
const IDLE_METHODS: &[&str] = &[
    "java/util/concurrent/ThreadPoolExecutor.getTask",
    "java/util/concurrent/ScheduledThreadPoolExecutor$DelayedWorkQueue.take",
    "java/util/concurrent/ForkJoinPool.awaitWork",
    "java/lang/ref/Reference.waitForReferencePendingList",
    "*io/netty/channel/nio/NioEventLoop.select",
    "*io/netty/channel/nio/NioIoHandler.select",
    "*io/netty/channel/epoll/Native.epollWait*",
    "*io/netty/channel/epoll/Native.epollBusyWait*",
    "*io/netty/util/concurrent/SingleThreadEventExecutor.takeTask",
    "*io/netty/util/concurrent/GlobalEventExecutor.takeTask",
    "*io/netty/util/HashedWheelTimer$Worker.waitForNextTick",
    "*jetty/util/thread/QueuedThreadPool.idleJobPoll",
    "*jetty/util/thread/ReservedThreadExecutor$ReservedThread.reservedWait",
    "*jetty/io/ManagedSelector*.select",
    "*jetty/io/ManagedSelector.nioSelect",
    "org/apache/tomcat/util/threads/TaskQueue.take",
    "org/apache/tomcat/util/threads/TaskQueue.poll",
    "org/apache/hadoop/ipc/CallQueueManager.take",
    "org/apache/hadoop/ipc/Client$Connection.waitForWork",
    "org/apache/hadoop/hbase/ipc/RpcHandler.getCallRunner",
    "org/apache/hadoop/net/unix/DomainSocketWatcher.doPoll0",
    "org/apache/flink/streaming/runtime/tasks/mailbox/TaskMailboxImpl.take",
];

/// Loops that also do the work they wait for: idle where they wait themselves, with none but the JDK's
/// methods in between.
const IDLE_LOOPS: &[&str] = &[
    "java/util/TimerThread.mainLoop",
    "java/util/concurrent/ForkJoinPool.runWorker",
    "java/lang/ref/Reference$ReferenceHandler.run",
    "java/lang/ref/Finalizer$FinalizerThread.run",
    "jdk/internal/ref/CleanerImpl.run",
    "jdk/internal/net/http/HttpClientImpl$SelectorManager.run",
    "sun/net/httpserver/ServerImpl$Dispatcher.run",
    "org/apache/hadoop/ipc/Server$Listener.run",
    "org/apache/hadoop/ipc/Server$Listener$Reader.doRunLoop",
    "org/apache/hadoop/ipc/Server$Responder.doRunLoop",
    "org/apache/hadoop/yarn/event/AsyncDispatcher$1.run",
    "org/apache/hadoop/yarn/event/EventDispatcher$EventProcessor.run",
    "org/apache/spark/rpc/netty/MessageLoop*receiveLoop",
    "org/apache/spark/rpc/netty/Dispatcher$MessageLoop.run",
    "org/apache/spark/scheduler/AsyncEventQueue*",
    "org/apache/spark/util/EventLoop$$anon$1.run",
    "org/apache/spark/ContextCleaner*keepCleaning*",
    "org/apache/tomcat/util/net/NioEndpoint$Poller.run",
    "org/apache/zookeeper/ClientCnxn$EventThread.run",
    "org/apache/zookeeper/ClientCnxnSocketNIO.doTransport",
    "org/apache/zookeeper/ClientCnxnSocketNetty.doTransport",
];

/// Methods of the JDK below which is a task's work.
const TASKS: &[&str] = &[
    "java/util/concurrent/ForkJoinTask.*",
    "java/util/concurrent/FutureTask.*",
];

/// Whose methods may stand between such a loop and its wait.
const JDK: &[&str] = &["java/*", "javax/*", "jdk/*", "sun/*", "com/sun/*"];

/// Methods that wait, by what for; the first that has any of a stack's frames counts.
const METHODS: &[(&str, &[&str])] = &[
    (SLEEP, &["java/lang/Thread.sleep*"]),
    (
        WAIT,
        &[
            "java/lang/Object.wait*",
            "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject.await*",
            "java/util/concurrent/locks/AbstractQueuedLongSynchronizer$ConditionObject.await*",
        ],
    ),
    (
        PARK,
        &[
            "java/util/concurrent/locks/LockSupport.park*",
            "jdk/internal/misc/Unsafe.park",
            "sun/misc/Unsafe.park",
        ],
    ),
    (
        NETWORK,
        &[
            "java/net/*SocketImpl.*",
            "java/net/SocketInputStream.socketRead0",
            "java/net/SocketOutputStream.socketWrite0",
            "java/net/Inet4AddressImpl.*",
            "java/net/Inet6AddressImpl.*",
            "sun/nio/ch/Net.*",
            "sun/nio/ch/NioSocketImpl.*",
            "sun/nio/ch/SocketDispatcher.*",
            "sun/nio/ch/DatagramDispatcher.*",
            "sun/nio/ch/DatagramChannelImpl.*",
            "sun/nio/ch/UnixDomainSockets.*",
            "sun/nio/ch/SelectorImpl.*",
            "*io/netty/channel/unix/Socket.*",
            "*io/netty/channel/epoll/*",
            "org/apache/hadoop/net/unix/DomainSocket.*",
        ],
    ),
    (
        DISK,
        &[
            "java/io/FileInputStream.*",
            "java/io/FileOutputStream.*",
            "java/io/FileDescriptor.*",
            "java/io/RandomAccessFile.*",
            "java/io/UnixFileSystem.*",
            "java/nio/MappedByteBuffer.*",
            "java/nio/MappedMemoryUtils.*",
            "sun/nio/ch/*FileDispatcherImpl.*",
            "sun/nio/ch/FileChannelImpl.*",
            "sun/nio/fs/*",
            "org/apache/hadoop/io/nativeio/NativeIO*",
        ],
    ),
];

/// The C library's functions that wait, by what for; without the underscores and versions they are seen with.
const FUNCTIONS: &[(&str, &[&str])] = &[
    (SLEEP, &["nanosleep", "clock_nanosleep", "usleep", "sleep"]),
    (
        NETWORK,
        &[
            "accept",
            "accept4",
            "connect",
            "epoll_pwait",
            "epoll_wait",
            "poll",
            "ppoll",
            "pselect",
            "recv",
            "recvfrom",
            "recvmmsg",
            "recvmsg",
            "select",
            "send",
            "sendmmsg",
            "sendmsg",
            "sendto",
        ],
    ),
    (
        DISK,
        &[
            "fallocate",
            "fdatasync",
            "fstat",
            "fsync",
            "ftruncate",
            "getdents",
            "lstat",
            "msync",
            "open",
            "openat",
            "pread",
            "preadv",
            "pwrite",
            "pwritev",
            "read",
            "readv",
            "rename",
            "stat",
            "sync_file_range",
            "unlink",
            "write",
            "writev",
        ],
    ),
    (
        LOCK,
        &[
            "lll_lock_wait",
            "pthread_mutex_lock",
            "pthread_rwlock_rdlock",
            "pthread_rwlock_wrlock",
        ],
    ),
];

/// Where threads of the JVM's and the engine's own wait for something to do, whatever they call for that: somebody
/// who attaches, a signal, the end of the recording.
const ATTENDANTS: &[&str] = &[
    "*AttachListener::dequeue*",
    "os::signal_wait*",
    "Profiler::timerLoop",
];
/// What the JVM itself calls for nothing but that.
const ATTACH: &[&str] = &["*accept", "*accept4"];

/// Where the JVM's own threads wait for something to do, and the launcher for the JVM; by its file's name
/// where it has no symbols.
const OF_THE_JVM: &[&str] = &[
    "*Monitor::wait*",
    "*Semaphore::wait*",
    "*/libjvm.so",
    "JLI_Launch",
];
const STRIPPED_JVM: &str = "*/libjvm.so";

/// Java frames that are looked at: no way from a method to its wait is as long.
const MOST_CALLERS: usize = 32;

/// What a thread with this stack, leaf first, waits for.
pub(super) fn wait_of(stack: &[Waiting<'_>]) -> &'static str {
    let java = stack.iter().position(Waiting::is_java);
    let (native, callers) = stack.split_at(java.unwrap_or(stack.len()));
    let callers = &callers[..callers.len().min(MOST_CALLERS)];
    if any(native, MONITORS) {
        return LOCK;
    }
    if any(callers, IDLE_METHODS) || waits_in_a_loop(callers) {
        return IDLE;
    }
    if callers.is_empty() && attends(native) {
        return IDLE;
    }
    if let Some(&(wait, _)) = METHODS.iter().find(|(_, names)| any(callers, names)) {
        return wait;
    }
    if let Some(wait) = native.iter().find_map(Waiting::function) {
        return wait;
    }
    match (callers, native.last()) {
        ([], _) if any(native, OF_THE_JVM) => IDLE,
        // A method that waits in a JVM without symbols waits for a monitor: all else was found by its name.
        ([_, ..], Some(last)) if fits(last.name, STRIPPED_JVM) => LOCK,
        _ => OTHER,
    }
}

/// Whether a thread with this stack, leaf first, is in a call of the kernel that works on files. Signals do
/// not interrupt these: the thread seems to run, whether it waits for a disk or not.
pub(super) fn is_in_a_file_call(stack: &[Waiting<'_>]) -> bool {
    let native = stack.iter().take_while(|frame| !frame.is_java());
    // A C library without symbols is there by its file's name.
    let mut functions = native.filter(|frame| !fits(frame.name, "*/libc.so*"));
    functions.next().and_then(Waiting::function) == Some(DISK) && wait_of(stack) == DISK
}

fn waits_in_a_loop(callers: &[Waiting<'_>]) -> bool {
    let works = |frame: &Waiting<'_>| !fits_any(frame.name, JDK) || fits_any(frame.name, TASKS);
    // The first frame that is not the JDK's is the last that may be the loop.
    let end = callers.iter().position(works);
    let end = end.map_or(callers.len(), |working| working + 1);
    any(&callers[..end], IDLE_LOOPS)
}

fn attends(native: &[Waiting<'_>]) -> bool {
    let attach =
        |pair: &[Waiting<'_>]| fits_any(pair[0].name, ATTACH) && fits(pair[1].name, STRIPPED_JVM);
    any(native, ATTENDANTS) || native.windows(2).any(attach)
}

impl Waiting<'_> {
    fn is_java(&self) -> bool {
        use Kind::{Inlined, Interpreted, Jit, C1};
        matches!(self.kind, Interpreted | C1 | Jit | Inlined)
    }

    /// What the C library's function of this name waits for.
    fn function(&self) -> Option<&'static str> {
        let name = self.name.split('@').next().unwrap_or(self.name);
        let name = name.trim_start_matches('_');
        let name = name.strip_prefix("GI_").unwrap_or(name);
        let name = name.trim_start_matches('_');
        let name = name.strip_prefix("libc_").unwrap_or(name);
        let name = name.strip_suffix("_nocancel").unwrap_or(name);
        let name = name.strip_suffix("64").unwrap_or(name);
        let found = FUNCTIONS.iter().find(|(_, names)| names.contains(&name));
        found.map(|&(wait, _)| wait)
    }
}

fn any(frames: &[Waiting<'_>], patterns: &[&str]) -> bool {
    frames.iter().any(|frame| fits_any(frame.name, patterns))
}

fn fits_any(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| fits(name, pattern))
}

/// Whether a name is what a pattern means: its parts between stars, in order.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return name == pattern;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (parts, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in parts.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests;
