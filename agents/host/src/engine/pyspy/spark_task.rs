//! The task that a PySpark worker runs, by its own account: `TaskContext._taskContext._taskAttemptId` in the module
//! `pyspark.taskcontext`. A worker runs one task at a time.
//!
//! py-spy reads stacks only, so objects are read here. All is text and numbers that the process may choose.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use flamegraph::Slice;
use py_spy::{PythonSpy, StackTrace};

/// All of a worker's tasks run in functions of this file.
const WORKER: &str = "pyspark/worker.py";
/// How often to look for the class: Python may change its tables meanwhile.
const ATTEMPTS: u32 = 3;
/// The most names in a table that is read. Programs import some thousand modules.
const MOST_NAMES: usize = 1 << 16;
/// Samples of more tasks have no slice.
const MOST_SLICES: usize = 16_384;

// Offsets in objects of CPython 3.8 to 3.14, on machines of 64 bits.
const TYPE: i64 = 8;
const MODULE_NAMES: i64 = 16;
/// The places of a table of names, and of values if they are apart.
const DICT_PARTS: u64 = 32;
const CLASS_SIZE: i64 = 32;
const CLASS_NAMES: i64 = 264;
const CLASS_DICT_PLACE: i64 = 288;
const LENGTH: usize = 16;
const DIGITS: usize = 24;
const DIGIT_BITS: u32 = 30;

pub struct SparkTask {
    /// Where the interpreter has its modules.
    modules: u64,
    release: u64,
    context: Option<Context>,
    attempts: u32,
    last: Option<u64>,
}

/// The dict of the class `TaskContext`, and the names of its attributes `_taskContext` and `_taskAttemptId`. They stay
/// where they are as long as the class is there.
#[derive(Clone, Copy)]
struct Context {
    class: u64,
    current: u64,
    id: u64,
}

impl SparkTask {
    pub fn of(spy: &PythonSpy) -> Self {
        Self {
            modules: spy.addresses.imports_modules_address as u64,
            release: spy.version.minor,
            context: None,
            attempts: ATTEMPTS,
            last: None,
        }
    }

    /// The id in its application of the task whose stacks were just read, and whether that is certain: the last task
    /// was the same. None: the process is no worker, or cannot be read.
    pub fn of_stacks(&mut self, traces: &[StackTrace], memory: &File) -> Option<(u64, bool)> {
        let mut frames = traces.iter().flat_map(|trace| trace.frames.iter().rev());
        let is_worker = || frames.any(|frame| frame.filename.ends_with(WORKER));
        self.of_memory(memory, is_worker)
    }

    fn of_memory(
        &mut self,
        memory: &impl Memory,
        is_worker: impl FnOnce() -> bool,
    ) -> Option<(u64, bool)> {
        let release = self.release;
        let objects = Objects { memory, release };
        if self.context.is_none() && self.attempts > 0 && is_worker() {
            self.attempts -= 1;
            self.context = objects.context(self.modules);
        }
        let task = objects.task(self.context?)?;
        Some((task, self.last.replace(task) == Some(task)))
    }
}

/// The memory of a process.
trait Memory {
    /// None: not all of it can be read.
    fn read(&self, address: u64, count: usize) -> Option<Vec<u8>>;
}

impl Memory for File {
    fn read(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }
}

/// One that begins at address 0.
#[cfg(any(test, feature = "fuzz"))]
impl Memory for &[u8] {
    fn read(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let begin = usize::try_from(address).ok()?;
        Some(self.get(begin..begin.checked_add(count)?)?.to_vec())
    }
}

/// The task by such a memory. For fuzzing.
#[cfg(any(test, feature = "fuzz"))]
pub fn in_memory(memory: &[u8], modules: u64, release: u64) -> Option<u64> {
    let mut task = SparkTask {
        modules,
        release,
        context: None,
        attempts: ATTEMPTS,
        last: None,
    };
    Some(task.of_memory(&memory, || true)?.0)
}

/// Slices such as `task 42`: Spark knows the stage of each task.
#[derive(Default)]
pub struct TaskSlices {
    pub all: Vec<Slice>,
    numbers: HashMap<(u64, bool), u16>,
}

impl TaskSlices {
    /// The number of a task's slice, counted from 1; 0 if there are too many.
    pub fn number(&mut self, (task, certain): (u64, bool)) -> u16 {
        if self.all.len() >= MOST_SLICES {
            return self.numbers.get(&(task, certain)).copied().unwrap_or(0);
        }
        *self.numbers.entry((task, certain)).or_insert_with(|| {
            let name = format!("task {task}");
            self.all.push(Slice { name, certain });
            self.all.len() as u16
        })
    }
}

/// The objects of a Python 3 process, by their addresses.
struct Objects<'a, M> {
    memory: &'a M,
    /// Such as 11.
    release: u64,
}

/// Addresses of names, and of what has these names.
type Names = Vec<(u64, u64)>;

