//! From samples to the tree, on two processors: one reads samples and names what is in them, the other grows
//! the tree.

use std::io::{Read, Seek};
use std::mem::take;
use std::panic::resume_unwind;
use std::sync::mpsc::{sync_channel, SyncSender};
use std::sync::Arc;
use std::thread;

use foldhash::{HashMap, HashMapExt};

use super::event_values::EventValues;
use super::grow::{Batch, Grown, Named, Sampled, KNOWN};
use super::modules::{ModuleId, SymbolId, UNKNOWN};
use super::resolve::{Place, Pointer};
use super::samples::{Sample, Samples};
use crate::formats::perf_script::{Names, StackLine, MOST_INLINED};
use crate::formats::ReadOptions;
use crate::ops::Threads;
use crate::profile::{Frame, Frames, ModuleTable, Profile, Result, Unknown};

/// Most remembered addresses; more are forgotten, and worked out anew.
const MOST_REMEMBERED: usize = 1 << 22;
/// Samples that are handed over together, and how many such batches may wait.
const BATCH: usize = 512;
const MOST_BATCHES: usize = 4;

/// Reads all samples.
pub(crate) fn fold<R: Read + Seek>(
    mut samples: Samples<'_, R>,
    options: &ReadOptions,
) -> Result<Profile> {
    let (batches, receiver) = sync_channel(MOST_BATCHES);
    let cells = options.limits.cells;
    thread::scope(|scope| {
        let mut namer = Namer::new(options, batches);
        let grow = move || Grown::of(&receiver, cells);
        let grown = thread::Builder::new().spawn_scoped(scope, grow)?;
        let read = namer.read(&mut samples);
        // A tree that cannot grow any more ended the reading, too.
        let grown = grown.join().unwrap_or_else(|panic| resume_unwind(panic));
        let grown = grown.map_err(|error| samples.broken(&error))?;
        read?;
        namer.values.check(samples.events(), options)?;
        namer.finish(grown, &samples)
    })
}

/// What names a frame: a module, the number of its symbol (or, where each unknown address has a name of its
/// own, the address), and whether the process is a `java`.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    module: ModuleId,
    symbol: Option<SymbolId>,
    address: u64,
    java: bool,
}

/// The stack a thread was last seen in, root first, and its number.
struct LastStack {
    number: u32,
    comm: Arc<str>,
    pid: u32,
    java: bool,
    root: u32,
    path: Vec<Pointer>,
}

/// Gives names to the addresses of samples.
struct Namer<'o> {
    options: &'o ReadOptions,
    frames: Frames,
    values: EventValues,
    /// By address, generation and whether the process is a `java`: the number of a name.
    by_address: HashMap<(u64, u32, bool), u32>,
    by_key: HashMap<Key, u32>,
    last: HashMap<u32, LastStack>,
    roots: HashMap<(Arc<str>, u32, u32), u32>,
    modules: ModuleTable,
    copied_stacks: u64,
    /// Whether some sample counted to the values.
    begun: bool,
    batch: Batch,
    /// None once everything was handed over.
    batches: Option<SyncSender<Batch>>,
}

