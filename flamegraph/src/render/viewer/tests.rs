use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::ZlibDecoder;

use super::*;
use crate::ops::prune::smaller_frames;

type Stacks = BTreeMap<String, u64>;

/// Reads the data as `viewer/FORMAT.md` describes it; panics where that is not kept.
struct Data {
    bytes: Vec<u8>,
    at: usize,
}

/// The decoded data: how many nodes there are, the stacks of each column, and the times of those that have any.
struct Decoded {
    nodes: usize,
    columns: Vec<Stacks>,
    times: Vec<Table>,
    /// The stacks of threads that wait, what these do, and the depth of the frame that does it.
    waits: Vec<(String, &'static str, usize)>,
}

/// A table of times: its column, start and width, and for each row its bucket, stack, samples, amount and band.
#[derive(Debug, PartialEq)]
struct Table {
    column: usize,
    start: usize,
    width: usize,
    rows: Vec<(usize, String, usize, usize, usize)>,
}

impl Data {
    fn number(&mut self) -> usize {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            number |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number;
            }
            shift += 7;
        }
    }

    fn piece(&mut self) -> Vec<u8> {
        let length = self.number();
        self.at += length;
        self.bytes[self.at - length..self.at].to_vec()
    }

    /// The numbers that a piece is made of.
    fn numbers(&mut self) -> Vec<usize> {
        let mut piece = Data {
            bytes: self.piece(),
            at: 0,
        };
        let mut numbers = Vec::new();
        while piece.at < piece.bytes.len() {
            numbers.push(piece.number());
        }
        numbers
    }

    fn names(&mut self) -> Vec<String> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for _ in 0..self.number() {
            let shared = self.number();
            let mut name = names
                .last()
                .map_or(Vec::new(), |name| name[..shared].to_vec());
            name.extend(self.piece());
            assert!(names.last().is_none_or(|before| before < &name));
            names.push(name);
        }
        let text = |name| String::from_utf8(name).unwrap();
        names.into_iter().map(text).collect()
    }

    /// For each node but the root its whole stack.
    fn stacks(&mut self) -> Vec<String> {
        let names = self.names();
        let mut frames = Vec::new();
        for _ in 0..self.number() {
            let (name, kind) = (self.number(), self.number());
            frames.push(format!("{};{}", names[name], kind));
        }
        let count = self.number();
        let (frame_of, children) = (self.numbers(), self.numbers());
        assert_eq!((frame_of.len(), children.len()), (count - 1, count));
        let mut stacks: Vec<String> = vec![String::new()];
        let mut open = vec![(0, children[0])];
        let mut before_in = BTreeMap::new();
        for (node, frame) in (1..).zip(frame_of) {
            while open.last().unwrap().1 == 0 {
                open.pop();
            }
            let (parent, left) = open.last_mut().unwrap();
            *left -= 1;
            stacks.push(format!("{}/{}", stacks[*parent], frames[frame]));
            let before = before_in.insert(*parent, frame);
            assert!(before.is_none_or(|before| before < frame));
            open.push((node, children[node]));
        }
        assert!(open.iter().all(|&(_, left)| left == 0));
        stacks
    }
}

impl Data {
    fn table(&mut self, stacks: &[String]) -> Table {
        let (column, start, width) = (self.number(), self.number(), self.number());
        let (flags, count) = (self.number(), self.number());
        let (steps, nodes, samples) = (self.numbers(), self.numbers(), self.numbers());
        let optional = |data: &mut Data, flag| match flags & flag {
            0 => vec![0; count],
            _ => data.numbers(),
        };
        let (amounts, bands) = (optional(self, 1), optional(self, 2));
        let mut rows = Vec::new();
        let (mut bucket, mut node) = (0, 0);
        for row in 0..count {
            node = if steps[row] == 0 {
                node + nodes[row]
            } else {
                nodes[row]
            };
            bucket += steps[row];
            rows.push((
                bucket,
                stacks[node].clone(),
                samples[row],
                amounts[row],
                bands[row],
            ));
        }
        let lengths = [&steps, &nodes, &samples, &amounts, &bands].map(Vec::len);
        assert_eq!(lengths, [count; 5]);
        Table {
            column,
            start,
            width,
            rows,
        }
    }
}

