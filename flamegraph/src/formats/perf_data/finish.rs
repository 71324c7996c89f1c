//! Makes profiles of a recording that was read.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};

use super::file::EventValues;
use super::groups::Groups;
use super::live::{Counted, Finish, Live, Recorded, RecordedEvent, Wanted};
use super::naming::Naming;
use super::processes::Mode;
use super::stacks::{StackId, StackTree};
use super::tally::{Count, Tally};
use crate::formats::ReadOptions;
use crate::ops::waits::{wait_of, Wait, WaitFrame};
use crate::profile::{Error, Frame, Kind, Node, Profile, Result, Times, Unknown, ValueType, ROOT};
use crate::symbols::Files;

/// Bytes of a frame's name that are kept.
const MOST_NAME: usize = 64 << 10;

pub(super) fn finish(live: &mut Live, how: &Finish<'_>) -> Result<Recorded> {
    live.end_waits();
    let begin = live.began(0);
    let mut recorded = Recorded {
        lost: live.lost(),
        malformed: live.malformed,
        left_out: live.left_out.saturating_add(live.off_cpu.left_out),
        preempted: live.off_cpu.preempted,
        ..Recorded::default()
    };
    let files = Files::new(how.symbols);
    let naming = Naming::new(&mut live.modules, &live.header, files, Some(how.jit), None);
    let (stacks, groups, cells) = (&live.stacks, &live.groups, live.limits.cells);
    let stories = Stories::of(stacks, groups, how.pid, cells, naming)?;
    for (number, (wanted, tally)) in live.wanted.iter().zip(&live.tallies).enumerate() {
        let Some(source) = &tally.source else {
            continue;
        };
        let times = live.moments.as_mut().map(|moments| {
            move |nodes: &[Node]| {
                let node = |stack: StackId| Some(nodes[stack as usize]);
                moments.times(number, begin, |stack| {
                    node(stack).filter(|&node| node != UNSEEN)
                })
            }
        });
        let event = stories.event(wanted, source, tally, how.cpu_nanoseconds, times)?;
        recorded.events.push(event);
    }
    Ok(recorded)
}

/// The profile of a file: of each event its samples, and their periods.
pub(super) fn finish_file(live: &mut Live, options: &ReadOptions) -> Result<Profile> {
    let filter = options.perf.event_filter.as_deref();
    let values = EventValues::of(&live.header.events, filter);
    values.check(&live.header.events, options)?;
    let files = Files::new(&options.symbols);
    let script = live.script.as_ref();
    let naming = Naming::new(&mut live.modules, &live.header, files, None, script);
    let (stacks, groups, cells) = (&live.stacks, &live.groups, options.limits.cells);
    let stories = Stories::of(stacks, groups, None, cells, naming)?;
    let mut counts: Vec<(StackId, usize, Count)> = Vec::new();
    for (number, tally) in live.tallies.iter().enumerate() {
        let all = tally.counts().into_iter();
        counts.extend(all.map(|(stack, count)| (stack, 2 * number, count)));
    }
    counts.sort_unstable_by_key(|&(stack, value, _)| (stack, value));
    let mut tree = Growing::of(&stories, values.values, false);
    for &(stack, value, count) in &counts {
        let node = tree.node(stack)?;
        tree.profile.add(node, value, clamped(count.samples))?;
        let amount = i64::try_from(count.amount);
        let amount = amount.map_err(|_| Error::Overflow("the periods of a stack".to_string()))?;
        tree.profile.add(node, value + 1, amount)?;
    }
    let mut profile = tree.profile;
    profile.add_malformed_lines(live.malformed);
    let mappings = live.processes.left_out + stories.naming.modules.left_out;
    let left_out = [(mappings, "mappings were"), (live.left_out, "samples were")];
    for (count, what) in left_out.into_iter().filter(|(count, _)| *count > 0) {
        profile.add_incomplete([format!("{count} {what} left out, there were too many")]);
    }
    let counts: Vec<(StackId, Count)> = counts
        .into_iter()
        .map(|(stack, _, count)| (stack, count))
        .collect();
    let mut unknown = stories.unknown(&counts);
    unknown.copied_stacks = live.copied_stacks;
    profile.add_warnings(stories.naming.modules.warnings());
    profile.add_warnings(unknown.warnings());
    profile.set_unknown(unknown);
    Ok(profile)
}

