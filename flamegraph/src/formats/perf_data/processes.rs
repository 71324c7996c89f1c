//! Which threads there are, what they are called, and what their processes have mapped.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};

use super::header::Header;
use super::live::LiveLimits;
use super::modules::{Identity, ModuleId, Modules, Source, KERNEL, NOWHERE};
use super::records::{kind, Record};
use super::space::{Mapping, Space};
use crate::symbols::bytes::Bytes;

/// Most mappings of one process, the kernel's default limit. A longer sorted list would be slow to fill.
const MOST_OF_ONE: usize = 1 << 16;
/// Bytes of a thread's name that are kept (the kernel keeps 16).
const MOST_COMM: usize = 64;

const MISC_CPU_MODE: u16 = 7;
const MISC_DATA_OR_NO_CLONE: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;

/// Whether addresses are the kernel's or a process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    Kernel,
    User,
    /// A hypervisor or a guest; nothing is known of their code.
    Other,
}

impl Mode {
    pub(crate) fn of_misc(misc: u16) -> Mode {
        match misc & MISC_CPU_MODE {
            1 => Mode::Kernel,
            2 => Mode::User,
            _ => Mode::Other,
        }
    }
}

/// A process's mappings, and a number that changes when an address that was mapped becomes another place. Processes
/// with the same number agree on every mapped address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapped {
    pub(crate) space: Space,
    pub(crate) generation: u32,
    ended: bool,
}

/// Threads and processes at the time of the current record.
pub(crate) struct Processes {
    threads: HashMap<u32, Arc<str>>,
    mapped: HashMap<u32, Mapped>,
    pub(crate) kernel: Mapped,
    generations: u32,
    /// How many mappings all processes have.
    held: usize,
    /// Mappings of all processes together; threads, and processes.
    most_mappings: usize,
    most_threads: usize,
    /// How many processes ended and are still held.
    ended: usize,
    /// Mappings that were left out because there were too many.
    pub(crate) left_out: u64,
}

impl Processes {
    pub(crate) fn new(limits: &LiveLimits) -> Processes {
        let mut threads = HashMap::new();
        threads.insert(0, Arc::from("swapper"));
        Processes {
            threads,
            mapped: HashMap::new(),
            kernel: Mapped::default(),
            generations: 0,
            held: 0,
            most_mappings: limits.mappings,
            most_threads: limits.threads,
            ended: 0,
            left_out: 0,
        }
    }

    /// The name of a thread; `:TID` if it is not known.
    pub(crate) fn comm(&self, tid: u32) -> Arc<str> {
        match self.threads.get(&tid) {
            Some(comm) => Arc::clone(comm),
            None => Arc::from(format!(":{}", tid as i32)),
        }
    }

    pub(crate) fn generation(&self, pid: u32) -> u32 {
        self.mapped(pid).map_or(0, |mapped| mapped.generation)
    }

    pub(crate) fn mapped(&self, pid: u32) -> Option<&Mapped> {
        self.mapped.get(&pid)
    }

    /// Takes in a record that is no sample.
    pub(crate) fn take_in(&mut self, record: &Record<'_>, header: &Header, modules: &mut Modules) {
        // Records that are cut short are ignored.
        match record.kind {
            kind::COMM => {
                self.rename(record);
            }
            kind::FORK => {
                self.fork(record);
            }
            kind::EXIT => {
                self.exit(record);
            }
            kind::MMAP | kind::MMAP2 => {
                if let Some(mmap) = read_mapping(record) {
                    self.map(&mmap, header, modules);
                }
            }
            kind::KSYMBOL => {
                self.add_kernel_symbol(record, modules);
            }
            _ => {}
        }
    }

    fn rename(&mut self, record: &Record<'_>) -> Option<()> {
        let mut fields = record.body;
        let (_pid, tid) = (fields.u32()?, fields.u32()?);
        let name = fields.text();
        let name = String::from_utf8_lossy(&name[..name.len().min(MOST_COMM)]);
        self.name_thread(tid, Arc::from(name));
        Some(())
    }

