//! What threads that wait do, and in which method: what tables, sentences and colours say of a wait.
//!
//! A stack ends in frames that serve who waits (`ends.wait` of `rules/frames.yaml`); the frame above them waits.

use foldhash::HashMap;

use super::frame_rules::{Table, DOING as RULES, DOING_KINDS as KINDS};
use super::prune::smaller_frames;
use super::rebuild::Rebuild;
use super::rule_index::{ENDS, WAITING};
use super::waits::{wait_in, waits_idly, without_decoration, Wait, WaitFrame};
use crate::profile::{Frame, Kind, Node, Profile, Result, ValueType, ROOT};

/// The codes of what threads do; then their kind, and two ways to say it. The first is what a thread does that runs.
pub static DOING: Table = RULES;

/// What kinds of waiting are called.
pub static DOING_KINDS: Table = KINDS;

/// The place in [`DOING`] of what a thread does that runs.
const RUNS: u8 = 0;
/// Frames in brackets that are no wait of the kernel's: Python's threads that do not run.
const PYTHON_WAITS: &str = "[waiting]";

/// What the thread of a stack does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiter {
    /// The place in [`DOING`].
    pub does: u8,
    /// How many frames above the leaf the method is that does it.
    pub above: u32,
}

/// A wait as tables name it, the place in [`DOING`], and the method that waits.
pub type NamedWait = (String, u8, String);

/// What is known of a frame by its name.
#[derive(Clone, Copy)]
struct Known {
    frame: WaitFrame,
    /// It serves who waits.
    end: bool,
    /// It stands at the root in brackets: a thread, or a wait.
    head: bool,
    /// The first rule of each wait that it fits, by the wait's place in `WAITS`.
    rules: [u8; WAITS.len()],
}

/// The waits of the rules `waiting`, those of `Wait` in its order.
const WAITS: [&str; 9] = [
    "lock", "park", "sleep", "network", "disk", "idle", "wait", "other", "any",
];
const ANY: usize = WAITS.len() - 1;
const NO_RULE: u8 = u8::MAX;

/// Whether it is a value of an event of threads that may wait.
pub(crate) fn counts_waits(value: &ValueType) -> bool {
    let name = value.name.as_str();
    counts_locks(value)
        || [
            "threads",
            "wall",
            "wall_samples",
            "offcpu",
            "offcpu_samples",
        ]
        .contains(&name)
}

/// Whether it is a value of waits for locks, whose stacks end in the lock's class.
pub(crate) fn counts_locks(value: &ValueType) -> bool {
    ["contentions", "delay"].contains(&value.name.as_str())
}

fn place_of(code: &str) -> u8 {
    let place = RULES.iter().position(|(known, _)| *known == code);
    place.map_or(RUNS, |place| place as u8)
}

impl Known {
    fn of(name: &str, kind: Kind) -> Known {
        let frame = WaitFrame::of(name, kind);
        let bracketed = name.starts_with('[') && name.ends_with(']');
        let mut known = Known {
            frame,
            end: kind == Kind::Kernel || ENDS.every(name).any(|rule| rule == "wait.frames"),
            // Not a library without symbols.
            head: kind == Kind::Plain
                && bracketed
                && !name.starts_with("[unknown")
                && !name.contains(".so"),
            rules: [NO_RULE; WAITS.len()],
        };
        let mut rules: Vec<&str> = WAITING.every(name).collect();
        if !frame.java && !frame.kernel {
            let plain = without_decoration(name);
            known.end |= ENDS.every(plain).any(|rule| rule == "wait.native");
            rules.extend(WAITING.every(plain));
        }
        for rule in rules {
            let (wait, code) = rule.split_once('.').unwrap_or((rule, ""));
            if let Some(wait) = WAITS.iter().position(|known| *known == wait) {
                known.rules[wait] = known.rules[wait].min(place_of(code));
            }
        }
        known
    }
}

/// Finds what the threads of stacks do. Each frame's name is matched once.
#[derive(Default)]
pub(crate) struct Waiters {
    known: HashMap<usize, Known>,
    stack: Vec<WaitFrame>,
}

impl Waiters {
    /// What a thread with the stack of this node does. In an off-CPU profile, whose stacks begin with what is waited for,
    /// it never runs.
    pub(crate) fn of(&mut self, profile: &Profile, node: Node) -> Waiter {
        if let Some(small) = Waiters::too_small(profile, node) {
            return small;
        }
        let mut path = Vec::new();
        let mut next = node;
        while next != ROOT {
            path.push(self.known(profile, profile.tree.frame(next)));
            next = profile.tree.parent(next);
        }
        self.stack.clear();
        self.stack.extend(path.iter().map(|known| known.frame));
        let heads = path.iter().rev().take_while(|known| known.head).count();
        let (body, heads) = path.split_at(path.len() - heads);
        let given = self.given(profile, node, body.len(), heads.len());
        self.waiter(body, given)
    }

