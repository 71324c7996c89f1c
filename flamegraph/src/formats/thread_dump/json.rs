//! The JSON of `jcmd PID Thread.dump_to_file -format=json`, and of Spark's and Flink's REST interfaces.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::formats::json_array::each;
use crate::profile::{Error, Result};

use super::text::{lock_of, Reader};
use super::thread::{state_of, Owner, Sink, Thread, WaitsFor};
use super::NAME;

/// Members that only these files have.
const MARKS: [&[u8]; 3] = [
    b"\"threadContainers\"",
    b"\"stringifiedThreadInfo\"",
    b"\"threadState\"",
];

pub(super) fn detect(head: &[u8]) -> bool {
    MARKS.iter().any(|mark| memmem::find(head, mark).is_some())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(borrow, default)]
    thread_dump: Option<JdkDump<'a>>,
    #[serde(borrow, default)]
    thread_infos: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JdkDump<'a> {
    #[serde(borrow)]
    thread_containers: &'a RawValue,
}

#[derive(Deserialize)]
struct Container<'a> {
    #[serde(borrow)]
    threads: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct JdkThread<'a> {
    #[serde(borrow)]
    tid: &'a RawValue,
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    state: Cow<'a, str>,
    #[serde(default)]
    r#virtual: bool,
    #[serde(borrow)]
    stack: &'a RawValue,
    #[serde(borrow, default)]
    blocked_on: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    waiting_on: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    park_blocker: Option<Blocker<'a>>,
    #[serde(borrow, default)]
    monitors_owned: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Blocker<'a> {
    #[serde(borrow, default)]
    object: Cow<'a, str>,
    #[serde(borrow, default)]
    owner: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Owned<'a> {
    #[serde(borrow)]
    locks: &'a RawValue,
}

/// Of Flink.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Info<'a> {
    #[serde(borrow)]
    stringified_thread_info: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SparkThread<'a> {
    thread_id: i64,
    #[serde(borrow, default)]
    thread_name: Cow<'a, str>,
    #[serde(borrow, default)]
    thread_state: Cow<'a, str>,
    #[serde(borrow)]
    stack_trace: SparkStack<'a>,
    #[serde(default)]
    blocked_by_thread_id: Option<i64>,
    #[serde(borrow, default)]
    blocked_by_lock: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    holding_locks: Option<&'a RawValue>,
    #[serde(default)]
    is_daemon: bool,
}

#[derive(Deserialize)]
struct SparkStack<'a> {
    #[serde(borrow)]
    elems: &'a RawValue,
}

fn wrong(error: impl ToString) -> Error {
    Error::Damaged(NAME, error.to_string())
}

pub(super) fn read(bytes: &[u8], sink: &mut impl Sink) -> Result<u64> {
    let text = std::str::from_utf8(bytes).map_err(wrong)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim_start();
    let mut reader = Reader::new(sink);
    if text.starts_with('[') {
        let threads: &RawValue = serde_json::from_str(text).map_err(wrong)?;
        each(NAME, threads, |_, thread| {
            spark_thread(&mut reader, &thread)
        })?;
    } else if memmem::find(bytes, MARKS[2]).is_some() {
        // The thread of one task.
        let thread = serde_json::from_str(text).map_err(wrong)?;
        spark_thread(&mut reader, &thread)?;
    } else {
        let file: File<'_> = serde_json::from_str(text).map_err(wrong)?;
        if let Some(dump) = file.thread_dump {
            each(
                NAME,
                dump.thread_containers,
                |_, container: Container<'_>| {
                    each(NAME, container.threads, |_, thread| {
                        jdk_thread(&mut reader, &thread)
                    })
                },
            )?;
        }
        if let Some(infos) = file.thread_infos {
            each(NAME, infos, |_, info: Info<'_>| {
                let mut lines = info.stringified_thread_info.lines();
                lines.try_for_each(|line| reader.line(line.trim_end().as_bytes()))
            })?;
        }
    }
    reader.end()?;
    Ok(0)
}

