//! What a thread waits for while it does not run, by the frames near its leaf.

use foldhash::HashMap;

use super::frame_rules::{fits_any, slashed, WAITS};
use crate::profile::{Frame, Frames, Kind};

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wait {
    Lock,
    Park,
    Sleep,
    Network,
    Disk,
    /// Work, like a thread of a pool, of an event loop, or of the JVM itself.
    Idle,
    /// A condition: another thread has to do something.
    Condition,
    Other,
}

/// The frames that name what a thread waits for.
pub const WAIT_FRAMES: [&str; 8] = [
    "[lock]",
    "[park]",
    "[sleep]",
    "[network]",
    "[disk]",
    "[idle pool thread]",
    "[wait]",
    "[other]",
];

impl Wait {
    pub(crate) fn frame(self) -> &'static str {
        WAIT_FRAMES[self as usize]
    }
}

/// What a frame says about its thread's wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitFrame {
    /// A Java method, else a function.
    java: bool,
    kernel: bool,
    /// What the method or the function waits for.
    wait: Option<Wait>,
    idle: bool,
    idle_loop: bool,
    /// A method of the JDK that does not start a task.
    jdk: bool,
    /// The JVM enters a monitor.
    monitor: bool,
    /// A thread of the JVM waits for work. An attendant waits for work whatever it calls.
    of_jvm: bool,
    attendant: bool,
    attach: bool,
    stripped_jvm: bool,
    stripped_libc: bool,
}

impl WaitFrame {
    pub(crate) fn of(name: &str, kind: Kind) -> WaitFrame {
        let mut frame = WaitFrame {
            java: is_method(name, kind),
            kernel: kind == Kind::Kernel,
            ..WaitFrame::default()
        };
        let function = slashed(without_decoration(name));
        let name = slashed(name);
        let mut task = false;
        for &(rule, patterns) in WAITS {
            let (name, wait) = match rule.split_once('.') {
                Some(("java", role)) if frame.java => (&name, role),
                Some(("kernel", role)) if frame.kernel => (&name, role),
                Some(("jvm", _)) if !frame.java && !frame.kernel => (&name, ""),
                Some(("native", role)) if !frame.java && !frame.kernel => (&function, role),
                _ => continue,
            };
            if !fits_any(name, patterns) {
                continue;
            }
            let wait = match wait {
                "lock" => Some(Wait::Lock),
                "park" => Some(Wait::Park),
                "sleep" => Some(Wait::Sleep),
                "network" => Some(Wait::Network),
                "disk" => Some(Wait::Disk),
                "wait" => Some(Wait::Condition),
                "other" => Some(Wait::Other),
                _ => None,
            };
            frame.wait = frame.wait.or(wait);
            match rule {
                "java.idle" => frame.idle = true,
                "java.idle-loop" => frame.idle_loop = true,
                "java.jdk" => frame.jdk = true,
                "java.task" => task = true,
                "jvm.lock" => frame.monitor = true,
                "jvm.idle" => frame.of_jvm = true,
                "jvm.attendant" => frame.attendant = true,
                "jvm.attach" => frame.attach = true,
                "jvm.stripped" => frame.stripped_jvm = true,
                "native.stripped" => frame.stripped_libc = true,
                _ => debug_assert!(wait.is_some(), "{rule} is not known here"),
            }
        }
        frame.jdk &= !task;
        frame
    }
}

/// Whether it is a Java method, by its kind or, if that is unknown, by its name: `a/b/Class.method`.
fn is_method(name: &str, kind: Kind) -> bool {
    use Kind::{Inlined, Interpreted, Jit, Plain, C1};
    let letter = |first: fn(char) -> bool, text: &str| text.starts_with(first);
    let plain_method = || {
        let (path, method) = name.rsplit_once('.')?;
        let class = path.rsplit(['/', '.']).next()?;
        let fine = |c: char| c.is_alphanumeric() || "_$./<>".contains(c);
        let begins = letter(|c| c.is_lowercase() || "_$<".contains(c), method);
        Some(begins && letter(char::is_uppercase, class) && name.chars().all(fine))
    };
    match kind {
        Interpreted | C1 | Jit | Inlined => true,
        Plain => plain_method() == Some(true),
        _ => false,
    }
}