impl Data {
    /// What follows the modules, of which the profiles here have none.
    fn waits(&mut self, stacks: &[String]) -> Vec<(String, &'static str, usize)> {
        if self.at == self.bytes.len() {
            return Vec::new();
        }
        assert_eq!(self.number(), 0);
        let count = self.number();
        let (steps, does, above) = (self.numbers(), self.numbers(), self.numbers());
        assert_eq!([steps.len(), does.len(), above.len()], [count; 3]);
        let mut node = 0;
        let mut waits = Vec::new();
        for place in 0..count {
            node += steps[place];
            let stack = stacks[node].clone();
            let depth = stack.matches(';').count() - above[place];
            waits.push((stack, crate::ops::DOING[does[place]].0, depth));
        }
        waits
    }
}

fn decoded(writer: &mut ViewerWriter) -> Decoded {
    let mut packed = Vec::new();
    writer.finish(&mut packed).unwrap();
    let mut bytes = Vec::new();
    ZlibDecoder::new(&packed[..])
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(&bytes[..4], b"HPV4");
    let mut data = Data { bytes, at: 4 };
    let stacks = data.stacks();
    let mut columns = Vec::new();
    for _ in 0..data.number() {
        let entries = data.number();
        let (steps, values) = (data.numbers(), data.numbers());
        assert_eq!((steps.len(), values.len()), (entries, entries));
        let mut node = 0;
        let mut column = Stacks::new();
        for (place, (step, value)) in steps.into_iter().zip(values).enumerate() {
            assert!(value > 0 && (step > 0 || place == 0));
            node += step;
            column.insert(stacks[node].clone(), value as u64);
        }
        columns.push(column);
    }
    let times = (0..data.number()).map(|_| data.table(&stacks)).collect();
    let waits = data.waits(&stacks);
    assert_eq!(data.at, data.bytes.len());
    Decoded {
        nodes: stacks.len(),
        columns,
        times,
        waits,
    }
}

fn profile(value: &str, stacks: &[(&str, i64)]) -> Profile {
    let mut profile = Profile::new(vec![ValueType::new(value, "count")]);
    for &(stack, amount) in stacks {
        let frames: Vec<&str> = stack.split(';').filter(|frame| !frame.is_empty()).collect();
        profile.add_stack(&frames, &[amount]).unwrap();
    }
    profile
}

fn stacks(expected: &[(&str, u64)]) -> Stacks {
    let stacks = expected.iter();
    stacks
        .map(|&(stack, value)| (stack.to_string(), value))
        .collect()
}

#[test]
fn columns_of_one_tree_come_back() {
    let mut writer = ViewerWriter::new();
    let first = profile(
        "samples",
        &[("b_[k];c", 2), ("b_[j]", 300), ("a", 1), ("", 4)],
    );
    let second = profile(
        "alloc",
        &[("b_[j];café", 7), ("b_[j];cafè", 1 << 60), ("z", 0)],
    );
    assert_eq!(writer.add(&first, 0, None).unwrap(), 0);
    assert_eq!(writer.add(&second, 0, None).unwrap(), 1);
    let decoded = decoded(&mut writer);
    // Nothing is left of what has no samples.
    assert_eq!(decoded.nodes, 1 + 4 + 2);
    assert_eq!(
        decoded.columns,
        [
            stacks(&[("", 4), ("/a;0", 1), ("/b;3", 300), ("/b;5/c;0", 2)]),
            stacks(&[("/b;3/café;0", 7), ("/b;3/cafè;0", 1 << 60)])
        ]
    );
}

