//! The texts: what JVMs print of their threads, and what py-spy does. Lines of anything else are passed over.

use std::io::Read;
use std::mem::take;

use crate::formats::perf_script::Lines;
use crate::profile::{Error, Result};

use super::thread::{state_of, DeadlockLine, Lock, Owner, Sink, Thread, WaitsFor};
use super::NAME;

/// Deeper than any JVM prints.
const MOST_FRAMES: usize = 1 << 16;
const MOST_LOCKS: usize = 1 << 16;

/// Whether a dump begins in the beginning of a file.
pub(super) fn detect(head: &[u8]) -> bool {
    let mut thread: Option<Thread> = None;
    for line in head.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        let is_state = line.trim_start().starts_with(STATE);
        let is_of = |thread: &Thread| {
            let is_frame = line.starts_with("\tat ") || line.starts_with("    at ");
            let unmarked = thread.unmarked && line.starts_with("    ") && line.ends_with(')');
            is_state || is_frame || unmarked
        };
        if line.starts_with(BEGIN) || thread.as_ref().is_some_and(is_of) {
            return true;
        }
        if python_header(&line).is_some() {
            return true;
        }
        thread = header(&line);
    }
    false
}

const BEGIN: &str = "Full thread dump ";
const STATE: &str = "java.lang.Thread.State: ";
const DEADLOCK: &str = "Found one Java-level deadlock:";

pub(super) fn read(lines: &mut Lines<impl Read>, sink: &mut impl Sink) -> Result<u64> {
    let mut reader = Reader::new(sink);
    loop {
        let number = lines.number() + 1;
        let at_line = |error: Error| error.at(NAME, number);
        let Some(line) = lines.next().map_err(at_line)? else {
            break;
        };
        reader.line(line.trim_ascii_end()).map_err(at_line)?;
    }
    reader.end()?;
    Ok(reader.malformed)
}

/// Reads line after line.
pub(super) struct Reader<'s, S: Sink> {
    sink: &'s mut S,
    thread: Thread,
    /// A thread has begun, and its frames may follow.
    open: bool,
    frames: bool,
    /// The locks that follow are those that it owns.
    owned: bool,
    /// In a list of deadlocks: whose lines follow, and whether the list has just begun.
    deadlock: Option<DeadlockLine>,
    first: bool,
    /// How many stacks other lines cut off.
    malformed: u64,
}