fn jdk_thread<S: Sink>(reader: &mut Reader<'_, S>, json: &JdkThread<'_>) -> Result<()> {
    let mut thread = Thread {
        name: json.name.clone().into_owned(),
        java_number: number(json.tid),
        is_virtual: json.r#virtual,
        state: state_of(&json.state),
        ..Thread::default()
    };
    let waits = [
        (WaitsFor::Monitor, json.blocked_on.as_deref()),
        (WaitsFor::Notify, json.waiting_on.as_deref()),
        (
            WaitsFor::Park,
            json.park_blocker.as_ref().map(|blocker| &*blocker.object),
        ),
    ];
    let mut waits = waits.into_iter();
    thread.waits = waits.find_map(|(how, lock)| Some((how, lock_of(lock?)?)));
    let owner = json
        .park_blocker
        .as_ref()
        .and_then(|blocker| number(blocker.owner?));
    thread.owner = owner.map_or(Owner::Unknown, Owner::JavaNumber);
    reader.begin(thread)?;
    each(NAME, json.stack, |_, frame: Cow<'_, str>| {
        reader.frame(frame.as_bytes())
    })?;
    let Some(owned) = json.monitors_owned else {
        return Ok(());
    };
    each(NAME, owned, |_, owned: Owned<'_>| {
        // A monitor of an object that the compiler removed is null.
        each(
            NAME,
            owned.locks,
            |_, lock: Option<Cow<'_, str>>| match lock.as_deref().and_then(lock_of) {
                Some(lock) => reader.holds(lock),
                None => Ok(()),
            },
        )
    })
}

/// A number, which may be in quotes.
fn number(value: &RawValue) -> Option<i64> {
    value.get().trim_matches('"').parse().ok()
}

fn spark_thread<S: Sink>(reader: &mut Reader<'_, S>, json: &SparkThread<'_>) -> Result<()> {
    let blocked = json.blocked_by_lock.as_deref().unwrap_or("");
    let thread = spark_header(&json.thread_name, json.thread_id, &json.thread_state);
    reader.begin(Thread {
        daemon: json.is_daemon,
        owner: json
            .blocked_by_thread_id
            .map_or(Owner::Unknown, Owner::JavaNumber),
        waits: spark_lock(blocked).map(|lock| (WaitsFor::Monitor, lock)),
        ..thread
    })?;
    each(NAME, json.stack_trace.elems, |_, frame: Cow<'_, str>| {
        spark_frame(reader, &frame)
    })?;
    let Some(held) = json.holding_locks else {
        return Ok(());
    };
    each(NAME, held, |_, lock: Cow<'_, str>| {
        match spark_lock(&lock) {
            Some(lock) => reader.holds(lock),
            None => Ok(()),
        }
    })
}

pub(super) fn spark_header(name: &str, number: i64, state: &str) -> Thread {
    Thread {
        name: name.to_owned(),
        java_number: Some(number),
        state: state_of(state),
        ..Thread::default()
    }
}

/// A frame, maybe with locks: in lines below it since Spark 4, behind `=> holding` before.
pub(super) fn spark_frame<S: Sink>(reader: &mut Reader<'_, S>, text: &str) -> Result<()> {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("");
    let (frame, held) = first.split_once(" => holding ").unwrap_or((first, ""));
    reader.frame(frame.trim().as_bytes())?;
    if let Some(lock) = spark_lock(held) {
        reader.holds(lock)?;
    }
    lines.try_for_each(|line| reader.line(line.trim_end().as_bytes()))
}

/// `Monitor(java.lang.Object@626094358)`, also without the brackets.
pub(super) fn spark_lock(text: &str) -> Option<crate::formats::thread_dump::Lock> {
    let inner = text.strip_suffix(')').and_then(|text| text.split_once('('));
    lock_of(inner.map_or(text, |(_, lock)| lock))
}
