//! The section *times*: when samples were taken.

use super::read::{damaged, Body};
use crate::profile::{Limits, Node, Profile, Result, Row, Slice, Times, ROOT};
use crate::source::wire::{put_varint, Numbers};

/// Which columns follow.
const AMOUNTS: u64 = 1;
const BANDS: u64 = 1 << 1;
const SLICES: u64 = 1 << 2;
const FLAGS: u64 = AMOUNTS | BANDS | SLICES;

/// Slices are numbered from 1, and their numbers have 16 bits.
const MOST_SLICES: u64 = u16::MAX as u64;
/// From this band on a duration would not fit into 64 bits of nanoseconds.
const BANDS_END: u64 = 56;

/// Appends times whose rows' nodes are numbered as in the file.
pub(super) fn put_times(out: &mut Vec<u8>, times: &Times) {
    let start = times.start;
    put_varint(out, ((start << 1) ^ (start >> 63)) as u64);
    put_varint(out, times.width);
    put_varint(out, times.slices.len() as u64);
    for slice in &times.slices {
        put_varint(out, slice.name.len() as u64);
        out.extend_from_slice(slice.name.as_bytes());
        put_varint(out, u64::from(slice.certain));
    }
    let rows = times.rows();
    let any = |has: fn(&Row) -> bool, flag: u64| if rows.iter().any(has) { flag } else { 0 };
    let flags = any(|row| row.amount > 0, AMOUNTS)
        | any(|row| row.band > 0, BANDS)
        | any(|row| row.slice > 0, SLICES);
    put_varint(out, flags);
    put_varint(out, rows.len() as u64);
    let [mut nodes, mut counts, mut buckets, mut samples] = [const { Vec::new() }; 4];
    let [mut slices, mut bands, mut amounts] = [const { Vec::new() }; 3];
    let mut node_before = ROOT;
    for of_node in rows.chunk_by(|row, next| row.node == next.node) {
        put_varint(&mut nodes, u64::from(of_node[0].node - node_before));
        node_before = of_node[0].node;
        put_varint(&mut counts, of_node.len() as u64);
        let mut bucket_before = 0;
        for row in of_node {
            put_varint(&mut buckets, u64::from(row.bucket - bucket_before));
            bucket_before = row.bucket;
            put_varint(&mut samples, u64::from(row.samples));
            put_varint(&mut slices, u64::from(row.slice));
            put_varint(&mut bands, u64::from(row.band));
            put_varint(&mut amounts, row.amount);
        }
    }
    for (column, flag) in [
        (nodes, 0),
        (counts, 0),
        (buckets, 0),
        (samples, 0),
        (slices, SLICES),
        (bands, BANDS),
        (amounts, AMOUNTS),
    ] {
        if flag & flags == flag {
            put_varint(out, column.len() as u64);
            out.extend_from_slice(&column);
        }
    }
}

/// Reads the times of a profile; `nodes` are its nodes as they are numbered in the file.
pub(super) fn read_times<'a>(
    body: &mut Body<'a>,
    nodes: &[Node],
    profile: &mut Profile,
    limits: &Limits,
) -> Result<()> {
    let start = body.number()?;
    let start = (start >> 1) as i64 ^ -((start & 1) as i64);
    let width = body.number()?;
    let count = body.count("slices", MOST_SLICES)?;
    let slice = |_| {
        Ok(Slice {
            name: body.text(limits)?,
            certain: below(2, body.number()?)? == 1,
        })
    };
    let slices: Vec<Slice> = (0..count).map(slice).collect::<Result<_>>()?;
    let flags = body.number()?;
    if width == 0 || flags & !FLAGS != 0 {
        return Err(wrong());
    }
    let count = body.count("rows of times", limits.rows as u64)?;
    let mut column = |flag: u64| -> Result<Option<Numbers<'a>>> {
        let there = flag & flags == flag;
        there.then(|| Ok(Numbers::of(body.bytes()?))).transpose()
    };
    let mut columns = [const { None }; 7];
    for (place, flag) in [0, 0, 0, 0, SLICES, BANDS, AMOUNTS].into_iter().enumerate() {
        columns[place] = column(flag)?;
    }
    let rows = read_rows(&mut columns, count, nodes, slices.len() as u64)?;
    let end = rows.iter().map(|row| u64::from(row.bucket) + 1).max();
    let end = i128::from(start) + i128::from(end.unwrap_or(0)) * i128::from(width);
    let sum: u128 = rows.iter().map(|row| u128::from(row.amount)).sum();
    let are_used_up = columns.iter().flatten().all(|column| column.left() == 0);
    if end > i128::from(i64::MAX) || i64::try_from(sum).is_err() || !are_used_up {
        return Err(wrong());
    }
    profile.set_times(Some(Times::new(start, width, slices, rows)));
    Ok(())
}

fn wrong() -> crate::profile::Error {
    damaged("its times are damaged")
}

/// Reads the numbers of the rows side by side; a column is none where all are 0.
fn read_rows(
    columns: &mut [Option<Numbers<'_>>; 7],
    count: u64,
    nodes: &[Node],
    slice_count: u64,
) -> Result<Vec<Row>> {
    let [steps, counts, buckets, samples, slices, bands, amounts] = columns;
    let mut rows = Vec::new();
    let mut node = 0u64;
    while (rows.len() as u64) < count {
        let step = next(steps)?;
        if step == 0 && !rows.is_empty() {
            return Err(wrong());
        }
        node = node.saturating_add(step);
        let at = usize::try_from(node).ok().and_then(|node| nodes.get(node));
        let &at = at.ok_or_else(wrong)?;
        let of_node = next(counts)?;
        if of_node == 0 || of_node > count - rows.len() as u64 {
            return Err(wrong());
        }
        let mut bucket = 0u64;
        for _ in 0..of_node {
            bucket = bucket.saturating_add(next(buckets)?);
            let samples = next(samples)?;
            if samples == 0 {
                return Err(wrong());
            }
            rows.push(Row {
                node: at,
                bucket: u32::try_from(bucket).map_err(|_| wrong())?,
                samples: u32::try_from(samples).map_err(|_| wrong())?,
                slice: below(slice_count + 1, next(slices)?)? as u16,
                band: below(BANDS_END, next(bands)?)? as u8,
                amount: below(i64::MAX as u64, next(amounts)?)?,
            });
        }
    }
    Ok(rows)
}

fn next(column: &mut Option<Numbers<'_>>) -> Result<u64> {
    match column {
        Some(numbers) => numbers.next().flatten().ok_or_else(wrong),
        None => Ok(0),
    }
}

fn below(end: u64, number: u64) -> Result<u64> {
    match number < end {
        true => Ok(number),
        false => Err(wrong()),
    }
}