impl<'s, S: Sink> Reader<'s, S> {
    pub(super) fn new(sink: &'s mut S) -> Reader<'s, S> {
        Reader {
            sink,
            thread: Thread::default(),
            open: false,
            frames: false,
            owned: false,
            deadlock: None,
            first: false,
            malformed: 0,
        }
    }

    pub(super) fn line(&mut self, line: &[u8]) -> Result<()> {
        match line.first() {
            None => {
                self.frames &= self.thread.places.is_empty();
                Ok(())
            }
            Some(b'\t' | b' ') => self.indented(line),
            Some(_) => {
                let line = String::from_utf8_lossy(line);
                self.plain(&line)
            }
        }
    }

    /// The thread that is read is complete.
    pub(super) fn end(&mut self) -> Result<()> {
        if self.open {
            self.thread.let_go();
            self.sink.thread(&mut self.thread)?;
        }
        self.open = false;
        self.frames = false;
        Ok(())
    }

    pub(super) fn begin(&mut self, thread: Thread) -> Result<()> {
        self.end()?;
        self.thread = thread;
        self.open = true;
        self.frames = true;
        self.owned = false;
        self.deadlock = None;
        Ok(())
    }

    /// A line that is not indented: a thread, or the end of one.
    fn plain(&mut self, line: &str) -> Result<()> {
        if line.starts_with('"') || line.starts_with('#') {
            if let Some(thread) = header(line) {
                return self.begin(thread);
            }
            let name = line
                .strip_prefix('"')
                .and_then(|line| line.strip_suffix("\":"));
            if let (Some(name), Some(deadlock)) = (name, &mut self.deadlock) {
                deadlock.thread = name.to_owned();
                return Ok(());
            }
        }
        if let Some(thread) = python_header(line) {
            return self.begin(thread);
        }
        let cuts = self.open && self.frames && !self.thread.places.is_empty();
        self.malformed += u64::from(cuts);
        self.end()?;
        if line.starts_with(BEGIN) || line.starts_with("Process ") {
            self.deadlock = None;
            return self.sink.begin();
        }
        if line == DEADLOCK {
            self.deadlock = Some(DeadlockLine::default());
            self.first = true;
        } else if line.starts_with("Java stack information") {
            self.deadlock = None;
        }
        Ok(())
    }

    fn indented(&mut self, line: &[u8]) -> Result<()> {
        let text = line.trim_ascii_start();
        if let Some(frame) = text.strip_prefix(b"at ") {
            return self.frame(frame);
        }
        if text.starts_with(b"- ") {
            return match self.open {
                true => self.lock(&String::from_utf8_lossy(text[2..].trim_ascii_start())),
                false => Ok(()),
            };
        }
        if self.open && self.thread.of_python {
            // Without the lines of variables, which are indented further.
            let is_frame = line.starts_with(b"    ") && line.get(4) != Some(&b' ');
            return match is_frame && text.ends_with(b")") {
                true => self.frame(text),
                false => Ok(()),
            };
        }
        let text = String::from_utf8_lossy(text);
        if let Some(state) = text.strip_prefix(STATE) {
            if self.open && self.frames {
                self.thread.state = state_of(state.split(' ').next().unwrap_or(""));
            }
        } else if text.starts_with("Locked ownable synchronizers:")
            || text.starts_with("Number of locked synchronizers")
        {
            self.owned = true;
        } else if let Some(number) = text.strip_prefix("Mounted virtual thread #") {
            // It is what its carrier does: the carrier's own frames only call it.
            self.thread.is_virtual = true;
            self.thread.java_number = number.parse().ok();
            self.thread.state = "RUNNABLE";
            self.thread.places.clear();
        } else if self.deadlock.is_some() {
            return self.deadlock_line(&text);
        } else if self.open && self.thread.unmarked && text.ends_with(')') {
            return self.frame(text.as_bytes());
        }
        Ok(())
    }

    pub(super) fn frame(&mut self, text: &[u8]) -> Result<()> {
        if !self.open || !self.frames {
            return Ok(());
        }
        if self.thread.places.len() == MOST_FRAMES {
            let limit = MOST_FRAMES as u64;
            let what = "frames of a stack";
            return Err(Error::Limit { what, limit });
        }
        let places = self.sink.places();
        let place = match self.thread.of_python {
            true => places.python(text)?,
            false => places.java(text)?,
        };
        self.thread.places.push(place);
        Ok(())
    }

    /// `locked <0x…> (a java.lang.Object)`, `waiting to lock …`, `blocked on java.lang.Object@1b789984`.
    fn lock(&mut self, text: &str) -> Result<()> {
        const WAITS: [(&str, WaitsFor); 6] = [
            ("waiting to lock ", WaitsFor::Monitor),
            ("blocked on ", WaitsFor::Monitor),
            ("waiting to re-lock in wait() ", WaitsFor::Monitor),
            ("waiting on ", WaitsFor::Notify),
            ("parking to wait for ", WaitsFor::Park),
            ("parking to wait for  ", WaitsFor::Park),
        ];
        let held = match text.strip_prefix("locked ") {
            None if self.owned => Some(text),
            held => held,
        };
        if let Some(lock) = held.and_then(lock_of) {
            return self.holds(lock);
        }
        let wait = WAITS.iter().find_map(|(words, how)| {
            let lock = lock_of(text.strip_prefix(words)?.trim_start())?;
            // Spark and `ThreadInfo` say "waiting on" of all that is no monitor.
            let parks = || !text.contains('<') && text.contains("java.util.concurrent.");
            match how {
                WaitsFor::Notify if parks() => Some((WaitsFor::Park, lock)),
                how => Some((*how, lock)),
            }
        });
        if self.thread.waits.is_none() {
            if let (Some((how, _)), true) = (&wait, self.thread.is_virtual) {
                // A text has no state of a virtual thread that waits on its carrier.
                self.thread.state = match how {
                    WaitsFor::Monitor => "BLOCKED",
                    _ => "WAITING",
                };
            }
            self.thread.waits = wait;
        }
        Ok(())
    }

    pub(super) fn holds(&mut self, lock: Lock) -> Result<()> {
        if self.thread.holds.len() == MOST_LOCKS {
            let limit = MOST_LOCKS as u64;
            let what = "locks of a thread";
            return Err(Error::Limit { what, limit });
        }
        if !self.thread.holds.contains(&lock) {
            self.thread.holds.push(lock);
        }
        Ok(())
    }

    /// `waiting to lock monitor 0x… (object 0x…, a java.lang.Object),`, then `which is held by "name"`.
    fn deadlock_line(&mut self, text: &str) -> Result<()> {
        let Some(line) = &mut self.deadlock else {
            return Ok(());
        };
        if let Some(holder) = text.strip_prefix("which is held by \"") {
            let line = DeadlockLine {
                holder: holder.strip_suffix('"').unwrap_or(holder).to_owned(),
                ..take(line)
            };
            return self.sink.deadlock(line, take(&mut self.first));
        }
        let address = match text.split_once("(object ") {
            Some((_, rest)) => rest,
            None => text
                .strip_prefix("waiting for ownable synchronizer ")
                .unwrap_or(""),
        };
        if address.starts_with("0x") {
            line.lock = address.split(',').next().unwrap_or("").to_owned();
        }
        Ok(())
    }
}

/// `<0x000000074276ea20> (a java.lang.Object)`, `<java.lang.Object@1b789984>` or `java.lang.Object@1b789984`. None if
/// there is no lock, as in `None` and `<no object reference available>`.
pub(super) fn lock_of(text: &str) -> Option<Lock> {
    let (id, class) = match text.strip_prefix('<') {
        Some(rest) => {
            let (id, rest) = rest.split_once('>')?;
            let class = rest.trim_start().strip_prefix("(a ");
            (id, class.and_then(|class| class.strip_suffix(')')))
        }
        None => (text.split_whitespace().next()?, None),
    };
    let class = match class {
        Some(class) => class,
        None => id.split_once('@').map_or("", |(class, _)| class),
    };
    let is_lock = id.starts_with("0x") || id.contains('@');
    is_lock.then(|| Lock {
        id: id.to_owned(),
        class: class.to_owned(),
    })
}

/// The thread of a line such as `"main" #1 prio=5 os_prio=0 tid=0x… nid=0x3a85 waiting on condition [0x…]`.
fn header(line: &str) -> Option<Thread> {
    if let Some(rest) = line.strip_prefix('#') {
        return file_header(rest);
    }
    let rest = line.strip_prefix('"')?;
    let mut thread = Thread::default();
    // Names may have quotes, and so may what is behind, which names another thread.
    let end = rest.match_indices("\" ").find_map(|(at, _)| {
        thread = Thread::default();
        add_attributes(&rest[at + 2..], &mut thread).then_some(at)
    })?;
    thread.name = rest[..end].to_owned();
    Some(thread)
}

/// Reads the attributes behind a name. Returns false if there are none.
fn add_attributes(text: &str, thread: &mut Thread) -> bool {
    let mut words = text.split_ascii_whitespace();
    let mut some = false;
    while let Some(word) = words.next() {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        match name {
            "daemon" => thread.daemon = true,
            "virtual" => thread.is_virtual = true,
            "prio" | "os_prio" | "tid" | "elapsed" | "allocated" | "defined_classes" => {}
            "cpu" => {
                let millis = value
                    .strip_suffix("ms")
                    .and_then(|ms| ms.parse::<f64>().ok());
                thread.cpu = millis.filter(|ms| ms.is_finite()).map(|ms| ms / 1e3);
            }
            "nid" => {
                let hex = value
                    .strip_prefix("0x")
                    .map(|hex| i64::from_str_radix(hex, 16));
                thread.number = hex.unwrap_or_else(|| value.parse()).ok();
                // hprofiler's own dumps of other processes have the kernel's letter.
                thread.state = words.next().map_or("", state_of);
                return true;
            }
            "Id" => {
                thread.java_number = value.parse().ok();
                let (_, rest) = text.split_once(word).unwrap_or_default();
                add_thread_info(rest.trim_start(), thread);
                return true;
            }
            _ if is_number(word, '#') => thread.java_number = word[1..].parse().ok(),
            // Since JDK 21 the number is here too, and nowhere else if the thread carries a virtual one.
            _ if some && word.starts_with('[') => {
                let number = word[1..].strip_suffix(']').map(str::parse);
                thread.number = number.and_then(|number| number.ok()).or(thread.number);
            }
            _ => return false,
        }
        some = true;
    }
    thread.number.is_some()
}

/// What `ThreadInfo` prints behind the number: `BLOCKED on java.lang.Object@1b owned by "other" Id=12`.
fn add_thread_info(text: &str, thread: &mut Thread) {
    thread.state = state_of(text.split(' ').next().unwrap_or(""));
    let Some((_, lock)) = text.split_once(" on ") else {
        return;
    };
    // Spark has no space before "owned".
    let (lock, owner) = lock.split_once("owned by \"").unwrap_or((lock, ""));
    let how = match thread.state {
        "BLOCKED" => WaitsFor::Monitor,
        _ if lock.starts_with("java.util.concurrent.") => WaitsFor::Park,
        _ => WaitsFor::Notify,
    };
    thread.waits = lock_of(lock.trim()).map(|lock| (how, lock));
    thread.owner = match owner.rsplit_once("\" Id=") {
        Some((_, number)) => number
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .map_or(Owner::Unknown, Owner::JavaNumber),
        None if owner.is_empty() => Owner::Unknown,
        None => Owner::Name(owner.strip_suffix('"').unwrap_or(owner).to_owned()),
    };
}

/// `12 "name" virtual WAITING 2026-11-29T12:18:20Z`, as `Thread.dump_to_file` writes it.
fn file_header(rest: &str) -> Option<Thread> {
    let (number, rest) = rest.split_once(" \"")?;
    let (name, rest) = rest.rsplit_once('"')?;
    let mut thread = Thread {
        name: name.to_owned(),
        java_number: Some(number.parse().ok()?),
        unmarked: true,
        ..Thread::default()
    };
    for word in rest.split_ascii_whitespace() {
        match word {
            "virtual" => thread.is_virtual = true,
            word if thread.state.is_empty() => thread.state = state_of(word),
            _ => {}
        }
    }
    Some(thread)
}

/// `Thread 4711 (idle): "MainThread"`, as py-spy prints it.
fn python_header(line: &str) -> Option<Thread> {
    let (number, rest) = line.strip_prefix("Thread ")?.split_once(" (")?;
    let (state, name) = rest.split_once(')')?;
    let state = match state.split('+').next()? {
        "idle" => "WAITING",
        "active" => "RUNNABLE",
        _ => return None,
    };
    let hex = number
        .strip_prefix("0x")
        .map(|hex| i64::from_str_radix(hex, 16));
    let name = name
        .strip_prefix(": \"")
        .and_then(|name| name.strip_suffix('"'));
    Some(Thread {
        name: name.unwrap_or("").to_owned(),
        number: Some(hex.unwrap_or_else(|| number.parse()).ok()?),
        state,
        of_python: true,
        ..Thread::default()
    })
}

fn is_number(word: &str, mark: char) -> bool {
    let digits = word.strip_prefix(mark).unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}