#[test]
fn threads_are_columns_the_heaviest_first() {
    let by_thread = profile(
        "samples",
        &[
            ("[a];x", 1),
            ("[b];x;y", 20),
            ("[b]", 5),
            ("[c];z", 9),
            ("x;[in]", 300),
        ],
    );
    let mut writer = ViewerWriter::new();
    let made = writer.add_threads(&by_thread, 0, 2, false, None).unwrap();
    let names: Vec<_> = made
        .iter()
        .map(|one| (one.thread.as_deref(), one.total))
        .collect();
    assert_eq!(names, [(Some("b"), 25), (Some("c"), 9), (None, 301)]);
    assert_eq!(made[2].column, 2);
    assert_eq!(
        decoded(&mut writer).columns,
        [
            stacks(&[("", 5), ("/x;0/y;0", 20)]),
            stacks(&[("/z;0", 9)]),
            stacks(&[("/x;0", 1), ("/x;0/[in];0", 300)])
        ]
    );
    let mut writer = ViewerWriter::new();
    writer.add_threads(&by_thread, 0, 2, true, None).unwrap();
    let kept = &decoded(&mut writer).columns[0];
    assert_eq!(kept, &stacks(&[("/[b];0", 5), ("/[b];0/x;0/y;0", 20)]));
}

/// Many stacks: those of few samples are the more, and each profile has its own.
fn forest(seed: u64) -> Profile {
    let mut profile = Profile::new(vec![ValueType::samples()]);
    for number in 0..400u64 {
        let dice = (number * 7919 + seed * 104_729) % 1009;
        let path: Vec<String> = (0..2 + dice % 9)
            .map(|depth| format!("f{}", (dice >> depth) % 5 + depth * seed % 7))
            .collect();
        profile
            .add_stack(&path, &[1 + (1000 / (1 + dice)) as i64])
            .unwrap();
    }
    profile
}

fn sum(column: &Stacks) -> u64 {
    column.values().sum()
}

#[test]
fn thin_subtrees_are_put_together_and_totals_stay() {
    for most in [2, 3, 10, 100, 400] {
        let mut writer = ViewerWriter::with_most(most, MOST_ROWS);
        let mut whole = ViewerWriter::new();
        for seed in 0..8 {
            writer.add(&forest(seed), 0, None).unwrap();
            whole.add(&forest(seed), 0, None).unwrap();
            assert!(writer.union.tree.len() <= GROWTH * most);
        }
        let (few, all) = (decoded(&mut writer), decoded(&mut whole));
        assert!(
            all.nodes > 400 && few.nodes <= most && few.nodes > most / 4,
            "{}",
            few.nodes
        );
        for (few, all) in few.columns.iter().zip(&all.columns) {
            assert_eq!(sum(few), sum(all));
        }
        assert_eq!(first_level(&few.columns, &all.columns), Ok(()));
    }
}

/// What is kept at the root has the total that it has in the whole tree.
fn first_level(few: &[Stacks], all: &[Stacks]) -> std::result::Result<(), String> {
    let totals = |columns: &[Stacks]| {
        let mut totals = Stacks::new();
        for (stack, value) in columns.iter().flatten() {
            let first = stack.split('/').nth(1).unwrap_or_default();
            *totals.entry(first.to_string()).or_default() += value;
        }
        totals
    };
    let all = totals(all);
    for (frame, total) in totals(few) {
        let name = frame.split(';').next().unwrap_or_default();
        if smaller_frames(name).is_none() && all.get(&frame) != Some(&total) {
            return Err(format!("{frame}: {total} of {:?}", all.get(&frame)));
        }
    }
    Ok(())
}

