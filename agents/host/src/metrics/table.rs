//! Readings by series, in columns.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::wire::events::{Kind, Metrics, Series};

/// Readings of a recording, and numbers of all series. Beyond that every second reading is dropped.
const MOST_READINGS: usize = 14_400;
const MOST_NUMBERS: usize = 1_000_000;
const MOST_SERIES: usize = 8_000;
const LARGEST: u64 = i64::MAX as u64;
const NOT_READ: i64 = -1;

/// What a number says of a thing. `of` is the kind of thing, `id` which one it is.
#[derive(PartialEq, Eq)]
pub struct Metric {
    pub of: &'static str,
    pub id: String,
    pub name: String,
    kind: Kind,
    unit: &'static str,
}

pub struct Reading {
    pub metric: Metric,
    pub value: u64,
}

/// Where the readings of one thing are added.
pub struct Thing<'a> {
    of: &'static str,
    id: &'a str,
    to: &'a mut Vec<Reading>,
}

impl<'a> Thing<'a> {
    pub fn new(of: &'static str, id: &'a str, to: &'a mut Vec<Reading>) -> Self {
        Self { of, id, to }
    }

    pub fn counter(&mut self, name: impl Into<String>, unit: &'static str, value: u64) {
        self.add(name, Kind::Counter, unit, value);
    }

    pub fn gauge(&mut self, name: impl Into<String>, unit: &'static str, value: u64) {
        self.add(name, Kind::Gauge, unit, value);
    }

    pub fn add(&mut self, name: impl Into<String>, kind: Kind, unit: &'static str, value: u64) {
        let metric = Metric {
            of: self.of,
            id: self.id.to_owned(),
            name: name.into(),
            kind,
            unit,
        };
        self.to.push(Reading { metric, value });
    }
}

struct Column {
    metric: Metric,
    values: Vec<i64>,
}

pub struct Table {
    /// The time between two readings.
    pub every: Duration,
    times: Vec<i64>,
    columns: Vec<Column>,
    /// The readings that were sent already.
    sent: usize,
}

