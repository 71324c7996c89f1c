//! The log of threads' names that our library in the JVM writes (agents/jvmti/THREADNAMES.md), and which slice of the
//! job a thread worked for at a time.
//!
//! The JVM's user may write anything into the log.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flamegraph::{Slice, SliceOf, ThreadId};
use regex::Regex;

use crate::discovery::selector::compile;
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::SliceRule;

const MAGIC: &[u8] = b"HPROFTHR\x01\0\0\0";
const NAME: u8 = 1;
const POLL: u8 = 2;
const FORGET: u8 = 3;
const CROWD: u8 = 5;
/// The longest log, in bytes. The library ends its own a bit earlier.
pub const MOST_BYTES: u64 = 65 << 20;
/// What is kept of a log at most, whatever is in it: about 16 MiB.
const MOST: Bounds = Bounds {
    threads: 20_000,
    spans: 500_000,
};
/// How many threads the library follows at a time.
const FOLLOWED: u32 = 6144;
/// Polls may come so late, in microseconds: the JVM stops for its garbage collection, or the host is busy.
const LATE: i64 = 5_000_000;
/// More slices are not told apart: tasks of Spark before 3.1 are slices of their own.
const MOST_SLICES: usize = 16_384;
const LONGEST_NAME: usize = 200;
/// A name holds for so many polls before and after those that saw it.
const POLLS_AROUND: i64 = 2;

/// Rules that are ready for use.
pub struct Rules(Vec<(Regex, String)>);

impl Rules {
    pub fn new<'a>(rules: impl Iterator<Item = &'a SliceRule>) -> Result<Self, Failure> {
        let compiled = rules.map(|rule| Ok((compile(&rule.regex)?, rule.name.clone())));
        compiled.collect::<Result<_, Failure>>().map(Self)
    }

    /// The slice of a thread with this name.
    fn slice(&self, thread: &str) -> Option<String> {
        self.0.iter().find_map(|(regex, name)| {
            let groups = regex.captures(thread)?;
            let part = groups.get(1).map_or("", |part| part.as_str());
            let slice = name.replace("{}", part);
            Some(slice.chars().take(LONGEST_NAME).collect())
        })
    }
}

/// When a thread had a name, in microseconds since 1970: for certain from the end of the first poll that saw it to the
/// begin of the last. A name that one poll saw has no such time.
#[derive(Debug, Clone, Copy)]
struct Span {
    from: i64,
    to: i64,
    /// The index of its slice, if it has one.
    slice: Option<u16>,
}

#[derive(Debug, Clone, Default)]
pub struct NameLog {
    slices: Vec<String>,
    /// By Java thread id, in the order of time.
    threads: HashMap<u64, Vec<Span>>,
    /// How long before its first poll and after its last a name holds.
    around: i64,
    /// When the last poll ended, in microseconds since 1970.
    end: Option<i64>,
    /// How many names were left out, because there are too many names or threads.
    left_out: u64,
    /// There were more threads than the library follows.
    crowded: bool,
}

/// Of threads, and of names that threads had for a time.
struct Bounds {
    threads: usize,
    spans: usize,
}

/// The begin and the end of a poll, in microseconds since 1970.
#[derive(Clone, Copy)]
struct Poll {
    begin: i64,
    end: i64,
}

/// A log that the library may still write to, as far as it was read.
#[derive(Default)]
pub struct Following {
    /// Where reading goes on: behind the last poll that saw new names. Later ones may be written over.
    at: u64,
    found: NameLog,
    numbers: HashMap<String, u16>,
    /// How many there are of all threads.
    spans: usize,
    last: Option<Poll>,
}

impl Following {
    /// What it says now, as far as it is whole.
    pub fn read(&mut self, mut log: impl Read + Seek, rules: &Rules) -> io::Result<NameLog> {
        log.seek(SeekFrom::Start(self.at))?;
        self.read_within(MOST, log, rules)
    }

    /// Names that ended before, in microseconds since 1970, are not asked for any more.
    pub fn forget(&mut self, before: i64) {
        self.found.threads.retain(|_, spans| {
            let ended = spans.partition_point(|span| span.to < before);
            // The last one holds for a while, and until the next if that has the same name.
            spans.drain(..ended.saturating_sub(1));
            !spans.is_empty()
        });
        self.spans = self.found.threads.values().map(Vec::len).sum();
    }

    fn read_within(&mut self, most: Bounds, log: impl Read, rules: &Rules) -> io::Result<NameLog> {
        let mut reader = Reader {
            log: BufReader::new(log.take(MOST_BYTES.saturating_sub(self.at))),
            rules,
            most,
            read: self.at,
            to: self,
        };
        match reader.read_all() {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ => Ok(self.as_it_is()),
        }
    }

