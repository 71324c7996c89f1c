//! Which threads there are, what they are called, and what their processes have mapped.

use std::rc::Rc;

use foldhash::{HashMap, HashMapExt};

use super::header::Header;
use super::modules::{ModuleId, Modules, Source, KERNEL, NOWHERE};
use super::records::{kind, Record};
use super::space::{Mapping, Space};
use crate::error::{Error, Result};

/// Most mappings that are held for all living processes together.
const MOST_MAPPINGS: usize = 1 << 23;
/// Bytes of a thread's name that are kept (the kernel keeps 16).
const MOST_COMM: usize = 64;

const MISC_CPU_MODE: u16 = 7;
const MISC_DATA_OR_NO_CLONE: u16 = 1 << 13;
const MISC_BUILD_ID: u16 = 1 << 14;

/// Whose addresses they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A process's mappings, and a number that changes when they do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapped {
    pub(crate) space: Rc<Space>,
    pub(crate) generation: u32,
    ended: bool,
}

/// Threads and processes as they are at the time of the record just read.
pub(crate) struct Processes {
    threads: HashMap<u32, Rc<str>>,
    mapped: HashMap<u32, Mapped>,
    pub(crate) kernel: Mapped,
    generations: u32,
    /// Mappings copied since those held were last counted.
    copied: usize,
}

impl Processes {
    pub(crate) fn new() -> Processes {
        let mut threads = HashMap::new();
        threads.insert(0, Rc::from("swapper"));
        Processes {
            threads,
            mapped: HashMap::new(),
            kernel: Mapped::default(),
            generations: 0,
            copied: 0,
        }
    }

    /// The name of a thread; `:TID` if it was never told.
    pub(crate) fn comm(&self, tid: u32) -> Rc<str> {
        match self.threads.get(&tid) {
            Some(comm) => Rc::clone(comm),
            None => Rc::from(format!(":{}", tid as i32)),
        }
    }

    pub(crate) fn generation(&self, pid: u32) -> u32 {
        self.mapped(pid).map_or(0, |mapped| mapped.generation)
    }

    pub(crate) fn mapped(&self, pid: u32) -> Option<&Mapped> {
        self.mapped.get(&pid)
    }

    /// Takes in a record that is no sample.
    pub(crate) fn take_in(
        &mut self,
        record: &Record<'_>,
        header: &Header,
        modules: &mut Modules<'_>,
    ) -> Result<()> {
        // Records that are cut short are passed over: the fields say all there is to say.
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
            kind::MMAP | kind::MMAP2 => match read_mapping(record) {
                Some(mmap) => self.map(&mmap, header, modules)?,
                None => return Ok(()),
            },
            kind::KSYMBOL => self.add_kernel_symbol(record, modules).unwrap_or(Ok(()))?,
            _ => {}
        }
        Ok(())
    }

    fn rename(&mut self, record: &Record<'_>) -> Option<()> {
        let mut fields = record.body;
        let (_pid, tid) = (fields.u32()?, fields.u32()?);
        let name = fields.text();
        let name = String::from_utf8_lossy(&name[..name.len().min(MOST_COMM)]);
        self.threads.insert(tid, Rc::from(name));
        Some(())
    }

    fn fork(&mut self, record: &Record<'_>) -> Option<()> {
        let mut fields = record.body;
        let (pid, parent) = (fields.u32()?, fields.u32()?);
        let (tid, parent_tid) = (fields.u32()?, fields.u32()?);
        let comm = self.comm(parent_tid);
        self.threads.insert(tid, comm);
        let is_process = pid != parent;
        if is_process && record.misc & MISC_DATA_OR_NO_CLONE == 0 {
            let mut inherited = self.mapped.get(&parent).cloned().unwrap_or_default();
            inherited.ended = false;
            self.mapped.insert(pid, inherited);
        } else if is_process {
            self.mapped.remove(&pid);
        }
        Some(())
    }

    /// The end of a process's first thread: its mappings go when room is needed. (Not before: other threads
    /// may run on, and the kernel is still at work for this one.)
    fn exit(&mut self, record: &Record<'_>) -> Option<()> {
        let mut fields = record.body;
        let (pid, _parent, tid) = (fields.u32()?, fields.u32()?, fields.u32()?);
        if pid == tid {
            self.mapped.get_mut(&pid)?.ended = true;
        }
        Some(())
    }

    fn map(&mut self, mmap: &Mmap<'_>, header: &Header, modules: &mut Modules<'_>) -> Result<()> {
        if mmap.mode == Mode::Other {
            return Ok(());
        }
        let (module, shift) = if mmap.mode == Mode::Kernel {
            (kernel_module(mmap, modules)?, 0)
        } else {
            user_module(mmap, header, modules)?
        };
        let mapping = Mapping {
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.size),
            shift,
            module,
        };
        if mmap.mode == Mode::Kernel {
            self.insert_kernel(mapping);
            return Ok(());
        }
        self.generations += 1;
        let mapped = self.mapped.entry(mmap.pid).or_default();
        mapped.generation = self.generations;
        if Rc::strong_count(&mapped.space) > 1 {
            self.copied += mapped.space.len();
        }
        Rc::make_mut(&mut mapped.space).insert(mapping);
        self.copied += 1;
        self.check_size()
    }

    fn insert_kernel(&mut self, mapping: Mapping) {
        self.generations += 1;
        self.kernel.generation = self.generations;
        Rc::make_mut(&mut self.kernel.space).insert(mapping);
    }

    /// Fails when more mappings are held than any machine has; they are counted now and then.
    fn check_size(&mut self) -> Result<()> {
        if self.copied < MOST_MAPPINGS {
            return Ok(());
        }
        self.mapped.retain(|_, mapped| !mapped.ended);
        self.copied = self.mapped.values().map(|mapped| mapped.space.len()).sum();
        if self.copied < MOST_MAPPINGS {
            self.copied /= 2;
            return Ok(());
        }
        Err(Error::Limit {
            what: "mappings of a perf.data file",
            limit: MOST_MAPPINGS as u64,
        })
    }

    /// Code the kernel made at run time.
    fn add_kernel_symbol(
        &mut self,
        record: &Record<'_>,
        modules: &mut Modules<'_>,
    ) -> Option<Result<()>> {
        const UNREGISTERED: u16 = 1;
        let mut fields = record.body;
        let (start, size) = (fields.u64()?, fields.u32()?);
        let (_kind, flags) = (fields.u16()?, fields.u16()?);
        if flags & UNREGISTERED != 0 {
            return None;
        }
        let name = String::from_utf8_lossy(fields.text()).into_owned();
        let module = match modules.intern(&name, Source::Itself, None, 0) {
            Ok(module) => module,
            Err(error) => return Some(Err(error)),
        };
        self.insert_kernel(Mapping {
            start,
            end: start.saturating_add(u64::from(size)),
            shift: 0,
            module,
        });
        None
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
    build_id: Option<&'a [u8]>,
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
        build_id: None,
        name: b"",
    };
    if record.kind == kind::MMAP2 {
        let identity = fields.take(24)?;
        if record.misc & MISC_BUILD_ID != 0 {
            let size = usize::from(identity[0]).min(20);
            mmap.build_id = identity.get(4..4 + size);
        }
        mmap.executable = fields.u32()? & EXECUTABLE != 0;
        mmap.huge = fields.u32()? & HUGE_PAGES != 0;
    }
    mmap.name = fields.text();
    Some(mmap)
}