    fn fork(&mut self, record: &Record<'_>) -> Option<()> {
        let mut fields = record.body;
        let (pid, parent) = (fields.u32()?, fields.u32()?);
        let (tid, parent_tid) = (fields.u32()?, fields.u32()?);
        let comm = self.comm(parent_tid);
        self.name_thread(tid, comm);
        if pid == parent {
            return Some(());
        }
        if let Some(before) = self.mapped.remove(&pid) {
            self.ended -= usize::from(before.ended);
            self.held -= before.space.len();
        }
        let has_its_own = record.misc & MISC_DATA_OR_NO_CLONE != 0;
        if !has_its_own && self.mapped.len() < self.most_threads {
            let mut inherited = self.mapped.get(&parent).cloned().unwrap_or_default();
            inherited.ended = false;
            self.held += inherited.space.len();
            self.mapped.insert(pid, inherited);
        }
        Some(())
    }

    fn name_thread(&mut self, tid: u32, name: Arc<str>) {
        if self.threads.len() < self.most_threads || self.threads.contains_key(&tid) {
            self.threads.insert(tid, name);
        }
    }

    /// The end of a process's first thread: its mappings go when room is needed. (Not before: other threads
    /// may run on, and the kernel is still at work for this one.)
    fn exit(&mut self, record: &Record<'_>) -> Option<()> {
        let mut fields = record.body;
        let (pid, _parent, tid) = (fields.u32()?, fields.u32()?, fields.u32()?);
        if pid == tid {
            let mapped = self.mapped.get_mut(&pid)?;
            self.ended += usize::from(!std::mem::replace(&mut mapped.ended, true));
        }
        Some(())
    }

    fn map(&mut self, mmap: &Mmap<'_>, header: &Header, modules: &mut Modules) {
        if mmap.mode == Mode::Other {
            return;
        }
        let (module, shift) = if mmap.mode == Mode::Kernel {
            (kernel_module(mmap, modules), 0)
        } else {
            user_module(mmap, header, modules)
        };
        let mapping = Mapping {
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.size),
            shift,
            module,
        };
        if mmap.mode == Mode::Kernel {
            self.insert_kernel(mapping);
        } else {
            self.insert(mmap.pid, mapping);
        }
    }

    fn insert(&mut self, pid: u32, mapping: Mapping) {
        let known = self.mapped.get(&pid);
        let of_one = known.map_or(0, |mapped| mapped.space.len());
        if of_one >= MOST_OF_ONE || !self.has_room() {
            self.left_out += 1;
            return;
        }
        let mapped = self.mapped.entry(pid).or_default();
        self.held -= mapped.space.len();
        let is_shared = mapped.generation == 0 || mapped.space.is_shared();
        if mapped.space.insert(mapping) || is_shared {
            self.generations += 1;
            mapped.generation = self.generations;
        }
        self.held += mapped.space.len();
    }

    fn insert_kernel(&mut self, mapping: Mapping) {
        if self.kernel.space.len() >= MOST_OF_ONE {
            self.left_out += 1;
            return;
        }
        if self.kernel.space.insert(mapping) {
            self.generations += 1;
            self.kernel.generation = self.generations;
        }
    }

    /// Whether another mapping may be held. Processes that ended go first, once they are many enough to be
    /// worth a look at all.
    fn has_room(&mut self) -> bool {
        if self.held >= self.most_mappings && self.ended > self.mapped.len() / 8 {
            self.mapped.retain(|_, mapped| !mapped.ended);
            self.ended = 0;
            let spaces = self.mapped.values().map(|mapped| mapped.space.len());
            self.held = spaces.sum();
        }
        self.held < self.most_mappings
    }

    /// Code the kernel made at run time.
    fn add_kernel_symbol(&mut self, record: &Record<'_>, modules: &mut Modules) -> Option<()> {
        const UNREGISTERED: u16 = 1;
        let mut fields = record.body;
        let (start, size) = (fields.u64()?, fields.u32()?);
        let (_kind, flags) = (fields.u16()?, fields.u16()?);
        if flags & UNREGISTERED != 0 {
            return None;
        }
        let name = String::from_utf8_lossy(fields.text()).into_owned();
        let module = modules.intern(&name, Source::Itself, Identity::default(), 0);
        self.insert_kernel(Mapping {
            start,
            end: start.saturating_add(u64::from(size)),
            shift: 0,
            module,
        });
        Some(())
    }
}

