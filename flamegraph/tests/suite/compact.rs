//! The compact profile: damaged and hostile ones are errors.

use flamegraph::{
    read, Format, Limits, Profile, ReadOptions, Row, Slice, Times, ValueType, WriteFormat,
};

use crate::pprof_maker::varint;
use crate::support::{body, compact as file, compact_of, detected, text, written};

fn compact(profile: &Profile) -> Vec<u8> {
    written(profile, WriteFormat::Compact)
}

fn read_body(body: &[u8]) -> Result<Profile, String> {
    detected(&file(body))
}

fn small() -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    for (stack, amounts) in [
        (&["main", "run_[j]", "put_[i]"][..], [3, 30_000_000]),
        (&["main", "run_[j]", "run_[j]", "put_[i]"], [1, 10_000_000]),
        (&["main"], [0, i64::MAX / 2]),
        (&[], [7, 0]),
    ] {
        profile.add_stack(stack, &amounts).unwrap();
    }
    profile.set_label("host", "é");
    profile
}

#[test]
fn a_profile_without_samples_comes_back() {
    let empty = Profile::new(vec![ValueType::samples()]);
    let back = read(&compact(&empty), &ReadOptions::default()).unwrap();
    assert!(back.is_empty());
    assert_eq!(back.values(), empty.values());
}

#[test]
fn a_file_cut_anywhere_is_an_error() {
    let whole = compact(&small());
    for end in 4..whole.len() - 4 {
        let error = read(&whole[..end], &ReadOptions::default()).err().unwrap();
        assert!(
            error.to_string().starts_with("compact profile: "),
            "{error}"
        );
    }
    let body = body(&whole);
    for end in 0..body.len() {
        let error = read_body(&body[..end]).err().unwrap();
        assert!(error.starts_with("compact profile: "), "{end}: {error}");
    }
}

/// A body of one value and no labels, and what is given of names and columns.
fn made(count: u8, pieces: &[&[u8]]) -> Vec<u8> {
    let mut body = b"\x01\x01s\x01c\x00".to_vec();
    body.push(count);
    for piece in pieces {
        body.extend(varint(piece.len() as u64));
        body.extend_from_slice(piece);
    }
    body
}

#[test]
fn contradictions_are_errors() {
    let names: [&[u8]; 3] = [&[0], &[1], b"f"];
    let with = |columns: [&[u8]; 4]| made(1, &[&names[..], &columns[..]].concat());
    let good = read_body(&with([&[1, 0], &[0], &[3], &[0, 9]])).unwrap();
    assert_eq!(good.total(0).unwrap(), 9);
    let refused = |body: &[u8], expected: &str| {
        let error = read_body(body).err().unwrap_or_default();
        assert_eq!(error, format!("compact profile: {expected}"));
    };
    let columns: [([&[u8]; 4], &str); 4] = [
        ([&[1, 0], &[1], &[], &[0, 9]], "node 1: no such callee"),
        (
            [&[1, 0], &[0], &[11], &[0, 9]],
            "node 1: its frame does not exist",
        ),
        ([&[2, 0], &[0], &[3], &[0, 9]], "node 2: no callee"),
        (
            [&[1, 0], &[0], &[3], &[0, 9, 9]],
            "node 1: more in a column than there are nodes",
        ),
    ];
    for (columns, expected) in columns {
        refused(&with(columns), expected);
    }
    let huge = [&[0], &[0xff; 9][..], &[1]].concat();
    refused(
        &with([&[1, 0], &[0], &[3], &huge]),
        "node 1: no value that is one",
    );
    refused(&made(1, &[&[1], &[1], b"f"]), "name 0 is damaged");
}

#[test]
fn names_and_stacks_are_limited() {
    let limits = Limits {
        pprof_bytes: 4 << 20,
        text_bytes: 1 << 20,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::of(Some(Format::Compact))
    };
    let error = |body: &[u8]| read(&file(body), &options).err().unwrap().to_string();
    // A hundred names that share 60,000 bytes.
    let mut long = vec![0];
    let mut lengths = vec![0xe0, 0xd4, 3];
    let mut text = vec![b'x'; 60_000];
    for name in 0..99 {
        long.extend([0xe0, 0xd4, 3]);
        lengths.push(1);
        text.push(b'a' + name % 26);
    }
    let names = made(100, &[&long, &lengths, &text]);
    assert_eq!(error(&names), "bytes of names: more than 4194304");
    // A stack 10,000 deep, with samples everywhere.
    let count = 10_000;
    let mut children = vec![1; count];
    children.push(0);
    let mut callees = vec![1; count];
    callees[..2].fill(0);
    let deep = made(
        1,
        &[
            &[0],
            &[1],
            b"f",
            &children,
            &callees,
            &[3, 3],
            &vec![1; count + 1],
        ],
    );
    let error = error(&deep);
    assert!(
        error.ends_with("the stacks are too long, all together"),
        "{error}"
    );
    assert!(read_body(&deep).is_ok());
    let bomb = file(&vec![0; 8 << 20]);
    let error = read(&bomb, &options).err().unwrap().to_string();
    assert_eq!(error, "bytes of the compact profile: more than 4194304");
}

