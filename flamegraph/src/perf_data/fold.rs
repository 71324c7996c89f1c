//! From samples to the tree.

use std::hash::BuildHasher;
use std::io::{Read, Seek};
use std::sync::Arc;

use foldhash::fast::RandomState;
use foldhash::{HashMap, HashMapExt};
use hashbrown::HashTable;

use super::columns::Columns;
use super::modules::{ModuleId, UNKNOWN};
use super::resolve::Step;
use super::samples::{Sample, Samples};
use super::unknown::Unknown;
use crate::error::Result;
use crate::frames::Frame;
use crate::options::ReadOptions;
use crate::perf_script::{Names, StackLine};
use crate::profile::Profile;
use crate::threads::Threads;
use crate::tree::{Node, ROOT};

/// Most remembered steps; more are forgotten, and worked out anew.
const MOST_REMEMBERED: usize = 1 << 22;

/// What an address was found to be: frames, callers first, and the module if it is not known.
struct Resolved {
    frames: Vec<Frame>,
    unknown: Option<ModuleId>,
}

/// A step below a node, and where it led.
struct Known {
    parent: Node,
    generation: u32,
    ip: u64,
    node: Node,
}

/// The stack a thread was last seen in, root first.
struct LastStack {
    root: Node,
    path: Vec<(Step, Node)>,
}

/// Makes a profile of samples.
pub(crate) struct Folder<'o> {
    options: &'o ReadOptions,
    profile: Profile,
    columns: Columns,
    resolved: Vec<Resolved>,
    /// By address, generation and whether the process is a `java`.
    by_address: HashMap<(u64, u32, bool), usize>,
    known: HashTable<Known>,
    hasher: RandomState,
    last: HashMap<u32, LastStack>,
    roots: HashMap<(Arc<str>, u32, u32), Node>,
    /// Nodes of frames that are not known, with their modules.
    unknown_nodes: Vec<(Node, ModuleId)>,
    copied_stacks: u64,
}

