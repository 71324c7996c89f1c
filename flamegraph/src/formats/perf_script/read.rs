//! Reads lines into samples, and samples into the tree.

use std::borrow::Cow;

use super::line::{self, Header};
use super::names::{Names, StackLine};
use super::symbols::Symbols;
use crate::formats::folded::{Tally, Wrong};
use crate::formats::options::{no_event, PerfOptions, ReadOptions};
use crate::formats::perf_script::lines::Lines;
use crate::formats::stack::Stack;
use crate::profile::{Error, Frame, Profile, Result, ValueType, MOST_PERIOD};
use crate::source::Input;

/// The format's name in errors.
const NAME: &str = "perf script text";
/// More events than any recording has; each adds a value to every node.
const MOST_EVENTS: usize = 32;
/// Deeper than any recorded stack.
const MOST_FRAMES: usize = 1 << 20;

/// Detects perf script's text: a line begins a sample. Comments and perf's own messages may stand before it.
pub(crate) fn detect(head: &[u8]) -> bool {
    let is_text = |line: &&[u8]| !line.starts_with(b"#") && !line.trim_ascii().is_empty();
    let mut lines = head.split(|&byte| byte == b'\n').filter(is_text).peekable();
    if lines.peek().is_none() {
        return memchr::memmem::find(head, b"# cmdline : ").is_some();
    }
    while let Some(line) = lines.next() {
        let Some(header) = line::header(line) else {
            continue;
        };
        let next = lines.peek().filter(|next| next[0].is_ascii_whitespace());
        let is_followed = next.is_some_and(|next| line::stack_line(next).is_some());
        if is_followed || (header.timed && header.event.is_some()) {
            return true;
        }
    }
    false
}

/// What perf itself says between samples; nothing is left out with it.
const MESSAGES: &[&[u8]] = &[
    b"WARNING: ",
    b"Warning:",
    b"check /proc/sys/kernel/kptr_restrict",
    b"Samples in kernel ",
    b"Was the 'perf record' command",
    b"[ perf record: ",
    b"Processed ",
    b"Check IO/CPU overload",
    b"addr2line: ",
    b"BFD: ",
];

/// Reads perf script text.
pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let mut reader = Reader::new(options);
    let mut lines = Lines::new(input);
    loop {
        let number = lines.number() + 1;
        let at_line = |error: Error| error.at(NAME, number);
        let Some(line) = lines.next().map_err(at_line)? else {
            break;
        };
        reader.take(line, number).map_err(at_line)?;
    }
    let at_end = |error: Error| error.at(NAME, lines.number());
    reader.end_sample().map_err(at_end)?;
    reader.finish()
}

/// The sample whose lines are being read.
struct Sample {
    /// `None`: the sample is left out, for example because its event is filtered out.
    value: Option<usize>,
    weight: i64,
    java: bool,
    /// Its stack seems to have one frame, on the sample's first line.
    single: bool,
    /// Its first line is only a word and a number: it is a sample if a frame follows.
    unsure: bool,
}

struct Reader<'o> {
    options: &'o ReadOptions,
    profile: Profile,
    /// The event of each value.
    events: Vec<String>,
    /// Events that were filtered out.
    others: Vec<String>,
    symbols: Symbols,
    sample: Option<Sample>,
    /// The frames before those of the stack: thread and command.
    roots: Vec<Frame>,
    /// The frames of the sample's stack, leaf first.
    frames: Vec<Frame>,
    stack: Stack,
    lines: Tally,
    malformed: u64,
}

