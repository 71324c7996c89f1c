//! Dumps of many processes, thread by thread; what is equal in them is kept once.

use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

use crate::ops::waiting::Waiters;
use crate::ops::{NameRules, Threads, Waiter, DOING};
use crate::profile::{Error, Limits, Node, Profile, Result, ROOT};
use crate::source::Input;

use super::places::{Place, Places};
use super::thread::{DeadlockLine, Owner, Sink, Thread};
use super::tree::Tree;

/// Threads of a file, and locks that they hold: beyond any process.
const MOST_THREADS: usize = 1 << 21;

/// A dump of one process.
#[derive(Default)]
pub struct ThreadDump {
    /// Its threads.
    pub threads: Vec<GroupedThread>,
    /// For each thread the place of the one that has the lock which it waits for, if that is known.
    pub owners: Vec<Option<usize>>,
    /// Who waits for whom in the deadlocks that the JVM found.
    deadlocks: Vec<Vec<DeadlockLine>>,
}

/// A thread without its frames, which [`ThreadDumps`] keeps.
pub struct GroupedThread {
    /// The thread.
    pub thread: Thread,
    /// The number of its stack.
    pub stack: u32,
    /// The number of its group.
    pub group: u32,
    /// What threads of this name and of others like it are called together.
    pub group_name: Arc<str>,
}

/// Threads with the same methods on their stacks that wait for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadGroup {
    /// The methods, leaf first, by canonical names.
    pub frames: Vec<String>,
    /// What the threads do, and the place of the method that does it.
    pub waiter: Waiter,
}

/// Reads dumps and keeps their stacks.
pub struct ThreadDumps {
    limits: Limits,
    places: Places,
    tree: Tree,
    stacks: HashMap<Box<[u32]>, u32, RandomState>,
    /// By the number of the stack, and whether it waits: its group.
    groups: HashMap<(u32, &'static str), u32, RandomState>,
    /// The stacks by their numbers, and the nodes of groups with the states of their threads.
    lists: Vec<Box<[u32]>>,
    nodes: Vec<(Node, &'static str)>,
    by_node: HashMap<(Node, bool), u32, RandomState>,
    waiters: Waiters,
    names: HashMap<String, Arc<str>, RandomState>,
}

impl Default for ThreadDumps {
    fn default() -> ThreadDumps {
        let limits = Limits::default();
        ThreadDumps {
            places: Places::new(&limits),
            tree: Tree::canonical(&limits),
            limits,
            stacks: HashMap::default(),
            groups: HashMap::default(),
            lists: Vec::new(),
            nodes: Vec::new(),
            by_node: HashMap::default(),
            waiters: Waiters::default(),
            names: HashMap::default(),
        }
    }
}

impl ThreadDumps {
    /// The dumps of a file that is not compressed, in their order.
    pub fn read(&mut self, bytes: &[u8]) -> Result<Vec<ThreadDump>> {
        let input = Input::Bytes(Cursor::new(bytes));
        let limits = self.limits.clone();
        let mut sink = DumpSink {
            all: self,
            dumps: Vec::new(),
            count: 0,
        };
        super::read(input, &limits, &mut sink)?;
        let mut dumps = sink.dumps;
        dumps.retain(|dump| !dump.threads.is_empty());
        for dump in &mut dumps {
            dump.find_owners();
        }
        Ok(dumps)
    }

    /// The frames of a stack, leaf first.
    pub fn stack(&self, number: u32) -> Result<impl Iterator<Item = &Place>> {
        let stack = self.lists.get(number as usize);
        let stack = stack.ok_or_else(|| Error::Usage(format!("there is no stack {number}")))?;
        Ok(stack.iter().map(|&place| self.places.get(place)))
    }

    /// What the threads of a group have in common.
    pub fn group(&mut self, number: u32) -> Result<ThreadGroup> {
        let (node, state) = self.node(number)?;
        let profile = &self.tree.profile;
        let mut waiter = self.waiters.of(profile, node);
        if state == "BLOCKED" {
            let monitor = DOING.iter().position(|(code, _)| *code == "monitor");
            waiter = Waiter {
                does: monitor.unwrap_or_default() as u8,
                above: 0,
            };
        }
        let mut frames = Vec::new();
        let mut at = node;
        while at != ROOT {
            let frame = profile.tree.frame(at);
            frames.push(profile.frames.name_of(frame).to_owned());
            at = profile.tree.parent(at);
        }
        Ok(ThreadGroup { frames, waiter })
    }

    /// The node of a group, and the state of its threads.
    fn node(&self, group: u32) -> Result<(Node, &'static str)> {
        let known = self.nodes.get(group as usize).copied();
        known.ok_or_else(|| Error::Usage(format!("there is no group {group}")))
    }

    /// A profile of so many threads of these groups; each has the name of a group of threads.
    pub fn profile(&self, counts: &[(u32, &str, i64)]) -> Result<Profile> {
        let from = &self.tree.profile;
        let mut profile = Profile::bounded(from.values().to_vec(), self.limits.cells);
        for &(group, name, count) in counts {
            let (mut at, _) = self.node(group)?;
            let mut path = Vec::new();
            while at != ROOT {
                let frame = from.tree.frame(at);
                let text = format!("{}{}", from.frames.name_of(frame), frame.kind().suffix());
                path.push(text.into_bytes());
                at = from.tree.parent(at);
            }
            path.extend(Threads::Groups.frame(name.as_bytes(), 0));
            path.reverse();
            profile.add_stack(&path, &[count])?;
        }
        profile.into_ordered()
    }

    fn stack_number(&mut self, places: &[u32]) -> Result<u32> {
        if let Some(&known) = self.stacks.get(places) {
            return Ok(known);
        }
        let number = self.lists.len() as u32;
        self.lists.push(places.into());
        self.stacks.insert(places.into(), number);
        Ok(number)
    }

    fn group_name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let group: Arc<str> = NameRules::builtin().thread_group(name).into();
        self.names.insert(name.to_owned(), group.clone());
        group
    }

    fn group_number(&mut self, stack: u32, thread: &Thread) -> Result<u32> {
        // Python's threads say more of themselves.
        let key = (stack, thread.state);
        if let Some(&known) = self.groups.get(&key) {
            return Ok(known);
        }
        let node = self.tree.node(&self.places, thread, None)?;
        let next = self.nodes.len() as u32;
        let by_node = (node, thread.state == "BLOCKED");
        let number = *self.by_node.entry(by_node).or_insert(next);
        if number == next {
            self.nodes.push((node, thread.state));
        }
        self.groups.insert(key, number);
        Ok(number)
    }
}

struct DumpSink<'a> {
    all: &'a mut ThreadDumps,
    dumps: Vec<ThreadDump>,
    count: usize,
}

