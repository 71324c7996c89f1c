//! From the addresses of samples to trees of places, one tree for each group of threads; callers stand above callees.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::header::Header;
use super::modules::{ModuleId, Modules, NOWHERE};
use super::naming::Key;
use super::processes::{Mapped, Mode, Processes};
use crate::formats::ReadOptions;
use crate::profile::{Frame, Node, Tree, ROOT};
use crate::symbols::bytes::Bytes;
use crate::symbols::Files;

/// Values from here on are markers: they tell in which mode the next addresses are.
const FIRST_MARKER: u64 = -4095i64 as u64;
const HYPERVISOR: u64 = -32i64 as u64;
const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;

/// One frame of a call chain: an address, and in which mappings it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    pub(super) ip: u64,
    pub(super) mode: Mode,
    /// The generation of the mappings. Results are valid for one generation.
    pub(super) generation: u32,
}

/// A place in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) module: ModuleId,
    /// The module's own address; the address itself where nothing is mapped.
    pub(super) address: u64,
}

/// Puts the pointers of a chain (or, without one, of its instruction pointer) into `pointers`, leaf first.
pub(super) fn pointers(
    chain: Option<Bytes<'_>>,
    ip: u64,
    mode: Mode,
    generations: Generations,
    pointers: &mut Vec<Pointer>,
) {
    pointers.clear();
    let Some(chain) = chain else {
        pointers.push(generations.pointer(ip, mode));
        return;
    };
    let mut mode = Mode::User;
    for ip in chain.u64s() {
        match ip {
            KERNEL => mode = Mode::Kernel,
            USER => mode = Mode::User,
            HYPERVISOR => mode = Mode::Other,
            // The kernel followed an invalid frame pointer. perf drops the whole chain, and so do we.
            FIRST_MARKER.. => return pointers.clear(),
            ip => pointers.push(generations.pointer(ip, mode)),
        }
    }
}

/// The generations of a process's mappings and of the kernel's.
#[derive(Clone, Copy)]
pub(super) struct Generations {
    pub(super) user: u32,
    pub(super) kernel: u32,
}

impl Generations {
    fn pointer(self, ip: u64, mode: Mode) -> Pointer {
        let generation = match mode {
            Mode::Kernel => self.kernel,
            Mode::User => self.user,
            Mode::Other => u32::MAX,
        };
        Pointer {
            ip,
            mode,
            generation,
        }
    }
}

/// Where an address of this process lies.
pub(super) fn place(pointer: Pointer, pid: u32, processes: &Processes) -> Place {
    let mapped: Option<&Mapped> = match pointer.mode {
        Mode::Kernel => Some(&processes.kernel),
        Mode::User => processes.mapped(pid),
        Mode::Other => None,
    };
    match mapped.and_then(|mapped| mapped.space.find(pointer.ip)) {
        Some(mapping) => Place {
            module: mapping.module,
            address: mapping.address(pointer.ip),
        },
        None => Place {
            module: NOWHERE,
            address: pointer.ip,
        },
    }
}

/// A node; those above it have smaller numbers.
pub(super) type StackId = Node;
/// The number of a spot.
pub(super) type SpotId = u32;

/// A place in a module, and whether the kernel or the process ran there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    pub(super) place: Place,
    pub(super) mode: Mode,
}

/// A group of threads; in a stream, of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Root {
    /// In a file 0: there all processes share the stacks of a group.
    pub(super) pid: u32,
    /// The number of the group's name.
    pub(super) group: u32,
}

/// All stacks. A frame of the tree is the number of a spot, or below its root that of a group of threads.
pub(super) struct StackTree {
    tree: Tree,
    pub(super) spots: Vec<Spot>,
    spot_index: HashMap<Spot, SpotId>,
    roots: Vec<Root>,
    root_index: HashMap<Root, StackId>,
    most_nodes: usize,
    most_spots: usize,
}

impl StackTree {
    pub(super) fn new(most_nodes: usize, most_spots: usize) -> StackTree {
        StackTree {
            tree: Tree::new(),
            spots: Vec::new(),
            spot_index: HashMap::new(),
            roots: Vec::new(),
            root_index: HashMap::new(),
            // The tree's own root is one more.
            most_nodes: most_nodes + 1,
            most_spots,
        }
    }

    /// The node all stacks of a group start from; `None` when there is no room for it.
    pub(super) fn root(&mut self, root: Root) -> Option<StackId> {
        if let Some(&known) = self.root_index.get(&root) {
            return Some(known);
        }
        let node = self.child(ROOT, self.roots.len() as u32)?;
        self.roots.push(root);
        self.root_index.insert(root, node);
        Some(node)
    }

    /// The number of a spot; `None` when there is no room for it.
    pub(super) fn spot(&mut self, spot: Spot) -> Option<SpotId> {
        if let Some(&known) = self.spot_index.get(&spot) {
            return Some(known);
        }
        let number = self.spots.len();
        if number >= self.most_spots {
            return None;
        }
        self.spots.push(spot);
        self.spot_index.insert(spot, number as SpotId);
        Some(number as SpotId)
    }

