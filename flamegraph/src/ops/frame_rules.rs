//! The rules of `rules/frames.yaml`: what well-known frames do.

/// The name of each rule, and its patterns: `*` is any text, and dots are written as slashes.
pub(crate) type Table = &'static [(&'static str, &'static [&'static str])];

#[allow(dead_code)]
mod tables {
    use super::Table;
    include!(concat!(env!("OUT_DIR"), "/frame_rules.rs"));
}

pub(crate) use tables::BEGINS;
pub(super) use tables::{CATEGORIES, FRAMEWORKS, KERNEL, PHASES, TRANSPARENT, WEAK, WHOLE};
pub(super) use tables::{DOING, DOING_KINDS, ENDS, WAITING, WAITS};

/// What a category is called.
pub fn category_label(category: &str) -> &str {
    let found = tables::LABELS.iter().find(|(name, _)| *name == category);
    found.map_or(category, |(_, labels)| labels[0])
}

/// The frames of a category, or those that stacks end in for a service (`wait`, `allocation`, `profiler`), as
/// regular expressions; of what tasks are blocked on (`shuffle-fetch`) first what is below, then waits.
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

/// A name as patterns have it.
pub(crate) fn slashed(name: &str) -> String {
    name.replace('.', "/")
}

pub(crate) fn fits_any(name: &str, patterns: &[&str]) -> bool {
    patterns.iter().any(|pattern| fits(name, pattern))
}

/// Whether a name is what a pattern means: its parts between stars, in order.
pub(super) fn fits(name: &str, pattern: &str) -> bool {
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

    #[test]
    fn patterns_are_expressions_too() {
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
