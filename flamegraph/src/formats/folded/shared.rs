//! Reads one text with several threads. Each takes the next block and adds it to its own profile.

use std::io::Read;
use std::sync::Mutex;

use super::adder::{add_parts, Adder, Tally};
use super::blocks::Blocks;
use crate::ops::{lock, on_all_processors};
use crate::profile::{Error, Limits, Merger, Profile, Result};

/// State that the threads share.
struct Shared<'a, R> {
    blocks: Mutex<Blocks<R>>,
    /// The error that comes first in the text, and its line.
    failure: Mutex<Option<(u64, Error)>>,
    /// The profile that the first thread extends; the others begin with `empty`.
    begun: Mutex<Option<Profile>>,
    empty: Profile,
    counts: usize,
    limits: &'a Limits,
}

/// Adds the rest of a text to a profile, on all processors; also returns the count of lines.
pub(super) fn add_rest(
    profile: Profile,
    blocks: Blocks<impl Read + Send>,
    counts: usize,
    limits: &Limits,
) -> Result<(Profile, Tally)> {
    let shared = Shared {
        blocks: Mutex::new(blocks),
        failure: Mutex::new(None),
        empty: Profile::bounded(profile.values().to_vec(), limits.cells),
        begun: Mutex::new(Some(profile)),
        counts,
        limits,
    };
    let parts = on_all_processors(usize::MAX, || shared.work());
    if let Some((_, error)) = lock(&shared.failure).take() {
        return Err(error);
    }
    let (mut merger, mut tally) = (Merger::new(), Tally::default());
    let mut parts = parts.into_iter().collect::<Result<Vec<_>>>()?;
    // Fractions may be in the text of some threads only.
    if parts
        .iter()
        .any(|(profile, _)| profile.values().len() > counts)
    {
        for (profile, _) in &mut parts {
            add_parts(profile, counts, limits)?;
        }
    }
    for (profile, lines) in parts {
        merger.add(profile)?;
        tally.add(&lines);
    }
    let sum = merger.finish()?.unwrap_or(shared.empty);
    sum.check_cells(limits.cells)?;
    Ok((sum, tally))
}

impl<R: Read + Send> Shared<'_, R> {
    /// Adds blocks until the text ends or an error occurs.
    fn work(&self) -> Result<(Profile, Tally)> {
        let begun = lock(&self.begun).take();
        let mut profile = begun.unwrap_or_else(|| self.empty.clone());
        let mut adder = Adder::new(&mut profile, self.counts, self.limits);
        let mut block = Vec::new();
        while let Some(first) = self.next(&mut block) {
            if let Err(error) = adder.add_lines(&block, first) {
                let line = error.line().unwrap_or(first);
                self.fail(line, error);
            }
        }
        let tally = adder.tally;
        Ok((profile.into_ordered()?, tally))
    }

    /// The next block, and the number of its first line. None after an error: threads still finish the earlier blocks,
    /// so the first error in the text is found.
    fn next(&self, block: &mut Vec<u8>) -> Option<u64> {
        let mut blocks = lock(&self.blocks);
        if lock(&self.failure).is_some() {
            return None;
        }
        match blocks.next(block) {
            Ok(first) => first,
            Err(error) => {
                self.fail(blocks.line(), error);
                None
            }
        }
    }

    fn fail(&self, line: u64, error: Error) {
        let mut failure = lock(&self.failure);
        if failure.as_ref().is_none_or(|&(first, _)| line < first) {
            *failure = Some((line, error));
        }
    }
}