#[test]
fn names_are_limited_by_the_nodes() {
    let within = |cells| ReadOptions {
        limits: Limits {
            cells,
            ..Limits::default()
        },
        ..ReadOptions::of(Some(Format::Compact))
    };
    // The root and three callees: a node of one value counts as one of two.
    let columns: [&[u8]; 4] = [&[3, 0, 0, 0], &[0, 0, 0], &[3, 11, 19], &[0, 1, 1, 1]];
    let fitting = made(
        3,
        &[&[&[0, 0, 0][..], &[1, 1, 1], b"abc"], &columns[..]].concat(),
    );
    assert_eq!(read(&file(&fitting), &within(8)).unwrap().node_count(), 3);
    let error = |body: &[u8], cells| read(&file(body), &within(cells)).err().unwrap().to_string();
    assert_eq!(error(&fitting, 7), "nodes of the call tree: more than 3");
    let names = made(5, &[&[0; 5], &[0; 5], b""]);
    assert_eq!(error(&names, 8), "names: more than 4");
}

#[test]
fn modules_follow_the_columns() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for stack in [&["main", "run", "put"][..], &["main", "put_[k]"]] {
        profile.add_stack(stack, &[1]).unwrap();
    }
    let plain = body(&compact(&profile));
    let with = |modules: &[u8]| read_body(&[&plain[..], modules].concat());
    // Three names: main, put, run.
    let back = with(b"\x02\x04a.so\x06/b/.so\x03\x00\x02\x01\x03\x00\x01\x00").unwrap();
    let modules: Vec<_> = back.modules().collect();
    assert_eq!(modules, [("put", ".so"), ("put", "a.so"), ("run", "a.so")]);
    assert_eq!(text(&back), text(&profile));
    for damaged in [
        &b"\x01"[..],
        b"\x01\x04a.s",
        b"\x01\x04a.so",
        b"\x01\x04a.so\x03\x00\x01",
        b"\x01\x04a.so\x03\x00\x01\x00",
        b"\x01\x04a.so\x02\x00\x01\x03\x00\x00\x00",
        b"\x01\x04a.so\x04\x00\x01\x00\x00\x03\x00\x00\x00",
        b"\x01\x04a.so\x03\x00\x02\x00\x03\x00\x00\x00",
        b"\x01\x04a.so\x03\x00\x01\x00\x03\x00\x00\x02",
        b"\x01\x04a.so\x03\x00\x01\x00\x03\x00\x00\x00\x00",
        b"\xff\xff\xff\xff\x0f",
    ] {
        assert!(with(damaged).is_err(), "{damaged:?}");
    }
}

/// The small profile with times; its nodes are numbered in the order in which their stacks were added.
fn timed(rows: &[Row], slices: &[&str]) -> Profile {
    let mut profile = small();
    let slice = |name: &&str| Slice {
        name: name.to_string(),
        certain: !name.ends_with('?'),
    };
    let slices = slices.iter().map(slice).collect();
    profile.set_times(Some(Times::new(-7, 20_000, slices, rows.to_vec())));
    profile
}

fn row(node: u32, bucket: u32, samples: u32) -> Row {
    Row {
        node,
        bucket,
        samples,
        ..Row::default()
    }
}

/// Rows with everything that a row can have.
fn all_kinds() -> Vec<Row> {
    let waits = Row {
        band: 12,
        amount: 3_000_000,
        slice: 2,
        ..row(3, 300_000, 2)
    };
    let longer = Row {
        band: 40,
        amount: 1 << 50,
        slice: 0,
        ..waits
    };
    vec![
        row(0, 5, 7),
        waits,
        longer,
        row(3, 1, 1),
        row(5, u32::MAX, 1),
    ]
}

