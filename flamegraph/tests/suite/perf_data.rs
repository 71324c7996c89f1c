//! perf.data files made by hand: what records mean, and errors.

use flamegraph::{read, Format, Profile, ReadOptions, SymbolOptions};

use crate::perf_maker::{halves, record, words, Thread, USER};
use crate::support::folded;

const KERNEL: u64 = -128i64 as u64;
const MISC_KERNEL: u16 = 1;
const MISC_USER: u16 = 2;

const MAIN: Thread = Thread { pid: 7, tid: 7 };
const OTHER: Thread = Thread { pid: 7, tid: 8 };

/// An event of IP, TID, TIME, CALLCHAIN, ID; every record ends with thread, time and id.
fn event(kind: u32, config: u64) -> Vec<u8> {
    let mut bytes = [halves(&[kind, 128]), words(&[config, 0, 0x67, 0, 1 << 18])].concat();
    bytes.resize(128, 0);
    bytes
}

fn fork(pid: u32, parent: u32, time: u64) -> Vec<u8> {
    let ids = halves(&[pid, parent, pid, parent]);
    let body = [ids, words(&[time]), MAIN.trailer(time)];
    record(7, 0, &body.concat())
}

fn sample(thread: Thread, time: u64, id: u64, chain: &[u64]) -> Vec<u8> {
    let body = [
        words(&[chain.first().copied().unwrap_or(0)]),
        halves(&[thread.pid, thread.tid]),
        words(&[time, id, chain.len() as u64]),
        words(chain),
    ]
    .concat();
    record(9, MISC_KERNEL, &body)
}

/// A file of two events (ids 1 and 2) and these records.
pub fn file(records: &[Vec<u8>]) -> Vec<u8> {
    const ATTRS: u64 = 104;
    const IDS: u64 = ATTRS + 2 * 144;
    const DATA: u64 = IDS + 16;
    let records = records.concat();
    let header = words(&[
        104,
        144,
        ATTRS,
        288,
        DATA,
        records.len() as u64,
        0,
        0,
        0,
        0,
        0,
        0,
    ]);
    let events = [
        event(1, 0),
        words(&[IDS, 8]),
        event(1, 2),
        words(&[IDS + 8, 8]),
    ];
    [
        b"PERFILE2".to_vec(),
        header,
        events.concat(),
        words(&[1, 2]),
        records,
    ]
    .concat()
}

pub fn piped(records: &[Vec<u8>]) -> Vec<u8> {
    let attr = |kind, config, id| record(64, 0, &[event(kind, config), words(&[id])].concat());
    let events = [attr(1, 0, 1), attr(1, 2, 2)].concat();
    [b"PERFILE2".to_vec(), words(&[16]), events, records.concat()].concat()
}

/// A packed record: one block, stored as it is, of a zstd stream that does not end.
pub fn packed(content: &[u8], first: bool) -> Vec<u8> {
    const FRAME: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    let block = (content.len() as u32) << 3;
    let start: &[u8] = if first { &FRAME } else { &[] };
    record(81, 0, &[start, &block.to_le_bytes()[..3], content].concat())
}

pub fn options() -> ReadOptions {
    ReadOptions {
        symbols: SymbolOptions::none(),
        ..ReadOptions::of(Some(Format::PerfData))
    }
}

fn fold(bytes: &[u8], options: &ReadOptions) -> Result<Profile, String> {
    read(bytes, options).map_err(|error| error.to_string())
}

/// A process, its child, samples of both events; the CPUs' records are out of order by a round.
pub fn story() -> Vec<Vec<u8>> {
    vec![
        MAIN.comm("main one", 10),
        MAIN.mmap(0x1000, 0x1000, "/bin/prog", 11),
        sample(
            MAIN,
            30,
            1,
            &[KERNEL, 0xffffffff81000000, USER, 0x1800, 0x1900],
        ),
        record(68, 0, &[]),
        MAIN.mmap(0x5000, 0x1000, "/lib/x.so", 20),
        sample(MAIN, 25, 2, &[USER, 0x5001, 0x1801]),
        record(68, 0, &[]),
        fork(8, 7, 40),
        sample(OTHER, 50, 1, &[USER, 0x1800, 0x9999]),
    ]
}

#[test]
fn records_are_read_in_order_of_time() {
    for bytes in [file(&story()), piped(&story())] {
        let profile = fold(&bytes, &options()).unwrap();
        let names: Vec<&str> = profile.values().iter().map(|v| v.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "cpu-clock",
                "cpu-clock_period",
                "page-faults",
                "page-faults_period"
            ]
        );
        assert_eq!(
            folded(&profile, 0),
            "main_one;[prog];[prog];[unknown] 1\nmain_one;[unknown];[prog] 1\n"
        );
        assert_eq!(folded(&profile, 2), "main_one;[prog];[x.so] 1\n");
        let modules: Vec<_> = profile.modules().collect();
        assert_eq!(modules, [("[prog]", "prog"), ("[x.so]", "x.so")]);
    }
}

/// A value that only looks like a marker was never an address: the kernel followed a broken chain.
#[test]
fn a_broken_chain_counts_for_its_command() {
    let records = [
        MAIN.comm("main", 10),
        sample(MAIN, 30, 1, &[USER, 0x1800, u64::MAX]),
    ];
    let profile = fold(&file(&records), &options()).unwrap();
    assert_eq!(folded(&profile, 0), "main 1\n");
}

