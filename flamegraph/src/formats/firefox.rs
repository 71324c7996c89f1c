//! The processed profiles of the Firefox Profiler, as profiler.firefox.com saves them and samply writes them: JSON.
//!
//! A thread has tables of columns: stacks (a frame, and the stack of its caller), frames, functions, and samples that
//! each name a stack. Newer versions keep strings, and then all tables, once for all threads in `shared`.

use std::borrow::Cow;
use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json_array::each;
use super::speedscope::Fractions;
use crate::formats::ReadOptions;
use crate::profile::{Error, Frame, Kind, Node, Profile, Result, ValueType, ROOT};
use crate::source::Input;

const NAME: &str = "Firefox profile";
/// The member of `meta` that only these profiles have.
const VERSION: &[u8] = b"\"preprocessedProfileVersion\"";
/// In a column: there is none.
const NONE: u32 = u32::MAX;

pub(crate) fn detect(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    text.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(text, VERSION).is_some()
}

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    meta: Meta<'a>,
    #[serde(borrow, default)]
    libs: Option<&'a RawValue>,
    #[serde(borrow, default)]
    shared: Option<Tables<'a>>,
    #[serde(borrow)]
    threads: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(borrow, default)]
    sample_units: Option<Units<'a>>,
}

#[derive(Deserialize)]
struct Units<'a> {
    #[serde(borrow, default, rename = "threadCPUDelta")]
    cpu: Cow<'a, str>,
}

/// A library; its name is the file's.
#[derive(Deserialize)]
struct Library<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
}

/// The tables of a thread, or those that all threads share.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tables<'a> {
    #[serde(borrow, default)]
    string_array: Option<&'a RawValue>,
    #[serde(borrow, default)]
    stack_table: Option<Columns<'a>>,
    #[serde(borrow, default)]
    frame_table: Option<Columns<'a>>,
    #[serde(borrow, default)]
    func_table: Option<Columns<'a>>,
    #[serde(borrow, default)]
    resource_table: Option<Columns<'a>>,
}

/// The columns of any table that are read.
#[derive(Deserialize)]
struct Columns<'a> {
    #[serde(borrow, default)]
    frame: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prefix: Option<&'a RawValue>,
    #[serde(borrow, default)]
    func: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
    #[serde(borrow, default)]
    lib: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Thread<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    samples: Samples<'a>,
    #[serde(borrow, default)]
    js_allocations: Option<&'a RawValue>,
    #[serde(borrow, default)]
    native_allocations: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Samples<'a> {
    #[serde(borrow)]
    stack: &'a RawValue,
    #[serde(borrow, default)]
    weight: Option<&'a RawValue>,
    #[serde(borrow, default)]
    weight_type: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "threadCPUDelta")]
    cpu: Option<&'a RawValue>,
}

fn wrong(what: impl Into<String>) -> Error {
    Error::Damaged(NAME, what.into())
}

fn parsed<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T> {
    serde_json::from_str(json).map_err(|error| wrong(error.to_string()))
}

/// Reads the samples of all threads.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let bytes = input.into_bytes("bytes of the Firefox profile", limits.speedscope_bytes)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| wrong(error.to_string()))?;
    let file: File<'_> = parsed(text.strip_prefix('\u{feff}').unwrap_or(text))?;
    let mut reader = Reader {
        options,
        profile: Profile::bounded(Vec::new(), limits.cells),
        libraries: Vec::new(),
        cpu: file.meta.sample_units.and_then(|units| match &*units.cpu {
            "ns" => Some(1),
            "µs" | "us" => Some(1000),
            _ => None,
        }),
        fractions: Fractions::default(),
        unnamed: 0,
        has_allocations: false,
        steps: limits.cells,
    };
    if let Some(libs) = file.libs {
        each(NAME, libs, |_, library: Library<'_>| {
            reader.libraries.push(reader.check(library.name)?);
            Ok(())
        })?;
    }
    let shared = match &file.shared {
        Some(tables) => Some(reader.tables(tables, None)?),
        None => None,
    };
    let mut shared = shared.unwrap_or_default();
    each(NAME, file.threads, |number, thread: &RawValue| {
        let done = reader.thread(thread.get(), &mut shared);
        done.map_err(|error| match error {
            Error::Damaged(_, reason) => wrong(format!("thread {number}: {reason}")),
            Error::Negative(format, what) => {
                Error::Negative(format, format!("thread {number}: {what}"))
            }
            other => other,
        })
    })?;
    let Reader {
        mut profile,
        fractions,
        unnamed,
        has_allocations,
        ..
    } = reader;
    fractions.share_out(&mut profile)?;
    let unread = has_allocations.then(|| "allocations are not read, only samples".to_string());
    profile.add_warnings(unread);
    if unnamed > 0 {
        let warning = format!(
            "native functions that have an address and no name in this file, shown as their library: {unnamed} \
             (a profile that profiler.firefox.com saved has names)"
        );
        profile.add_warnings([warning]);
    }
    profile.into_ordered()
}

