//! Formats: how a profile is read and written, a folder for each, and the list of those that can be read.

#[cfg(feature = "formats")]
mod async_html;
#[cfg(feature = "formats")]
mod bpf;
mod compact;
#[cfg(feature = "formats")]
mod firefox;
pub(crate) mod folded;
mod foreign;
#[cfg(feature = "formats")]
mod jemalloc;
mod jfr;
mod json;
#[cfg(feature = "formats")]
mod json_array;
mod options;
mod otlp;
pub mod perf_data;
mod perf_script;
mod pprof;
pub(crate) mod shared;
#[cfg(feature = "formats")]
mod speedscope;
#[cfg(feature = "formats")]
mod stack;
#[cfg(feature = "formats")]
mod thread_dump;

pub(crate) use compact::put_modules;
pub use jfr::{read_jfr, read_jfr_part, unfreed, Recording, Sampled, Settings, MOST_LIVE};
pub use options::{PerfOptions, ReadOptions};
#[cfg(feature = "formats")]
pub use thread_dump::{
    GroupedThread, Lock, Place, Thread, ThreadDump, ThreadDumps, ThreadGroup, WaitsFor,
};

use std::fs::File;
use std::io::Seek;
use std::io::{BufReader, Cursor};
use std::str::FromStr;

use crate::profile::ValueType;
use crate::profile::{Error, Profile, Result};
use crate::source::{uncompressed, Input};

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `root;...;leaf count`
    Folded,
    /// A `profile.proto` message.
    Pprof,
    /// Our own, in the fewest bytes.
    Compact,
    /// OTLP profiles.
    #[cfg(feature = "formats")]
    Otlp,
    /// A flame graph of async-profiler, as HTML.
    #[cfg(feature = "formats")]
    AsyncHtml,
    /// The JSON of the Firefox Profiler and samply.
    #[cfg(feature = "formats")]
    Firefox,
    /// A heap dump of jemalloc.
    #[cfg(feature = "formats")]
    Jemalloc,
    /// Maps of bpftrace.
    #[cfg(feature = "formats")]
    Bpftrace,
    /// What the tools of bcc print.
    #[cfg(feature = "formats")]
    Bcc,
    /// Speedscope's JSON.
    #[cfg(feature = "formats")]
    Speedscope,
    /// The threads of a process at one moment.
    #[cfg(feature = "formats")]
    ThreadDump,
    /// What `perf script` prints.
    #[cfg(feature = "formats")]
    PerfScript,
    /// What `perf record` writes.
    PerfData,
    /// A recording of async-profiler or of the JDK's Flight Recorder.
    Jfr,
}