#[test]
fn the_unknown_is_counted() {
    let profile = fold(&file(&story()), &options()).unwrap();
    let unknown = profile.unknown().unwrap();
    assert_eq!((unknown.samples, unknown.leaf_samples), (3, 3));
    assert_eq!((unknown.frames, unknown.unknown_frames), (7, 7));
    assert_eq!(unknown.modules["/bin/prog"], 4);
    assert_eq!(unknown.modules["[unknown]"], 2);
    let [warning] = profile.warnings() else {
        panic!("{:?}", profile.warnings());
    };
    assert!(
        warning.starts_with("100.0 % of samples end in an unknown function"),
        "{warning}"
    );
}

#[test]
fn options_name_the_root_and_choose_the_event() {
    let mut wanted = options();
    wanted.perf.tid = true;
    wanted.perf.event_filter = Some("page-faults".to_string());
    let profile = fold(&file(&story()), &wanted).unwrap();
    assert_eq!(profile.values()[0].name, "samples");
    assert_eq!(folded(&profile, 0), "main_one-7/7;[prog];[x.so] 1\n");
    wanted.perf.event_filter = None;
    wanted.threads = flamegraph::Threads::Each;
    let profile = fold(&file(&story()), &wanted).unwrap();
    assert!(folded(&profile, 2).starts_with("[main one tid=7];main_one-7/7;"));
}

#[test]
fn the_error_of_an_unknown_event_lists_the_others() {
    let mut wanted = options();
    wanted.perf.event_filter = Some("cycles".to_string());
    for bytes in [file(&story()), piped(&story())] {
        let error = fold(&bytes, &wanted).err().unwrap();
        let expected = "no event \"cycles\" in this recording; there are: cpu-clock, page-faults";
        assert_eq!(error, expected);
    }
}

/// A file like `file`'s, whose events say the period with each sample.
fn file_with_periods(periods: &[u64]) -> Vec<u8> {
    let sample = |(number, &period): (usize, &u64)| {
        let place = [words(&[0x1800]), halves(&[7, 7])];
        let rest = words(&[20 + number as u64, 1, period, 1, 0x1800]);
        record(9, MISC_USER, &[place.concat(), rest].concat())
    };
    let samples = periods.iter().enumerate().map(sample);
    let mut bytes = file(&[vec![MAIN.comm("main", 10)], samples.collect()].concat());
    for event in [104, 104 + 144] {
        bytes[event + 25] |= 1;
    }
    bytes
}

#[test]
fn an_absurd_period_is_malformed_and_the_rest_counts() {
    let bytes = file_with_periods(&[5, 1 << 63, u64::MAX, i64::MAX as u64, 6]);
    let profile = fold(&bytes, &options()).unwrap();
    let totals = (profile.total(0).unwrap(), profile.total(1).unwrap());
    assert_eq!((totals, profile.malformed_lines()), ((2, 11), 3));
}

#[test]
fn a_recording_that_was_killed_gives_what_it_has() {
    let mut bytes = file(&story());
    // The size of the data is written at the end.
    bytes[48..56].fill(0);
    assert_eq!(fold(&bytes, &options()).unwrap().total(0).unwrap(), 2);
    bytes.truncate(bytes.len() - 4);
    let cut = fold(&bytes, &options()).unwrap();
    assert_eq!((cut.total(0).unwrap(), cut.malformed_lines()), (1, 1));
}

/// The pieces need not end where records do.
#[test]
fn packed_records_are_read_like_others() {
    let all = story().concat();
    let (one, other) = all.split_at(all.len() / 2 + 3);
    let bytes = file(&[packed(one, true), record(68, 0, &[]), packed(other, false)]);
    let (ours, plain) = (fold(&bytes, &options()), fold(&file(&story()), &options()));
    let (ours, plain) = (ours.unwrap(), plain.unwrap());
    for value in 0..4 {
        assert_eq!(folded(&ours, value), folded(&plain, value));
    }
    for inside in [words(&[0]), packed(b"", true)] {
        let error = fold(&file(&[packed(&inside, true)]), &options())
            .err()
            .unwrap();
        assert!(error.ends_with("packed records that cannot be"), "{error}");
    }
}

#[test]
fn errors_say_where() {
    let whole = file(&story());
    for (bytes, reason) in [
        (&whole[..40], "byte 16: the file ends within its header"),
        (b"nothing of the kind", "byte 0: not a perf.data file"),
        (
            &file(&[words(&[0])]),
            "byte 408: a record is smaller than its header",
        ),
    ] {
        let error = fold(bytes, &options()).err().unwrap();
        assert_eq!(error, format!("perf.data: {reason}"));
    }
    let cut = fold(&whole[..whole.len() - 1], &options()).err().unwrap();
    assert!(cut.ends_with("the file ends within its records"), "{cut}");
}

/// A process with `size` mappings, and as many children with the same mappings and one more.
fn a_family(size: u32) -> Vec<u8> {
    let process = |pid| Thread { pid, tid: pid };
    let mut records = Vec::new();
    for number in (0..u64::from(size)).rev() {
        records.push(MAIN.mmap(number * 0x2000, 0x1000, "/bin/prog", 1 + number));
    }
    for child in 0..size {
        let time = u64::from(size + child) * 2;
        records.push(fork(100 + child, 7, time));
        records.push(process(100 + child).mmap(1 << 40, 0x1000, "/bin/x", time + 1));
    }
    let (last, time) = (99 + size, u64::from(size) * 5);
    records.push(sample(process(last), time, 1, &[USER, 0x10, (1 << 40) + 1]));
    file(&records)
}

#[test]
fn a_forked_process_has_the_mappings_of_its_parent() {
    let profile = fold(&a_family(50), &options()).unwrap();
    assert_eq!(folded(&profile, 0), ":7;[x];[prog] 1\n");
}