#[test]
fn the_thinnest_go_first_and_every_event_counts() {
    let mut writer = ViewerWriter::with_most(6, MOST_ROWS);
    let cpu = [("a;b", 900), ("a;c", 50), ("a;d", 30), ("e", 20)];
    writer.add(&profile("samples", &cpu), 0, None).unwrap();
    // Few locks, of which one frame has half.
    writer
        .add(&profile("delay", &[("a;d", 1), ("a;b", 1)]), 0, None)
        .unwrap();
    let columns = decoded(&mut writer).columns;
    assert_eq!(
        columns[0],
        stacks(&[
            ("/a;0/b;0", 900),
            ("/a;0/c;0", 50),
            ("/a;0/d;0", 30),
            ("/e;0", 20)
        ])
    );
    let mut writer = ViewerWriter::with_most(8, MOST_ROWS);
    let thin = [
        ("a;b", 900),
        ("a;c;x", 5),
        ("a;d;y", 3),
        ("a;f", 1),
        ("e", 20),
    ];
    writer.add(&profile("samples", &thin), 0, None).unwrap();
    assert_eq!(
        decoded(&mut writer).columns[0],
        stacks(&[
            ("/a;0/b;0", 900),
            ("/a;0/(5 smaller frames);0", 9),
            ("/e;0", 20)
        ])
    );
}

