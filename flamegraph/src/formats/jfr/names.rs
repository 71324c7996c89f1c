//! From the numbers of methods, classes and threads to frames, each looked up once a chunk.

use std::borrow::Cow;

use super::numbered::Numbered;
use super::pools::{Of, Pools};
use super::stacks::Budget;
use crate::ops::Threads;
use crate::profile::{Error, Frame, Frames, Kind, Limits, ModuleTable, Result};

/// How a frame type is shown: its kind, and whether the method is shown without its class.
type Shown = (Kind, bool);

/// Frame types by number, for recordings that do not name them.
const FRAME_TYPES: [&[u8]; 7] = [
    b"Interpreted",
    b"JIT compiled",
    b"Inlined",
    b"Native",
    b"C++",
    b"Kernel",
    b"C1 compiled",
];
const MOST_FRAME_TYPES: u64 = 64;

pub(super) struct Namer<'a> {
    pools: &'a Pools<'a>,
    pub(super) limits: &'a Limits,
    frame_types: Vec<Shown>,
    /// Those that stand with their class, and those that stand without; each with the bytes of its name.
    methods: [Numbered<(u32, u32)>; 2],
    classes: Numbered<u32>,
    threads: Numbered<u32>,
    /// Where native functions lie: async-profiler gives their library for their class.
    pub(super) modules: ModuleTable,
    text: Vec<u8>,
}

impl<'a> Namer<'a> {
    pub(super) fn new(pools: &'a Pools<'a>, limits: &'a Limits) -> Namer<'a> {
        Namer {
            pools,
            limits,
            frame_types: frame_types(pools),
            methods: Default::default(),
            classes: Numbered::default(),
            threads: Numbered::default(),
            modules: ModuleTable::default(),
            text: Vec::new(),
        }
    }

    /// `java/lang/String.length`, or a native function's name alone; and how many bytes it has.
    #[inline]
    pub(super) fn method(
        &mut self,
        names: &mut Frames,
        method: u64,
        frame_type: u64,
    ) -> Result<(Frame, u32)> {
        let shown = self.frame_types.get(frame_type as usize);
        let &shown = shown.unwrap_or(&(Kind::Plain, false));
        let (kind, bare) = shown;
        let known = self.methods[usize::from(bare)].get(method);
        let (name, bytes) = match known {
            Some(known) => known,
            None => self.name_method(names, method, shown)?,
        };
        Ok((Frame::new(name, kind), bytes))
    }

    #[cold]
    fn name_method(
        &mut self,
        names: &mut Frames,
        method: u64,
        (kind, bare): Shown,
    ) -> Result<(u32, u32)> {
        self.text.clear();
        match self.pools.get(Of::Methods, method) {
            None => self.text.extend_from_slice(b"unknown"),
            Some([class, name, ..]) => {
                if !bare {
                    self.text.extend_from_slice(&self.class_symbol(class));
                }
                let name = self.pools.symbol(name);
                if !self.text.is_empty() && !name.is_empty() {
                    self.text.push(b'.');
                }
                self.text.extend_from_slice(&name);
            }
        }
        let name = self.intern(names)?;
        if bare {
            self.note_module(method, kind, names.name(name));
        }
        let known = (name, names.name(name).len() as u32);
        self.methods[usize::from(bare)].keep(method, known);
        Ok(known)
    }

    fn note_module(&mut self, method: u64, kind: Kind, name: &str) {
        if let Some([class, ..]) = self.pools.get(Of::Methods, method) {
            // async-profiler writes `[vdso]`, as perf and the kernel call it, without its brackets.
            let library = match self.class_symbol(class) {
                vdso if *vdso == *b"vdso" => Cow::Borrowed(&b"[vdso]"[..]),
                library => library,
            };
            self.modules
                .insert(name, kind, &String::from_utf8_lossy(&library));
        }
    }

    /// The name of a class as Java's source code has it: `java.lang.String[]`.
    pub(super) fn class(
        &mut self,
        names: &mut Frames,
        class: u64,
        budget: &mut Budget,
    ) -> Result<u32> {
        if let Some(name) = self.classes.get(class) {
            return Ok(name);
        }
        let symbol = self.class_symbol(class);
        self.text.clear();
        push_class_name(&mut self.text, &symbol);
        let name = self.intern(names)?;
        budget.spend(self.text.len() as u64)?;
        self.classes.keep(class, name);
        Ok(name)
    }

    /// The frame of a thread; without one it is not asked for.
    pub(super) fn thread(
        &mut self,
        names: &mut Frames,
        thread: u64,
        how: Threads,
    ) -> Result<Frame> {
        if let Some(name) = self.threads.get(thread) {
            return Ok(Frame::new(name, Kind::Plain));
        }
        let (name, tid) = match self.pools.get(Of::Threads, thread) {
            None => (Vec::new(), thread),
            Some([os_name, os_id, java_name, ..]) => {
                let java = self.pools.text(java_name).utf8();
                let name = if java.is_empty() {
                    self.pools.text(os_name).utf8()
                } else {
                    java
                };
                (name.into_owned(), if os_id == 0 { thread } else { os_id })
            }
        };
        self.text = how.frame(&name, tid as i64).unwrap_or_default();
        let name = self.intern(names)?;
        self.threads.keep(thread, name);
        Ok(Frame::new(name, Kind::Plain))
    }

    fn class_symbol(&self, class: u64) -> Cow<'a, [u8]> {
        let class = self.pools.get(Of::Classes, class);
        class.map_or_else(Default::default, |[name, ..]| self.pools.symbol(name))
    }