/// A function of the C library without its version, underscores and variants.
fn without_decoration(name: &str) -> &str {
    let name = name.split('@').next().unwrap_or(name);
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("GI_").unwrap_or(name);
    let name = name.trim_start_matches('_');
    let name = name.strip_prefix("libc_").unwrap_or(name);
    let name = name.strip_suffix("_nocancel").unwrap_or(name);
    name.strip_suffix("64").unwrap_or(name)
}

/// The most Java frames to check: no wait is deeper below the method that waits.
const MOST_CALLERS: usize = 32;

/// What a thread with this stack, leaf first, waits for.
pub(crate) fn wait_of(stack: &[WaitFrame]) -> Wait {
    let java = stack.iter().position(|frame| frame.java);
    let (native, callers) = stack.split_at(java.unwrap_or(stack.len()));
    let callers = &callers[..callers.len().min(MOST_CALLERS)];
    if native.iter().any(|frame| frame.monitor) {
        return Wait::Lock;
    }
    if callers.iter().any(|frame| frame.idle) || waits_in_a_loop(callers) {
        return Wait::Idle;
    }
    if callers.is_empty() && attends(native) {
        return Wait::Idle;
    }
    for wait in [
        Wait::Sleep,
        Wait::Condition,
        Wait::Park,
        Wait::Network,
        Wait::Disk,
    ] {
        if callers.iter().any(|frame| frame.wait == Some(wait)) {
            return wait;
        }
    }
    // For the kernel a condition is a futex; neither its frames nor the C library's show what the thread waits for.
    let says_more = |frame: &&WaitFrame| match frame.wait {
        Some(Wait::Lock) => !frame.kernel,
        wait => wait != Some(Wait::Condition),
    };
    if let Some(wait) = native.iter().filter(says_more).find_map(|frame| frame.wait) {
        return wait;
    }
    match (callers, native.last()) {
        ([], _) if native.iter().any(|frame| frame.of_jvm) => return Wait::Idle,
        // In a JVM without symbols this is a wait for a monitor: all other waits were found by name.
        ([_, ..], Some(last)) if last.stripped_jvm => return Wait::Lock,
        _ => {}
    }
    let has = |wait| native.iter().any(|frame| frame.wait == Some(wait));
    match (has(Wait::Condition), has(Wait::Lock)) {
        (true, _) => Wait::Condition,
        (false, true) => Wait::Lock,
        _ => Wait::Other,
    }
}

fn waits_in_a_loop(callers: &[WaitFrame]) -> bool {
    // The loop is in the JDK's frames, or is the first frame outside of them.
    let end = callers.iter().position(|frame| !frame.jdk);
    let end = end.map_or(callers.len(), |working| working + 1);
    callers[..end].iter().any(|frame| frame.idle_loop)
}

fn attends(native: &[WaitFrame]) -> bool {
    let attach = |pair: &[WaitFrame]| pair[0].attach && pair[1].stripped_jvm;
    native.iter().any(|frame| frame.attendant) || native.windows(2).any(attach)
}

/// Finds what stacks wait for. Each frame's name is matched once.
#[derive(Default)]
pub(crate) struct Waits {
    known: HashMap<usize, WaitFrame>,
}

impl Waits {
    /// What a thread with these frames, root first, waits for.
    pub(crate) fn of(&mut self, names: &Frames, frames: &[Frame]) -> Wait {
        wait_of(&self.stack(names, frames))
    }

    /// Whether a thread with these frames is in a system call on files. Signals do not interrupt these, so the thread
    /// seems to run even while it waits for a disk.
    pub(crate) fn is_file_call(&mut self, names: &Frames, frames: &[Frame]) -> bool {
        let stack = self.stack(names, frames);
        let native = stack.iter().take_while(|frame| !frame.java);
        let mut functions = native.filter(|frame| !frame.stripped_libc);
        let first = functions.next().and_then(|frame| frame.wait);
        first == Some(Wait::Disk) && wait_of(&stack) == Wait::Disk
    }

