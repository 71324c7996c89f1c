//! The frames that a profile asks to leave out (`drop_frames`, `keep_frames`), by the rules of `go tool pprof`.

use regex::Regex;

use super::tables::Strings;
use crate::profile::Profile;

/// C++ names that contain a bracket, which is not the start of an argument list.
const WITH_BRACKETS: [&str; 2] = ["(anonymous namespace)", "operator()"];

/// Whether a function and all that it calls are left out, by its name.
pub(super) struct Dropped {
    drop: Regex,
    keep: Option<Regex>,
}

impl Dropped {
    /// `None`: nothing is left out. A pattern that is not valid is a warning.
    pub(super) fn read(
        (drop, keep): (i64, i64),
        strings: &Strings<'_>,
        profile: &mut Profile,
    ) -> Option<Dropped> {
        let mut pattern = |index: i64, field: &str| {
            let text = (index != 0).then(|| strings.text(index));
            let text = text.and_then(|text| text.ok().filter(|text| !text.is_empty()))?;
            let compiled = Regex::new(&format!("^({text})$"));
            if compiled.is_err() {
                let warning =
                    format!("{field} is not a valid pattern, so it was ignored: {text:.80}");
                profile.add_warnings([warning]);
            }
            compiled.ok()
        };
        let drop = pattern(drop, "drop_frames")?;
        let keep = pattern(keep, "keep_frames");
        Some(Dropped { drop, keep })
    }

    pub(super) fn has(&self, function: &[u8]) -> bool {
        let name = String::from_utf8_lossy(function);
        let name = without_arguments(name.strip_prefix('.').unwrap_or(&name));
        let is_kept = || {
            let keep = self.keep.as_ref();
            keep.is_some_and(|keep| keep.is_match(name))
        };
        self.drop.is_match(name) && !is_kept()
    }
}

fn without_arguments(name: &str) -> &str {
    let mut from = 0;
    while let Some(at) = name[from..].find('(').map(|at| from + at) {
        let reserved = WITH_BRACKETS.iter().find_map(|reserved| {
            let start = at.checked_sub(reserved.find('(')?)?;
            let found = name.get(start..)?.starts_with(reserved);
            found.then_some(start + reserved.len())
        });
        match reserved {
            Some(end) => from = end,
            None => return &name[..at],
        }
    }
    name
}