/// Tables as read.
#[derive(Default)]
struct Read {
    /// The profile's numbers of the strings.
    names: Vec<u32>,
    /// The frame of each row of the frame table.
    frames: Vec<Frame>,
    /// The row of the frame table, and the caller, of each stack.
    stacks: Vec<(u32, u32)>,
    /// The nodes of stacks below a root.
    nodes: HashMap<(Node, u32), Node, RandomState>,
}

struct Reader<'o> {
    options: &'o ReadOptions,
    profile: Profile,
    libraries: Vec<String>,
    /// Nanoseconds in a unit of CPU time, if it is time.
    cpu: Option<i64>,
    fractions: Fractions,
    /// Functions that have only an address.
    unnamed: usize,
    has_allocations: bool,
    /// How many more stacks may be looked up: a small file can have many threads that all name long stacks.
    steps: usize,
}

impl Reader<'_> {
    fn check(&self, name: Cow<'_, str>) -> Result<String> {
        let most = self.options.limits.name_bytes;
        if name.len() > most {
            return Err(Error::Limit {
                what: "bytes of a frame name",
                limit: most as u64,
            });
        }
        Ok(name.into_owned())
    }

    /// Reads the tables of a thread, or the shared ones. Strings may be shared while other tables are not.
    fn tables(&mut self, tables: &Tables<'_>, shared: Option<&Read>) -> Result<Read> {
        let mut read = Read::default();
        if let Some(strings) = tables.string_array {
            each(NAME, strings, |_, name: Cow<'_, str>| {
                let name = self.check(name)?;
                read.names
                    .push(self.profile.frames.intern_name(name.as_bytes())?);
                Ok(())
            })?;
        }
        let names = match (tables.string_array, shared) {
            (None, Some(shared)) => &shared.names,
            _ => &read.names,
        };
        let (Some(stacks), Some(frames), Some(functions)) =
            (&tables.stack_table, &tables.frame_table, &tables.func_table)
        else {
            return Ok(read);
        };
        let functions = self.functions(functions, tables.resource_table.as_ref(), names)?;
        for function in column(frames.func, "func of frameTable")? {
            let frame = functions.get(function as usize);
            read.frames
                .push(*frame.ok_or_else(|| missing("function", function))?);
        }
        let callers = column(stacks.prefix, "prefix of stackTable")?;
        let own = column(stacks.frame, "frame of stackTable")?;
        if own.len() != callers.len() {
            return Err(wrong("the columns of stackTable have different lengths"));
        }
        for (number, (frame, caller)) in (0u32..).zip(own.into_iter().zip(callers)) {
            if frame as usize >= read.frames.len() {
                return Err(missing("frame", frame));
            }
            // Callers come before what they call, so there is no circle.
            if caller != NONE && caller >= number {
                return Err(wrong(format!("stack {number} has the caller {caller}")));
            }
            read.stacks.push((frame, caller));
        }
        Ok(read)
    }

    /// The frame of each function. One that has only an address is named after its library.
    fn functions(
        &mut self,
        functions: &Columns<'_>,
        resources: Option<&Columns<'_>>,
        names: &[u32],
    ) -> Result<Vec<Frame>> {
        let libraries = match resources {
            Some(resources) => column(resources.lib, "lib of resourceTable")?,
            None => Vec::new(),
        };
        let resources = match functions.resource {
            Some(_) => column(functions.resource, "resource of funcTable")?,
            None => Vec::new(),
        };
        let mut frames = Vec::new();
        for (index, name) in column(functions.name, "name of funcTable")?
            .into_iter()
            .enumerate()
        {
            let name = names
                .get(name as usize)
                .copied()
                .ok_or_else(|| missing("string", name))?;
            let resource = resources
                .get(index)
                .and_then(|&at| libraries.get(at as usize));
            let library = resource.and_then(|&at| self.libraries.get(at as usize));
            let mut frame = Frame::new(name, Kind::Plain);
            let text = self.profile.frames.name(name);
            let address = text.strip_prefix("0x");
            if address.is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_hexdigit())) {
                let library = library.map_or("unknown", String::as_str);
                frame = self
                    .profile
                    .frames
                    .intern(format!("[{library}]").as_bytes())?;
                self.unnamed += 1;
            } else if let Some(library) = library {
                self.profile.modules.insert(text, Kind::Plain, library);
            }
            frames.push(frame);
        }
        Ok(frames)
    }

    fn thread(&mut self, json: &str, shared: &mut Read) -> Result<()> {
        let thread: Thread<'_> = parsed(json)?;
        let mut own = self.tables(&parsed(json)?, Some(shared))?;
        let tables = if own.stacks.is_empty() {
            shared
        } else {
            &mut own
        };
        let root = match self
            .options
            .threads
            .frame_of_label(&format!("{:.200}", thread.name))
        {
            Some(name) => {
                let frame = self.profile.frames.intern(name.as_bytes())?;
                self.profile.child(ROOT, frame)?
            }
            None => ROOT,
        };
        self.has_allocations |=
            thread.js_allocations.is_some() || thread.native_allocations.is_some();
        let samples = &thread.samples;
        let (value, factor) = match samples.weight_type.as_deref() {
            None | Some("samples") => (self.value(ValueType::samples())?, 1.0),
            Some("tracing-ms") => (self.value(ValueType::new("time", "nanoseconds"))?, 1e6),
            Some("bytes") => (self.value(ValueType::new("space", "bytes"))?, 1.0),
            Some(other) => return Err(wrong(format!("unknown weights {other:.40?}"))),
        };
        let mut nodes = Vec::new();
        each(NAME, samples.stack, |number, stack: Option<u32>| {
            let node = match stack {
                Some(stack) => self.node(tables, root, stack),
                None => Ok(root),
            };
            let node = node.map_err(|error| match error {
                Error::Damaged(_, reason) => wrong(format!("sample {number}: {reason}")),
                other => other,
            })?;
            nodes.push(node);
            Ok(())
        })?;
        match samples.weight {
            Some(weights) if weights.get() != "null" => self.add(weights, &nodes, value, factor)?,
            _ => {
                for &node in &nodes {
                    self.profile.add(node, value, 1)?;
                }
            }
        }
        match (samples.cpu, self.cpu) {
            (Some(cpu), Some(factor)) if cpu.get() != "null" => {
                let value = self.value(ValueType::cpu())?;
                self.add(cpu, &nodes, value, factor as f64)
            }
            _ => Ok(()),
        }
    }

    fn value(&mut self, meaning: ValueType) -> Result<usize> {
        let known = self
            .profile
            .values()
            .iter()
            .position(|value| *value == meaning);
        match known {
            Some(known) => Ok(known),
            None => self.profile.push_value(meaning, self.options.limits.cells),
        }
    }

    /// Adds one amount to each node.
    fn add(&mut self, amounts: &RawValue, nodes: &[Node], value: usize, factor: f64) -> Result<()> {
        let mut count = 0;
        each(NAME, amounts, |number, amount: Option<f64>| {
            count += 1;
            let amount = amount.unwrap_or_default() * factor;
            let node = *nodes
                .get(number)
                .ok_or_else(|| wrong("more numbers than samples"))?;
            if amount < 0.0 {
                return Err(Error::Negative(NAME, format!("sample {number}: {amount}")));
            }
            // 2^63 is the first number that does not fit.
            if amount >= 9_223_372_036_854_775_808.0 {
                return Err(wrong(format!(
                    "sample {number}: {amount} does not fit in 64 bits"
                )));
            }
            let fraction = self.fractions.take(node, value, amount.fract());
            self.profile.add(node, value, amount as i64 + fraction)
        })?;
        if count < nodes.len() {
            return Err(wrong("fewer numbers than samples"));
        }
        Ok(())
    }

    /// The node of a stack below a root.
    fn node(&mut self, tables: &mut Read, root: Node, stack: u32) -> Result<Node> {
        let mut missing_ones = Vec::new();
        let (mut at, mut node) = (stack, root);
        while at != NONE {
            if let Some(&known) = tables.nodes.get(&(root, at)) {
                node = known;
                break;
            }
            let found = tables.stacks.get(at as usize);
            let &(frame, caller) = found.ok_or_else(|| missing("stack", at))?;
            self.steps = self.steps.checked_sub(1).ok_or(Error::Limit {
                what: "stacks of the Firefox profile",
                limit: self.options.limits.cells as u64,
            })?;
            missing_ones.push((at, frame));
            at = caller;
        }
        for (at, frame) in missing_ones.into_iter().rev() {
            let frame = tables.frames.get(frame as usize);
            let frame = *frame.ok_or_else(|| missing("frame", at))?;
            node = self.profile.child(node, frame)?;
            tables.nodes.insert((root, at), node);
        }
        Ok(node)
    }
}

fn missing(what: &str, number: u32) -> Error {
    wrong(format!("{what} {number} does not exist"))
}

/// The numbers of a column; null and -1, which mean that there is none, become [`NONE`].
fn column(column: Option<&RawValue>, name: &str) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    let column = column.ok_or_else(|| wrong(format!("there is no {name}")))?;
    each(NAME, column, |_, number: Option<i64>| {
        let number = number.filter(|&number| number >= 0);
        let number = number.map_or(Ok(NONE), u32::try_from);
        numbers.push(number.map_err(|_| wrong(format!("{name}: a number is too large")))?);
        Ok(())
    })?;
    Ok(numbers)
}
