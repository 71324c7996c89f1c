//! What a thread waits for while it does not run, by the frames near its leaf.

use foldhash::HashMap;

use super::rule_index::{frame_category, APPLICATION, WAITS};
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
pub(super) const WAIT_FRAMES: [&str; 8] = [
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
    /// In the order of their frames.
    pub(crate) const ALL: [Wait; 8] = [
        Wait::Lock,
        Wait::Park,
        Wait::Sleep,
        Wait::Network,
        Wait::Disk,
        Wait::Idle,
        Wait::Condition,
        Wait::Other,
    ];

    pub(crate) fn frame(self) -> &'static str {
        WAIT_FRAMES[self as usize]
    }
}

/// What a frame says about its thread's wait.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitFrame {
    /// A method of Java, or a function of Python; else a native function.
    pub(super) java: bool,
    pub(super) kernel: bool,
    /// What the method or the function waits for.
    pub(super) wait: Option<Wait>,
    /// It stands above the functions of a thread of Python that does not run.
    python_waits: bool,
    /// What `waits.java` of the rules says of it, by the names that it has there.
    idle: bool,
    idle_loop: bool,
    between: bool,
    not_work: bool,
    work: bool,
    run: bool,
    in_loop: bool,
    task: bool,
    job: bool,
    /// Of a `run` or a `loop`: it is a framework's, not the application's.
    framework: bool,
    /// The JVM enters a monitor.
    monitor: bool,
    /// A thread of the JVM waits for work. An attendant waits for work whatever it calls.
    of_jvm: bool,
    attendant: bool,
    attach: bool,
    stripped_jvm: bool,
    stripped_libc: bool,
    /// A function in which threads do not run, whatever they wait for.
    blocks: bool,
}

impl WaitFrame {
    pub(crate) fn of(name: &str, kind: Kind) -> WaitFrame {
        let (method, python, kernel) = (
            is_method(name, kind),
            is_python(name, kind),
            kind == Kind::Kernel,
        );
        let mut frame = WaitFrame {
            java: method || python,
            kernel,
            ..WaitFrame::default()
        };
        for rule in WAITS.every(name) {
            let says = match rule.split_once('.') {
                Some(("java", _)) => method,
                Some(("python", "waiting")) => !frame.java,
                Some(("python", _)) => python,
                Some(("kernel", _)) => kernel,
                Some(("jvm", _)) => !frame.java && !kernel,
                _ => false,
            };
            if says {
                frame.add(rule);
            }
        }
        if !frame.java && !kernel {
            let rules = WAITS.every(without_decoration(name));
            let native = rules.filter(|rule| rule.starts_with("native."));
            native.for_each(|rule| frame.add(rule));
        }
        let entry = frame.run || frame.in_loop;
        frame.framework = entry && frame_category(name) != Some(APPLICATION);
        frame
    }

