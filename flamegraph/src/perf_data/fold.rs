//! From samples to the tree.

use std::io::{Read, Seek};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::columns::Columns;
use super::modules::{ModuleId, SymbolId, UNKNOWN};
use super::resolve::{Place, Step};
use super::samples::{Sample, Samples};
use super::unknown::Unknown;
use crate::error::Result;
use crate::frames::Frame;
use crate::options::ReadOptions;
use crate::perf_script::{Names, StackLine};
use crate::profile::Profile;
use crate::threads::Threads;
use crate::tree::{Node, ROOT};

/// No module: the frame has a name.
const KNOWN: ModuleId = ModuleId::MAX;
/// Most remembered addresses; more are forgotten, and worked out anew.
const MOST_REMEMBERED: usize = 1 << 22;

/// What an address was found to be.
struct Resolved {
    /// The outermost frame; nearly always the only one.
    frame: Frame,
    /// Frames inlined into it, callers first.
    inlined: Vec<Frame>,
    /// The module, if its symbol is not known.
    unknown: Option<ModuleId>,
}

/// What names a frame: a module, the number of its symbol (or, where each unknown address has its own name, the
/// address), and whether the process is a `java`.
#[derive(PartialEq, Eq, Hash)]
struct Naming {
    module: ModuleId,
    symbol: Option<SymbolId>,
    address: u64,
    java: bool,
}

/// The stack a thread was last seen in, root first.
struct LastStack {
    comm: Arc<str>,
    pid: u32,
    java: bool,
    root: Node,
    path: Vec<(Step, Node)>,
}