impl Table {
    pub fn new(every: Duration) -> Self {
        Self {
            every,
            times: Vec::new(),
            columns: Vec::new(),
            sent: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Add all numbers of one moment, in microseconds since 1970.
    pub fn add(&mut self, time: i64, readings: Vec<Reading>) {
        if self.times.last().is_some_and(|last| *last >= time) {
            return;
        }
        let before = self.times.len();
        self.times.push(time);
        let mut place = 0; // readings come in the same order each time
        for reading in readings {
            let same = |column: &Column| column.metric == reading.metric;
            if !self.columns.get(place).is_some_and(same) {
                place = self
                    .columns
                    .iter()
                    .position(same)
                    .unwrap_or(self.columns.len());
            }
            if place == self.columns.len() {
                if place == MOST_SERIES {
                    break;
                }
                self.columns.push(Column {
                    metric: reading.metric,
                    values: Vec::new(),
                });
            }
            let values = &mut self.columns[place].values;
            values.resize(before, NOT_READ);
            let fits = reading.value <= LARGEST;
            values.push(if fits { reading.value as i64 } else { NOT_READ });
            place += 1;
        }
        for column in &mut self.columns {
            column.values.resize(self.times.len(), NOT_READ);
        }
        if self.times.len() > MOST_READINGS || self.times.len() * self.columns.len() > MOST_NUMBERS
        {
            self.halve();
        }
    }

    /// Forget all readings but the last.
    pub fn keep_last(&mut self) {
        self.times.drain(..self.times.len().saturating_sub(1));
        for column in &mut self.columns {
            column.values.drain(..column.values.len().saturating_sub(1));
        }
        self.columns
            .retain(|column| column.values.first().is_some_and(|last| *last != NOT_READ));
    }

    /// Keep every second reading, and read half as often.
    fn halve(&mut self) {
        self.every *= 2;
        self.sent = self.sent.div_ceil(2);
        self.times = self.times.iter().copied().step_by(2).collect();
        for column in &mut self.columns {
            let values = &column.values;
            let kept = |place: usize| match (values[place], column.metric.kind) {
                // What is not read every time, such as each thread's time, would go if it was read in between.
                (NOT_READ, Kind::Counter) if place > 0 => values[place - 1],
                (value, _) => value,
            };
            column.values = (0..values.len()).step_by(2).map(kept).collect();
        }
    }

    /// All readings.
    pub fn message(&self, facts: BTreeMap<&'static str, u64>) -> Metrics {
        self.since(0, facts)
    }

    /// The readings since the last call of this.
    pub fn part(&mut self, facts: BTreeMap<&'static str, u64>) -> Metrics {
        let sent = std::mem::replace(&mut self.sent, self.times.len());
        Metrics {
            more: true,
            ..self.since(sent, facts)
        }
    }

    fn since(&self, begin: usize, facts: BTreeMap<&'static str, u64>) -> Metrics {
        let times = &self.times[begin..];
        let first = times.first().copied();
        let steps = times.windows(2).map(|pair| pair[1] - pair[0]);
        let columns = self.columns.iter();
        let read = columns.filter(|column| column.values[begin..].iter().any(|it| *it != NOT_READ));
        Metrics {
            more: false,
            every: self.every.as_secs_f64(),
            time: first.into_iter().chain(steps).collect(),
            facts,
            series: read.map(|column| series(column, begin)).collect(),
        }
    }
}

fn series(column: &Column, begin: usize) -> Series {
    let mut values = &column.values[begin..];
    // The end goes on as it is.
    while let [rest @ .., last, end] = values {
        if last != end {
            break;
        }
        values = &values[..rest.len() + 1];
    }
    let mut before = 0;
    let difference = |value: &i64| {
        (*value != NOT_READ).then(|| {
            let step = value - before;
            before = *value;
            step
        })
    };
    let metric = &column.metric;
    Series {
        of: metric.of,
        id: metric.id.clone(),
        name: metric.name.clone(),
        kind: metric.kind,
        unit: metric.unit,
        values: values.iter().map(difference).collect(),
    }
}

/// A name as the coordinator allows it: small letters, digits and underscores.
pub fn name_of(begin: &str, text: &str, end: &str) -> String {
    let small = text.chars().take(40).map(|c| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '_',
    });
    let small: String = small.collect();
    format!("{begin}{}{end}", small.trim_matches('_'))
}

/// The end of an id in printable characters.
pub fn id_of(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(255);
    let kept = text.chars().skip(skipped);
    kept.map(|c| if c.is_ascii_graphic() { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(name: &str, value: u64) -> Reading {
        let mut to = Vec::new();
        Thing::new("host", "", &mut to).counter(name, "count", value);
        to.remove(0)
    }

    fn values(table: &Table) -> Vec<(String, Vec<Option<i64>>)> {
        let message = table.message(BTreeMap::new());
        let series = message.series.into_iter();
        series.map(|one| (one.name, one.values)).collect()
    }

    #[test]
    fn numbers_are_differences_and_the_end_goes_on() {
        let mut table = Table::new(Duration::from_secs(1));
        table.add(1000, vec![reading("a", 5), reading("b", 7)]);
        table.add(2000, vec![reading("a", 9), reading("b", 7)]);
        table.add(2000, vec![reading("a", 100)]); // no time has passed
        table.add(
            3500,
            vec![reading("new", 1), reading("a", 8), reading("b", 7)],
        );
        table.add(4500, vec![reading("a", LARGEST + 1), reading("b", 7)]);
        table.add(5500, vec![reading("a", 8), reading("b", 7)]);
        assert_eq!(
            table.message(BTreeMap::new()).time,
            [1000, 1000, 1500, 1000, 1000]
        );
        assert_eq!(
            values(&table),
            [
                ("a".into(), vec![Some(5), Some(4), Some(-1), None, Some(0)]),
                ("b".into(), vec![Some(7)]),
                ("new".into(), vec![None, None, Some(1), None]),
            ]
        );
    }

    #[test]
    fn the_last_reading_is_kept_for_the_next_rates() {
        let mut table = Table::new(Duration::from_secs(1));
        table.keep_last();
        table.add(1000, vec![reading("a", 5), reading("gone", 7)]);
        table.add(2000, vec![reading("a", 9)]);
        table.keep_last();
        table.add(3000, vec![reading("a", 10)]);
        assert_eq!(table.message(BTreeMap::new()).time, [2000, 1000]);
        assert_eq!(values(&table), [("a".into(), vec![Some(9), Some(1)])]);
    }

    #[test]
    fn a_part_has_what_was_read_since_the_last_one() {
        let mut table = Table::new(Duration::from_secs(1));
        table.add(1000, vec![reading("gone", 7), reading("a", 5)]);
        table.add(2000, vec![reading("a", 9)]);
        assert_eq!(table.part(BTreeMap::new()).time, [1000, 1000]);
        table.add(3500, vec![reading("a", 10)]);
        table.add(4000, vec![reading("a", 12)]);
        let part = table.part(BTreeMap::new());
        assert_eq!((part.more, part.time), (true, vec![3500, 500]));
        assert_eq!(part.series.len(), 1);
        assert_eq!(part.series[0].values, [Some(10), Some(2)]);
        assert!(table.part(BTreeMap::new()).time.is_empty());
        table.halve();
        table.add(5000, vec![reading("a", 20)]);
        assert_eq!(table.part(BTreeMap::new()).time, [5000]);
        let whole = table.message(BTreeMap::new());
        assert_eq!((whole.more, whole.time), (false, vec![1000, 2500, 1500]));
    }

    #[test]
    fn a_long_recording_has_half_the_readings() {
        let mut table = Table::new(Duration::from_secs(1));
        for second in 0..=MOST_READINGS as i64 {
            table.add(1 + second, vec![reading("a", second as u64)]);
        }
        assert_eq!(table.every, Duration::from_secs(2));
        let message = table.message(BTreeMap::new());
        assert_eq!(message.time.len(), MOST_READINGS / 2 + 1);
        assert!(message.time[1..].iter().all(|step| *step == 2));
        assert!(message.series[0].values[1..]
            .iter()
            .all(|step| *step == Some(2)));
    }

    #[test]
    fn a_counter_that_is_read_in_between_stays() {
        let mut table = Table::new(Duration::from_secs(1));
        for second in 0..=MOST_READINGS as i64 {
            let seldom = (second % 2 == 1).then(|| reading("seldom", second as u64));
            let always = reading("a", second as u64);
            table.add(1 + second, [always].into_iter().chain(seldom).collect());
        }
        let (_, values) = values(&table).remove(1);
        assert_eq!(values[..3], [None, Some(1), Some(2)]);
    }

    #[test]
    fn names_and_ids_are_plain() {
        assert_eq!(name_of("gc_", "G1 (Young)", "_us"), "gc_g1__young_us");
        assert_eq!(id_of("/a b/\u{e9}"), "/a?b/?");
        assert_eq!(id_of(&"x".repeat(300)).len(), 255);
    }
}