#[test]
fn times_come_back() {
    for (rows, slices) in [
        (vec![], &[][..]),
        (vec![row(3, 2, 1), row(3, 4, 300), row(5, 0, 1)], &[]),
        (all_kinds(), &["stage 1", "stage 2?"]),
    ] {
        let profile = timed(&rows, slices);
        let packed = compact(&profile);
        assert!(packed.starts_with(b"HPT2"));
        let back = read(&packed, &ReadOptions::default()).unwrap();
        assert_eq!(text(&back), text(&profile));
        assert_eq!(back.times(), profile.times());
        let again = compact(&back);
        assert_eq!(again, packed);
        let mut without = back.clone();
        without.set_times(None);
        assert_eq!(compact(&without), compact(&small()));
    }
}

#[test]
fn times_are_of_the_same_stacks_whatever_the_order_of_nodes() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for stack in ["z", "a"] {
        profile.add_stack(&[stack], &[1]).unwrap();
    }
    let rows = vec![row(1, 4, 1), row(2, 0, 1)];
    profile.set_times(Some(Times::new(0, 1, Vec::new(), rows)));
    let back = read(&compact(&profile), &ReadOptions::default()).unwrap();
    assert_eq!(text(&back.in_range(4, 5).unwrap()), "z 1\n");
}

#[test]
fn damaged_times_are_errors() {
    let whole = body(&compact(&timed(&all_kinds(), &["a", "b"])));
    let read_timed = |body: &[u8]| detected(&compact_of(b"HPT2", body));
    assert!(read_timed(&whole).is_ok());
    for end in 0..whole.len() {
        let error = read_timed(&whole[..end]).err().unwrap();
        assert!(error.starts_with("compact profile: "), "{end}: {error}");
    }
    assert!(read_timed(&[&whole[..], &[0]].concat()).is_err());
    let plain = body(&compact(&small()));
    // No modules; start and width 1; no slices, no flags; one row; then nodes, counts, buckets and samples.
    let times = |rows: u8, columns: [&[u8]; 4]| {
        let mut times = vec![0, 0, 1, 0, 0, rows];
        for column in columns {
            times.push(column.len() as u8);
            times.extend_from_slice(column);
        }
        read_timed(&[&plain[..], &times].concat())
    };
    assert!(times(1, [&[5], &[1], &[9], &[1]]).is_ok());
    for (rows, columns) in [
        (1, [&[6][..], &[1], &[9], &[1]]),
        (1, [&[5], &[0], &[9], &[1]]),
        (1, [&[5], &[2], &[9, 9], &[1, 1]]),
        (1, [&[5], &[1], &[9], &[0]]),
        (2, [&[5, 0], &[1, 1], &[9, 9], &[1, 1]]),
        (2, [&[5], &[1], &[9], &[1]]),
        (1, [&[5, 1], &[1], &[9], &[1]]),
        (1, [&[5], &[1], &[0xff, 0xff, 0xff, 0xff, 0x10], &[1]]),
    ] {
        assert!(times(rows, columns).is_err(), "{rows} {columns:?}");
    }
    let limits = Limits {
        rows: 4,
        ..Limits::default()
    };
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    let error = read(&compact_of(b"HPT2", &whole), &options).err().unwrap();
    assert_eq!(error.to_string(), "rows of times: more than 4");
}

/// 60 s of 8 busy cores at 300 Hz: 144,000 samples of 5,000 stacks, few of them often; the job has phases of 2 s.
#[test]
fn times_take_less_than_two_bytes_a_sample() {
    let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
    let mut rows = Vec::new();
    let mut random = 1u64;
    let mut below = |end: f64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 11) as f64 / (1u64 << 53) as f64 * end
    };
    let mut counts = vec![0; 5000];
    let samples = 144_000;
    for sample in 0..samples {
        let phase = sample * 30 / samples % 3;
        // Ranks of which each decade is as frequent as the next, in another order in each phase.
        let rank = 5000f64.powf(below(1.0)) as usize - 1;
        let stack = (rank + phase * 700) % 5000;
        counts[stack] += 1;
        let bucket = (sample as f64 * 3000.0 / samples as f64 + below(1.0)) as u32;
        rows.push(row(2 * stack as u32 + 2, bucket, 1));
    }
    for (stack, count) in counts.into_iter().enumerate() {
        let names = [format!("caller{stack:04}"), "callee".to_string()];
        profile
            .add_stack(&names, &[count, count * 3_333_333])
            .unwrap();
    }
    let plain = compact(&profile).len();
    profile.set_times(Some(Times::new(1 << 50, 20_000, Vec::new(), rows)));
    let bytes = (compact(&profile).len() - plain) as f64 / samples as f64;
    println!(
        "{bytes:.2} bytes a sample, {} rows",
        profile.times().unwrap().rows().len()
    );
    assert!(bytes < 2.0, "{bytes}");
}
