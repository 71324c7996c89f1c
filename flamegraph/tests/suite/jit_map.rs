//! Maps of compiled code made by hand, as `agents/jvmti/PERFMAP.md` describes, and damaged ones.

use flamegraph::perf_data::JitMap;
use flamegraph::Kind;

use crate::perf_maker::{halves, words};

fn record(kind: u32, body: &[u8]) -> Vec<u8> {
    [halves(&[kind, body.len() as u32]), body.to_vec()].concat()
}

fn name(name: &[u8]) -> Vec<u8> {
    record(1, name)
}

/// A range's end, how many frames stay, and the further ones.
type Range<'a> = (u32, u16, &'a [u32]);

fn code(start: u64, length: u32, method: u32, ranges: &[Range<'_>]) -> Vec<u8> {
    let mut body = [
        words(&[start]),
        halves(&[length, method, ranges.len() as u32]),
    ]
    .concat();
    for (end, keep, add) in ranges {
        body.extend(end.to_le_bytes());
        body.extend(keep.to_le_bytes());
        body.extend((add.len() as u16).to_le_bytes());
        body.extend(halves(add));
    }
    record(2, &body)
}

fn stub(start: u64, length: u32, name: u32) -> Vec<u8> {
    record(3, &[words(&[start]), halves(&[length, name])].concat())
}

fn header() -> Vec<u8> {
    [b"HPROFMAP".to_vec(), halves(&[1, 62])].concat()
}

fn end(counts: [u64; 4]) -> Vec<u8> {
    record(5, &[words(&counts), words(&[0])].concat())
}

pub fn map() -> Vec<u8> {
    [
        header(),
        name(b"a/B.outer"),
        name(b"a/B.inner"),
        name(b"a/C;\xffd"),
        name(b"Interpreter"),
        code(
            0x1000,
            100,
            0,
            &[(10, 0, &[0]), (20, 1, &[1, 2]), (30, 2, &[]), (40, 1, &[2])],
        ),
        stub(0x1050, 100, 3),
        record(4, &words(&[0x2000])),
        code(0x2000, 10, 1, &[]),
        end([4, 2, 1, 1]),
    ]
    .concat()
}

#[test]
fn addresses_have_their_inlined_frames() {
    let map = JitMap::binary(&map()[..]).unwrap();
    let (outer, inner) = (("a/B.outer", Kind::Jit), ("a/B.inner", Kind::Inlined));
    let third = ("a/C:\u{fffd}d", Kind::Inlined);
    let interpreter = ("Interpreter", Kind::Interpreted);
    let cases = [
        (0xfff, vec![]),
        (0x1000, vec![outer]),
        (0x100a, vec![outer, inner, third]),
        (0x1014, vec![outer, inner]),
        (0x101e, vec![outer, third]),
        (0x1028, vec![outer]),
        (0x1063, vec![outer]),
        (0x1064, vec![interpreter]),
        (0x10b4, vec![]),
        // Newer than the samples.
        (0x2000, vec![]),
    ];
    for (address, expected) in cases {
        assert_eq!(map.find(address), expected, "{address:x}");
    }
}

#[test]
fn damaged_maps_are_refused() {
    let whole = map();
    let with = |records: &[Vec<u8>]| [header(), name(b"a"), records.concat()].concat();
    let refused = |bytes: &[u8], reason: &str| {
        let error = JitMap::binary(bytes).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}: {reason}");
    };
    refused(
        b"error: out of memory\nmore",
        "map of compiled code: out of memory",
    );
    refused(b"something else altogether", "no map of compiled code");
    let other = [b"HPROFMAP".to_vec(), halves(&[2, 62])].concat();
    refused(&other, "another version or machine");
    refused(&whole[..whole.len() - 48], "cut short");
    refused(
        &[whole.clone(), vec![0]].concat(),
        "something follows the end",
    );
    refused(&with(&[record(9, &[])]), "unknown kind");
    refused(&with(&[halves(&[1, 17 << 20])]), "larger than can be");
    // Frames below frames below frames: what a range can claim is bounded, not only what it says.
    let names = [0u32; 600];
    let tower: &[Range<'_>] = &[(1, 0, &names), (2, 600, &names)];
    for contradiction in [
        end([2, 0, 0, 0]),
        stub(1, 1, 1),
        stub(u64::MAX, 1, 0),
        code(1, 10, 0, &[(11, 0, &[0])]),
        code(1, 10, 0, &[(5, 0, &[0]), (5, 1, &[])]),
        code(1, 10, 0, &[(5, 1, &[0])]),
        code(1, 10, 0, &[(5, 0, &[])]),
        code(0, 10, 0, tower),
    ] {
        refused(&with(&[contradiction]), "contradicts itself");
    }
}