    /// What is known of frames that were left out (`(N smaller frames)`): only below which method they are.
    fn too_small(profile: &Profile, node: Node) -> Option<Waiter> {
        smaller_frames(profile.frames.name_of(profile.tree.frame(node)))?;
        Some(Waiter {
            does: place_of("small"),
            above: u32::from(profile.tree.parent(node) != ROOT),
        })
    }

    /// What the brackets at the root say: that it waits, and for what.
    fn given(&self, profile: &Profile, node: Node, body: usize, heads: usize) -> Option<Wait> {
        let mut at = node;
        for _ in 0..body {
            at = profile.tree.parent(at);
        }
        for _ in 0..heads {
            let name = profile.frames.name_of(profile.tree.frame(at));
            let wait = Wait::ALL.iter().find(|wait| wait.frame() == name);
            if let Some(&wait) = wait {
                return Some(wait);
            }
            if name == PYTHON_WAITS {
                return Some(Wait::Other);
            }
            at = profile.tree.parent(at);
        }
        None
    }

    /// The same in a lock profile, in which the class of the lock is the last frame. Engines mark it as inlined; other
    /// profiles of the kind end in the method that locks.
    pub(crate) fn of_lock(&mut self, profile: &Profile, node: Node) -> Waiter {
        if let Some(small) = Waiters::too_small(profile, node) {
            return small;
        }
        let parent = profile.tree.parent(node);
        if parent == ROOT || profile.tree.frame(node).kind() != Kind::Inlined {
            return Waiter {
                does: place_of("lock"),
                above: 0,
            };
        }
        let waiter = self.of(profile, parent);
        Waiter {
            does: place_of(match waiter.does {
                RUNS => "monitor",
                _ => "lock",
            }),
            above: waiter.above + 1,
        }
    }

    fn known(&mut self, profile: &Profile, frame: Frame) -> Known {
        let look = || Known::of(profile.frames.name_of(frame), frame.kind());
        *self.known.entry(frame.index()).or_insert_with(look)
    }

    fn waiter(&self, body: &[Known], given: Option<Wait>) -> Waiter {
        let stack = &self.stack;
        let natives = stack.iter().position(|frame| frame.java);
        let natives = natives.unwrap_or(body.len());
        let mut ends = body.iter().take_while(|known| known.end).count();
        // Functions below a method of the JDK that serves who waits are its own.
        if body.get(natives).is_some_and(|known| known.end) {
            let methods = body[natives..].iter().take_while(|known| known.end);
            ends = ends.max(natives + methods.count());
        }
        // A stack of nothing else keeps its outermost frame.
        ends = ends.min(body.len().saturating_sub(1));
        let of_method = stack.get(ends).is_some_and(|frame| frame.java);
        let by_frames = || match waits_idly(stack) {
            true => Some(Wait::Idle),
            false => wait_in(&stack[..ends], of_method),
        };
        let wait = match given {
            Some(Wait::Other) => by_frames().or(given),
            None => by_frames(),
            given => given,
        };
        let first = |frames: &[Known], wait: usize| {
            let rules = frames.iter().map(|known| known.rules[wait]);
            rules.min().filter(|&rule| rule != NO_RULE)
        };
        let of_jvm = first(&body[..natives], ANY);
        let Some(wait) = wait.or(of_jvm.map(|_| Wait::Other)) else {
            return Waiter {
                does: RUNS,
                above: ends as u32,
            };
        };
        let rule = match wait {
            Wait::Idle => None,
            _ => of_jvm.or_else(|| first(&body[..ends], wait as usize)),
        };
        let does = rule.unwrap_or_else(|| place_of(WAITS[wait as usize]));
        // What the JVM does is for the method that called it.
        let by_jvm = of_jvm.is_some() || does == place_of("monitor");
        let above = match by_jvm && natives < body.len() {
            true => natives.max(ends),
            false => ends,
        };
        Waiter {
            does,
            above: above as u32,
        }
    }
}

