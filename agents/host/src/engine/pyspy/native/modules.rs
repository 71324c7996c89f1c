//! The native code of processes: walks up their stacks, and names functions.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flamegraph::perf_data::{frame_name, Code, JitMap};
use flamegraph::SymbolOptions;
use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
    Unwinder, UnwinderNative,
};

use super::merge::{Kind, NativeFrame};
use super::registers::{leave_trampoline, unwind_registers};
use super::stop::StoppedThread;
use crate::engine::pyspy::tasks::Tasks;
use crate::os::proc::maps::{file_name, Mapping};

/// The most bytes of a stack that are copied, and the most frames of it.
pub const MOST_STACK: usize = 256 << 10;
pub const MOST_FRAMES: usize = 1024;
/// The most bytes of a perf map that are read.
const MOST_MAP: u64 = 16 << 20;
/// Addresses whose names are remembered; more are forgotten, and worked out anew.
const MOST_NAMES: usize = 1 << 16;
/// How often to look for new libraries, if an address is in none.
const EVERY: Duration = Duration::from_secs(1);
const VDSO: &str = "[vdso]";
const MOST_VDSO: u64 = 1 << 20;
const UNKNOWN: &str = "[unknown]";
/// How the interpreter's function that evaluates Python code is called, in parts too (`….cold`).
const EVALUATION: &str = "_PyEval_EvalFrameDefault";

type Policy = MayAllocateDuringUnwind;

/// A part of a file: path, device, inode, and the place in the file from which on it is mapped.
type Part = (String, String, u64, u64);

type SharedCode = Rc<RefCell<Code>>;

/// The files that processes map: one that was chosen, and those that it forked.
pub struct Files {
    known: HashMap<Part, SharedCode>,
    /// How many bytes they may still take.
    room: usize,
}

impl Files {
    pub fn new(room: usize) -> Self {
        Self {
            known: HashMap::new(),
            room,
        }
    }
}

/// The code of a file.
fn find(files: &mut Files, tasks: &Tasks, mapping: &Mapping) -> Option<SharedCode> {
    let (path, device) = (mapping.file.path.clone(), mapping.file.device.clone());
    let key = (path, device, mapping.file.inode, mapping.offset);
    if let Some(known) = files.known.get(&key) {
        return Some(known.clone());
    }
    let code = read(tasks, mapping, files.room)?;
    files.room = files.room.saturating_sub(code.bytes());
    let code = Rc::new(RefCell::new(code));
    files.known.insert(key, code.clone());
    Some(code)
}

fn read(tasks: &Tasks, mapping: &Mapping, room: usize) -> Option<Code> {
    let options = SymbolOptions {
        memory: room,
        ..SymbolOptions::none()
    };
    if mapping.file.path == VDSO {
        let size = (mapping.range.end - mapping.range.start).min(MOST_VDSO);
        let mut bytes = vec![0; size as usize];
        let (memory, start) = (tasks.memory(), mapping.range.start);
        memory.read_exact_at(&mut bytes, start).ok()?;
        return Code::read(Cursor::new(bytes), 0, &options);
    }
    let file = tasks.target.named().ok()?.open_mapped(&mapping.file)?;
    Code::read(file, mapping.offset, &options)
}

/// What one process maps.
#[derive(Default)]
pub struct Modules {
    mappings: Vec<Mapping>,
    read: Option<Instant>,
    /// The code of the mappings that were needed, by their begin.
    loaded: HashMap<u64, Option<SharedCode>>,
    unwinder: UnwinderNative<Arc<[u8]>, Policy>,
    cache: CacheNative<Policy>,
    names: HashMap<u64, Arc<NativeFrame>>,
    /// The names of code made at run time, which the process itself wrote.
    jit: JitMap,
    /// The size of that file when it was read, and whether to look at it again.
    jit_size: u64,
    jit_due: bool,
}

impl Modules {
    /// Look at the process's map, if that is due. Called while it runs.
    pub fn refresh(&mut self, tasks: &Tasks) {
        if self.read.is_some_and(|read| read.elapsed() < EVERY) {
            return;
        }
        self.read = Some(Instant::now());
        self.jit_due = true;
        let Some(mappings) = tasks.target.mappings() else {
            return;
        };
        let is_code = |mapping: &&Mapping| mapping.is_code();
        let code = mappings.iter().filter(is_code);
        if !code.eq(self.mappings.iter().filter(is_code)) {
            *self = Self {
                read: self.read,
                jit_due: true,
                ..Self::default()
            };
        }
        self.mappings = mappings;
    }

    /// How many bytes of a stack to copy from its pointer on.
    pub fn stack_size(&self, pointer: u64) -> usize {
        let place = self
            .mappings
            .partition_point(|mapping| mapping.range.end <= pointer);
        self.mappings.get(place).map_or(0, |mapping| {
            (mapping.range.end - pointer).min(MOST_STACK as u64) as usize
        })
    }