    /// Notes what a rule says of it.
    fn add(&mut self, rule: &str) {
        let wait = match rule {
            // A monitor is a lock whatever else is on the stack.
            "jvm.lock" => None,
            _ => match rule.split_once('.').map_or("", |(_, role)| role) {
                "lock" => Some(Wait::Lock),
                "park" => Some(Wait::Park),
                "sleep" => Some(Wait::Sleep),
                "network" => Some(Wait::Network),
                "disk" => Some(Wait::Disk),
                "wait" => Some(Wait::Condition),
                "other" => Some(Wait::Other),
                _ => None,
            },
        };
        self.wait = self.wait.or(wait);
        match rule {
            "java.idle" => self.idle = true,
            "java.idle-loop" | "python.idle-loop" => self.idle_loop = true,
            "java.between" | "python.between" => self.between = true,
            "java.not-work" => self.not_work = true,
            "java.work" => self.work = true,
            "java.run" => self.run = true,
            "java.loop" => self.in_loop = true,
            "java.task" => self.task = true,
            "java.job" => self.job = true,
            "python.waiting" => self.python_waits = true,
            "jvm.lock" => self.monitor = true,
            "jvm.idle" => self.of_jvm = true,
            "jvm.attendant" => self.attendant = true,
            "jvm.attach" => self.attach = true,
            "jvm.stripped" => self.stripped_jvm = true,
            "native.stripped" => self.stripped_libc = true,
            "native.blocks" => self.blocks = true,
            _ => debug_assert!(wait.is_some(), "{rule} is not known here"),
        }
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

/// Whether it is a function of Python: `function (module's path)`.
fn is_python(name: &str, kind: Kind) -> bool {
    kind == Kind::Plain && name.ends_with(".py)")
}

/// A function of the C library without its version, underscores and variants.
pub(super) fn without_decoration(name: &str) -> &str {
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
    if is_idle(&stack[native.len()..]) {
        return Wait::Idle;
    }
    if callers.is_empty() && attends(native) {
        return Wait::Idle;
    }
    if let Some(wait) = wait_of_methods(callers) {
        return wait;
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

fn wait_of_methods(callers: &[WaitFrame]) -> Option<Wait> {
    let waits = [
        Wait::Sleep,
        Wait::Condition,
        Wait::Park,
        Wait::Network,
        Wait::Disk,
    ];
    let has = |wait: &Wait| callers.iter().any(|frame| frame.wait == Some(*wait));
    waits.into_iter().find(has)
}

/// What a thread waits for whose stack ends in these frames, leaf first, for a method (`of_method`) or a function; None
/// if it runs.
pub(super) fn wait_in(ends: &[WaitFrame], of_method: bool) -> Option<Wait> {
    let java = ends.iter().position(|frame| frame.java);
    let (native, callers) = ends.split_at(java.unwrap_or(ends.len()));
    let waits = |frame: &WaitFrame| frame.wait.is_some() || frame.blocks;
    if native.iter().any(|frame| frame.monitor) {
        return Some(Wait::Lock);
    }
    if let Some(wait) = wait_of_methods(callers) {
        return Some(wait);
    }
    if !native.iter().any(waits) {
        return None;
    }
    // In a JVM without symbols this is a wait for a monitor: all other waits were found by name.
    let stripped = native.last().is_some_and(|frame| frame.stripped_jvm);
    if stripped && of_method && callers.is_empty() {
        return Some(Wait::Lock);
    }
    match wait_of(native) {
        Wait::Idle => Some(Wait::Condition),
        wait => Some(wait),
    }
}

/// Whether a thread that waits, with these methods and all that calls them, waits for work.
fn is_idle(callers: &[WaitFrame]) -> bool {
    if callers.iter().any(|frame| frame.job) {
        return false;
    }
    let near = &callers[..callers.len().min(MOST_CALLERS)];
    if near.iter().any(|frame| frame.idle) {
        return true;
    }
    let end = near.iter().position(|frame| !frame.between);
    let (waiting, rest) = callers.split_at(end.unwrap_or(near.len()));
    // The loop is among what stands between, or is the first method outside.
    let mut until_loop = waiting.iter().chain(rest.first());
    let at = until_loop.position(|frame| frame.idle_loop);
    let waiting = &waiting[..at.map_or(waiting.len(), |at| at.min(waiting.len()))];
    !waiting.iter().any(|frame| frame.not_work) && (at.is_some() || is_a_loop(waiting, rest))
}

/// Whether a thread's whole stack is a loop that waits for work.
fn is_a_loop(waiting: &[WaitFrame], rest: &[WaitFrame]) -> bool {
    let methods = || rest.iter().take_while(|frame| frame.java);
    let own = || methods().filter(|frame| !frame.between);
    let begins = methods().last().is_some_and(|frame| frame.run);
    if !begins || !own().all(|frame| frame.run || frame.in_loop) {
        return false;
    }
    let pooled = methods().any(|frame| frame.task);
    if own().all(|frame| frame.framework) {
        let wait = [Wait::Sleep, Wait::Condition, Wait::Park].map(Some);
        let waits = waiting.iter().any(|frame| wait.contains(&frame.wait));
        return waiting.iter().any(|frame| frame.work) || waits && !pooled;
    }
    // A second `run` is a task's that this thread was given.
    let entered = own().filter(|frame| frame.run).count();
    waiting.iter().any(|frame| frame.work) && !pooled && entered < 2
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
        first == Some(Wait::Disk) && matches!(wait_of(&stack), Wait::Disk | Wait::Idle)
    }

    fn stack(&mut self, names: &Frames, frames: &[Frame]) -> Vec<WaitFrame> {
        let frames = frames.iter().rev();
        frames.map(|&frame| self.look(names, frame)).collect()
    }

    fn look(&mut self, names: &Frames, frame: Frame) -> WaitFrame {
        let look = || WaitFrame::of(names.name_of(frame), frame.kind());
        *self.known.entry(frame.index()).or_insert_with(look)
    }
}

/// Whether a thread with this stack, leaf first, waits for work. It may also run.
pub(crate) fn waits_idly(stack: &[WaitFrame]) -> bool {
    let Some(java) = stack.iter().position(|frame| frame.java) else {
        // A JVM without symbols may be anywhere: what tells is that the C library waits.
        let waits = stack.iter().any(|frame| frame.wait.is_some()) || waits_unnamed(stack);
        let of_jvm =
            |frame: &WaitFrame| frame.attendant || frame.of_jvm && (!frame.stripped_jvm || waits);
        return stack.iter().any(of_jvm);
    };
    let (native, callers) = stack.split_at(java);
    let between = callers
        .iter()
        .take_while(|frame| frame.between || frame.idle);
    let mut waiting = native.iter().chain(between);
    let waits = waiting.any(|frame| frame.wait.is_some() || frame.idle)
        || callers.iter().any(|frame| frame.python_waits);
    waits && !native.iter().any(|frame| frame.monitor) && is_idle(callers)
}

/// Whether a JVM without symbols waits in a C library without symbols. There all that the JVM calls has a name, unless it
/// jumps to another function, as `sem_wait` does where it waits; variants for a processor, as of `memcpy`, call nothing.
fn waits_unnamed(native: &[WaitFrame]) -> bool {
    let end = native.iter().position(|frame| !frame.stripped_libc);
    end.is_some_and(|end| end > 1 && native[end].stripped_jvm)
}

impl crate::profile::Profile {
    /// The profile without threads that wait for work. A wall-clock profile does not show whether a thread ran: only
    /// where its stack has a wait.
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
            idle[node as usize] = waits_idly(&waits.stack(&self.frames, &path));
        }
        self.replanted(|node| !idle[node as usize], |node| self.tree.parent(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaf first. Names with a slash and a later dot are Java's, and `(k)` marks the kernel's.
    fn stack_of(stack: &str) -> Vec<WaitFrame> {
        let frames = stack.split(" < ");
        let frames = frames.map(|name| {
            let java = !name.starts_with('/') && name.contains('/') && !name.ends_with(')')
                || name.starts_with("App.");
            match (name.strip_suffix("(k)"), java) {
                (Some(name), _) => WaitFrame::of(name, Kind::Kernel),
                (None, true) => WaitFrame::of(name, Kind::Jit),
                (None, false) => WaitFrame::of(name, Kind::Plain),
            }
        });
        frames.collect()
    }

    fn wait(stack: &str) -> &'static str {
        wait_of(&stack_of(stack)).frame()
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

    #[test]
    fn threads_are_idle_by_who_waits_for_what() {
        let text = include_str!("../../tests/idle_threads.txt");
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<_> = lines().filter_map(|line| line.split_once(" = ")).collect();
        fn written(stack: &str, names: &[(&str, &str)]) -> String {
            let frames = stack.split(" < ").map(|frame| {
                let known = names.iter().find(|(name, _)| *name == frame);
                known.map_or_else(|| frame.to_owned(), |(_, frames)| written(frames, names))
            });
            frames.collect::<Vec<_>>().join(" < ")
        }
        let (mut wrong, mut tried) = (Vec::new(), 0);
        for line in lines() {
            let Some((expected, stack)) = line.split_once(": ") else {
                continue;
            };
            let stack = stack_of(&written(stack, &names));
            let found = [wait_of(&stack) == Wait::Idle, waits_idly(&stack)];
            tried += 1;
            if found != [expected == "idle"; 2] {
                wrong.push(format!(
                    "{expected}, but {found:?} off the CPU and by the clock: {line}"
                ));
            }
        }
        assert!(wrong.is_empty() && tried > 100, "{}", wrong.join("\n"));
        let running = "java/util/concurrent/LinkedBlockingQueue.poll < com/acme/Worker.run < java/lang/Thread.run";
        let copying = "[libc.so.6] < [libjvm.so] < [libjvm.so] < [libc.so.6] < [libc.so.6]";
        for stack in [running, copying] {
            assert!(!waits_idly(&stack_of(stack)), "{stack} may run");
        }
    }
}
