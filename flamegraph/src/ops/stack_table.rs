//! Rows for tables of many profiles: stacks by their hash, samples of each process, sums of each method.

use foldhash::fast::RandomState;
use sha2::{Digest, Sha256};

use super::categories::WorkTable;
use super::split::Split;
use crate::profile::{Frame, Kind, Node, Profile, Result, Times, ROOT};

type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

const SECOND: i64 = 1_000_000;

/// The stacks of many profiles, each once, by columns. Threads are not part of a stack.
#[derive(Default)]
pub struct Stacks {
    /// What stands for a stack everywhere, see [`StackTable`].
    pub ids: Vec<u128>,
    /// Where the frames of each stack end in `frames`; they begin where those before end.
    pub ends: Vec<i32>,
    /// Places in [`StackTable::names`], root first.
    pub frames: Vec<i32>,
    /// Places in [`StackTable::words`].
    pub categories: Vec<i32>,
    /// Places in [`StackTable::words`].
    pub phases: Vec<i32>,
}

/// What was sampled, by columns: one value.
#[derive(Default)]
pub struct Samples {
    /// As it was passed.
    pub processes: Vec<i32>,
    /// As it was passed.
    pub events: Vec<i32>,
    /// Places in [`StackTable::groups`]; -1 for no thread.
    pub groups: Vec<i32>,
    /// Places in [`StackTable::stages`]; -1 for none.
    pub stages: Vec<i32>,
    /// Since the start; `i32::MIN` where that is not known.
    pub seconds: Vec<i32>,
    /// Places in [`Stacks`].
    pub stacks: Vec<u32>,
    /// The first of each profile.
    pub values: Vec<i64>,
}

/// Collects the stacks and samples of a run's profiles.
///
/// A stack's id are the first 16 bytes of the SHA-256 hash of the hash of its frames, its category, a zero byte and its
/// phase. The hash of the frames begins as nothing; each frame makes it the SHA-256 hash of itself and the frame's name.
pub struct StackTable {
    work: WorkTable,
    start: Option<i64>,
    /// All stacks, without values and without kinds of frames.
    tree: Profile,
    /// The hash of each of its nodes.
    hashes: Vec<[u8; 32]>,
    /// Categories and phases.
    words: List,
    groups: List,
    stages: List,
    known: HashMap<(Node, i32, i32), u32>,
    stacks: Stacks,
    samples: Samples,
}

/// Texts by their places.
#[derive(Default)]
struct List {
    texts: Vec<String>,
    places: HashMap<String, i32>,
}

impl List {
    fn place(&mut self, text: &str) -> i32 {
        if let Some(&place) = self.places.get(text) {
            return place;
        }
        let place = self.texts.len() as i32;
        self.texts.push(text.to_owned());
        self.places.insert(text.to_owned(), place);
        place
    }
}

/// A row before rows of the same place are added up: stack, group, stage, second; value.
type Row = ((u32, i32, i32, i32), i64);

impl StackTable {
    /// `start` is when second 0 begins, in microseconds since 1970; without it no seconds are known.
    pub fn new(work: WorkTable, start: Option<i64>) -> StackTable {
        StackTable {
            work,
            start,
            tree: Profile::new(Vec::new()),
            hashes: vec![[0; 32]],
            words: List::default(),
            groups: List::default(),
            stages: List::default(),
            known: HashMap::default(),
            stacks: Stacks::default(),
            samples: Samples::default(),
        }
    }

