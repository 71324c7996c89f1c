//! Statistics of a difference for its picture: the largest change, and the paths without width.

use std::cmp::Reverse;

use super::layout::{Bar, Bars, Visit};
use super::options::{Options, Side};
use super::palette::Rgb;
use crate::profile::Result;

/// No change. The others are light enough for black letters.
const NEUTRAL: Rgb = (238, 236, 233);
const GREW: Rgb = (236, 84, 68);
const SHRANK: Rgb = (92, 142, 236);
/// The strongest colour means at least one part in so many of the whole: 10 points.
const LEAST: i64 = 10;
/// The number of paths without width that are named.
const NAMED: usize = 3;

/// The changes of a difference.
pub(super) struct Change {
    /// What the strongest colour means: the largest change of a drawn frame, up or down, but at least 10 points. The
    /// root's change does not count.
    pub(super) most: i64,
    /// Before and after.
    pub(super) totals: [i64; 2],
    pub(super) unseen: Unseen,
    negate: bool,
}

/// The paths without width: those that only the other side has.
#[derive(Default)]
pub(super) struct Unseen {
    pub(super) count: u64,
    pub(super) amount: i64,
    /// The largest paths and their values.
    pub(super) largest: Vec<(String, i64)>,
}

impl Change {
    /// Visits the whole difference; `drawn` returns whether a bar is drawn.
    pub(super) fn of(
        bars: &dyn Bars,
        options: &Options,
        drawn: &dyn Fn(&Bar<'_>) -> bool,
    ) -> Result<Option<Change>> {
        let mut change: Option<Change> = None;
        let other = match options.width_from {
            Side::Before => Side::After,
            Side::After => Side::Before,
        };
        bars.visit(&mut |bar| {
            let Some(totals) = bar.sides else {
                return Ok(Visit::Next);
            };
            let change = change.get_or_insert_with(|| Change {
                most: totals[0].max(totals[1]) / LEAST,
                totals,
                unseen: Unseen::default(),
                negate: options.negate,
            });
            if bar.level > 0 && drawn(bar) {
                change.most = change.most.max(difference(totals).abs());
            }
            if bar.length > 0 {
                return Ok(Visit::Above);
            }
            change.unseen.add(bar.name, totals[other as usize]);
            Ok(Visit::Next)
        })?;
        Ok(change)
    }

    /// The change of a bar as shown.
    pub(super) fn shown(&self, sides: [i64; 2]) -> i64 {
        if self.negate {
            -difference(sides)
        } else {
            difference(sides)
        }
    }

    /// The colour of a change: its hue shows the direction, its strength the size relative to `most`.
    pub(super) fn color(&self, sides: [i64; 2]) -> Rgb {
        scale(self.shown(sides) as f64 / self.most.max(1) as f64)
    }
}

impl Unseen {
    fn add(&mut self, name: &str, amount: i64) {
        if amount == 0 {
            return;
        }
        self.count += 1;
        self.amount += amount;
        let place = self
            .largest
            .partition_point(|(_, larger)| Reverse(larger) <= Reverse(&amount));
        if place < NAMED {
            self.largest.insert(place, (name.to_string(), amount));
            self.largest.truncate(NAMED);
        }
    }
}

fn difference([before, after]: [i64; 2]) -> i64 {
    after - before
}

/// The colour of a part from -1 to 1. Strength grows with the square root, so that small changes are visible.
pub(super) fn scale(part: f64) -> Rgb {
    let strength = part.abs().min(1.0).sqrt();
    let full = if part > 0.0 { GREW } else { SHRANK };
    let mix = |from: u8, to: u8| {
        (f64::from(from) + (f64::from(to) - f64::from(from)) * strength).round() as u8
    };
    (
        mix(NEUTRAL.0, full.0),
        mix(NEUTRAL.1, full.1),
        mix(NEUTRAL.2, full.2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_what_is_not_seen_are_named() {
        let mut unseen = Unseen::default();
        for (name, amount) in [
            ("a", 1),
            ("b", 5),
            ("none", 0),
            ("c", 3),
            ("d", 4),
            ("e", 2),
        ] {
            unseen.add(name, amount);
        }
        assert_eq!((unseen.count, unseen.amount), (5, 15));
        let names: Vec<&str> = unseen
            .largest
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["b", "d", "c"]);
    }
}
