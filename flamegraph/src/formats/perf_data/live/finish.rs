//! Making profiles of what was recorded.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashMapExt};

use super::groups::Groups;
use super::naming::Naming;
use super::stack_tree::{StackId, StackTree};
use super::tally::{Count, Tally};
use super::{Counted, Finish, Live, Recorded, RecordedEvent, Wanted};
use crate::formats::perf_data::processes::Mode;
use crate::ops::waits::{wait_of, Wait};
use crate::profile::{Error, Frame, Kind, Node, Profile, Result, Unknown, ValueType, ROOT};
use crate::symbols::Files;

/// Bytes of a frame's name that are kept.
const MOST_NAME: usize = 64 << 10;

pub(super) fn finish(live: &mut Live, how: &Finish<'_>) -> Result<Recorded> {
    live.end_waits();
    let mut recorded = Recorded {
        lost: live.lost(),
        malformed: live.malformed,
        left_out: live.left_out.saturating_add(live.off_cpu.left_out),
        preempted: live.off_cpu.preempted,
        ..Recorded::default()
    };
    let files = Files::new(how.symbols);
    let naming = Naming::new(&mut live.modules, &live.header, files, how.jit);
    let stories = Stories::of(
        &live.stacks,
        &live.groups,
        how.pid,
        live.limits.cells,
        naming,
    )?;
    for (wanted, tally) in live.wanted.iter().zip(&live.tallies) {
        let Some(source) = &tally.source else {
            continue;
        };
        let event = stories.event(wanted, source, tally, how.cpu_nanoseconds)?;
        recorded.events.push(event);
    }
    Ok(recorded)
}

/// What there is to say of a node of the stacks.
#[derive(Clone, Copy)]
struct Story {
    /// What its spot is called; of a root nothing.
    named: usize,
    /// The outermost spot of the stack.
    outermost: usize,
    /// How many frames of it are the program's.
    user_frames: u32,
    is_wanted: bool,
}

/// The stories of all nodes.
struct Stories<'a> {
    stacks: &'a StackTree,
    groups: &'a Groups,
    naming: Naming<'a>,
    pid: Option<u32>,
    /// Nodes of a profile times its values.
    cells: usize,
    all: Vec<Story>,
}

const NOTHING: usize = usize::MAX;