    fn intern(&mut self, names: &mut Frames) -> Result<u32> {
        if self.text.is_empty() {
            self.text.extend_from_slice(b"unknown");
        }
        let hold = |what, bytes: usize, limit: usize| match bytes > limit {
            true => Err(Error::Limit {
                what,
                limit: limit as u64,
            }),
            false => Ok(()),
        };
        let (own, all) = (self.text.len(), names.text_bytes());
        hold("bytes of a frame name", own, self.limits.name_bytes)?;
        hold("bytes of all frames' names", all, self.limits.names_bytes)?;
        names.intern_name(&self.text)
    }
}

/// How each frame type is shown. The JDK's `Native` is a Java method written in C, which has a class;
/// async-profiler's, who also knows the kernel's frames, is a C function, which has none.
fn frame_types(pools: &Pools<'_>) -> Vec<Shown> {
    let mut names: Vec<Vec<u8>> = FRAME_TYPES.iter().map(|name| name.to_vec()).collect();
    let mut kernel_too = false;
    for id in pools
        .ids(Of::FrameTypes)
        .filter(|&id| id < MOST_FRAME_TYPES)
    {
        let name = pools.get(Of::FrameTypes, id);
        let name = name.map_or_else(Vec::new, |[text, ..]| pools.text(text).utf8().into_owned());
        kernel_too |= name == b"Kernel";
        if names.len() <= id as usize {
            names.resize(id as usize + 1, Vec::new());
        }
        names[id as usize] = name;
    }
    names.iter().map(|name| shown(name, kernel_too)).collect()
}

fn shown(frame_type: &[u8], async_profiler: bool) -> Shown {
    match frame_type {
        b"Interpreted" => (Kind::Interpreted, false),
        b"JIT compiled" => (Kind::Jit, false),
        b"Inlined" => (Kind::Inlined, false),
        b"C1 compiled" => (Kind::C1, false),
        b"Kernel" => (Kind::Kernel, true),
        b"C++" => (Kind::Plain, true),
        b"Native" => (Kind::Plain, async_profiler),
        _ => (Kind::Plain, false),
    }
}

fn push_class_name(text: &mut Vec<u8>, symbol: &[u8]) {
    let depth = symbol.iter().take_while(|&&byte| byte == b'[').count();
    let element = &symbol[depth..];
    let primitive: Option<&[u8]> = match element {
        b"B" => Some(b"byte"),
        b"C" => Some(b"char"),
        b"S" => Some(b"short"),
        b"I" => Some(b"int"),
        b"J" => Some(b"long"),
        b"Z" => Some(b"boolean"),
        b"F" => Some(b"float"),
        b"D" => Some(b"double"),
        _ => None,
    };
    match (depth, primitive, element) {
        (1.., Some(name), _) => text.extend_from_slice(name),
        (1.., None, [b'L', name @ .., b';']) => push_dotted(text, name),
        _ => push_dotted(text, element),
    }
    for _ in 0..depth {
        text.extend_from_slice(b"[]");
    }
}

fn push_dotted(text: &mut Vec<u8>, name: &[u8]) {
    text.extend(
        name.iter()
            .map(|&byte| if byte == b'/' { b'.' } else { byte }),
    );
}