/// What is known about a node of the stacks.
#[derive(Clone, Copy)]
struct Story {
    /// What its spot is called; of a root nothing.
    named: u32,
    /// The outermost spot of the stack.
    outermost: u32,
    /// How many frames of it are the program's.
    user_frames: u32,
    is_wanted: bool,
}

/// The stories of all nodes.
struct Stories<'a> {
    stacks: &'a StackTree,
    groups: &'a Groups,
    naming: Naming<'a>,
    /// Nodes of a profile times its values.
    cells: usize,
    all: Vec<Story>,
}

const NOTHING: u32 = u32::MAX;
/// A stack that has no node yet.
const UNSEEN: Node = Node::MAX;

impl<'a> Stories<'a> {
    /// One sweep is enough, because callers come before callees.
    fn of(
        stacks: &'a StackTree,
        groups: &'a Groups,
        pid: Option<u32>,
        cells: usize,
        mut naming: Naming<'a>,
    ) -> Result<Stories<'a>> {
        // Nodes are numbered from 1 on.
        let mut all = vec![Story {
            named: NOTHING,
            outermost: NOTHING,
            user_frames: 0,
            is_wanted: false,
        }];
        // For each node: its process, and whether that is called java.
        let mut commands = vec![(0, false)];
        for node in stacks.nodes() {
            let Some((above, spot)) = stacks.above(node) else {
                let root = stacks.root_of(node);
                commands.push((root.pid, groups.get(root.group).java));
                all.push(Story {
                    named: NOTHING,
                    outermost: NOTHING,
                    user_frames: 0,
                    is_wanted: pid.is_none_or(|pid| pid == root.pid),
                });
                continue;
            };
            let command = commands[above as usize];
            commands.push(command);
            let mut story = all[above as usize];
            if story.is_wanted {
                story.named = naming.of(spot, command, stacks)?;
                story.is_below(&naming);
            }
            all.push(story);
        }
        Ok(Stories {
            stacks,
            groups,
            naming,
            cells,
            all,
        })
    }

    fn event(
        &self,
        wanted: &Wanted,
        source: &str,
        tally: &Tally,
        cpu: Option<u64>,
        times: Option<impl FnOnce(&[Node]) -> Times>,
    ) -> Result<RecordedEvent> {
        let mut counts = tally.counts();
        counts.retain(|&(stack, _)| self.all[stack as usize].is_wanted);
        let (mut profile, nodes) = self.profile(wanted, &counts)?;
        profile.set_times(times.map(|times| times(&nodes)));
        profile.add_warnings(self.naming.modules.warnings());
        if wanted.counted == Counted::CpuTime && !is_clock(source) {
            let cpu =
                cpu.ok_or_else(|| Error::Usage(format!("{source} does not measure CPU time")))?;
            profile = scaled_to(profile, cpu)?;
            // Their amounts are what the event counted, such as cycles, not nanoseconds.
            let times = profile.times().map(Times::without_amounts);
            profile.set_times(times);
        }
        Ok(RecordedEvent {
            event: wanted.event.clone(),
            source: source.to_string(),
            taken: counts.iter().map(|(_, count)| count.samples).sum(),
            unknown: self.unknown(&counts),
            broken: self.broken(&counts),
            profile,
        })
    }

    /// Also returns the node of each stack.
    fn profile(
        &self,
        wanted: &Wanted,
        counts: &[(StackId, Count)],
    ) -> Result<(Profile, Vec<Node>)> {
        let off_cpu = wanted.counted == Counted::OffCpu;
        let mut tree = Growing::of(self, values(wanted), off_cpu);
        let mut nodes = vec![UNSEEN; self.all.len()];
        for &(stack, count) in counts {
            let node = tree.node(stack)?;
            nodes[stack as usize] = node;
            let (samples, amount) = (clamped(count.samples), clamped(count.amount));
            match wanted.counted {
                Counted::Count => tree.profile.add(node, 0, amount)?,
                Counted::CpuTime | Counted::OffCpu => {
                    tree.profile.add(node, 0, samples)?;
                    tree.profile.add(node, 1, amount)?;
                }
            }
        }
        Ok((tree.profile, nodes))
    }

    /// A frame counts in every sample at or below it.
    fn unknown(&self, counts: &[(StackId, Count)]) -> Unknown {
        let mut totals = vec![0u64; self.all.len()];
        for &(stack, count) in counts {
            totals[stack as usize] += count.samples;
        }
        let mut unknown = Unknown::default();
        for &(stack, count) in counts {
            unknown.samples += count.samples;
            unknown.leaf_samples += count.samples * u64::from(self.module_unknown(stack).is_some());
        }
        let mut modules: BTreeMap<u32, u64> = BTreeMap::new();
        for node in (0..self.all.len()).rev() {
            let Some((above, _)) = self.stacks.above(node as StackId) else {
                continue;
            };
            let total = totals[node];
            totals[above as usize] += total;
            unknown.frames += total;
            if let Some(module) = self.module_unknown(node as StackId).filter(|_| total > 0) {
                unknown.unknown_frames += total;
                *modules.entry(module).or_default() += total;
            }
        }
        for (module, frames) in modules {
            let name = self.naming.modules.name(module).to_string();
            *unknown.modules.entry(name).or_default() += frames;
        }
        unknown
    }

    /// The module of a node without a symbol.
    fn module_unknown(&self, node: StackId) -> Option<u32> {
        let story = self.all[node as usize];
        (story.named != NOTHING).then(|| self.naming.named(story.named).unknown)?
    }

    /// Samples whose user stack does not reach the start of its thread. Samples with kernel frames only do not count.
    fn broken(&self, counts: &[(StackId, Count)]) -> u64 {
        let is_broken = |stack: StackId| {
            let story = self.all[stack as usize];
            if story.outermost == NOTHING {
                return true;
            }
            let outermost = self.naming.named(story.outermost);
            outermost.mode == Mode::User && !outermost.is_begin(story.user_frames > 1)
        };
        let broken = counts.iter().filter(|&&(stack, _)| is_broken(stack));
        broken.map(|(_, count)| count.samples).sum()
    }
}