/// The kernel itself, or one of its modules: `[name]`.
fn kernel_module(mmap: &Mmap<'_>, modules: &mut Modules<'_>) -> Result<ModuleId> {
    if let Some(anchor) = mmap.name.strip_prefix(KERNEL.as_bytes()) {
        // Older perf and guests have no anchor, others have it without its address.
        if !anchor.is_empty() && mmap.offset != 0 {
            modules.anchor_kernel(anchor, mmap.offset);
        }
        return Ok(modules.kernel);
    }
    let name = String::from_utf8_lossy(mmap.name);
    if name.starts_with('[') {
        return modules.intern(&name, Source::Kernel, None, 0);
    }
    let file = name.rsplit('/').next().unwrap_or(&name);
    let stem = file.split(".ko").next().unwrap_or(file).replace('-', "_");
    modules.intern(&format!("[{stem}]"), Source::Kernel, None, 0)
}

/// What a process mapped, and what turns its addresses into the module's own.
fn user_module(
    mmap: &Mmap<'_>,
    header: &Header,
    modules: &mut Modules<'_>,
) -> Result<(ModuleId, u64)> {
    let name = String::from_utf8_lossy(mmap.name);
    let in_file = mmap.offset.wrapping_sub(mmap.start);
    let is_memory = is_memory(&name) || mmap.huge;
    if is_memory && mmap.executable {
        let name = format!("/tmp/perf-{}.map", mmap.pid);
        let module = modules.intern(&name, Source::PerfMap(mmap.pid), None, mmap.pid)?;
        return Ok((module, 0));
    }
    if is_memory {
        return Ok((modules.intern(&name, Source::None, None, 0)?, 0));
    }
    if name == "[vdso]" {
        let from_start = mmap.start.wrapping_neg();
        return Ok((modules.intern(&name, Source::Vdso, None, 0)?, from_start));
    }
    if name.is_empty() {
        return Ok((NOWHERE, in_file));
    }
    let build_id = mmap.build_id.map(<[u8]>::to_vec);
    let build_id = build_id.or_else(|| header.build_ids.get(mmap.name).cloned());
    let module = modules.intern(&name, Source::Elf, build_id, mmap.pid)?;
    Ok((module, in_file))
}

/// Mapped from no file.
fn is_memory(name: &str) -> bool {
    name == "[heap]"
        || ["//anon", "/dev/zero", "/anon_hugepage", "[stack", "/SYSV"]
            .iter()
            .any(|start| name.starts_with(start))
}