    /// The node below another; `None` when there is no room for it.
    pub(super) fn child(&mut self, parent: StackId, spot: SpotId) -> Option<StackId> {
        let frame = Frame::from_index(spot as usize);
        self.tree.child(parent, frame, self.most_nodes).ok()
    }

    /// All nodes, callers first, from 1 on.
    pub(super) fn nodes(&self) -> std::ops::Range<StackId> {
        self.tree.nodes()
    }

    /// The node above and the spot here; `None` for a root.
    pub(super) fn above(&self, node: StackId) -> Option<(StackId, SpotId)> {
        let parent = self.tree.parent(node);
        (parent != ROOT).then(|| (parent, self.tree.frame(node).index() as SpotId))
    }

    /// What a root is the root of.
    pub(super) fn root_of(&self, node: StackId) -> Root {
        self.roots[self.tree.frame(node).index()]
    }
}

/// Most threads whose last stack is remembered, and most pointers of it. Most stacks share callers with the last one.
const MOST_THREADS: usize = 1 << 10;
const MOST_STEPS: usize = 1 << 8;
/// Most addresses whose spot is remembered.
const MOST_ADDRESSES: usize = 1 << 18;

/// The stack a thread was last seen in, callers first.
pub(super) struct LastStack {
    pub(super) pid: u32,
    pub(super) comm: Arc<str>,
    pub(super) root: StackId,
    pub(super) path: Vec<(Pointer, StackId)>,
}

/// Where the symbols of a file are. One spot of each is enough: with one for each address the tree is many times
/// larger.
pub(super) struct FileSymbols<'a> {
    pub(super) modules: &'a mut Modules,
    pub(super) header: &'a Header,
    pub(super) script: &'a ReadOptions,
}

/// The last stacks of threads.
#[derive(Default)]
pub(super) struct LastStacks(HashMap<u32, LastStack>);

impl LastStacks {
    /// The entry of a thread. Every so often all threads are forgotten.
    pub(super) fn entry(&mut self, tid: u32) -> Entry<'_, u32, LastStack> {
        if self.0.len() > MOST_THREADS {
            self.0.clear();
        }
        self.0.entry(tid)
    }
}

/// Finds nodes, and remembers what it found.
#[derive(Default)]
pub(super) struct Walker {
    spots: HashMap<(u64, u32, Mode), SpotId>,
    by_symbol: HashMap<Key, SpotId>,
    /// The sample's pointers, leaf first.
    pub(super) pointers: Vec<Pointer>,
}

impl Walker {
    /// The node of `pointers` in a thread with this stack before; `None` when there is no room for it.
    pub(super) fn node(
        &mut self,
        last: &mut LastStack,
        processes: &Processes,
        stacks: &mut StackTree,
        mut symbols: Option<FileSymbols<'_>>,
    ) -> Option<StackId> {
        let pairs = self.pointers.iter().rev().zip(&last.path);
        let shared = pairs.take_while(|(new, old)| **new == old.0).count();
        last.path.truncate(shared);
        let mut node = last.path.last().map_or(last.root, |&(_, node)| node);
        for place in (0..self.pointers.len() - shared).rev() {
            let pointer = self.pointers[place];
            let spot = self.spot(pointer, last.pid, processes, stacks, &mut symbols)?;
            node = stacks.child(node, spot)?;
            // As below: an unknown address may become known, and the path has no gaps.
            let is_next = last.path.len() == self.pointers.len() - 1 - place;
            let is_known = stacks.spots[spot as usize].place.module != NOWHERE;
            if is_next && is_known && last.path.len() < MOST_STEPS {
                last.path.push((pointer, node));
            }
        }
        Some(node)
    }

    fn spot(
        &mut self,
        pointer: Pointer,
        pid: u32,
        processes: &Processes,
        stacks: &mut StackTree,
        symbols: &mut Option<FileSymbols<'_>>,
    ) -> Option<SpotId> {
        let key = (pointer.ip, pointer.generation, pointer.mode);
        if let Some(&known) = self.spots.get(&key) {
            return Some(known);
        }
        let place = place(pointer, pid, processes);
        let mode = pointer.mode;
        let symbol = symbols.as_mut().map(|symbols| {
            let (mut found, files) = (place, Files::new(&symbols.script.symbols));
            let modules = &mut symbols.modules;
            let symbol = modules.symbol_at(&mut found, mode, symbols.header, &files);
            Key::of(found, symbol, (mode, false), Some(symbols.script))
        });
        let known = symbol.and_then(|symbol| self.by_symbol.get(&symbol).copied());
        let spot = match known {
            Some(known) => known,
            None => stacks.spot(Spot { place, mode })?,
        };
        if let Some(symbol) = symbol {
            self.by_symbol.insert(symbol, spot);
        }
        // What is mapped there later does not change the generation.
        if place.module == NOWHERE && mode != Mode::Other {
            return Some(spot);
        }
        if self.spots.len() >= MOST_ADDRESSES {
            self.spots.clear();
        }
        self.spots.insert(key, spot);
        Some(spot)
    }
}