impl DumpSink<'_> {
    fn last(&mut self) -> &mut ThreadDump {
        if self.dumps.is_empty() {
            self.dumps.push(ThreadDump::default());
        }
        let last = self.dumps.len() - 1;
        &mut self.dumps[last]
    }
}

impl Sink for DumpSink<'_> {
    fn places(&mut self) -> &mut Places {
        &mut self.all.places
    }

    fn begin(&mut self) -> Result<()> {
        if self
            .dumps
            .last()
            .is_none_or(|dump| !dump.threads.is_empty())
        {
            self.dumps.push(ThreadDump::default());
        }
        Ok(())
    }

    fn thread(&mut self, thread: &mut Thread) -> Result<()> {
        self.count += 1 + thread.holds.len();
        if self.count > MOST_THREADS {
            let limit = MOST_THREADS as u64;
            let what = "threads and locks of a dump";
            return Err(Error::Limit { what, limit });
        }
        let stack = self.all.stack_number(&thread.places)?;
        let group = self.all.group_number(stack, thread)?;
        let mut thread = std::mem::take(thread);
        thread.places = Vec::new();
        let group_name = self.all.group_name(&thread.name);
        self.last().threads.push(GroupedThread {
            thread,
            stack,
            group,
            group_name,
        });
        Ok(())
    }

    fn deadlock(&mut self, line: DeadlockLine, first: bool) -> Result<()> {
        self.count += 1;
        let deadlocks = &mut self.last().deadlocks;
        match deadlocks.last_mut() {
            Some(deadlock) if !first => deadlock.push(line),
            _ => deadlocks.push(vec![line]),
        }
        Ok(())
    }
}