/// What there is to know of a format: its name, how it is recognised, how it is read.
struct Entry {
    format: Format,
    name: &'static str,
    /// Whether a file that begins so is one.
    detect: fn(&[u8]) -> bool,
    read: fn(Input<'_>, &ReadOptions) -> Result<Profile>,
}

const fn entry(
    format: Format,
    name: &'static str,
    detect: fn(&[u8]) -> bool,
    read: fn(Input<'_>, &ReadOptions) -> Result<Profile>,
) -> Entry {
    Entry {
        format,
        name,
        detect,
        read,
    }
}

/// Every format; the first that recognises the beginning has it, and the last takes what is left.
const FORMATS: &[Entry] = &[
    entry(Format::Jfr, "jfr", jfr::detect, jfr::read_input),
    entry(
        Format::PerfData,
        "perf-data",
        perf_data::detect,
        perf_data::read_input,
    ),
    entry(
        Format::Compact,
        "compact",
        compact::detect,
        compact::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(Format::Otlp, "otlp", otlp::detect, otlp::read_input),
    entry(Format::Pprof, "pprof", pprof::detect, pprof::read_input),
    #[cfg(feature = "formats")]
    entry(
        Format::AsyncHtml,
        "async-profiler-html",
        async_html::detect,
        async_html::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(
        Format::Jemalloc,
        "jemalloc",
        jemalloc::detect,
        jemalloc::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(
        Format::Firefox,
        "firefox",
        firefox::detect,
        firefox::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(
        Format::Speedscope,
        "speedscope",
        speedscope::detect,
        speedscope::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(
        Format::ThreadDump,
        "thread-dump",
        thread_dump::detect,
        thread_dump::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(
        Format::PerfScript,
        "perf-script",
        perf_script::detect,
        perf_script::read_input,
    ),
    #[cfg(feature = "formats")]
    entry(
        Format::Bpftrace,
        "bpftrace",
        bpf::detect_bpftrace,
        bpf::read_bpftrace,
    ),
    #[cfg(feature = "formats")]
    entry(Format::Bcc, "bcc", bpf::detect_bcc, bpf::read_bcc),
    entry(Format::Folded, "folded", |_| true, folded::read_input),
];

impl Format {
    /// Every format that can be read.
    pub fn all() -> impl Iterator<Item = Format> {
        FORMATS.iter().map(|entry| entry.format)
    }

    /// What the user calls it.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    fn entry(self) -> &'static Entry {
        let mut entries = FORMATS.iter();
        let found = entries.find(|entry| entry.format == self);
        // Every variant has its line above; a test walks them.
        found.unwrap_or(&FORMATS[FORMATS.len() - 1])
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Format> {
        let known: Vec<&str> = FORMATS.iter().map(|entry| entry.name).collect();
        let found = FORMATS.iter().find(|entry| entry.name == name);
        found.map(|entry| entry.format).ok_or_else(|| {
            let known = known.join(", ");
            Error::Usage(format!("unknown format {name:?}; known are: {known}"))
        })
    }
}

/// Reads a profile from bytes at hand. Compression is always detected, the format unless it is given.
pub fn read(bytes: &[u8], options: &ReadOptions) -> Result<Profile> {
    read_input(Input::Bytes(Cursor::new(bytes)), options)
}

/// Reads a profile from a file that is open, from where it stands; see [`read`].
pub fn read_file(file: File, options: &ReadOptions) -> Result<Profile> {
    if (options.format).is_none_or(|format| format == Format::PerfData) && is_whole(&file)? {
        if let Some(mut profile) = perf_data::read_file(&file, options)? {
            add_a_value(&mut profile)?;
            return Ok(profile);
        }
    }
    read_input(Input::stream(Box::new(BufReader::new(file)))?, options)
}

/// Whether it is a file in which one can go back and forth, and nothing of it was read yet.
fn is_whole(mut file: &File) -> Result<bool> {
    Ok(file.metadata()?.is_file() && file.stream_position()? == 0)
}

fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let (format, input) = recognise(input, options)?;
    options.check_for(format)?;
    let mut profile = (format.entry().read)(input, options)?;
    add_a_value(&mut profile)?;
    Ok(profile)
}

/// A recording in which nothing happened may name no event; a profile has a value all the same.
fn add_a_value(profile: &mut Profile) -> Result<()> {
    if profile.values().is_empty() {
        profile.push_value(ValueType::samples(), usize::MAX)?;
    }
    Ok(())
}

/// The format of a file that begins so. What is not a profile is an error that says what it is.
fn detect(head: &[u8]) -> Result<Format> {
    foreign::refuse_binary(head)?;
    let (folded, others) = FORMATS.split_last().unwrap_or((&FORMATS[0], FORMATS));
    if let Some(entry) = others.iter().find(|entry| (entry.detect)(head)) {
        return Ok(entry.format);
    }
    foreign::refuse_text(head)?;
    Ok(folded.format)
}

/// Takes compression off, and finds the format.
pub(crate) fn recognise<'a>(
    input: Input<'a>,
    options: &ReadOptions,
) -> Result<(Format, Input<'a>)> {
    let input = uncompressed(input)?;
    let format = options.format.map_or_else(|| detect(input.head()), Ok)?;
    Ok((format, input))
}
