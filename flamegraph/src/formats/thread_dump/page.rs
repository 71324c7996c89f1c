//! Spark's page of the threads of an executor, as a browser saves it: a row of cells for each thread.

use memchr::memmem;

use crate::profile::{Error, Result};

use super::json::{spark_frame, spark_header, spark_lock};
use super::text::Reader;
use super::thread::{Owner, Sink, Thread, WaitsFor};
use super::NAME;

pub(super) fn read(bytes: &[u8], sink: &mut impl Sink) -> Result<u64> {
    let mut reader = Reader::new(sink);
    let mut rest = bytes;
    while let Some(row) = memmem::find(rest, b"<tr id=\"thread_") {
        rest = &rest[row + 1..];
        let end = memmem::find(rest, b"<tr id=\"thread_").unwrap_or(rest.len());
        let cells = String::from_utf8_lossy(&rest[..end]);
        let cell = |name: &str| {
            let mark = format!("_td_{name}\"");
            let (_, rest) = cells.split_once(&mark)?;
            let (_, rest) = rest.split_once('>')?;
            rest.split_once("</td>").map(|(cell, _)| cell)
        };
        let (number, stack) = (cell("id"), cell("stacktrace"));
        let number = number.and_then(|number| number.trim().parse().ok());
        let (Some(number), Some(stack)) = (number, stack) else {
            let reason = "a row of the table of threads has no number or stack".to_string();
            return Err(Error::Damaged(NAME, reason));
        };
        let text = |name: &str| unescaped(cell(name).unwrap_or("").trim());
        let thread = spark_header(&text("name"), number, &text("state"));
        let locks = text("locking");
        // `Thread 54 Lock(java.lang.Object@626094358)`, in a link to that thread.
        let blocked = locks
            .split_once("Thread ")
            .and_then(|(_, text)| text.split_once(' '));
        let owner = blocked.and_then(|(number, _)| number.parse().ok());
        let lock = blocked.and_then(|(_, text)| spark_lock(text.split('<').next()?.trim()));
        reader.begin(Thread {
            owner: owner.map_or(Owner::Unknown, Owner::JavaNumber),
            waits: lock.map(|lock| (WaitsFor::Monitor, lock)),
            ..thread
        })?;
        for frame in stack
            .split("<br/>")
            .filter(|frame| !frame.trim().is_empty())
        {
            spark_frame(&mut reader, &unescaped(frame))?;
        }
        let held = locks.rsplit("</div>").next().unwrap_or("");
        for lock in held.split(", ").filter_map(spark_lock) {
            reader.holds(lock)?;
        }
    }
    reader.end()?;
    Ok(0)
}

fn unescaped(text: &str) -> String {
    const ENTITIES: [(&str, &str); 5] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    let replace = |text: String, &(from, to): &(&str, &str)| text.replace(from, to);
    ENTITIES.iter().fold(text.to_owned(), replace)
}