impl Story {
    /// Continues the caller's story with the node's own name.
    fn is_below(&mut self, naming: &Naming<'_>) {
        let named = naming.named(self.named);
        if self.outermost == NOTHING {
            self.outermost = self.named;
        }
        self.user_frames += u32::from(named.mode == Mode::User);
    }
}

/// A profile in the making.
struct Growing<'s, 'a> {
    stories: &'s Stories<'a>,
    profile: Profile,
    /// The frames of each name; empty until it is used.
    by_name: Vec<Vec<Frame>>,
    /// What the frames of names say of a wait.
    waits: HashMap<u32, Vec<WaitFrame>>,
    /// The node of each stack, by kind of wait. Only off-CPU has more than one kind.
    nodes: HashMap<Wait, Vec<Node>>,
    off_cpu: bool,
}

impl<'s, 'a> Growing<'s, 'a> {
    fn of(stories: &'s Stories<'a>, values: Vec<ValueType>, off_cpu: bool) -> Growing<'s, 'a> {
        Growing {
            stories,
            profile: Profile::bounded(values, stories.cells),
            by_name: vec![Vec::new(); stories.naming.count()],
            waits: HashMap::new(),
            nodes: HashMap::new(),
            off_cpu,
        }
    }

    /// What a thread with this stack waits for.
    fn wait(&mut self, stack: StackId) -> Wait {
        let mut frames = Vec::new();
        let mut node = stack;
        while let Some((above, _)) = self.stories.stacks.above(node) {
            let number = self.stories.all[node as usize].named;
            let named = self.stories.naming.named(number).frames.iter();
            let look = || {
                named
                    .map(|(name, kind)| WaitFrame::of(name, *kind))
                    .collect()
            };
            let waits: &Vec<WaitFrame> = self.waits.entry(number).or_insert_with(look);
            frames.extend(waits.iter().rev());
            node = above;
        }
        wait_of(&frames)
    }