    /// Adds the first value of a process's profile, whose outermost frames in brackets are its threads. Returns the sums by
    /// category and phase.
    pub fn add(
        &mut self,
        profile: &Profile,
        process: i32,
        event: i32,
        kernel: bool,
    ) -> Result<Vec<(String, String, i64)>> {
        profile.check_value(0)?;
        let (work, words) = self.work.of_nodes(profile, kernel);
        let places: Vec<i32> = words.iter().map(|word| self.words.place(word)).collect();
        let place = |word: u16| places[usize::from(word)];
        let nodes = self.graft(profile)?;
        let selves = profile.selves(0);
        let mut rows: Vec<Row> = Vec::new();
        let mut sums: HashMap<(i32, i32), i64> = HashMap::default();
        let times = Timed::of(profile, 0);
        let stages: Vec<i32> = match profile.times() {
            Some(times) => times
                .slices
                .iter()
                .map(|one| self.stages.place(&one.name))
                .collect(),
            None => Vec::new(),
        };
        let mut groups = vec![-1; profile.tree.len()];
        for node in profile.tree.nodes() {
            groups[node as usize] = match profile.thread_at(node) {
                Some(thread) => self.groups.place(thread),
                None => groups[profile.tree.parent(node) as usize],
            };
        }
        for node in (0..profile.tree.len() as Node).filter(|&node| selves[node as usize] != 0) {
            let (at, own) = (node as usize, selves[node as usize]);
            let (category, phase) = (place(work[at].0), place(work[at].1));
            *sums.entry((category, phase)).or_default() += own;
            let stack = self.stack(nodes[at], category, phase);
            match times.as_ref().and_then(|times| times.rows_of(node)) {
                None => rows.push(((stack, groups[at], -1, i32::MIN), own)),
                Some((of_node, weights)) => {
                    let mut split = Split::new(own as u128, weights.iter().sum());
                    for (row, &weight) in of_node.iter().zip(&weights) {
                        let stage = usize::from(row.slice).checked_sub(1);
                        let stage = stage.map_or(-1, |slice| stages[slice]);
                        let second = self.second(profile.times(), row.bucket);
                        rows.push(((stack, groups[at], stage, second), split.next(weight)));
                    }
                }
            }
        }
        self.add_rows(rows, process, event);
        let text = |place: i32| self.words.texts[place as usize].clone();
        let mut sums: Vec<(String, String, i64)> = sums
            .into_iter()
            .map(|((category, phase), sum)| (text(category), text(phase), sum))
            .collect();
        sums.sort_unstable();
        Ok(sums)
    }

    /// Names of frames.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tree.frames.all()
    }

    /// Categories and phases.
    pub fn words(&self) -> &[String] {
        &self.words.texts
    }

    /// Groups of threads, without brackets.
    pub fn groups(&self) -> &[String] {
        &self.groups.texts
    }

    /// Slices of the job, such as stages.
    pub fn stages(&self) -> &[String] {
        &self.stages.texts
    }

    /// What was added so far.
    pub fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    /// What was added so far.
    pub fn samples(&self) -> &Samples {
        &self.samples
    }

    /// For each node of a profile that without its thread and kinds.
    fn graft(&mut self, profile: &Profile) -> Result<Vec<Node>> {
        let mut names = vec![u32::MAX; profile.frames.len()];
        let mut nodes = vec![ROOT; profile.tree.len()];
        for node in profile.tree.nodes() {
            let parent = nodes[profile.tree.parent(node) as usize];
            if profile.thread_at(node).is_some() {
                continue;
            }
            let frame = profile.tree.frame(node);
            let name = &mut names[frame.name() as usize];
            let text = profile.frames.name_of(frame);
            if *name == u32::MAX {
                *name = self.tree.frames.intern_name(text.as_bytes())?;
            }
            let child = self.tree.child(parent, Frame::new(*name, Kind::Plain))?;
            if child as usize == self.hashes.len() {
                let mut hash = Sha256::new();
                if parent != ROOT {
                    hash.update(self.hashes[parent as usize]);
                }
                hash.update(text);
                self.hashes.push(hash.finalize().into());
            }
            nodes[node as usize] = child;
        }
        Ok(nodes)
    }

    fn stack(&mut self, node: Node, category: i32, phase: i32) -> u32 {
        if let Some(&known) = self.known.get(&(node, category, phase)) {
            return known;
        }
        let mut hash = Sha256::new();
        let mut frames = Vec::new();
        let mut at = node;
        while at != ROOT {
            frames.push(self.tree.tree.frame(at).name() as i32);
            at = self.tree.tree.parent(at);
        }
        if node != ROOT {
            hash.update(self.hashes[node as usize]);
        }
        hash.update(&self.words.texts[category as usize]);
        hash.update([0]);
        hash.update(&self.words.texts[phase as usize]);
        let hash: [u8; 32] = hash.finalize().into();
        let first = hash.iter().take(16);
        let place = self.stacks.ids.len() as u32;
        self.stacks
            .ids
            .push(first.fold(0, |id, &byte| id << 8 | u128::from(byte)));
        self.stacks.frames.extend(frames.iter().rev());
        self.stacks.ends.push(self.stacks.frames.len() as i32);
        self.stacks.categories.push(category);
        self.stacks.phases.push(phase);
        self.known.insert((node, category, phase), place);
        place
    }

    fn second(&self, times: Option<&Times>, bucket: u32) -> i32 {
        let (Some(times), Some(start)) = (times, self.start) else {
            return i32::MIN;
        };
        let moment = i128::from(times.start) + i128::from(bucket) * i128::from(times.width);
        let second = (moment - i128::from(start)).div_euclid(i128::from(SECOND));
        second.clamp(i128::from(i32::MIN + 1), i128::from(i32::MAX)) as i32
    }

    fn add_rows(&mut self, mut rows: Vec<Row>, process: i32, event: i32) {
        rows.sort_unstable_by_key(|&(key, _)| key);
        let samples = &mut self.samples;
        let mut last = None;
        for (key, value) in rows.into_iter().filter(|&(_, value)| value != 0) {
            if last == Some(key) {
                *samples.values.last_mut().expect("a row has this key") += value;
                continue;
            }
            last = Some(key);
            let (stack, group, stage, second) = key;
            samples.processes.push(process);
            samples.events.push(event);
            samples.groups.push(group);
            samples.stages.push(stage);
            samples.seconds.push(second);
            samples.stacks.push(stack);
            samples.values.push(value);
        }
    }
}