/// Makes a profile of samples.
pub(crate) struct Folder<'o> {
    options: &'o ReadOptions,
    profile: Profile,
    columns: Columns,
    resolved: Vec<Resolved>,
    /// By address, generation and whether the process is a `java`: an index into `resolved`.
    by_address: HashMap<(u64, u32, bool), u32>,
    by_name: HashMap<Naming, u32>,
    last: HashMap<u32, LastStack>,
    roots: HashMap<(Arc<str>, u32, u32), Node>,
    /// Of the nodes whose frames are not known the modules; [`KNOWN`] for others.
    unknown: Vec<ModuleId>,
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
            by_name: HashMap::new(),
            last: HashMap::new(),
            roots: HashMap::new(),
            unknown: Vec::new(),
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
        let node = self.leaf(sample, samples)?;
        self.profile.add(node, value, 1)?;
        let period = i64::try_from(sample.period).unwrap_or(i64::MAX);
        self.profile.add(node, value + 1, period)
    }

    /// The node of a sample's stack. What it shares with the thread's stack before is not looked up.
    fn leaf<R: Read + Seek>(&mut self, sample: &Sample, samples: &mut Samples<'_, R>) -> Result<Node> {
        let mut last = self.last_stack(sample, samples)?;
        let steps = samples.steps.len();
        let same = |(new, old): &(&Step, &(Step, Node))| **new == old.0;
        let both = samples.steps.iter().rev().zip(&last.path);
        let shared = both.take_while(same).count();
        let mut node = shared.checked_sub(1).map_or(last.root, |depth| last.path[depth].1);
        // Behind another address of the same function everything may still be the same.
        let mut on_path = true;
        for depth in shared..steps {
            let step = samples.steps[steps - 1 - depth];
            let resolved = self.resolve(step, last.java, sample.pid, samples)?;
            let before = last.path.get(depth).filter(|_| on_path);
            let next = self.below(node, resolved as usize, before.map(|&(_, node)| node))?;
            on_path = before.is_some_and(|&(_, before)| before == next);
            match last.path.get_mut(depth) {
                Some(place) => *place = (step, next),
                None => last.path.push((step, next)),
            }
            node = next;
        }
        last.path.truncate(steps);
        self.last.insert(sample.tid, last);
        Ok(node)
    }

    /// The stack before of a sample's thread, empty where its root is another by now.
    fn last_stack<R: Read + Seek>(
        &mut self,
        sample: &Sample,
        samples: &Samples<'_, R>,
    ) -> Result<LastStack> {
        let comm = samples.comm(sample.tid);
        let mut last = self.last.remove(&sample.tid);
        if let Some(last) = last.take_if(|last| last.pid == sample.pid && last.comm == comm) {
            return Ok(last);
        }
        Ok(LastStack {
            pid: sample.pid,
            java: comm.starts_with("java"),
            root: self.root(Arc::clone(&comm), sample)?,
            comm,
            path: Vec::new(),
        })
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

    /// The node of what was found at an address, below a node; `before` is one below it that may be it.
    fn below(&mut self, parent: Node, resolved: usize, before: Option<Node>) -> Result<Node> {
        let Resolved {
            frame,
            ref inlined,
            unknown,
        } = self.resolved[resolved];
        let is_it = |&before: &Node| inlined.is_empty() && self.profile.tree.frame(before) == frame;
        let mut node = match before.filter(is_it) {
            Some(before) => before,
            None => self.profile.child(parent, frame)?,
        };
        for &frame in inlined {
            node = self.profile.child(node, frame)?;
        }
        if let Some(module) = unknown {
            let place = node as usize;
            if self.unknown.len() <= place {
                self.unknown.resize(place + 1, KNOWN);
            }
            if self.unknown[place] == KNOWN {
                self.unknown[place] = module;
            }
        }
        Ok(node)
    }

    /// The frames of an address, as an index into `resolved`.
    fn resolve<R: Read + Seek>(
        &mut self,
        step: Step,
        java: bool,
        pid: u32,
        samples: &mut Samples<'_, R>,
    ) -> Result<u32> {
        let key = (step.ip, step.generation, java);
        if let Some(&resolved) = self.by_address.get(&key) {
            return Ok(resolved);
        }
        if self.by_address.len() >= MOST_REMEMBERED {
            self.resolved.clear();
            self.by_name.clear();
            self.by_address.clear();
        }
        let (place, symbol) = samples.find(step, pid);
        let own_name = symbol.is_none() && self.options.perf.addrs;
        let naming = Naming {
            module: place.module,
            symbol,
            address: if own_name { place.address } else { 0 },
            java,
        };
        let resolved = match self.by_name.get(&naming) {
            Some(&known) => known,
            None => {
                let new = self.name(place, symbol, java, samples)?;
                self.resolved.push(new);
                let new = self.resolved.len() as u32 - 1;
                self.by_name.insert(naming, new);
                new
            }
        };
        self.by_address.insert(key, resolved);
        Ok(resolved)
    }

    /// The frames of a place, as stackcollapse-perf.pl names them.
    fn name<R: Read + Seek>(
        &mut self,
        place: Place,
        symbol: Option<SymbolId>,
        java: bool,
        samples: &Samples<'_, R>,
    ) -> Result<Resolved> {
        let address = format!("{:x}", place.address);
        let name = symbol.map(|symbol| samples.modules.symbol_name(place.module, symbol));
        let line = StackLine {
            address: address.as_bytes(),
            symbol: name.as_deref().unwrap_or(UNKNOWN).as_bytes(),
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
        Ok(Resolved {
            frame: named.remove(0),
            inlined: named,
            unknown: symbol.is_none().then_some(place.module),
        })
    }

    /// Sums up what was not known: a frame counts in every sample below it.
    fn count_unknown<R: Read + Seek>(&mut self, samples: &Samples<'_, R>) -> Result<()> {
        let mut unknown = Unknown {
            copied_stacks: self.copied_stacks,
            ..Unknown::default()
        };
        self.unknown.resize(self.profile.node_count() + 1, KNOWN);
        let mut modules: HashMap<ModuleId, u64> = HashMap::new();
        for value in self.columns.of_samples() {
            unknown.samples += self.profile.total(value)? as u64;
            let totals = self.profile.node_totals(value);
            let selves = self.profile.selves(value);
            for node in self.profile.tree.nodes() {
                let total = totals[node as usize] as u64;
                unknown.frames += total;
                let module = self.unknown[node as usize];
                if module != KNOWN {
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