impl<'o> Folder<'o> {
    pub(crate) fn new(options: &'o ReadOptions) -> Folder<'o> {
        Folder {
            options,
            profile: Profile::bounded(Vec::new(), options.limits.cells),
            columns: Columns::default(),
            resolved: Vec::new(),
            by_address: HashMap::new(),
            known: HashTable::new(),
            hasher: RandomState::default(),
            last: HashMap::new(),
            roots: HashMap::new(),
            unknown_nodes: Vec::new(),
            copied_stacks: 0,
        }
    }

    /// Reads all samples.
    pub(crate) fn fold<R: Read + Seek>(mut self, mut samples: Samples<'_, R>) -> Result<Profile> {
        self.name_values(&samples);
        while let Some(sample) = samples.next()? {
            if sample.event >= self.columns.event_count() {
                // Through a pipe the events come with the records.
                self.name_values(&samples);
            }
            self.add(&sample, &mut samples)?;
        }
        self.profile.add_malformed_lines(samples.malformed);
        if samples.left_out() > 0 {
            let warning = format!(
                "{} mappings were left out, there were too many",
                samples.left_out()
            );
            self.profile.add_warnings([warning]);
        }
        self.count_unknown(&samples)?;
        Ok(self.profile)
    }

    fn name_values<R: Read + Seek>(&mut self, samples: &Samples<'_, R>) {
        let events = samples.events();
        if self.profile.node_count() > 0 || events.is_empty() {
            self.columns.ignore_up_to(events.len());
            return;
        }
        self.columns = Columns::of(events, self.options.perf.event_filter.as_deref());
        let values = self.columns.values.clone();
        self.profile = Profile::bounded(values, self.options.limits.cells);
    }

    fn add<R: Read + Seek>(&mut self, sample: &Sample, samples: &mut Samples<'_, R>) -> Result<()> {
        let Some(value) = self.columns.samples(sample.event) else {
            return Ok(());
        };
        self.copied_stacks += u64::from(samples.events()[sample.event].copies_stacks());
        let comm = samples.comm(sample.tid);
        let java = comm.starts_with("java");
        let root = self.root(comm, sample)?;
        let mut last = self.last.remove(&sample.tid).unwrap_or(LastStack {
            root,
            path: Vec::new(),
        });
        let steps = samples.steps.len();
        let mut shared = 0;
        if last.root == root {
            let same = |(new, old): &(&Step, &(Step, Node))| **new == old.0;
            let both = samples.steps.iter().rev().zip(&last.path);
            shared = both.take_while(same).count();
        }
        last.root = root;
        last.path.truncate(shared);
        let mut node = last.path.last().map_or(root, |&(_, node)| node);
        for place in (0..steps - shared).rev() {
            let step = samples.steps[place];
            node = self.child(node, step, java, sample.pid, samples)?;
            last.path.push((step, node));
        }
        self.last.insert(sample.tid, last);
        self.profile.add(node, value, 1)?;
        let period = i64::try_from(sample.period).unwrap_or(i64::MAX);
        self.profile.add(node, value + 1, period)
    }

    /// The node of the command (and the thread, if it is wanted).
    fn root(&mut self, comm: Arc<str>, sample: &Sample) -> Result<Node> {
        let key = (comm, sample.pid, sample.tid);
        if let Some(&node) = self.roots.get(&key) {
            return Ok(node);
        }
        let mut parent = ROOT;
        let tid = i64::from(sample.tid as i32);
        if let Some(name) = self.options.threads.frame(key.0.as_bytes(), tid) {
            parent = self.named(parent, &name)?;
        }
        let mut name = key.0.replace(' ', "_").replace(';', ":");
        let (pid, tid) = (sample.pid as i32, sample.tid as i32);
        if self.options.perf.tid {
            name = format!("{name}-{pid}/{tid}");
        } else if self.options.perf.pid {
            name = format!("{name}-{pid}");
        }
        let node = self.named(parent, name.as_bytes())?;
        self.roots.insert(key, node);
        Ok(node)
    }

    fn named(&mut self, parent: Node, name: &[u8]) -> Result<Node> {
        let frame = self.profile.frames.intern(name)?;
        self.profile.child(parent, frame)
    }

    /// The node below this one where a step leads.
    fn child<R: Read + Seek>(
        &mut self,
        parent: Node,
        step: Step,
        java: bool,
        pid: u32,
        samples: &mut Samples<'_, R>,
    ) -> Result<Node> {
        let hash = self.hasher.hash_one((
            u64::from(parent) << 32 | u64::from(step.generation),
            step.ip,
        ));
        let same = |known: &Known| {
            known.ip == step.ip && known.parent == parent && known.generation == step.generation
        };
        if let Some(known) = self.known.find(hash, same) {
            return Ok(known.node);
        }
        let resolved = self.resolve(step, java, pid, samples)?;
        let mut node = parent;
        for &frame in &self.resolved[resolved].frames {
            node = self.profile.child(node, frame)?;
        }
        if let Some(module) = self.resolved[resolved].unknown {
            self.unknown_nodes.push((node, module));
        }
        if self.known.len() >= MOST_REMEMBERED {
            self.known.clear();
        }
        let hasher = &self.hasher;
        let known = Known {
            parent,
            generation: step.generation,
            ip: step.ip,
            node,
        };
        self.known.insert_unique(hash, known, |known| {
            hasher.hash_one((
                u64::from(known.parent) << 32 | u64::from(known.generation),
                known.ip,
            ))
        });
        Ok(node)
    }

    /// The frames of an address, as an index into `resolved`.
    fn resolve<R: Read + Seek>(
        &mut self,
        step: Step,
        java: bool,
        pid: u32,
        samples: &mut Samples<'_, R>,
    ) -> Result<usize> {
        let key = (step.ip, step.generation, java);
        if let Some(&resolved) = self.by_address.get(&key) {
            return Ok(resolved);
        }
        if self.resolved.len() >= MOST_REMEMBERED {
            self.resolved.clear();
            self.by_address.clear();
        }
        let (place, symbol) = samples.resolve(step, pid);
        let address = format!("{:x}", place.address);
        let line = StackLine {
            address: address.as_bytes(),
            symbol: symbol.as_deref().unwrap_or(UNKNOWN).as_bytes(),
            module: samples.modules.name(place.module).as_bytes(),
        };
        let names = Names {
            options: &self.options.perf,
            java,
        };
        let (frames, most) = (&mut self.profile.frames, self.options.limits.name_bytes);
        let mut named = Vec::with_capacity(1);
        names.each(&line, |name| -> Result<()> {
            named.push(frames.intern(&name[..name.len().min(most)])?);
            Ok(())
        })?;
        let resolved = self.resolved.len();
        self.resolved.push(Resolved {
            frames: named,
            unknown: symbol.is_none().then_some(place.module),
        });
        self.by_address.insert(key, resolved);
        Ok(resolved)
    }

    /// Sums up what was not known: a frame counts in every sample below it.
    fn count_unknown<R: Read + Seek>(&mut self, samples: &Samples<'_, R>) -> Result<()> {
        let mut unknown = Unknown {
            copied_stacks: self.copied_stacks,
            ..Unknown::default()
        };
        let mut module_of = vec![None; self.profile.node_count() + 1];
        for &(node, module) in &self.unknown_nodes {
            module_of[node as usize].get_or_insert(module);
        }
        let mut modules: HashMap<ModuleId, u64> = HashMap::new();
        for value in self.columns.of_samples() {
            unknown.samples += self.profile.total(value)? as u64;
            let totals = self.profile.node_totals(value);
            let selves = self.profile.selves(value);
            for node in self.profile.tree.nodes() {
                let total = totals[node as usize] as u64;
                unknown.frames += total;
                if let Some(module) = module_of[node as usize] {
                    unknown.unknown_frames += total;
                    unknown.leaf_samples += selves[node as usize] as u64;
                    *modules.entry(module).or_default() += total;
                }
            }
        }
        // The command, and the thread, are no frames of a stack.
        let roots = 1 + u64::from(self.options.threads != Threads::Off);
        unknown.frames -= roots * unknown.samples;
        for (module, frames) in modules {
            let name = samples.modules.name(module).to_string();
            *unknown.modules.entry(name).or_default() += frames;
        }
        self.profile.add_warnings(unknown.warnings());
        self.profile.set_unknown(unknown);
        Ok(())
    }
}