/// The rows of each node's samples.
pub(super) struct Timed<'a> {
    rows: &'a [crate::profile::Row],
    /// Where the rows of each node begin; they are sorted by node.
    begins: Vec<u32>,
    by_amount: bool,
}

impl<'a> Timed<'a> {
    pub(super) fn of(profile: &'a Profile, value: usize) -> Option<Timed<'a>> {
        let times = profile.times()?;
        let rows = times.rows();
        let mut begins = vec![0; profile.tree.len() + 1];
        for row in rows {
            begins[row.node as usize + 1] += 1;
        }
        for node in 1..begins.len() {
            begins[node] += begins[node - 1];
        }
        Some(Timed {
            rows,
            begins,
            by_amount: times.has_amounts() && times.amounts_of(profile) == value,
        })
    }

    /// A node's rows, and by what its value is dealt out to them; None if it has none.
    pub(super) fn rows_of(&self, node: Node) -> Option<(&'a [crate::profile::Row], Vec<u128>)> {
        let node = node as usize;
        let rows = &self.rows[self.begins[node] as usize..self.begins[node + 1] as usize];
        let weight = |row: &crate::profile::Row| match self.by_amount {
            true => u128::from(row.amount),
            false => u128::from(row.samples),
        };
        let weights: Vec<u128> = rows.iter().map(weight).collect();
        (weights.iter().sum::<u128>() > 0).then_some((rows, weights))
    }
}

/// Sums over processes of a method's cost, its square, and its product with the process's total and with what one
/// sample stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SumsOf {
    /// In the value that is compared.
    pub cost: i64,
    /// Of its squares.
    pub squared: f64,
    /// Times the total.
    pub weighted: f64,
    /// Times a sample.
    pub sampled: f64,
}

impl SumsOf {
    /// Adds a process.
    pub fn add(&mut self, cost: i64, whole: i64, per_sample: f64) {
        let part = cost as f64;
        self.cost = self.cost.saturating_add(cost);
        self.squared += part * part;
        self.weighted += part * whole as f64;
        self.sampled += part * per_sample;
    }
}

/// These sums of each method of several processes: of its own cost, and with all that it calls.
#[derive(Default)]
pub struct MethodSums {
    places: HashMap<String, usize>,
    names: Vec<String>,
    sums: Vec<[SumsOf; 2]>,
}

impl MethodSums {
    /// Adds a process: one value of its profile, of which a sample stands for so much. With `threads`, its outermost
    /// frames in brackets are threads, not methods.
    pub fn add(
        &mut self,
        profile: &Profile,
        value: usize,
        per_sample: f64,
        threads: bool,
    ) -> Result<()> {
        let whole = profile.total(value)?;
        let methods = match threads {
            true => profile.methods_below_threads(value),
            false => profile.methods(value),
        };
        for (name, own, all) in methods.into_iter().filter(|&(_, _, all)| all > 0) {
            for (sums, cost) in self.sums_of(name).iter_mut().zip([own, all]) {
                sums.add(cost, whole, per_sample);
            }
        }
        Ok(())
    }

    /// Puts sums that were made earlier: of the method's own cost, and with all that it calls.
    pub fn put(&mut self, name: String, sums: [SumsOf; 2]) {
        *self.sums_of(&name) = sums;
    }

    fn sums_of(&mut self, name: &str) -> &mut [SumsOf; 2] {
        let place = match self.places.get(name) {
            Some(&place) => place,
            None => {
                self.places.insert(name.to_owned(), self.names.len());
                self.names.push(name.to_owned());
                self.sums.push(Default::default());
                self.names.len() - 1
            }
        };
        &mut self.sums[place]
    }

    /// The methods, in the order in which they were first seen.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Of each method: its own cost, and with all that it calls.
    pub fn all(&self) -> &[[SumsOf; 2]] {
        &self.sums
    }

    /// Of one method.
    pub fn of(&self, name: &str) -> Option<&[SumsOf; 2]> {
        self.places.get(name).map(|&place| &self.sums[place])
    }
}