    fn as_it_is(&self) -> NameLog {
        let mut log = self.found.clone();
        log.close_all(self.last);
        log.end = self.last.map(|last| last.end);
        log
    }
}

impl NameLog {
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    fn close_all(&mut self, last: Option<Poll>) {
        for spans in self.threads.values_mut() {
            close(spans, last);
        }
    }

    /// What is missing of a recording that was stopped at this time, in microseconds since 1970; None if its process
    /// ended before.
    pub fn missing(&self, stopped: Option<i64>) -> Option<Failure> {
        let mut reasons = Vec::new();
        let mut failure = Failure::plain("").coded(Code::ThreadNamesIncomplete);
        let missed = self.end.zip(stopped);
        let missed = missed.map_or(0, |(end, stopped)| stopped.saturating_sub(end));
        if missed > LATE {
            let seconds = missed / 1_000_000;
            reasons.push(format!("the last {seconds} s have no names"));
            failure = failure.with("seconds", seconds);
        }
        if self.left_out > 0 {
            let Bounds { threads, spans } = MOST;
            reasons.push(format!(
                "{} names were left out: more than {spans} names, or those of more than {threads} threads, are not kept",
                self.left_out
            ));
            failure = failure.with("names", self.left_out);
        }
        if self.crowded {
            reasons.push(format!(
                "not more than {FOLLOWED} threads are followed at a time"
            ));
            failure = failure.with("threads", FOLLOWED);
        }
        failure.reason = reasons.join("; ");
        (!reasons.is_empty()).then_some(failure)
    }

    /// The slice at a time, and whether that is certain.
    fn at(&self, thread: u64, time: i64) -> Option<(u16, bool)> {
        let spans = self.threads.get(&thread)?;
        let after = spans.partition_point(|span| span.from <= time);
        let before = after.checked_sub(1).map(|index| spans[index]);
        if let Some(span) = before.filter(|span| time <= span.to) {
            return Some((span.slice?, true));
        }
        let since = before.map(|span| (time.saturating_sub(span.to), span));
        let until = spans.get(after);
        let until = until.map(|span| (span.from.saturating_sub(time), *span));
        let (distance, span) = match (since, until) {
            (Some(since), Some(until)) if since.0 <= until.0 => since,
            (_, Some(until)) => until,
            (since, None) => since?,
        };
        let held = distance <= self.around || (since.is_some() && until.is_some());
        Some((span.slice.filter(|_| held)?, false))
    }
}

impl SliceOf for NameLog {
    /// Each slice twice: certain, then likely.
    fn slices(&self) -> Vec<Slice> {
        let both = |name: &String| {
            [true, false].map(|certain| Slice {
                name: name.clone(),
                certain,
            })
        };
        self.slices.iter().flat_map(both).collect()
    }

    fn slice(&self, thread: ThreadId, microseconds: i64) -> u16 {
        self.at(thread.java, microseconds)
            .map_or(0, |(slice, certain)| {
                2 * slice + if certain { 1 } else { 2 }
            })
    }
}

struct Reader<'a, R> {
    log: BufReader<R>,
    rules: &'a Rules,
    most: Bounds,
    /// How much of the log was read.
    read: u64,
    to: &'a mut Following,
}