impl<M: Memory> Objects<'_, M> {
    fn context(&self, modules: u64) -> Option<Context> {
        let modules = self.dict(self.word(modules, 0)?)?;
        let (_, module) = self.find(&modules, "pyspark.taskcontext")?;
        let names = self.dict(self.word(module, MODULE_NAMES)?)?;
        let (_, class) = self.find(&names, "TaskContext")?;
        let class = self.word(class, CLASS_NAMES)?;
        let names = self.dict(class)?;
        Some(Context {
            class,
            current: self.find(&names, "_taskContext")?.0,
            id: self.find(&names, "_taskAttemptId")?.0,
        })
    }

    fn task(&self, context: Context) -> Option<u64> {
        let of = |names: &Names, name| names.iter().find(|(key, _)| *key == name).copied();
        let (_, current) = of(&self.dict(context.class)?, context.current)?;
        let (_, id) = of(&self.attributes(current)?, context.id)?;
        self.number(id)
    }

    /// The attributes of an object whose class is written in Python. The class has their names, and the object its
    /// values, unless it has a dict of its own.
    fn attributes(&self, object: u64) -> Option<Names> {
        let class = self.word(object, TYPE)?;
        let values = match self.release {
            ..=10 => {
                let place = self.word(class, CLASS_DICT_PLACE)?;
                return self.dict(self.word(object, place as i64)?);
            }
            11 => self.word(object, -32)?,
            12 => match self.word(object, -24)? {
                // The lowest bit says which of both it is.
                tagged if tagged & 1 == 1 => tagged.wrapping_add(1),
                _ => 0,
            },
            _ if self.word(object, -24)? != 0 => 0,
            _ => object
                .wrapping_add(self.word(class, CLASS_SIZE)?)
                .wrapping_add(8),
        };
        if values == 0 {
            return self.dict(self.word(object, -24)?);
        }
        let names = if self.release < 12 { 872 } else { 880 };
        self.table(self.word(class, names)?, values)
    }

    fn dict(&self, dict: u64) -> Option<Names> {
        let parts = self.bytes(dict.wrapping_add(DICT_PARTS), 16)?;
        let values = match word(&parts, 8)? {
            0 => 0,
            values if self.release < 13 => values,
            values => values.wrapping_add(8),
        };
        self.table(word(&parts, 0)?, values)
    }

    /// The names in a dict's table. What has these names is beside them, or in an array at `values`, if that is not 0.
    fn table(&self, keys: u64, values: u64) -> Option<Names> {
        let head = self.bytes(keys, 40)?;
        let (before, count, has_hashes) = match self.release {
            ..=10 => {
                let places = word(&head, 8)?;
                let width = match places {
                    ..=0xff => 1,
                    0x100..=0xffff => 2,
                    _ => 4,
                };
                let indices = places.checked_mul(width)?;
                (indices.checked_add(40)?, word(&head, 32)?, true)
            }
            _ => {
                let indices = 1_u64.checked_shl(head[9].into())?;
                (32 + indices, word(&head, 24)?, head[10] == 0)
            }
        };
        let count = usize::try_from(count).ok().filter(|&it| it <= MOST_NAMES)?;
        let (size, name) = if has_hashes { (24, 8) } else { (16, 0) };
        let entries = self.bytes(keys.wrapping_add(before), count * size)?;
        let values = match values {
            0 => None,
            values => Some(self.bytes(values, count * 8)?),
        };
        let entries = entries.chunks_exact(size).enumerate();
        let pairs = entries.filter_map(|(place, entry)| {
            let beside = || word(entry, name + 8);
            let value = values.as_ref();
            let value = value.map_or_else(beside, |values| word(values, 8 * place))?;
            Some((word(entry, name)?, value))
        });
        Some(pairs.filter(|(_, value)| *value != 0).collect())
    }

    fn find(&self, names: &Names, name: &str) -> Option<(u64, u64)> {
        let characters = if self.release < 12 { 48 } else { 40 };
        let is_it = |text| {
            let bytes = self.bytes(text, characters + name.len())?;
            let is_as_long = word(&bytes, LENGTH)? == name.len() as u64;
            Some(is_as_long && bytes[characters..] == *name.as_bytes())
        };
        let mut names = names.iter().copied();
        names.find(|&(text, _)| is_it(text) == Some(true))
    }

    /// An int that is not negative, of at most two digits.
    fn number(&self, int: u64) -> Option<u64> {
        let bytes = self.bytes(int, DIGITS + 8)?;
        let (length, digits) = (word(&bytes, LENGTH)?, word(&bytes, DIGITS)?);
        let count = match self.release {
            ..=11 => length,
            _ if length & 3 == 2 => return None, // negative
            _ => length >> 3,
        };
        let (low, high) = (digits & 0xffff_ffff, digits >> 32);
        match count {
            0 => Some(0),
            1 => Some(low),
            2 => Some(low | high << DIGIT_BITS),
            _ => None,
        }
    }

    fn word(&self, object: u64, place: i64) -> Option<u64> {
        word(&self.bytes(object.wrapping_add_signed(place), 8)?, 0)
    }

    fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        self.memory.read(address, count)
    }
}

fn word(bytes: &[u8], place: usize) -> Option<u64> {
    let bytes = bytes.get(place..place + 8)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}
