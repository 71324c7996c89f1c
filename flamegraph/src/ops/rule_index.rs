//! The first rule of `rules/frames.yaml` that a name fits, found without a look at every pattern.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::RandomState;

use super::frame_rules::{self as tables, fits, fits_any, slashed, Table};

pub(super) static KERNEL: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::KERNEL));
pub(super) static PHASES: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::PHASES));
pub(super) static WAITS: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::WAITS));
pub(super) static ENDS: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::ENDS));
pub(super) static WAITING: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::WAITING));
static CATEGORIES: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::CATEGORIES));
static FRAMEWORKS: LazyLock<RuleIndex> = LazyLock::new(|| RuleIndex::new(tables::FRAMEWORKS));

/// Code that is in no category and of no framework.
pub(super) const APPLICATION: &str = "application";

/// What a method of this name does (`regex-match`, `gc`), by the first rule that matches; "application" where no rule
/// and no framework has it. None for code that serves others.
pub fn frame_category(name: &str) -> Option<&'static str> {
    match CATEGORIES.first(name) {
        Some(category) if fits_any(category, tables::TRANSPARENT[0].1) => None,
        None if FRAMEWORKS.first(name).is_some() => None,
        found => found.or(Some(APPLICATION)),
    }
}

/// The patterns of a table by how they begin.
pub(super) struct RuleIndex {
    table: Table,
    /// By what stands before the first star: the places of rules in the table, and the patterns.
    patterns: HashMap<&'static [u8], Vec<(usize, &'static str)>, RandomState>,
    /// How long these beginnings are, the shortest first.
    lengths: Vec<usize>,
}

impl RuleIndex {
    fn new(table: Table) -> RuleIndex {
        let mut patterns: HashMap<&[u8], Vec<(usize, &str)>, RandomState> = HashMap::default();
        for (place, (_, of_rule)) in table.iter().enumerate() {
            for &pattern in *of_rule {
                let begin = pattern.split('*').next().unwrap_or_default();
                let alike = patterns.entry(begin.as_bytes()).or_default();
                alike.push((place, pattern));
            }
        }
        let mut lengths: Vec<usize> = patterns.keys().map(|begin| begin.len()).collect();
        lengths.sort_unstable();
        lengths.dedup();
        RuleIndex {
            table,
            patterns,
            lengths,
        }
    }

    /// The first rule with a pattern that the name fits.
    pub(super) fn first(&self, name: &str) -> Option<&'static str> {
        let name = slashed(name);
        let place = self.fitting(&name).min()?;
        Some(self.table[place].0)
    }

    /// All rules with a pattern that the name fits, in their order.
    pub(super) fn every(&self, name: &str) -> impl Iterator<Item = &'static str> + '_ {
        let mut places: Vec<usize> = self.fitting(&slashed(name)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| self.table[place].0)
    }

    /// The places of rules with a pattern that a name fits.
    fn fitting<'a>(&'a self, name: &'a str) -> impl Iterator<Item = usize> + 'a {
        let begins = self.lengths.iter();
        let begins = begins.map_while(|&length| name.as_bytes().get(..length));
        let alike = begins
            .filter_map(|begin| self.patterns.get(begin))
            .flatten();
        let fitting = alike.filter(move |(_, pattern)| fits(name, pattern));
        fitting.map(|&(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_category() {
        assert_eq!(
            frame_category("java.util.regex.Matcher.find"),
            Some("regex-match")
        );
        assert_eq!(
            frame_category("com/esotericsoftware/kryo/util/Pool.obtain"),
            None
        );
    }

    #[test]
    fn the_first_rule_wins_however_patterns_begin() {
        let index = RuleIndex::new(&[
            ("exact", &["com/acme/A/run"]),
            ("anywhere", &["*Writer*"]),
            ("package", &["com/acme/*"]),
            ("short", &["com/*", "org"]),
        ]);
        for (name, expected) in [
            ("com.acme.A.run", Some("exact")),
            ("com/acme/A.runs", Some("package")),
            ("com/acme/FileWriter.put", Some("anywhere")),
            ("com/x", Some("short")),
            ("org", Some("short")),
            ("or", None),
            ("é", None),
        ] {
            assert_eq!(index.first(name), expected, "{name}");
        }
    }
}