impl<R: Read> Reader<'_, R> {
    fn read_all(&mut self) -> io::Result<()> {
        if self.read == 0 {
            self.header()?;
        }
        let (mut changes, mut left_out) = (Vec::new(), 0);
        while !self.log.fill_buf()?.is_empty() {
            match self.bytes::<1>()?[0] {
                NAME => match self.name()? {
                    change if changes.len() < self.most.spans => changes.push(change),
                    _ => left_out += 1,
                },
                POLL => {
                    let poll = self.poll()?;
                    let news = !changes.is_empty();
                    self.to.found.left_out += std::mem::take(&mut left_out);
                    for (thread, slice) in changes.drain(..) {
                        self.change(thread, slice, poll);
                    }
                    self.to.last = Some(poll);
                    if news {
                        self.to.at = self.read;
                    }
                }
                FORGET => self.to.found.close_all(self.to.last),
                CROWD => self.to.found.crowded = true,
                _ => break,
            }
        }
        Ok(())
    }

    fn header(&mut self) -> io::Result<()> {
        if self.bytes::<12>()? != MAGIC {
            return Err(io::Error::other("it is not a log of threads' names"));
        }
        let interval = i64::from(u32::from_le_bytes(self.bytes()?).clamp(1, 10_000)) * 1000;
        self.to.found.around = POLLS_AROUND * interval;
        Ok(())
    }

    fn bytes<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.log.read_exact(&mut bytes)?;
        self.read += N as u64;
        Ok(bytes)
    }

    /// A thread, and the slice of its new name.
    fn name(&mut self) -> io::Result<(u64, Option<u16>)> {
        let thread = u64::from_le_bytes(self.bytes()?);
        let mut name = vec![0; usize::from(u16::from_le_bytes(self.bytes()?))];
        self.log.read_exact(&mut name)?;
        self.read += name.len() as u64;
        let slice = self.rules.slice(&String::from_utf8_lossy(&name));
        Ok((thread, slice.and_then(|slice| self.number(slice))))
    }

    fn number(&mut self, slice: String) -> Option<u16> {
        if let Some(number) = self.to.numbers.get(&slice) {
            return Some(*number);
        }
        let number = self.to.found.slices.len();
        if number == MOST_SLICES {
            return None;
        }
        self.to.found.slices.push(slice.clone());
        self.to.numbers.insert(slice, number as u16);
        Some(number as u16)
    }

    fn poll(&mut self) -> io::Result<Poll> {
        let [wall, begin, end] =
            [self.bytes()?, self.bytes()?, self.bytes()?].map(i64::from_le_bytes);
        let lasted = end.saturating_sub(begin).max(0);
        // Time does not go back, whatever the wall clock does.
        let earliest = self.to.last.map_or(i64::MIN, |last| last.end);
        let begin = (wall / 1000).max(earliest);
        Ok(Poll {
            begin,
            end: begin.saturating_add(lasted / 1000),
        })
    }

    fn change(&mut self, thread: u64, slice: Option<u16>, poll: Poll) {
        let Following {
            found,
            spans: all,
            last,
            ..
        } = &mut *self.to;
        let threads = &mut found.threads;
        if threads.len() >= self.most.threads && !threads.contains_key(&thread) {
            found.left_out += 1;
            return;
        }
        let spans = threads.entry(thread).or_default();
        close(spans, *last);
        if *all >= self.most.spans {
            found.left_out += 1;
            return;
        }
        *all += 1;
        spans.push(Span {
            from: poll.end,
            to: i64::MAX,
            slice,
        });
    }
}