    fn stack(&mut self, names: &Frames, frames: &[Frame]) -> Vec<WaitFrame> {
        let frames = frames.iter().rev();
        let known = frames.map(|&frame| {
            let look = || WaitFrame::of(names.name_of(frame), frame.kind());
            *self.known.entry(frame.index()).or_insert_with(look)
        });
        known.collect()
    }
}

impl crate::profile::Profile {
    /// The profile without threads that wait for work. A wall-clock profile does not show whether a thread ran, so a
    /// stack is idle only if a single frame proves it.
    pub fn without_idle(&self) -> crate::profile::Result<crate::profile::Profile> {
        let mut waits = Waits::default();
        let mut path = Vec::new();
        let mut idle = vec![false; self.tree.len()];
        for node in self.tree.nodes().filter(|&node| self.has_self(node)) {
            path.clear();
            let mut next = node;
            while next != crate::profile::ROOT {
                path.push(self.tree.frame(next));
                next = self.tree.parent(next);
            }
            path.reverse();
            let stack = waits.stack(&self.frames, &path);
            let of_jvm = |frame: &WaitFrame| frame.attendant || frame.of_jvm && !frame.stripped_jvm;
            idle[node as usize] = match stack.iter().any(|frame| frame.java) {
                true => stack.iter().any(|frame| frame.idle),
                false => stack.iter().any(of_jvm),
            };
        }
        self.replanted(|node| !idle[node as usize], |node| self.tree.parent(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaf first. Names with a slash and a later dot are Java's, and `(k)` marks the kernel's.
    fn wait(stack: &str) -> &'static str {
        let frames: Vec<WaitFrame> = stack
            .split(" < ")
            .map(|name| {
                let java = !name.starts_with('/') && name.contains('/') || name.starts_with("App.");
                match (name.strip_suffix("(k)"), java) {
                    (Some(name), _) => WaitFrame::of(name, Kind::Kernel),
                    (None, true) => WaitFrame::of(name, Kind::Jit),
                    (None, false) => WaitFrame::of(name, Kind::Plain),
                }
            })
            .collect();
        wait_of(&frames).frame()
    }

    const FUTEX: &str = "__futex_abstimed_wait_common < ___pthread_cond_wait";
    const STRIPPED: &str = "/lib/libc.so.6 < pthread_cond_wait < /jre/libjvm.so < /jre/libjvm.so";
    const PARKED: &str =
        "jdk/internal/misc/Unsafe.park < java/util/concurrent/locks/LockSupport.park";
    const CONDITION: &str =
        "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject.await";
    const TAKE: &str = "java/util/concurrent/LinkedBlockingQueue.take";

    #[test]
    fn each_kind_of_wait_by_its_frames() {
        for (stack, expected) in [
            (format!("{FUTEX} < ObjectMonitor::enter < InterpreterRuntime::monitorenter < App.f"), "[lock]"),
            (format!("{STRIPPED} < App.f"), "[lock]"),
            (
                format!("{FUTEX} < ObjectMonitor::ReenterI < ObjectMonitor::wait < java/lang/Object.wait < App.f"),
                "[lock]",
            ),
            (format!("{FUTEX} < Parker::park < {PARKED} < App.f"), "[park]"),
            (format!("{STRIPPED} < {PARKED} < App.f"), "[park]"),
            (
                format!("__lll_lock_wait < __pthread_mutex_cond_lock < {FUTEX} < Parker::park < {PARKED} < App.f"),
                "[park]",
            ),
            (format!("{FUTEX} < {PARKED} < {CONDITION} < App.f"), "[wait]"),
            (format!("{FUTEX} < {PARKED} < {CONDITION} < {TAKE} < App.f"), "[wait]"),
            (format!("{FUTEX} < ObjectMonitor::wait < java/lang/Object.wait0 < App.f"), "[wait]"),
            (format!("{FUTEX} < java/lang/Thread.sleep0 < java/lang/Thread.sleep < App.f"), "[sleep]"),
            ("clock_nanosleep@@GLIBC_2.17 < native_sleep".into(), "[sleep]"),
            ("__GI_read < sun/nio/ch/SocketDispatcher.read0 < App.f".into(), "[network]"),
            (
                "read < sun/nio/ch/FileDispatcherImpl.read0 < sun/nio/ch/SocketDispatcher.read < App.f".into(),
                "[network]",
            ),
            ("epoll_wait < sun/nio/ch/EPoll.wait < sun/nio/ch/SelectorImpl.select < App.f".into(), "[network]"),
            ("__poll < librdkafka_serve < start_thread".into(), "[network]"),
            ("__GI_fsync < java/io/FileDescriptor.sync0 < App.f".into(), "[disk]"),
            ("__pread64 < rocksdb::PosixRandomAccessFile::Read < org/rocksdb/RocksDB.get".into(), "[disk]"),
            (format!("{FUTEX} < rocksdb::BGThread < start_thread"), "[wait]"),
            ("App.f".into(), "[other]"),
            ("schedule(k) < do_syscall_64(k) < main".into(), "[other]"),
            ("schedule(k) < futex_wait(k) < __x64_sys_futex(k) < main".into(), "[lock]"),
            ("futex_wait(k) < pthread_cond_wait@@GLIBC_2.3.2".into(), "[wait]"),
            ("futex_wait(k) < std::sys::sync::condvar::futex::Condvar::wait".into(), "[wait]"),
            ("hrtimer_nanosleep(k) < main".into(), "[sleep]"),
            ("schedule_timeout(k) < sock_read_iter(k) < read".into(), "[network]"),
            ("pipe_read(k) < vfs_read(k) < read".into(), "[other]"),
            ("io_schedule(k) < handle_mm_fault(k) < futex_wait(k)".into(), "[disk]"),
            ("[kernel.kallsyms](k) < clock_nanosleep@GLIBC_2.2.5".into(), "[sleep]"),
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
                "[idle pool thread]",
            ),
            (format!("{FUTEX} < {PARKED} < java/util/concurrent/ForkJoinPool.awaitWork"), "[idle pool thread]"),
            (format!("{FUTEX} < {PARKED} < java/util/concurrent/ForkJoinPool.runWorker"), "[idle pool thread]"),
            (
                format!("{FUTEX} < {PARKED} < java/util/concurrent/ForkJoinTask.doExec < java/util/concurrent/ForkJoinPool.runWorker"),
                "[park]",
            ),
            (format!("{FUTEX} < java/lang/Object.wait < java/util/TimerThread.mainLoop"), "[idle pool thread]"),
            (
                format!("{FUTEX} < java/lang/Object.wait < App.task < java/util/TimerThread.mainLoop"),
                "[wait]",
            ),
            (format!("{select} < org/spark/shaded/io/netty/channel/nio/NioEventLoop.select"), "[idle pool thread]"),
            (format!("{select} < org/apache/hadoop/ipc/Server$Listener$Reader.doRunLoop"), "[idle pool thread]"),
            (
                format!("{select} < org/x/App.f < org/apache/hadoop/ipc/Server$Listener$Reader.doRunLoop"),
                "[network]",
            ),
            (
                format!("{FUTEX} < {PARKED} < {CONDITION} < {TAKE} < org/apache/spark/rpc/netty/MessageLoop.org$apache$spark$rpc$netty$MessageLoop$$receiveLoop"),
                "[idle pool thread]",
            ),
            (format!("{FUTEX} < Monitor::wait < CompileQueue::get < start_thread"), "[idle pool thread]"),
            (format!("{FUTEX} < PosixSemaphore::wait < GangWorker::loop"), "[idle pool thread]"),
            (format!("{STRIPPED} < /lib/libc.so.6"), "[idle pool thread]"),
            ("__libc_accept < LinuxAttachListener::dequeue < attach_listener_thread_entry".into(), "[idle pool thread]"),
            ("accept < PosixAttachListener::dequeue < AttachListenerThread::thread_entry".into(), "[idle pool thread]"),
            ("__GI_accept < /jre/libjvm.so < /jre/libjvm.so < start_thread".into(), "[idle pool thread]"),
            ("accept < server_loop < start_thread".into(), "[network]"),
            ("sem_wait < os::signal_wait < signal_thread_entry".into(), "[idle pool thread]"),
            ("clock_nanosleep < Profiler::timerLoop".into(), "[idle pool thread]"),
        ] {
            assert_eq!(wait(&stack), expected, "{stack}");
        }
    }
}