    /// The frames of a stack, the innermost first.
    pub fn walk(
        &mut self,
        thread: &StoppedThread,
        tasks: &Tasks,
        files: &mut Files,
    ) -> Vec<Arc<NativeFrame>> {
        let (pointer, code, mut registers) = unwind_registers(&thread.registers);
        let mut read = |address: u64| {
            let place = address.checked_sub(pointer).ok_or(())? as usize;
            let word = thread
                .stack
                .get(place..)
                .and_then(|rest| rest.first_chunk())
                .ok_or(())?;
            Ok(u64::from_le_bytes(*word))
        };
        let mut frames = Vec::new();
        let mut address = FrameAddress::from_instruction_pointer(code);
        let mut callee = None;
        while frames.len() < MOST_FRAMES {
            let frame = self.frame(address.address_for_lookup(), tasks, files);
            let is_trampoline = frame.kind == Kind::Jit && callee == Some(Kind::Evaluation);
            callee = Some(frame.kind.clone());
            frames.push(frame);
            let left = is_trampoline.then(|| leave_trampoline(&mut registers, &mut read));
            let caller = left.flatten().or_else(|| {
                let (unwinder, cache) = (&self.unwinder, &mut self.cache);
                let caller = unwinder.unwind_frame(address, &mut registers, cache, &mut read);
                caller.ok().flatten()
            });
            match caller.and_then(FrameAddress::from_return_address) {
                Some(caller) => address = caller,
                None => break,
            }
        }
        frames
    }

    fn frame(&mut self, address: u64, tasks: &Tasks, files: &mut Files) -> Arc<NativeFrame> {
        if let Some(known) = self.names.get(&address) {
            return known.clone();
        }
        let frame = Arc::new(self.name(address, tasks, files));
        if self.names.len() >= MOST_NAMES {
            self.names.clear();
        }
        if frame.name != UNKNOWN {
            self.names.insert(address, frame.clone());
        }
        frame
    }

    fn name(&mut self, address: u64, tasks: &Tasks, files: &mut Files) -> NativeFrame {
        let mapping = self
            .mappings
            .iter()
            .find(|mapping| mapping.range.contains(&address));
        let Some(mapping) = mapping
            .filter(|mapping| !mapping.file.path.is_empty())
            .cloned()
        else {
            return self.jit_code(address, tasks);
        };
        let code = self.load(&mapping, tasks, files);
        let offset = address - mapping.range.start + mapping.offset;
        let symbol = code.and_then(|code| code.borrow_mut().symbol(offset));
        let file = file_name(&mapping.file.path);
        let is_python = file.starts_with("python") || file.starts_with("libpython");
        let kind = match &symbol {
            Some(symbol) if is_python && symbol.starts_with(EVALUATION) => Kind::Evaluation,
            _ if is_python => Kind::Interpreter,
            _ => Kind::Library,
        };
        let name = frame_name(symbol.as_deref(), &mapping.file.path);
        NativeFrame { name, kind }
    }

    fn load(&mut self, mapping: &Mapping, tasks: &Tasks, files: &mut Files) -> Option<SharedCode> {
        let (start, end) = (mapping.range.start, mapping.range.end);
        if let Some(known) = self.loaded.get(&start) {
            return known.clone();
        }
        let found = find(files, tasks, mapping);
        self.loaded.insert(start, found.clone());
        let found = found?;
        let code = found.borrow();
        let mut sections = ExplicitModuleSectionInfo::default();
        for section in &code.sections {
            let (bytes, size) = (section.bytes.clone(), section.bytes.len() as u64);
            let range = section.address..section.address.saturating_add(size);
            match section.name {
                ".eh_frame" => {
                    (sections.eh_frame, sections.eh_frame_svma) = (Some(bytes), Some(range));
                }
                _ => {
                    sections.eh_frame_hdr = Some(bytes);
                    sections.eh_frame_hdr_svma = Some(range);
                }
            }
        }
        // Where the file's address 0 is in the process.
        let base = start.wrapping_sub(code.address);
        let path = mapping.file.path.clone();
        self.unwinder
            .add_module(Module::new(path, start..end, base, sections));
        drop(code);
        Some(found)
    }

    /// Code that is in no file. `perf-PID.map` has its names, if a JIT compiler writes it.
    fn jit_code(&mut self, address: u64, tasks: &Tasks) -> NativeFrame {
        if std::mem::take(&mut self.jit_due) {
            let map = read_map(tasks, self.jit_size);
            if let Some((size, map)) = map {
                (self.jit_size, self.jit) = (size, map);
                self.names.retain(|_, frame| frame.kind != Kind::Jit);
            }
        }
        let found = self.jit.find(address);
        let name = found.first().map(|(name, _)| (*name).to_owned());
        NativeFrame {
            name: name.unwrap_or_else(|| UNKNOWN.to_owned()),
            kind: Kind::Jit,
        }
    }
}

/// The map that a process has written, and its size. None: there is no map, or its size is still `known`.
fn read_map(tasks: &Tasks, known: u64) -> Option<(u64, JitMap)> {
    let status = &tasks.target.status;
    let path = format!("/tmp/perf-{}.map", status.namespace_pid);
    let file = tasks.target.named().ok()?.open(&path)?;
    // Everybody may write files to that folder, of any size.
    let metadata = file.metadata().ok()?;
    if metadata.uid() != status.uid || metadata.len() == known {
        return None;
    }
    let map = JitMap::text(file.take(MOST_MAP)).ok()?;
    Some((metadata.len(), map))
}