/// What a record of a mapping says.
struct Mmap<'a> {
    mode: Mode,
    pid: u32,
    start: u64,
    size: u64,
    offset: u64,
    executable: bool,
    huge: bool,
    identity: Identity,
    name: &'a [u8],
}

fn read_mapping<'a>(record: &Record<'a>) -> Option<Mmap<'a>> {
    const EXECUTABLE: u32 = 4;
    const HUGE_PAGES: u32 = 0x40000;
    let mut fields = record.body;
    let (pid, _tid) = (fields.u32()?, fields.u32()?);
    let mut mmap = Mmap {
        mode: Mode::of_misc(record.misc),
        pid,
        start: fields.u64()?,
        size: fields.u64()?,
        offset: fields.u64()?,
        executable: record.misc & MISC_DATA_OR_NO_CLONE == 0,
        huge: false,
        identity: Identity::default(),
        name: b"",
    };
    if record.kind == kind::MMAP2 {
        let identity = fields.take(24)?;
        mmap.identity = identity_of(identity, record.misc)?;
        mmap.executable = fields.u32()? & EXECUTABLE != 0;
        mmap.huge = fields.u32()? & HUGE_PAGES != 0;
    }
    mmap.name = fields.text();
    Some(mmap)
}

/// A build id, or else the file's device, inode and generation; all zero where perf made the record up.
fn identity_of(bytes: &[u8], misc: u16) -> Option<Identity> {
    if misc & MISC_BUILD_ID != 0 {
        let size = usize::from(bytes[0]).min(20);
        return Some(Identity {
            build_id: Some(bytes.get(4..4 + size)?.to_vec()),
            ..Identity::default()
        });
    }
    let mut inode = Bytes::new(&bytes[8..]);
    let inode = inode.u64().filter(|&inode| inode != 0);
    Some(Identity {
        build_id: None,
        file: inode.and_then(|_| bytes.try_into().ok()),
        inode,
    })
}

/// The kernel itself, or one of its modules: `[name]`.
fn kernel_module(mmap: &Mmap<'_>, modules: &mut Modules) -> ModuleId {
    if let Some(anchor) = mmap.name.strip_prefix(KERNEL.as_bytes()) {
        // Older perf and guests have no anchor, others have it without its address.
        if !anchor.is_empty() && mmap.offset != 0 {
            modules.anchor_kernel(anchor, mmap.offset);
        }
        return modules.kernel;
    }
    let name = String::from_utf8_lossy(mmap.name);
    if name.starts_with('[') {
        return modules.intern(&name, Source::Kernel, Identity::default(), 0);
    }
    let file = name.rsplit('/').next().unwrap_or(&name);
    let stem = file.split(".ko").next().unwrap_or(file).replace('-', "_");
    modules.intern(&format!("[{stem}]"), Source::Kernel, Identity::default(), 0)
}

/// What a process mapped, and what turns its addresses into the module's own.
fn user_module(mmap: &Mmap<'_>, header: &Header, modules: &mut Modules) -> (ModuleId, u64) {
    let name = String::from_utf8_lossy(mmap.name);
    let in_file = mmap.offset.wrapping_sub(mmap.start);
    let is_memory = is_memory(&name) || mmap.huge;
    let without_file = |modules: &mut Modules, name: &str, source| {
        modules.intern(name, source, Identity::default(), mmap.pid)
    };
    if is_memory && mmap.executable {
        let name = format!("/tmp/perf-{}.map", mmap.pid);
        let module = without_file(modules, &name, Source::PerfMap(mmap.pid));
        return (module, 0);
    }
    if is_memory {
        return (without_file(modules, &name, Source::None), 0);
    }
    if name == "[vdso]" {
        let from_start = mmap.start.wrapping_neg();
        return (without_file(modules, &name, Source::Vdso), from_start);
    }
    if name.is_empty() {
        return (NOWHERE, in_file);
    }
    let mut identity = mmap.identity.clone();
    if identity.build_id.is_none() {
        identity.build_id = header.build_id(mmap.name).cloned();
    }
    let module = modules.intern(&name, Source::Elf, identity, mmap.pid);
    (module, in_file)
}

/// Mapped from no file.
fn is_memory(name: &str) -> bool {
    name == "[heap]"
        || ["//anon", "/dev/zero", "/anon_hugepage", "[stack", "/SYSV"]
            .iter()
            .any(|start| name.starts_with(start))
}