impl<'o> Namer<'o> {
    fn new(options: &'o ReadOptions, batches: SyncSender<Batch>) -> Namer<'o> {
        Namer {
            options,
            frames: Frames::default(),
            values: EventValues::default(),
            by_address: HashMap::new(),
            by_key: HashMap::new(),
            last: HashMap::new(),
            roots: HashMap::new(),
            modules: ModuleTable::default(),
            copied_stacks: 0,
            begun: false,
            batch: Batch::default(),
            batches: Some(batches),
        }
    }

    /// Hands over all samples, or as many as are wanted.
    fn read<R: Read + Seek>(&mut self, samples: &mut Samples<'_, R>) -> Result<()> {
        // Whatever the end: the other side must not wait for more.
        let done = self.read_all(samples);
        self.hand_over();
        self.batches = None;
        done
    }

    fn read_all<R: Read + Seek>(&mut self, samples: &mut Samples<'_, R>) -> Result<()> {
        self.name_values(samples);
        while let Some(sample) = samples.next()? {
            if sample.event >= self.values.event_count() {
                // Through a pipe the events come with the records.
                self.name_values(samples);
            }
            self.add(&sample, samples)?;
            if self.batch.samples.len() >= BATCH && !self.hand_over() {
                break;
            }
        }
        Ok(())
    }

    /// False when nobody takes it.
    fn hand_over(&mut self) -> bool {
        let batch = take(&mut self.batch);
        let sender = self.batches.as_ref();
        sender.is_some_and(|sender| sender.send(batch).is_ok())
    }

    fn name_values<R: Read + Seek>(&mut self, samples: &Samples<'_, R>) {
        let events = samples.events();
        if self.begun || events.is_empty() {
            self.values.ignore_up_to(events.len());
            return;
        }
        self.values = EventValues::of(events, self.options.perf.event_filter.as_deref());
        self.batch.values = Some(self.values.values.clone());
    }

    fn add<R: Read + Seek>(&mut self, sample: &Sample, samples: &mut Samples<'_, R>) -> Result<()> {
        let Some(value) = self.values.samples(sample.event) else {
            return Ok(());
        };
        self.begun = true;
        self.copied_stacks += u64::from(samples.events()[sample.event].copies_stacks());
        if self.by_address.len() >= MOST_REMEMBERED {
            self.forget();
        }
        let mut last = self.last_stack(sample, samples)?;
        let pointers = samples.pointers.len();
        let both = samples.pointers.iter().rev().zip(&last.path);
        let shared = both.take_while(|(new, old)| new == old).count();
        last.path.truncate(shared);
        for place in (0..pointers - shared).rev() {
            let pointer = samples.pointers[place];
            let named = self.resolve(pointer, last.java, sample.pid, samples)?;
            self.batch.pointers.push(named);
            last.path.push(pointer);
        }
        self.batch.samples.push(Sampled {
            stack: last.number,
            root: last.root,
            shared,
            pointers: pointers - shared,
            value,
            period: sample.period as i64,
        });
        self.last.insert(sample.tid, last);
        Ok(())
    }

    /// Begins anew with the numbers of names.
    fn forget(&mut self) {
        self.hand_over();
        self.batch.forget = true;
        self.by_key.clear();
        self.by_address.clear();
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
            number: last.map_or(self.last.len() as u32, |last| last.number),
            pid: sample.pid,
            java: comm.starts_with("java"),
            root: self.root(Arc::clone(&comm), sample)?,
            comm,
            path: Vec::new(),
        })
    }

    /// The root of the command (and the thread, if it is wanted).
    fn root(&mut self, comm: Arc<str>, sample: &Sample) -> Result<u32> {
        let key = (comm, sample.pid, sample.tid);
        if let Some(&root) = self.roots.get(&key) {
            return Ok(root);
        }
        let mut frames = Vec::new();
        let tid = i64::from(sample.tid as i32);
        if let Some(name) = self.options.threads.frame(key.0.as_bytes(), tid) {
            frames.push(self.frames.intern(&name)?);
        }
        let mut name = key.0.replace(' ', "_").replace(';', ":");
        let (pid, tid) = (sample.pid as i32, sample.tid as i32);
        if self.options.perf.tid {
            name = format!("{name}-{pid}/{tid}");
        } else if self.options.perf.pid {
            name = format!("{name}-{pid}");
        }
        frames.push(self.frames.intern(name.as_bytes())?);
        let root = self.roots.len() as u32;
        self.batch.roots.push(frames);
        self.roots.insert(key, root);
        Ok(root)
    }

    /// The number of the name of an address.
    fn resolve<R: Read + Seek>(
        &mut self,
        pointer: Pointer,
        java: bool,
        pid: u32,
        samples: &mut Samples<'_, R>,
    ) -> Result<u32> {
        let address = (pointer.ip, pointer.generation, java);
        if let Some(&known) = self.by_address.get(&address) {
            return Ok(known);
        }
        let (place, symbol) = samples.find(pointer, pid);
        let own_name = symbol.is_none() && self.options.perf.addrs;
        let key = Key {
            module: place.module,
            symbol,
            address: if own_name { place.address } else { 0 },
            java,
        };
        let named = match self.by_key.get(&key) {
            Some(&known) => known,
            None => {
                let named = self.name(place, symbol, java, samples)?;
                let number = self.by_key.len() as u32;
                self.batch.named.push(named);
                self.by_key.insert(key, number);
                number
            }
        };
        self.by_address.insert(address, named);
        Ok(named)
    }

    /// The frames of a place, as stackcollapse-perf.pl names them.
    fn name<R: Read + Seek>(
        &mut self,
        place: Place,
        symbol: Option<SymbolId>,
        java: bool,
        samples: &Samples<'_, R>,
    ) -> Result<Named> {
        let address = format!("{:x}", place.address);
        let name = symbol.map(|symbol| samples.modules.symbol_name(place.module, symbol));
        let module = samples.modules.name(place.module);
        let line = StackLine {
            address: address.as_bytes(),
            symbol: name.as_deref().unwrap_or(UNKNOWN).as_bytes(),
            module: module.as_bytes(),
        };
        let names = Names {
            options: &self.options.perf,
            java,
        };
        let (frames, modules) = (&mut self.frames, &mut self.modules);
        let most = self.options.limits.name_bytes;
        let mut named: Vec<Frame> = Vec::with_capacity(1);
        names.each(&line, |name| -> Result<()> {
            if named.len() < MOST_INLINED {
                let frame = frames.intern(&name[..name.len().min(most)])?;
                modules.insert(frames.name_of(frame), frame.kind(), module);
                named.push(frame);
            }
            Ok(())
        })?;
        Ok(Named {
            frame: named.remove(0),
            inlined: named,
            unknown: symbol.is_none().then_some(place.module),
        })
    }

    /// The tree with its names, and what is to be said of it.
    fn finish<R: Read + Seek>(self, grown: Grown, samples: &Samples<'_, R>) -> Result<Profile> {
        let Grown {
            mut profile,
            unknown: module_of,
            ..
        } = grown;
        profile.frames = self.frames;
        profile.modules = self.modules;
        profile.add_malformed_lines(samples.malformed);
        if samples.left_out() > 0 {
            let warning = format!(
                "{} mappings were left out, there were too many",
                samples.left_out()
            );
            profile.add_warnings([warning]);
        }
        let mut unknown = Unknown {
            copied_stacks: self.copied_stacks,
            ..Unknown::default()
        };
        let values = self.values.of_samples();
        count_unknown(&profile, values, &module_of, &mut unknown, samples)?;
        // The command, and the thread, are no frames of a stack.
        let roots = 1 + u64::from(self.options.threads != Threads::Off);
        unknown.frames -= roots * unknown.samples;
        profile.add_warnings(samples.modules.warnings());
        profile.add_warnings(unknown.warnings());
        profile.set_unknown(unknown);
        Ok(profile)
    }
}

/// Sums up what was not known: a frame counts in every sample below it.
fn count_unknown<R: Read + Seek>(
    profile: &Profile,
    values: impl Iterator<Item = usize>,
    module_of: &[ModuleId],
    unknown: &mut Unknown,
    samples: &Samples<'_, R>,
) -> Result<()> {
    let mut modules: HashMap<ModuleId, u64> = HashMap::new();
    for value in values {
        unknown.samples += profile.total(value)? as u64;
        let totals = profile.node_totals(value);
        let selves = profile.selves(value);
        unknown.frames += totals[1..].iter().map(|&total| total as u64).sum::<u64>();
        for (node, &module) in module_of.iter().enumerate() {
            if module != KNOWN {
                unknown.unknown_frames += totals[node] as u64;
                unknown.leaf_samples += selves[node] as u64;
                *modules.entry(module).or_default() += totals[node] as u64;
            }
        }
    }
    for (module, frames) in modules {
        let name = samples.modules.name(module).to_string();
        *unknown.modules.entry(name).or_default() += frames;
    }
    Ok(())
}
