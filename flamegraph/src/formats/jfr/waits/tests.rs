use super::*;

/// Leaf first; names with a slash and a dot behind it are Java's.
fn wait(stack: &str) -> &'static str {
    let frames: Vec<Waiting<'_>> = stack
        .split(" < ")
        .map(|name| {
            let java = !name.starts_with('/') && name.contains('/') || name.starts_with("App.");
            let kind = if java { Kind::Jit } else { Kind::Plain };
            Waiting { name, kind }
        })
        .collect();
    wait_of(&frames)
}

const FUTEX: &str = "__futex_abstimed_wait_common < ___pthread_cond_wait";
const STRIPPED: &str = "/lib/libc.so.6 < pthread_cond_wait < /jre/libjvm.so < /jre/libjvm.so";
const PARKED: &str = "jdk/internal/misc/Unsafe.park < java/util/concurrent/locks/LockSupport.park";
const CONDITION: &str =
    "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject.await";
const TAKE: &str = "java/util/concurrent/LinkedBlockingQueue.take";

#[test]
fn each_kind_of_wait_by_its_frames() {
    for (stack, expected) in [
        (format!("{FUTEX} < ObjectMonitor::enter < InterpreterRuntime::monitorenter < App.f"), LOCK),
        (format!("{STRIPPED} < App.f"), LOCK),
        (
            format!("{FUTEX} < ObjectMonitor::ReenterI < ObjectMonitor::wait < java/lang/Object.wait < App.f"),
            LOCK,
        ),
        (format!("{FUTEX} < Parker::park < {PARKED} < App.f"), PARK),
        (format!("{STRIPPED} < {PARKED} < App.f"), PARK),
        (
            format!("__lll_lock_wait < __pthread_mutex_cond_lock < {FUTEX} < Parker::park < {PARKED} < App.f"),
            PARK,
        ),
        (format!("{FUTEX} < {PARKED} < {CONDITION} < App.f"), WAIT),
        (format!("{FUTEX} < {PARKED} < {CONDITION} < {TAKE} < App.f"), WAIT),
        (format!("{FUTEX} < ObjectMonitor::wait < java/lang/Object.wait0 < App.f"), WAIT),
        (format!("{FUTEX} < java/lang/Thread.sleep0 < java/lang/Thread.sleep < App.f"), SLEEP),
        ("clock_nanosleep@@GLIBC_2.17 < native_sleep".into(), SLEEP),
        ("__GI_read < sun/nio/ch/SocketDispatcher.read0 < App.f".into(), NETWORK),
        (
            "read < sun/nio/ch/FileDispatcherImpl.read0 < sun/nio/ch/SocketDispatcher.read < App.f".into(),
            NETWORK,
        ),
        ("epoll_wait < sun/nio/ch/EPoll.wait < sun/nio/ch/SelectorImpl.select < App.f".into(), NETWORK),
        ("__poll < librdkafka_serve < start_thread".into(), NETWORK),
        ("__GI_fsync < java/io/FileDescriptor.sync0 < App.f".into(), DISK),
        ("__pread64 < rocksdb::PosixRandomAccessFile::Read < org/rocksdb/RocksDB.get".into(), DISK),
        (format!("{FUTEX} < rocksdb::BGThread < start_thread"), OTHER),
        ("App.f".into(), OTHER),
    ] {
        assert_eq!(wait(&stack), expected, "{stack}");
    }
}

#[test]
fn threads_without_work_are_idle() {
    let select = "epoll_wait < sun/nio/ch/EPoll.wait < sun/nio/ch/SelectorImpl.select";
    for (stack, expected) in [
        (
            format!("{FUTEX} < {PARKED} < {CONDITION} < {TAKE} < java/util/concurrent/ThreadPoolExecutor.getTask"),
            IDLE,
        ),
        (format!("{FUTEX} < {PARKED} < java/util/concurrent/ForkJoinPool.awaitWork"), IDLE),
        (format!("{FUTEX} < {PARKED} < java/util/concurrent/ForkJoinPool.runWorker"), IDLE),
        (
            format!("{FUTEX} < {PARKED} < java/util/concurrent/ForkJoinTask.doExec < java/util/concurrent/ForkJoinPool.runWorker"),
            PARK,
        ),
        (format!("{FUTEX} < java/lang/Object.wait < java/util/TimerThread.mainLoop"), IDLE),
        (
            format!("{FUTEX} < java/lang/Object.wait < App.task < java/util/TimerThread.mainLoop"),
            WAIT,
        ),
        (format!("{select} < org/spark/shaded/io/netty/channel/nio/NioEventLoop.select"), IDLE),
        (format!("{select} < org/apache/hadoop/ipc/Server$Listener$Reader.doRunLoop"), IDLE),
        (
            format!("{select} < org/x/App.f < org/apache/hadoop/ipc/Server$Listener$Reader.doRunLoop"),
            NETWORK,
        ),
        (
            format!("{FUTEX} < {PARKED} < {CONDITION} < {TAKE} < org/apache/spark/rpc/netty/MessageLoop.org$apache$spark$rpc$netty$MessageLoop$$receiveLoop"),
            IDLE,
        ),
        (format!("{FUTEX} < Monitor::wait < CompileQueue::get < start_thread"), IDLE),
        (format!("{FUTEX} < PosixSemaphore::wait < GangWorker::loop"), IDLE),
        (format!("{STRIPPED} < /lib/libc.so.6"), IDLE),
        ("__libc_accept < LinuxAttachListener::dequeue < attach_listener_thread_entry".into(), IDLE),
        ("accept < PosixAttachListener::dequeue < AttachListenerThread::thread_entry".into(), IDLE),
        ("__GI_accept < /jre/libjvm.so < /jre/libjvm.so < start_thread".into(), IDLE),
        ("accept < server_loop < start_thread".into(), NETWORK),
        ("sem_wait < os::signal_wait < signal_thread_entry".into(), IDLE),
        ("clock_nanosleep < Profiler::timerLoop".into(), IDLE),
    ] {
        assert_eq!(wait(&stack), expected, "{stack}");
    }
}

#[test]
fn stars_stand_for_any_text() {
    for (name, pattern, expected) in [
        ("abc", "abc", true),
        ("abc", "ab", false),
        ("abc", "ab*", true),
        ("abc", "*bc", true),
        ("abc", "a*c", true),
        ("ac", "a*b*c", false),
        ("axbxc", "a*b*c", true),
        ("xaby", "*ab*", true),
        ("x", "*ab*", false),
    ] {
        assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
    }
}