impl Profile {
    /// Which stacks, by the nodes in which they end, are those of threads that wait for work.
    pub(crate) fn idle_nodes(&self) -> Vec<bool> {
        let mut waiters = Waiters::default();
        let idle = place_of("idle");
        let all = 0..self.tree.len() as Node;
        all.map(|node| self.has_self(node) && waiters.of(self, node).does == idle)
            .collect()
    }

    /// Stacks that end in what their threads do: below the method that waits, a frame such as "sleeps in Job.run"; and
    /// what these frames say. With `locks` each stack ends in the class of what is waited for, as lock profiles have it.
    pub fn into_waiters(&self, locks: bool) -> Result<(Profile, Vec<NamedWait>)> {
        let mut waiters = Waiters::default();
        let mut copy = Rebuild::of(self);
        copy.add_selves(ROOT, ROOT)?;
        let mut names: HashMap<String, (u8, String)> = HashMap::default();
        let mut path = Vec::new();
        for node in self.tree.nodes().filter(|&node| self.has_self(node)) {
            let waiter = match locks {
                true => waiters.of_lock(self, node),
                false => waiters.of(self, node),
            };
            path.clear();
            let mut at = node;
            for _ in 0..waiter.above {
                at = self.tree.parent(at);
            }
            let method = self.frames.name_of(self.tree.frame(at));
            while at != ROOT {
                path.push(self.tree.frame(at));
                at = self.tree.parent(at);
            }
            let mut to = ROOT;
            for &frame in path.iter().rev() {
                to = copy.child(to, frame)?;
            }
            if waiter.does != RUNS {
                let name = format!("{} {method}", RULES[usize::from(waiter.does)].1[1]);
                to = copy.child_named(to, &name, Kind::Plain)?;
                names
                    .entry(name)
                    .or_insert_with(|| (waiter.does, method.to_owned()));
            }
            copy.add_selves(node, to)?;
        }
        let names = names.into_iter();
        let mut names: Vec<_> = names
            .map(|(name, (does, method))| (name, does, method))
            .collect();
        names.sort();
        Ok((copy.finish(), names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_named_by_what_is_waited_for_and_by_whom() {
        const FUTEX: &str =
            "__futex_abstimed_wait_common < ___pthread_cond_timedwait < os::PlatformEvent::park";
        const PARK: &str = "__futex_abstimed_wait_common < ___pthread_cond_wait < Parker::park < Unsafe_Park < jdk/internal/misc/Unsafe.park_[j] < java/util/concurrent/locks/LockSupport.park_[j]";
        let monitor = "ObjectMonitor::EnterI < ObjectMonitor::enter < ObjectSynchronizer::enter";
        let sleep = "JVM_Sleep < java/lang/Thread.sleep_[j] < App.f_[j] < java/lang/Thread.run_[j]";
        for (stack, expected) in [
            (format!("{FUTEX} < JavaThread::sleep < {sleep}"), "sleeps in App.f"),
            (
                format!("{FUTEX} < {monitor} < SharedRuntime::complete_monitor_locking_C < _complete_monitor_locking_Java < App.f_[j]"),
                "waits for a monitor in App.f",
            ),
            (format!("{FUTEX} < {monitor} < InterpreterRuntime::monitorenter < App.f_[0]"), "waits for a monitor in App.f"),
            ("/lib/libc.so.6 < pthread_cond_wait < /jre/libjvm.so < App.f_[j]".into(), "waits for a monitor in App.f"),
            (format!("{PARK} < java/util/concurrent/locks/ReentrantLock.lock_[j] < App.f_[j]"), "waits for a lock in App.f"),
            (format!("{PARK} < java/util/concurrent/LinkedBlockingQueue.put_[j] < App.f_[j]"), "waits for a queue in App.f"),
            (format!("{PARK} < java/util/concurrent/FutureTask.get_[j] < App.f_[j]"), "waits for a result in App.f"),
            (format!("{PARK} < java/util/concurrent/Semaphore.acquire_[j] < App.f_[j]"), "waits for a permit in App.f"),
            ("[libc.so.6] < pthread_cond_wait < os::PlatformEvent::park < ObjectMonitor::EnterI < monitorenter_nofpu Runtime1 stub < App.f_[0]".into(), "waits for a monitor in App.f"),
            ("[libc.so.6] < [libc.so.6] < pthread_cond_wait < [libjvm.so] < [libjvm.so] < monitorenter_nofpu Runtime1 stub < App.f_[1]".into(), "waits for a monitor in App.f"),
            ("[libc.so.6] < pthread_cond_wait < [libjvm.so] < App.f_[j]".into(), "waits for a monitor in App.f"),
            ("[libc.so.6] < pthread_cond_timedwait < [libjvm.so] < [libjvm.so] < [libc.so.6]".into(), "waits for work in [libc.so.6]"),
            ("[libc.so.6] < App.f_[j]".into(), "App.f"),
            (format!("{PARK} < App.f_[j]"), "is parked in App.f"),
            ("__GI_fsync < Java_java_io_FileDescriptor_sync < java/io/FileDescriptor.sync_[j] < App.f_[j]".into(), "flushes to disk in App.f"),
            ("__GI_read < handleRead < readBytes < java/io/FileInputStream.readBytes_[j] < App.f_[j]".into(), "reads from disk in App.f"),
            ("__GI___libc_open < handleOpen < java/io/FileOutputStream.open0_[j] < App.f_[j]".into(), "opens a file in App.f"),
            ("__GI_read < sun/nio/ch/SocketDispatcher.read0_[j] < sun/nio/ch/NioSocketImpl.read_[j] < App.f_[j]".into(), "reads from the network in App.f"),
            ("__GI_read < sun/nio/ch/SocketDispatcher.read0_[j] < org/apache/spark/api/python/BasePythonRunner$ReaderInputStream.read_[j] < java/io/DataInputStream.readInt_[j] < App.f_[j]".into(), "waits for Python in App.f"),
            ("__GI_write < handleWrite < writeBytes < java/io/FileOutputStream.writeBytes_[j] < App.f_[j]".into(), "writes to disk in App.f"),
            ("__libc_accept < server_loop < start_thread".into(), "waits for connections in server_loop"),
            (format!("{FUTEX} < VMThread::execute < G1CollectedHeap::do_collection < MemAllocator::allocate < _new_instance_Java < App.f_[j]"), "waits for garbage collection in App.f"),
            ("syscall < LinuxWaitBarrier::wait < SafepointSynchronize::block < SafepointMechanism::process < App.f_[j]".into(), "waits for a safepoint in App.f"),
            (format!("{PARK} < java/util/concurrent/LinkedBlockingQueue.take_[j] < java/util/concurrent/ThreadPoolExecutor.getTask_[j] < java/lang/Thread.run_[j]"), "waits for work in java/util/concurrent/ThreadPoolExecutor.getTask"),
            ("(3 smaller frames) < App.f_[j]".into(), "is too small to show in App.f"),
            ("App.f_[j]".into(), "App.f"),
            ("__memcpy_avx < App.f_[j]".into(), "__memcpy_avx"),
            ("java/util/HashMap.get_[j] < App.f_[j]".into(), "java/util/HashMap.get"),
            ("schedule_[k] < io_schedule_[k] < pread64 < rocksdb::Read < [disk] < [T]".into(), "reads from disk in rocksdb::Read"),
            ("f (a.py) < [waiting] < [T]".into(), "waits in f (a.py)"),
            ("f (a.py) < [holds the GIL] < [T]".into(), "f (a.py)"),
            ("clock_nanosleep < f (a.py) < [waiting] < [T]".into(), "sleeps in f (a.py)"),
        ] {
            let mut profile = Profile::new(vec![ValueType::samples()]);
            let mut frames: Vec<&str> = stack.split(" < ").collect();
            frames.reverse();
            profile.add_stack(&frames, &[1]).unwrap();
            let (ended, names) = profile.into_waiters(false).unwrap();
            let top = ended.top(1, 0).unwrap();
            assert_eq!(top[0].name, expected, "{stack}");
            assert_eq!(names.len(), usize::from(expected.contains(" in ")), "{stack}");
        }
    }

    #[test]
    fn waits_for_locks_are_named_by_who_waits() {
        let lock =
            "java/util/concurrent/locks/ReentrantLock.lock_[j];jdk/internal/misc/Unsafe.park_[j]";
        for (stack, expected) in [
            (
                "App.f_[j];java.lang.Object_[i]".to_owned(),
                "waits for a monitor in App.f",
            ),
            (
                format!(
                    "App.f_[j];{lock};java.util.concurrent.locks.ReentrantLock$NonfairSync_[i]"
                ),
                "waits for a lock in App.f",
            ),
        ] {
            let mut profile = Profile::new(vec![ValueType::samples()]);
            let frames: Vec<&str> = stack.split(';').collect();
            profile.add_stack(&frames, &[1]).unwrap();
            let (ended, _) = profile.into_waiters(true).unwrap();
            assert_eq!(ended.top(1, 0).unwrap()[0].name, expected);
        }
    }
}
