//! Which native allocations of a recording were not freed in it. Only the whole recording says so: it is read for that
//! before its samples are.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use super::bytes::Cursor;
use super::chunk::{Chunk, Chunks, Event, Events, Survey};
use super::layout::{Layout, Slots};
use super::metadata::Types;
use crate::profile::{Error, Limits, Result};
use crate::source::Input;

/// Most sampled allocations that are not freed.
const MOST: usize = 1 << 20;
/// What is allocated in the last part of a recording may only not be freed yet, and does not count.
const COUNTED: f64 = 0.9;

/// Their times in ticks, and their addresses.
///
/// Reads async-profiler's recording, which was recorded without `nofree` and took so many seconds. Frees of what was
/// allocated before it, or was not sampled, are passed over. So is what cannot be read: reading the samples says so.
pub fn unfreed(
    input: impl Read + Send,
    seconds: f64,
    limits: &Limits,
) -> Result<HashSet<(i64, u64)>> {
    let input = Input::stream(Box::new(std::io::BufReader::new(input)))?;
    let mut chunks = Chunks::of(input, limits.chunk_bytes);
    let (mut live, mut last) = (HashMap::new(), None);
    let mut spent = Vec::new();
    loop {
        let chunk = match chunks.next(std::mem::take(&mut spent)) {
            Ok(Some(chunk)) => chunk,
            Ok(None) | Err(Error::Jfr { .. } | Error::Limit { .. }) => break,
            Err(error) => return Err(error),
        };
        let counted = seconds * COUNTED * chunk.header.ticks_per_second as f64;
        let begin = chunk.header.start_ticks;
        last.get_or_insert(begin.saturating_add(counted as i64));
        take(&chunk, &mut live);
        if live.len() > MOST {
            return Err(Error::Limit {
                what: "native allocations that are not freed",
                limit: MOST as u64,
            });
        }
        spent = chunk.bytes;
    }
    let last = last.unwrap_or(i64::MAX);
    let counted = live.into_iter().filter(|&(_, ticks)| ticks <= last);
    Ok(counted.map(|(address, ticks)| (ticks, address)).collect())
}

/// Takes in a chunk. `live` are the times of allocations by their addresses.
fn take(chunk: &Chunk, live: &mut HashMap<u64, i64>) {
    let survey = Survey::of(chunk);
    let Some(types) = survey.types(chunk) else {
        return;
    };
    let allocated: Vec<(i64, u64)> = all(chunk, &types, "profiler.Malloc").collect();
    let addresses: HashSet<u64> = allocated.iter().map(|&(_, address)| address).collect();
    let freed = all(chunk, &types, "profiler.Free");
    let freed =
        freed.filter(|(_, address)| addresses.contains(address) || live.contains_key(address));
    let freed: Vec<(i64, u64)> = freed.collect();
    // The events of different threads are not in the order of time. What is freed at the tick at which it is allocated
    // is freed after it.
    let allocated = allocated
        .into_iter()
        .map(|(ticks, address)| (ticks, false, address));
    let freed = freed
        .into_iter()
        .map(|(ticks, address)| (ticks, true, address));
    let mut ordered: Vec<(i64, bool, u64)> = allocated.chain(freed).collect();
    ordered.sort_unstable();
    for (ticks, is_free, address) in ordered {
        match is_free {
            true => drop(live.remove(&address)),
            false => drop(live.insert(address, ticks)),
        }
    }
}

/// The times and addresses of the events of a kind.
fn all<'a>(
    chunk: &'a Chunk,
    types: &Types<'_>,
    name: &str,
) -> impl Iterator<Item = (i64, u64)> + 'a {
    let number = types.id(name);
    let layout = number.and_then(|number| Layout::of(types, number, &["startTime", "address"]));
    let is_wanted = move |event: &Event| number == Some(event.kind);
    Events::of(&chunk.bytes)
        .filter(is_wanted)
        .filter_map(move |event| {
            let mut slots = Slots::default();
            let mut cursor = Cursor::new(&chunk.bytes[..event.end], event.fields);
            layout.as_ref()?.read(&mut cursor, &mut slots)?;
            Some((slots[0] as i64, slots[1]))
        })
}