impl<'a> Stories<'a> {
    /// Callers come before callees, so that one sweep is enough.
    fn of(
        stacks: &'a StackTree,
        groups: &'a Groups,
        pid: Option<u32>,
        cells: usize,
        mut naming: Naming<'a>,
    ) -> Result<Stories<'a>> {
        let mut all: Vec<Story> = Vec::with_capacity(stacks.len());
        let mut pids = Vec::with_capacity(stacks.len());
        for node in 0..stacks.len() as StackId {
            let Some((above, spot)) = stacks.above(node) else {
                let root = stacks.root_of(node);
                pids.push(root.pid);
                all.push(Story {
                    named: NOTHING,
                    outermost: NOTHING,
                    user_frames: 0,
                    is_wanted: pid.is_none_or(|pid| pid == root.pid),
                });
                continue;
            };
            pids.push(pids[above as usize]);
            let mut story = all[above as usize];
            if story.is_wanted {
                story.named = naming.of(spot, pids[above as usize], stacks)?;
                story.is_below(&naming);
            }
            all.push(story);
        }
        Ok(Stories {
            stacks,
            groups,
            naming,
            pid,
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
    ) -> Result<RecordedEvent> {
        let mut counts = tally.counts();
        counts.retain(|&(stack, _)| self.all[stack as usize].is_wanted);
        let mut profile = self.profile(wanted, &counts)?;
        profile.add_warnings(self.naming.modules.warnings());
        if wanted.counted == Counted::CpuTime && !is_clock(source) {
            let cpu =
                cpu.ok_or_else(|| Error::Usage(format!("{source} does not measure CPU time")))?;
            profile = scaled_to(profile, cpu)?;
        }
        Ok(RecordedEvent {
            event: wanted.event.clone(),
            source: source.to_string(),
            taken: counts.iter().map(|(_, count)| count.samples).sum(),
            timeline: tally.timeline(self.pid),
            unknown: self.unknown(&counts),
            broken: self.broken(&counts),
            profile,
        })
    }

    fn profile(&self, wanted: &Wanted, counts: &[(StackId, Count)]) -> Result<Profile> {
        let mut tree = Growing {
            stories: self,
            profile: Profile::bounded(values(wanted), self.cells),
            by_name: HashMap::new(),
            nodes: HashMap::new(),
            off_cpu: wanted.counted == Counted::OffCpu,
        };
        for &(stack, count) in counts {
            let node = tree.node(stack)?;
            let (samples, amount) = (clamped(count.samples), clamped(count.amount));
            match wanted.counted {
                Counted::Count => tree.profile.add(node, 0, amount)?,
                Counted::CpuTime | Counted::OffCpu => {
                    tree.profile.add(node, 0, samples)?;
                    tree.profile.add(node, 1, amount)?;
                }
            }
        }
        Ok(tree.profile)
    }

    /// A frame counts in every sample at or below it.
    fn unknown(&self, counts: &[(StackId, Count)]) -> Unknown {
        let mut totals = vec![0u64; self.all.len()];
        for &(stack, count) in counts {
            totals[stack as usize] = count.samples;
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

    /// What a thread with this stack waits for.
    fn wait(&self, stack: StackId) -> Wait {
        let mut frames = Vec::new();
        let mut node = stack;
        while let Some((above, _)) = self.stacks.above(node) {
            let named = self.naming.named(self.all[node as usize].named);
            frames.extend(named.waits.iter().rev());
            node = above;
        }
        wait_of(&frames)
    }

    /// Samples whose program part does not go back to where a thread begins. Those of the kernel alone do not count.
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
    /// Goes on from the caller's story: `named` is that of the node itself.
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
    /// The frames of names that were met.
    by_name: HashMap<usize, Vec<Frame>>,
    /// Where stacks went; off-CPU under each kind of wait.
    nodes: HashMap<(StackId, Wait), Node>,
    off_cpu: bool,
}

impl Growing<'_, '_> {
    /// The node of a stack; callers that were met before are not gone through again.
    fn node(&mut self, stack: StackId) -> Result<Node> {
        let wait = match self.off_cpu {
            true => self.stories.wait(stack),
            false => Wait::Other,
        };
        let mut missing = Vec::new();
        let mut next = stack;
        let mut node = loop {
            if let Some(&known) = self.nodes.get(&(next, wait)) {
                break known;
            }
            match self.stories.stacks.above(next) {
                Some((above, _)) => missing.push(std::mem::replace(&mut next, above)),
                None => break self.root(next, wait)?,
            }
        };
        for stack in missing.into_iter().rev() {
            node = self.below(node, self.stories.all[stack as usize].named)?;
            self.nodes.insert((stack, wait), node);
        }
        Ok(node)
    }

    /// The group's frame, and off-CPU that of the wait.
    fn root(&mut self, root: StackId, wait: Wait) -> Result<Node> {
        let group = self.stories.stacks.root_of(root).group;
        let mut node = self.child(ROOT, self.stories.groups.name(group), Kind::Plain)?;
        if self.off_cpu {
            node = self.child(node, wait.frame(), Kind::Plain)?;
        }
        self.nodes.insert((root, wait), node);
        Ok(node)
    }

    fn below(&mut self, mut node: Node, named: usize) -> Result<Node> {
        if !self.by_name.contains_key(&named) {
            let mut frames = Vec::new();
            let naming = &self.stories.naming;
            let told = naming.named(named);
            for (name, kind) in &told.frames {
                let frame = self.frame(name, *kind)?;
                let name = self.profile.frames.name_of(frame);
                let module = naming.modules.name(told.module);
                self.profile.modules.insert(name, *kind, module);
                frames.push(frame);
            }
            self.by_name.insert(named, frames);
        }
        for &frame in &self.by_name[&named] {
            node = self.profile.child(node, frame)?;
        }
        Ok(node)
    }

    fn child(&mut self, parent: Node, name: &str, kind: Kind) -> Result<Node> {
        let frame = self.frame(name, kind)?;
        self.profile.child(parent, frame)
    }

    fn frame(&mut self, name: &str, kind: Kind) -> Result<Frame> {
        let name = &name.as_bytes()[..name.len().min(MOST_NAME)];
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
