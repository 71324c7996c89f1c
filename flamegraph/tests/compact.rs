//! The compact profile: it comes back exactly, and what is damaged or means harm gets an error.

use std::io::{Read, Write};

use flamegraph::{read, Format, Limits, Profile, ReadOptions, ValueType};
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::Compression;
use proptest::prelude::*;

const MAGIC: &[u8] = b"HPT1";

fn compact(profile: &Profile) -> Vec<u8> {
    let mut out = Vec::new();
    profile.write_compact(&mut out).unwrap();
    out
}

fn text(profile: &Profile, value: usize) -> String {
    let mut out = Vec::new();
    profile.write_folded(&mut out, value, true).unwrap();
    String::from_utf8(out).unwrap()
}

fn body(file: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ZlibDecoder::new(&file[MAGIC.len()..])
        .read_to_end(&mut out)
        .unwrap();
    out
}

fn file(body: &[u8]) -> Vec<u8> {
    let mut out = ZlibEncoder::new(MAGIC.to_vec(), Compression::fast());
    out.write_all(body).unwrap();
    out.finish().unwrap()
}

fn read_body(body: &[u8]) -> Result<Profile, String> {
    read(&file(body), &ReadOptions::default()).map_err(|error| error.to_string())
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
    for end in MAGIC.len()..whole.len() - 4 {
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

#[test]
fn a_byte_changed_anywhere_is_an_error_or_a_profile() {
    let body = body(&compact(&small()));
    for place in 0..body.len() {
        for byte in [
            0,
            1,
            0x7f,
            0x80,
            0xff,
            body[place] ^ 1,
            body[place].wrapping_add(1),
        ] {
            let mut changed = body.clone();
            changed[place] = byte;
            if let Ok(profile) = read_body(&changed) {
                text(&profile, 0);
                compact(&profile);
            }
        }
    }
}

/// A body of one value and no labels, and what is given of names and columns.
fn made(count: u8, pieces: &[&[u8]]) -> Vec<u8> {
    let mut body = b"\x01\x01s\x01c\x00".to_vec();
    body.push(count);
    for piece in pieces {
        let mut length = piece.len();
        while length >= 0x80 {
            body.push(length as u8 | 0x80);
            length >>= 7;
        }
        body.push(length as u8);
        body.extend_from_slice(piece);
    }
    body
}

#[test]
fn each_lie_is_named() {
    let names: [&[u8]; 3] = [&[0], &[1], b"f"];
    let with = |columns: [&[u8]; 4]| made(1, &[&names[..], &columns[..]].concat());
    assert_eq!(
        read_body(&with([&[1, 0], &[0], &[3], &[0, 9]]))
            .unwrap()
            .total(0)
            .unwrap(),
        9
    );
    for (what, body, expected) in [
        (
            "callee",
            with([&[1, 0], &[1], &[], &[0, 9]]),
            "node 1: no such callee",
        ),
        (
            "far callee",
            with([&[2, 0, 0], &[0, 40], &[3], &[0, 9, 9]]),
            "node 2: no such callee",
        ),
        (
            "name",
            with([&[1, 0], &[0], &[11], &[0, 9]]),
            "node 1: its frame does not exist",
        ),
        (
            "kind",
            with([&[1, 0], &[0], &[7], &[0, 9]]),
            "node 1: its frame does not exist",
        ),
        (
            "too few nodes",
            with([&[2, 0], &[0], &[3], &[0, 9]]),
            "node 2: no callee",
        ),
        (
            "too many",
            with([&[1, 0, 0], &[0], &[3], &[0, 9]]),
            "node 1: more in a column than there are nodes",
        ),
        (
            "values",
            with([&[1, 0], &[0], &[3], &[0, 9, 9]]),
            "node 1: more in a column than there are nodes",
        ),
        (
            "value",
            with([
                &[1, 0],
                &[0],
                &[3],
                &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            ]),
            "node 1: no value that is one",
        ),
        ("shared", made(1, &[&[1], &[1], b"f"]), "name 0 is damaged"),
        ("length", made(1, &[&[0], &[2], b"f"]), "name 0 is damaged"),
        (
            "fewer names",
            made(2, &[&[0], &[1], b"f"]),
            "name 1 is damaged",
        ),
        ("values", vec![0], "no values; is this a profile?"),
    ] {
        let error = read_body(&body).err().unwrap_or_default();
        assert_eq!(error, format!("compact profile: {expected}"), "{what}");
    }
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let most: &[u8] = &[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1];
    let body = made(1, &[&[0], &[1], b"f", &[1, 1, 0], &[0, 0], &[3, 3], most]);
    let error = read_body(&body).err().unwrap();
    assert_eq!(error, "s (c): the sum does not fit in 64 bits");
}

#[test]
fn few_bytes_cannot_stand_for_endless_names_or_stacks() {
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
fn there_are_no_more_names_than_nodes_may_be() {
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
fn a_stack_of_100_000_frames_comes_back() {
    let stack: Vec<String> = (0..100_000)
        .map(|depth| format!("f{}", depth % 1000))
        .collect();
    let mut profile = Profile::new(vec![ValueType::samples()]);
    profile.add_stack(&stack, &[1]).unwrap();
    let back = read(&compact(&profile), &ReadOptions::default()).unwrap();
    assert_eq!(back.node_count(), 100_000);
    assert_eq!(text(&back, 0), text(&profile, 0));
}

#[test]
fn a_caller_of_many_callees_takes_no_time() {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for name in 0..200_000 {
        let name = format!("f{}", (name * 7919) % 200_000);
        profile.add_stack(&[name], &[1]).unwrap();
    }
    let back = read(&compact(&profile), &ReadOptions::default()).unwrap();
    assert_eq!(
        (back.node_count(), back.total(0).unwrap()),
        (200_000, 200_000)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_comes_back(
        stacks in prop::collection::vec(
            (prop::collection::vec("[a-c]{0,2}(é|;)?(_\\[[01jikw]\\])?", 0..7), 0..1000i64, any::<u32>()),
            0..40,
        )
    ) {
        let mut profile = Profile::new(vec![ValueType::samples(), ValueType::cpu()]);
        for (stack, samples, nanoseconds) in &stacks {
            profile.add_stack(stack, &[*samples, i64::from(*nanoseconds)]).unwrap();
        }
        profile.set_label("host", "h");
        let written = compact(&profile);
        let back = read(&written, &ReadOptions::default()).unwrap();
        for value in 0..2 {
            prop_assert_eq!(text(&back, value), text(&profile, value));
        }
        prop_assert_eq!(back.node_count(), profile.node_count());
        prop_assert_eq!(back.labels(), profile.labels());
        prop_assert_eq!(back.values(), profile.values());
        prop_assert_eq!(compact(&back), written);
    }
}

#[test]
fn modules_stand_behind_the_columns_and_are_checked() {
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
    assert_eq!(text(&back, 0), text(&profile, 0));
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