    /// The node of a stack. Known callers are reused.
    fn node(&mut self, stack: StackId) -> Result<Node> {
        let wait = match self.off_cpu {
            true => self.wait(stack),
            false => Wait::Other,
        };
        let unseen = || vec![UNSEEN; self.stories.all.len()];
        let mut nodes = self.nodes.remove(&wait).unwrap_or_else(unseen);
        let mut missing = Vec::new();
        let mut next = stack;
        let mut node = loop {
            let known = nodes[next as usize];
            if known != UNSEEN {
                break known;
            }
            match self.stories.stacks.above(next) {
                Some((above, _)) => missing.push(std::mem::replace(&mut next, above)),
                None => break self.root(next, wait)?,
            }
        };
        nodes[next as usize] = node;
        for stack in missing.into_iter().rev() {
            node = self.below(node, self.stories.all[stack as usize].named)?;
            nodes[stack as usize] = node;
        }
        self.nodes.insert(wait, nodes);
        Ok(node)
    }

    /// The group's frame, and off-CPU that of the wait.
    fn root(&mut self, root: StackId, wait: Wait) -> Result<Node> {
        let group = self.stories.stacks.root_of(root).group;
        let mut node = ROOT;
        for name in &self.stories.groups.get(group).frames {
            // Thread names in a file may have any form.
            let (name, kind) = match self.stories.groups.of_file() {
                true => Kind::split(name.as_bytes()),
                false => (name.as_bytes(), Kind::Plain),
            };
            let frame = self.frame(name, kind)?;
            node = self.profile.child(node, frame)?;
        }
        if self.off_cpu {
            let frame = self.frame(wait.frame().as_bytes(), Kind::Plain)?;
            node = self.profile.child(node, frame)?;
        }
        Ok(node)
    }

    fn below(&mut self, mut node: Node, number: u32) -> Result<Node> {
        let place = number as usize;
        if self.by_name[place].is_empty() {
            let naming = &self.stories.naming;
            let named = naming.named(number);
            for (name, kind) in &named.frames {
                let frame = self.frame(name.as_bytes(), *kind)?;
                let name = self.profile.frames.name_of(frame);
                let module = naming.modules.name(named.module);
                self.profile.modules.insert(name, *kind, module);
                self.by_name[place].push(frame);
            }
        }
        for &frame in &self.by_name[place] {
            node = self.profile.child(node, frame)?;
        }
        Ok(node)
    }

    fn frame(&mut self, name: &[u8], kind: Kind) -> Result<Frame> {
        let name = &name[..name.len().min(MOST_NAME)];
        Ok(Frame::new(self.profile.frames.intern_name(name)?, kind))
    }
}

fn values(wanted: &Wanted) -> Vec<ValueType> {
    match wanted.counted {
        Counted::CpuTime => vec![ValueType::samples(), ValueType::cpu()],
        Counted::Count => vec![ValueType::new(&wanted.event, "count")],
        Counted::OffCpu => vec![
            ValueType::new("offcpu_samples", "count"),
            ValueType::new("offcpu", "nanoseconds"),
        ],
    }
}

/// Whether an event's period is in nanoseconds.
fn is_clock(source: &str) -> bool {
    ["cpu-clock", "task-clock"]
        .iter()
        .any(|clock| source.starts_with(clock))
}

/// With CPU times in proportion to the periods.
fn scaled_to(profile: Profile, nanoseconds: u64) -> Result<Profile> {
    const CPU: usize = 1;
    if profile.total(CPU)? == 0 {
        return Ok(profile);
    }
    profile.with_total(CPU, clamped(nanoseconds))
}

fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