#[test]
fn groups_of_threads_stay_where_they_were_when_nodes_are_numbered_anew() {
    let thin: Vec<String> = (0..30).map(|number| format!("x{number}")).collect();
    let before = thin[..10].iter().map(|name| (name.as_str(), 1));
    let before: Vec<_> = before.chain([("m;hot", 1000)]).collect();
    let groups: Vec<String> = thin.iter().map(|name| format!("[c];{name}")).collect();
    let groups = groups.iter().map(|stack| (stack.as_str(), 1));
    let groups: Vec<_> = groups
        .chain([("[a];m;hot", 500), ("[b];m;hot", 300)])
        .collect();
    let mut writer = ViewerWriter::with_most(4, MOST_ROWS);
    writer.add(&profile("samples", &before), 0, None).unwrap();
    let made = writer
        .add_threads(&profile("samples", &groups), 0, 5, false, None)
        .unwrap();
    assert_eq!(
        made.iter().map(|one| one.column).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let columns = decoded(&mut writer).columns;
    assert_eq!(columns[1], stacks(&[("/m;0/hot;0", 500)]));
    assert_eq!(columns[2], stacks(&[("/m;0/hot;0", 300)]));
    assert_eq!(columns[3], stacks(&[("/(30 smaller frames);0", 30)]));
}

/// The profile with these rows: stack, bucket, slice, band, samples, amount.
fn timed(mut profile: Profile, width: u64, rows: &[(&str, u32, u16, u8, u32, u64)]) -> Profile {
    let rows = rows
        .iter()
        .map(|&(stack, bucket, slice, band, samples, amount)| {
            let mut node = ROOT;
            for name in stack.split(';') {
                let frame = profile.frames.intern(name.as_bytes()).unwrap();
                node = profile.child(node, frame).unwrap();
            }
            Row {
                node,
                bucket,
                slice,
                band,
                samples,
                amount,
            }
        });
    let rows = rows.collect();
    let slice = |name: &str, certain| Slice {
        name: name.to_string(),
        certain,
    };
    let slices = vec![slice("stage 1.0", true), slice("stage 1.0", false)];
    profile.set_times(Some(Times::new(5_000_000, width, slices, rows)));
    profile
}

fn row(bucket: usize, stack: &str, samples: usize) -> (usize, String, usize, usize, usize) {
    (bucket, stack.to_string(), samples, 0, 0)
}

#[test]
fn times_follow_nodes_threads_and_slices() {
    let stacks_of = [("[b];z;y", 10), ("[b];a", 4), ("[c];a", 2), ("z", 1)];
    let rows = [
        ("[b];z;y", 7, 0, 0, 2, 0),
        ("[b];z;y", 3, 1, 0, 2, 0),
        ("[b];z;y", 3, 2, 0, 1, 0),
        ("[b];a", 3, 1, 0, 4, 0),
        ("[c];a", 9, 0, 0, 2, 0),
        ("z", 3, 1, 0, 1, 0),
    ];
    let profile = timed(profile("samples", &stacks_of), 20_000, &rows);
    let mut writer = ViewerWriter::new();
    let made = writer
        .add_threads(&profile, 0, 1, false, Some(4_000_000))
        .unwrap();
    let parts: Vec<_> = made
        .iter()
        .map(|one| {
            (
                one.thread.as_deref(),
                one.slice.as_ref().map(|slice| slice.certain),
                one.total,
            )
        })
        .collect();
    assert_eq!(
        parts,
        [
            (Some("b"), Some(true), 8),
            (Some("b"), Some(false), 2),
            (Some("b"), None, 4),
            (None, Some(true), 1),
            (None, None, 2)
        ]
    );
    let decoded = decoded(&mut writer);
    assert_eq!(decoded.columns[0], stacks(&[("/a;0", 4), ("/z;0/y;0", 4)]));
    let table = |column, rows: &[_]| Table {
        column,
        start: 1_000_000,
        width: 20_000,
        rows: rows.to_vec(),
    };
    assert_eq!(
        decoded.times,
        [
            table(0, &[row(3, "/a;0", 4), row(3, "/z;0/y;0", 2)]),
            table(1, &[row(3, "/z;0/y;0", 1)]),
            table(2, &[row(7, "/z;0/y;0", 2)]),
            table(3, &[row(3, "/z;0", 1)]),
            table(4, &[row(9, "/a;0", 2)])
        ]
    );
}

#[test]
fn only_the_value_that_amounts_are_of_has_them() {
    let mut waits = Profile::new(vec![
        ValueType::samples(),
        ValueType::new("delay", "nanoseconds"),
    ]);
    waits.add_stack(&["a"], &[3, 900]).unwrap();
    let waits = timed(
        waits,
        20_000,
        &[("a", 0, 0, 9, 1, 800), ("a", 1, 0, 4, 2, 100)],
    );
    let mut writer = ViewerWriter::new();
    writer.add(&waits, 0, Some(0)).unwrap();
    writer.add(&waits, 1, Some(0)).unwrap();
    writer.add(&waits, 1, None).unwrap();
    let swapped = waits.select(&[1, 0]).unwrap();
    writer.add(&swapped, 0, Some(0)).unwrap();
    writer
        .add(&swapped.select(&[1]).unwrap(), 0, Some(0))
        .unwrap();
    let rows: Vec<_> = decoded(&mut writer)
        .times
        .into_iter()
        .map(|table| table.rows)
        .collect();
    let row = |bucket, samples, amount, band| (bucket, "/a;0".to_string(), samples, amount, band);
    assert_eq!(rows[0], [row(0, 1, 0, 9), row(1, 2, 0, 4)]);
    assert_eq!(rows[1], [row(0, 1, 800, 9), row(1, 2, 100, 4)]);
    assert_eq!(
        (rows[2].clone(), rows[3].clone()),
        (rows[1].clone(), rows[0].clone())
    );
    assert_eq!(rows.len(), 4);
    assert_eq!(
        waits
            .in_range(5_000_000, 5_020_000)
            .unwrap()
            .total(1)
            .unwrap(),
        800
    );
    assert_eq!(
        swapped
            .in_range(5_000_000, 5_020_000)
            .unwrap()
            .total(0)
            .unwrap(),
        800
    );
}

#[test]
fn slices_share_counts_by_samples_and_amounts_by_amounts() {
    let mut waits = Profile::new(vec![
        ValueType::new("contentions", "count"),
        ValueType::new("delay", "nanoseconds"),
    ]);
    waits.add_stack(&["a"], &[10, 100]).unwrap();
    let rows = [("a", 0, 1, 0, 9, 10), ("a", 1, 2, 0, 1, 90)];
    let waits = timed(waits, 20_000, &rows);
    let totals = |value| -> Vec<u64> {
        let made = ViewerWriter::new().add_threads(&waits, value, 20, false, Some(0));
        made.unwrap().iter().map(|part| part.total).collect()
    };
    assert_eq!((totals(0), totals(1)), (vec![9, 1], vec![10, 90]));
    let of_slice = waits.in_slice(1).unwrap();
    assert_eq!([0, 1].map(|value| of_slice.total(value).unwrap()), [9, 10]);
}

#[test]
fn times_follow_nodes_that_are_put_together() {
    let thin = [
        ("a;b", 900),
        ("a;c;x", 5),
        ("a;d;y", 3),
        ("a;f", 1),
        ("e", 20),
    ];
    let rows = thin.map(|(stack, value)| (stack, 1, 0, 0, value as u32, 0));
    let mut writer = ViewerWriter::with_most(8, MOST_ROWS);
    writer
        .add(&timed(profile("samples", &thin), 20_000, &rows), 0, Some(0))
        .unwrap();
    assert_eq!(
        decoded(&mut writer).times[0].rows,
        [
            row(1, "/a;0/(5 smaller frames);0", 9),
            row(1, "/a;0/b;0", 900),
            row(1, "/e;0", 20)
        ]
    );
}

#[test]
fn buckets_of_a_page_are_of_one_length_and_longer_where_rows_are_too_many() {
    let every =
        |count: u32| -> Vec<_> { (0..count).map(|bucket| ("a", bucket, 0, 0, 1, 0)).collect() };
    let one = timed(profile("samples", &[("a", 64)]), 20_000, &every(64));
    let coarse = timed(profile("samples", &[("a", 4)]), 40_000, &every(4));
    let mut writer = ViewerWriter::with_most(100, 100);
    writer.add(&one, 0, Some(0)).unwrap();
    writer.add(&coarse, 0, Some(0)).unwrap();
    let lengths = |writer: &mut ViewerWriter| -> Vec<(usize, usize)> {
        let tables = decoded(writer).times;
        tables
            .iter()
            .map(|table| (table.width, table.rows.len()))
            .collect()
    };
    assert_eq!(lengths(&mut writer), [(40_000, 32), (40_000, 4)]);
    for _ in 0..9 {
        writer.add(&one, 0, Some(0)).unwrap();
        assert!(
            writer
                .times
                .iter()
                .map(|times| times.rows().count())
                .sum::<usize>()
                <= 2 * 100
        );
    }
    let made = lengths(&mut writer);
    assert_eq!(writer.bucket_width(), Some(160_000));
    assert_eq!(made[1], (160_000, 1));
    assert!(made.iter().skip(2).all(|&length| length == (160_000, 8)));
    for _ in 0..200 {
        writer.add(&one, 0, Some(0)).unwrap();
    }
    assert_eq!(writer.bucket_width(), None, "too many even in long buckets");
}

#[test]
fn what_threads_do_is_there_for_events_of_waits_alone() {
    let sleep = "a/B.f_[j];java/lang/Thread.sleep_[j]";
    let mut writer = ViewerWriter::new();
    let wall = profile(
        "wall",
        &[(&format!("{sleep};JVM_Sleep"), 2), ("a/B.f_[j]", 1)],
    );
    let lock = profile("delay", &[("a/B.f_[j];a.Lock_[i]", 1)]);
    let cpu = profile("samples", &[(sleep, 3)]);
    for event in [&wall, &lock, &cpu] {
        writer.add(event, 0, None).unwrap();
    }
    let found = decoded(&mut writer).waits;
    let found: Vec<_> = found
        .iter()
        .map(|(_, does, depth)| (*does, *depth))
        .collect();
    assert_eq!(found, [("monitor", 1), ("sleep", 1)]);
}

#[test]
fn threads_that_are_idle_are_not_the_heaviest() {
    let idle = "java/lang/Thread.run_[j];java/util/concurrent/ThreadPoolExecutor.getTask_[j];java/lang/Object.wait_[j]";
    let stacks = [(format!("[a];{idle}"), 9), ("[b];a/B.f_[j]".into(), 1)];
    let stacks: Vec<_> = stacks
        .iter()
        .map(|(stack, amount)| (stack.as_str(), *amount))
        .collect();
    let mut writer = ViewerWriter::new();
    let made = writer
        .add_threads(&profile("wall", &stacks), 0, 1, false, None)
        .unwrap();
    let made: Vec<_> = made
        .iter()
        .map(|one| (one.thread.as_deref(), one.total, one.busy))
        .collect();
    assert_eq!(made, [(Some("b"), 1, 1), (None, 9, 0)]);
}
