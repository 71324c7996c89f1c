//! Thread dumps: what all threads of a process were doing at one moment.
//!
//! Of JVMs the text of jstack, `jcmd Thread.print`, `kill -3` and of `ThreadInfo` is read, of which a file may hold
//! several with other lines between; both forms of `jcmd Thread.dump_to_file`; the JSON of Spark's and Flink's REST
//! interfaces; and Spark's page of an executor's threads. Of Python the text of `py-spy dump`. hprofiler's own dumps of
//! other processes have the form of jstack's.
//!
//! As a profile each thread counts once. What a thread waits for stands above its stack, as in off-CPU profiles.

mod dumps;
mod json;
mod page;
mod places;
mod text;
mod thread;
mod tree;

pub use dumps::{GroupedThread, ThreadDump, ThreadDumps, ThreadGroup};
pub use places::Place;
pub use thread::{Lock, Thread, WaitsFor};

use memchr::memmem;

use crate::formats::perf_script::Lines;
use crate::formats::ReadOptions;
use crate::ops::Threads;
use crate::profile::{Bounded, Error, Limits, Profile, Result};
use crate::source::Input;

use places::Places;
use thread::Sink;
use tree::Tree;

pub(crate) const NAME: &str = "thread dump";

/// The form of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Page,
}

pub(crate) fn detect(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let has = |word: &str| memmem::find(text, word.as_bytes()).is_some();
    match form(text) {
        Form::Json => json::detect(text),
        Form::Page => has("_td_stacktrace\""),
        Form::Text => text::detect(text),
    }
}

fn form(head: &[u8]) -> Form {
    match head.trim_ascii_start() {
        [b'<', ..] => Form::Page,
        // A line of a log may begin with a bracket.
        [b'{' | b'[', ..] if json::detect(head) => Form::Json,
        _ => Form::Text,
    }
}

/// Each thread of all dumps in the file counts once.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let mut sink = ProfileSink {
        places: Places::new(&options.limits),
        tree: Tree::new(&options.limits),
        threads: options.threads,
        seen: 0,
    };
    let malformed = read(input, &options.limits, &mut sink)?;
    if sink.seen == 0 {
        let reason = "there is no thread in it".to_string();
        return Err(Error::Damaged(NAME, reason));
    }
    let mut profile = sink.tree.profile;
    profile.add_malformed_lines(malformed);
    profile.into_ordered()
}

/// Gives all threads of a file to `sink`. Returns how many lines cut a stack off.
fn read(input: Input<'_>, limits: &Limits, sink: &mut impl Sink) -> Result<u64> {
    let what = "bytes of the thread dump";
    match form(input.head()) {
        Form::Text => text::read(
            &mut Lines::new(Bounded::new(input, what, limits.text_bytes)),
            sink,
        ),
        Form::Json => json::read(&input.into_bytes(what, limits.speedscope_bytes)?, sink),
        Form::Page => page::read(&input.into_bytes(what, limits.pprof_bytes)?, sink),
    }
}

/// Adds threads to a profile.
struct ProfileSink {
    places: Places,
    tree: Tree,
    threads: Threads,
    seen: u64,
}

impl Sink for ProfileSink {
    fn places(&mut self) -> &mut Places {
        &mut self.places
    }

    fn thread(&mut self, thread: &mut Thread) -> Result<()> {
        self.seen += 1;
        let number = thread.number.or(thread.java_number).unwrap_or_default();
        let root = self.threads.frame(thread.name.as_bytes(), number);
        let node = self.tree.node(&self.places, thread, root.as_deref())?;
        self.tree.profile.add(node, 0, 1)
    }
}