/// The last name was seen by the last poll.
fn close(spans: &mut [Span], last: Option<Poll>) {
    if let (Some(span), Some(last)) = (spans.last_mut(), last) {
        if span.to == i64::MAX {
            span.to = last.begin.max(span.from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1000;

    fn rules() -> Rules {
        let rule = |regex: &str, name: &str| SliceRule {
            main_class: Vec::new(),
            prefix: "task".to_owned(),
            regex: regex.to_owned(),
            name: name.to_owned(),
        };
        let all = [
            rule(r"in stage (\d+\.\d+) ", "stage {}"),
            rule(r"task (\d+)$", "task {}"),
        ];
        Rules::new(all.iter()).unwrap()
    }

    fn read(log: &[u8]) -> io::Result<NameLog> {
        Following::default().read(io::Cursor::new(log), &rules())
    }

    fn header() -> Vec<u8> {
        [MAGIC, &25_u32.to_le_bytes()].concat()
    }

    fn name(thread: u64, name: &str) -> Vec<u8> {
        let size = (name.len() as u16).to_le_bytes();
        [&[NAME], &thread.to_le_bytes()[..], &size, name.as_bytes()].concat()
    }

    /// A poll of 1 ms at this millisecond.
    fn poll(at: i64) -> Vec<u8> {
        let at = at * 1_000_000;
        let times = [at, at + 7, at + 1_000_007].map(i64::to_le_bytes);
        [&[POLL], &times.concat()[..]].concat()
    }

    /// Of thread 7: the slice and whether it is certain.
    fn at(log: &NameLog, millisecond: i64) -> Option<(String, bool)> {
        let slice = log.slice(ThreadId { native: 1, java: 7 }, millisecond * MS);
        let found = log
            .slices()
            .into_iter()
            .nth(usize::from(slice).checked_sub(1)?)?;
        Some((found.name, found.certain))
    }

    #[test]
    fn names_are_certain_between_polls_that_saw_them() {
        let log = [
            header(),
            [name(7, "task 1.0 in stage 3.0 (TID 9)"), poll(100)].concat(),
            poll(125),
            poll(150),
            [
                name(7, "task 2.0 in stage 4.0 (TID 10)"),
                name(8, "task 5"),
                poll(175),
            ]
            .concat(),
            poll(200),
            [name(7, ""), poll(225)].concat(),
            poll(250),
        ];
        let log = read(&log.concat()).unwrap();
        let stage = |name: &str, certain| Some((format!("stage {name}"), certain));
        for (millisecond, want) in [
            (40, None),
            (60, stage("3.0", false)),
            (101, stage("3.0", true)),
            (150, stage("3.0", true)),
            (162, stage("3.0", false)),
            (165, stage("4.0", false)),
            (176, stage("4.0", true)),
            (200, stage("4.0", true)),
            (210, stage("4.0", false)),
            (215, None),
            (240, None),
            (900, None),
        ] {
            assert_eq!(at(&log, millisecond), want, "{millisecond}");
        }
        let other = log.slice(ThreadId { native: 1, java: 8 }, 190 * MS);
        let name = |slice: u16| log.slices()[usize::from(slice) - 1].name.clone();
        assert_eq!(name(other), "task 5");
        assert_eq!(log.slice(ThreadId { native: 7, java: 9 }, 190 * MS), 0);
    }

    #[test]
    fn a_log_that_grows_is_read_from_where_it_ended() {
        let task = |stage: u32| name(7, &format!("task 1.0 in stage {stage}.0 (TID 9)"));
        let stage = |name: &str, certain| Some((format!("stage {name}"), certain));
        let begin = [header(), task(3), poll(100)].concat();
        // The poll without news is written over, and the next name has no poll yet.
        let then = [&begin[..], &poll(125), &task(4)].concat();
        let last = [&begin[..], &poll(175), &task(4), &poll(200), &poll(225)].concat();
        let last = [&last[..], &task(5), &poll(250)].concat();
        let mut following = Following::default();
        let mut log = following.read(io::Cursor::new(&then), &rules()).unwrap();
        assert_eq!(following.at, begin.len() as u64);
        assert_eq!(at(&log, 120), stage("3.0", true));
        for forget in [0, 180 * MS] {
            following.forget(forget);
            log = following.read(io::Cursor::new(&last), &rules()).unwrap();
            assert_eq!(at(&log, 170), stage("3.0", true));
            assert_eq!(at(&log, 220), stage("4.0", true));
        }
        following.forget(1000 * MS);
        assert_eq!((following.spans, log.slices().len()), (2, 6));
    }

    #[test]
    fn forgotten_names_are_likely_until_they_are_seen_again() {
        let task = "task 1.0 in stage 3.0 (TID 9)";
        let log = [
            header(),
            [name(7, task), poll(100)].concat(),
            poll(125),
            [vec![FORGET], name(7, task), poll(150)].concat(),
            poll(175),
        ];
        let log = read(&log.concat()).unwrap();
        let certain = [120, 140, 160].map(|millisecond| at(&log, millisecond).unwrap().1);
        assert_eq!(certain, [true, false, true]);
    }

    #[test]
    fn what_is_missing_is_said() {
        let task = |tid: u64| name(tid, &format!("task {tid}"));
        let polls = [
            [header(), task(1), task(2), task(3), poll(100)].concat(),
            [task(1), task(2), task(1), poll(125)].concat(),
        ];
        let small = Bounds {
            threads: 2,
            spans: 3,
        };
        let log = Following::default()
            .read_within(small, &polls.concat()[..], &rules())
            .unwrap();
        assert_eq!((log.threads.len(), log.left_out), (2, 3));
        let two = log.slice(ThreadId { native: 1, java: 2 }, 200 * MS);
        assert_eq!(two, 0, "a name does not stay because the next is left out");
        assert_eq!(log.missing(None).unwrap().parameters["names"], 3);

        let crowd = [header(), task(1), vec![CROWD], poll(100)].concat();
        let log = read(&crowd).unwrap();
        let missing = log.missing(Some(42_100 * MS)).unwrap();
        let reason =
            "the last 41 s have no names; not more than 6144 threads are followed at a time";
        assert_eq!(missing.reason, reason);
        let log = read(&polls[0]).unwrap();
        assert!(log.missing(Some(200 * MS)).is_none());
    }

    #[test]
    fn damaged_logs_are_read_as_far_as_they_go() {
        let task = name(7, "task 1.0 in stage 3.0 (TID 9)");
        let log = [header(), task, poll(100), poll(125), poll(150)].concat();
        for size in 0..log.len() {
            let read = read(&log[..size]).unwrap();
            assert!(read.threads.len() <= 1);
        }
        let cut = read(&log[..log.len() - 1]).unwrap();
        assert_eq!(at(&cut, 120), Some(("stage 3.0".to_owned(), true)));
        assert!(read(b"HPROFMAP\x01\0\0\0\0\0\0\0").is_err());
        let extreme = [i64::MAX, i64::MIN, i64::MAX]
            .map(i64::to_le_bytes)
            .concat();
        let wild = [log, vec![POLL], extreme, name(7, ""), poll(1)].concat();
        assert!(read(&wild).is_ok());
    }
}
