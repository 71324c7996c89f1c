//! The rules of `rules/frames.yaml`: what well-known frames do.

#[cfg(feature = "formats")]
use std::collections::HashMap;
#[cfg(feature = "formats")]
use std::sync::LazyLock;

#[cfg(feature = "formats")]
use foldhash::fast::RandomState;

/// The name of each rule, and its patterns: `*` is any text, and dots are written as slashes.
pub(crate) type Table = &'static [(&'static str, &'static [&'static str])];

#[allow(dead_code)]
mod tables {
    use super::Table;
    include!(concat!(env!("OUT_DIR"), "/frame_rules.rs"));
}

pub(crate) use tables::BEGINS;
pub(super) use tables::WAITS;
#[cfg(feature = "formats")]
pub(super) use tables::{WEAK, WHOLE};

#[cfg(feature = "formats")]
pub(super) static CATEGORIES: LazyLock<Rules> = LazyLock::new(|| Rules::new(tables::CATEGORIES));
#[cfg(feature = "formats")]
pub(super) static FRAMEWORKS: LazyLock<Rules> = LazyLock::new(|| Rules::new(tables::FRAMEWORKS));
#[cfg(feature = "formats")]
pub(super) static KERNEL: LazyLock<Rules> = LazyLock::new(|| Rules::new(tables::KERNEL));
#[cfg(feature = "formats")]
pub(super) static PHASES: LazyLock<Rules> = LazyLock::new(|| Rules::new(tables::PHASES));

/// What a frame of this name does (`regex-match`, `gc`), by the first rule that matches.
#[cfg(feature = "formats")]
pub fn frame_category(name: &str) -> Option<&'static str> {
    CATEGORIES.first(name).filter(|&category| category != "none")
}

/// What a category is called.
#[cfg(feature = "formats")]
pub fn category_label(category: &str) -> &str {
    let found = tables::LABELS.iter().find(|(name, _)| *name == category);
    found.map_or(category, |(_, labels)| labels[0])
}

/// Which part of a data job a frame of this name is (`shuffle-read`).
#[cfg(feature = "formats")]
pub fn frame_phase(name: &str) -> Option<&'static str> {
    PHASES.first(name)
}

/// The frames of a category, or those that stacks end in for a service (`wait`, `allocation`, `profiler`), as
/// regular expressions; of what tasks are blocked on (`shuffle-fetch`) first what is below, then waits.
#[cfg(feature = "formats")]
pub fn category_patterns(category: &str) -> Vec<String> {
    let rules = tables::CATEGORIES.iter().chain(tables::ENDS);
    let rules = rules.chain(tables::BLOCKED);
    rules
        .filter_map(|(path, patterns)| {
            let (name, part) = path.split_once('.').unwrap_or((path, ""));
            (name == category).then(|| any_of(patterns, part == "native"))
        })
        .collect()
}

/// An expression for any of the patterns. Names are `decorated` as the C library does it.
#[cfg(feature = "formats")]
fn any_of(patterns: &[&str], decorated: bool) -> String {
    let expression = |pattern: &&str| {
        let parts = pattern.split('*');
        let parts = parts.map(|part| regex::escape(part).replace('/', "[./]"));
        parts.collect::<Vec<_>>().join(".*")
    };
    let names: Vec<String> = patterns.iter().map(expression).collect();
    let (before, after) = match decorated {
        true => (
            "_*(?:GI_)?_*(?:libc_)?",
            "(?:64)?(?:_nocancel|_cancel)?(?:@.*)?",
        ),
        false => ("", ""),
    };
    format!("^{before}(?:{}){after}$", names.join("|"))
}

/// A table whose patterns are found by how they begin, so that a name is compared with few of them.
#[cfg(feature = "formats")]
pub(super) struct Rules {
    table: Table,
    /// By what stands before the first star: the places of rules in the table, and the patterns.
    patterns: HashMap<&'static [u8], Vec<(usize, &'static str)>, RandomState>,
    /// How long these beginnings are, the shortest first.
    lengths: Vec<usize>,
}

#[cfg(feature = "formats")]
impl Rules {
    fn new(table: Table) -> Rules {
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
        Rules {
            table,
            patterns,
            lengths,
        }
    }

    /// The first rule with a pattern that a name fits.
    pub(super) fn first(&self, name: &str) -> Option<&'static str> {
        let name = slashed(name);
        let begins = self.lengths.iter();
        let begins = begins.map_while(|&length| name.as_bytes().get(..length));
        let alike = begins.filter_map(|begin| self.patterns.get(begin)).flatten();
        let fitting = alike.filter(|(_, pattern)| fits(&name, pattern));
        let place = fitting.map(|&(place, _)| place).min()?;
        Some(self.table[place].0)
    }

    /// The names of all rules.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.table.iter().map(|&(name, _)| name)
    }
}

/// A name as patterns have it.
pub(crate) fn slashed(name: &str) -> String {
    name.replace('.', "/")
}

pub(crate) fn fits_any(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| fits(name, pattern))
}

/// Whether a name is what a pattern means: its parts between stars, in order.
fn fits(name: &str, pattern: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return name == pattern;
    };
    let Some(mut name) = name.strip_prefix(first) else {
        return false;
    };
    let (parts, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in parts.split('*') {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (name, pattern, expected) in [
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "ab*", true),
            ("abc", "*bc", true),
            ("abc", "a*c", true),
            ("ac", "a*b*c", false),
            ("axbxc", "a*b*c", true),
            ("xaby", "*ab*", true),
            ("x", "*ab*", false),
        ] {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }

    #[cfg(feature = "formats")]
    #[test]
    fn frames_have_a_category_and_a_phase() {
        assert_eq!(
            frame_category("java.util.regex.Matcher.find"),
            Some("regex-match")
        );
        assert_eq!(
            frame_category("com/esotericsoftware/kryo/util/Pool.obtain"),
            None
        );
        let sorter = "org/apache/spark/util/collection/unsafe/sort/UnsafeSorter.sort";
        assert_eq!(
            (frame_phase(sorter), frame_phase("Main.run")),
            (Some("sort"), None)
        );
        let patterns = category_patterns("gc");
        let found = |name: &str| {
            patterns
                .iter()
                .any(|one| regex::Regex::new(one).unwrap().is_match(name))
        };
        assert!(
            found("[GC Thread#N]") && found("VM_ZMarkEndOperation::doit") && !found("[GCloud]")
        );
    }
}