impl ThreadDump {
    /// Finds who has the locks that others wait for: by the locks that threads hold, by what the dump says of a thread, or
    /// by the deadlocks that the JVM lists.
    fn find_owners(&mut self) {
        let threads = || self.threads.iter().map(|one| &one.thread).enumerate();
        let mut holders: HashMap<&str, usize, RandomState> = HashMap::default();
        let mut numbers: HashMap<i64, usize, RandomState> = HashMap::default();
        let mut names: HashMap<&str, Option<usize>, RandomState> = HashMap::default();
        let mut waiters: HashMap<(&str, &str), usize, RandomState> = HashMap::default();
        for (at, thread) in threads() {
            for lock in &thread.holds {
                holders.entry(&lock.id).or_insert(at);
            }
            if let Some(number) = thread.java_number {
                numbers.entry(number).or_insert(at);
            }
            let named = names.entry(&thread.name).or_insert(Some(at));
            if *named != Some(at) {
                *named = None;
            }
            if let Some((_, lock)) = &thread.waits {
                waiters.insert((&thread.name, &lock.id), at);
            }
        }
        // In a list of deadlocks threads have names alone; the lock that each waits for tells those of one name apart.
        let mut listed: HashMap<usize, usize, RandomState> = HashMap::default();
        for deadlock in &self.deadlocks {
            let thread = |line: &DeadlockLine| waiters.get(&(&*line.thread, &*line.lock)).copied();
            for line in deadlock {
                let mut holder = deadlock.iter().filter(|other| other.thread == line.holder);
                if let (Some(waits), Some(holds)) = (thread(line), holder.next().and_then(thread)) {
                    listed.insert(waits, holds);
                }
            }
        }
        let owner = |(at, thread): (usize, &Thread)| {
            let (_, lock) = thread.waits.as_ref()?;
            let said = match &thread.owner {
                Owner::JavaNumber(number) => numbers.get(number).copied(),
                Owner::Name(name) => names.get(&**name).copied().flatten(),
                Owner::Unknown => None,
            };
            let held = holders.get(&*lock.id).copied();
            held.or(said)
                .or_else(|| listed.get(&at).copied())
                .filter(|&other| other != at)
        };
        self.owners = threads().map(owner).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As JDK 25 prints it: the header of a carrier has its number only in brackets.
    const CARRIER: &str = r#"Full thread dump OpenJDK 64-Bit Server VM (25.0.3+9-LTS mixed mode, sharing):

"ForkJoinPool-1-worker-1" #23 [8507] daemon prio=5 os_prio=0 cpu=1500.00ms elapsed=350.14s tid=0x00007fbd340c7170  [0x00007fbd389ee000]
   Carrying virtual thread #22
	at jdk.internal.vm.Continuation.run(java.base@25.0.3/Continuation.java:248)
   Mounted virtual thread #22
	at V.burn(V.java:5)

"VirtualThread-unblocker" #25 [8509] daemon prio=5 os_prio=0 cpu=0.10ms elapsed=350.12s tid=0x00007fbd340c9170 nid=8509 runnable  [0x00007fbd388ee000]
   java.lang.Thread.State: RUNNABLE
	at java.lang.VirtualThread.takeVirtualThreadListToUnblock(java.base@25.0.3/Native Method)
	at java.lang.VirtualThread.unblockVirtualThreads(java.base@25.0.3/VirtualThread.java:1580)
"#;

    #[test]
    fn a_mounted_virtual_thread_is_what_its_carrier_does() {
        let mut dumps = ThreadDumps::default();
        let read = dumps.read(CARRIER.as_bytes()).unwrap();
        let [carrier, unblocker] = &read[0].threads[..] else {
            panic!("{} threads", read[0].threads.len());
        };
        let thread = &carrier.thread;
        assert_eq!(
            (&*thread.name, thread.number, thread.java_number, thread.cpu),
            ("ForkJoinPool-1-worker-1", Some(8507), Some(22), Some(1.5))
        );
        let group = dumps.group(carrier.group).unwrap();
        assert!(thread.is_virtual);
        assert_eq!(group.frames, ["V.burn"]);
        let group = dumps.group(unblocker.group).unwrap();
        assert_eq!(DOING[usize::from(group.waiter.does)].0, "idle");
    }
}