impl<'o> Reader<'o> {
    fn new(options: &'o ReadOptions) -> Reader<'o> {
        Reader {
            options,
            profile: Profile::bounded(Vec::new(), options.limits.cells),
            events: Vec::new(),
            others: Vec::new(),
            symbols: Symbols::default(),
            sample: None,
            roots: Vec::new(),
            frames: Vec::new(),
            stack: Stack::default(),
            lines: Tally::default(),
            malformed: 0,
        }
    }

    fn take(&mut self, line: &[u8], number: u64) -> Result<()> {
        let is_message = MESSAGES.iter().any(|message| line.starts_with(message));
        if line.first() == Some(&b'#') || is_message {
            return Ok(());
        }
        let line = line.trim_ascii_end();
        if line.is_empty() {
            return self.end_sample();
        }
        // A header may follow without an empty line, and perf indents it if the command is short.
        if let Some(header) = line::header(line).filter(|header| self.is_header(header, line)) {
            self.end_sample()?;
            self.lines.count(number, None);
            return self.begin_sample(&header);
        }
        match (line::stack_line(line), &mut self.sample) {
            (Some(frame), Some(sample)) => {
                if std::mem::take(&mut sample.single) {
                    self.frames.clear();
                }
                if std::mem::take(&mut sample.unsure) {
                    let value = self.value_of(None)?;
                    self.sample = self.sample.take().map(|sample| Sample { value, ..sample });
                }
                self.push_frame(&frame)?;
                self.lines.count(number, None);
            }
            _ => {
                self.malformed += 1;
                self.lines.count(number, Some(Wrong::NoCount));
            }
        }
        Ok(())
    }

    /// Whether a line that looks like the first one of a sample is one. A frame may look like it.
    fn is_header(&self, header: &Header<'_>, line: &[u8]) -> bool {
        if header.timed && header.event.is_some() {
            return true;
        }
        let Some(sample) = &self.sample else {
            return true;
        };
        let is_frame = line[0].is_ascii_whitespace() && line::stack_line(line).is_some();
        header.is_sure() && (sample.single || !is_frame)
    }

    fn begin_sample(&mut self, header: &Header<'_>) -> Result<()> {
        if header
            .event
            .is_some_and(|event| event.starts_with(line::RECORD))
        {
            // Not a sample: the output of --show-mmap-events and similar options.
            return Ok(());
        }
        let unsure = !header.is_sure();
        let mut value = match unsure {
            true => None,
            false => self.value_of(header.event)?,
        };
        let single = line::stack_line(header.rest);
        let period = header.period.unwrap_or(1).max(1);
        if value.is_some() && period > MOST_PERIOD {
            self.malformed += 1;
            value = None;
        }
        self.sample = Some(Sample {
            value,
            weight: period as i64,
            java: header.comm.starts_with(b"java"),
            single: single.is_some(),
            unsure,
        });
        self.set_roots(header)?;
        single.map_or(Ok(()), |frame| self.push_frame(&frame))
    }

    /// The value of an event, added if the event is new.
    fn value_of(&mut self, event: Option<&[u8]>) -> Result<Option<usize>> {
        let name = match (event, self.options.perf.event_filter.as_deref()) {
            (Some(event), Some(wanted)) if !is_event(event, wanted) => {
                self.pass_over(event);
                return Ok(None);
            }
            // A sample without an event is assumed to have the requested one.
            (_, Some(wanted)) => Cow::Borrowed(wanted),
            (Some(event), None) => String::from_utf8_lossy(event),
            (None, None) => Cow::Borrowed("samples"),
        };
        if let Some(known) = self.events.iter().position(|event| *event == name) {
            return Ok(Some(known));
        }
        if self.events.len() == MOST_EVENTS {
            return Err(Error::Limit {
                what: "events (an event filter chooses one)",
                limit: MOST_EVENTS as u64,
            });
        }
        let value = ValueType::new(&*name, "count");
        self.events.push(name.into_owned());
        self.profile
            .push_value(value, self.options.limits.cells)
            .map(Some)
    }

    /// Remembers an event that is filtered out, if there are not too many.
    fn pass_over(&mut self, event: &[u8]) {
        let known = self.others.iter().any(|other| other.as_bytes() == event);
        if !known && self.others.len() <= MOST_EVENTS {
            self.others
                .push(String::from_utf8_lossy(event).into_owned());
        }
    }

    fn set_roots(&mut self, header: &Header<'_>) -> Result<()> {
        let PerfOptions { pid, tid, .. } = self.options.perf;
        self.roots.clear();
        let number = std::str::from_utf8(header.tid).ok();
        let number = number.and_then(|number| number.parse().ok()).unwrap_or(-1);
        if let Some(name) = self.options.threads.frame(header.comm, number) {
            self.roots.push(self.profile.frames.intern(&name)?);
        }
        let mut root: Vec<u8> = header.comm.to_vec();
        let process = header.pid.unwrap_or(b"?");
        if pid || tid {
            root.push(b'-');
            root.extend_from_slice(process);
        }
        if tid {
            root.push(b'/');
            root.extend_from_slice(header.tid);
        }
        for byte in &mut root {
            match byte {
                b' ' => *byte = b'_',
                b';' => *byte = b':',
                _ => {}
            }
        }
        self.roots.push(self.profile.frames.intern(&root)?);
        Ok(())
    }

    fn push_frame(&mut self, line: &StackLine<'_>) -> Result<()> {
        let Some(Sample {
            value: Some(_),
            java,
            ..
        }) = self.sample
        else {
            return Ok(());
        };
        // A symbol in brackets is the name of a process.
        if line.symbol.first() == Some(&b'(') {
            return Ok(());
        }
        if self.frames.len() >= MOST_FRAMES {
            return Err(Error::Limit {
                what: "frames of a stack",
                limit: MOST_FRAMES as u64,
            });
        }
        if let Some(frames) = self.symbols.get(line, java) {
            self.frames.extend(frames.iter().rev());
            return Ok(());
        }
        self.name_frame(line, java)
    }

    /// Derives the frames of a line that is not cached.
    fn name_frame(&mut self, line: &StackLine<'_>, java: bool) -> Result<()> {
        let limit = self.options.limits.name_bytes;
        let Profile {
            frames, modules, ..
        } = &mut self.profile;
        let module = String::from_utf8_lossy(line.module);
        let mut named = Vec::new();
        let options = &self.options.perf;
        Names { options, java }.each(line, |name| {
            if name.len() > limit {
                return Err(Error::Limit {
                    what: "bytes of a frame name",
                    limit: limit as u64,
                });
            }
            let frame = frames.intern(name)?;
            modules.insert(frames.name_of(frame), frame.kind(), &module);
            named.push(frame);
            Ok(())
        })?;
        self.frames.extend(named.iter().rev());
        // A name with an address is valid for this line only.
        if !options.addrs {
            self.symbols.put(line, java, &named);
        }
        Ok(())
    }

    fn end_sample(&mut self) -> Result<()> {
        let sample = self.sample.take();
        self.malformed += u64::from(sample.as_ref().is_some_and(|sample| sample.unsure));
        if let Some(Sample {
            value: Some(value),
            weight,
            ..
        }) = sample
        {
            let frames = self.frames.iter().rev();
            let all = self.roots.iter().chain(frames).copied();
            let leaf = self.stack.leaf(&mut self.profile, all)?;
            self.profile.add(leaf, value, weight)?;
        }
        self.frames.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Profile> {
        if self.events.is_empty() && self.malformed > 0 {
            let reason = "no line of it begins a sample".to_string();
            return Err(Error::Text {
                format: NAME,
                line: 1,
                reason,
            });
        }
        self.lines.check_most(NAME, self.options.format.is_some())?;
        let wanted = self.options.perf.event_filter.as_deref();
        if let Some(wanted) = wanted.filter(|_| self.events.is_empty() && !self.others.is_empty()) {
            return Err(no_event(wanted, self.others.iter().map(String::as_str)));
        }
        if self.events.len() == 1 {
            self.profile.rename_value(0, ValueType::samples());
        }
        self.profile.add_malformed_lines(self.malformed);
        Ok(self.profile)
    }
}

fn is_event(event: &[u8], wanted: &str) -> bool {
    event == wanted.as_bytes() || without_modifiers(event) == wanted.as_bytes()
}

/// `cycles` of `cycles:uppp`; a trace point's `sched:sched_switch` has no modifiers.
fn without_modifiers(event: &[u8]) -> &[u8] {
    let Some(colon) = memchr::memrchr(b':', event) else {
        return event;
    };
    let modifier = |byte: &u8| b"ukhpPGHISDWeb".contains(byte);
    if event[colon + 1..].iter().all(modifier) {
        &event[..colon]
    } else {
        event
    }
}
