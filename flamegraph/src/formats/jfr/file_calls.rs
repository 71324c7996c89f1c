//! Which stacks are in a call that works on files: found where samples are counted, whose names go elsewhere.

use super::numbered::Numbered;
use super::stacks::{Budget, Finder, Found};
use crate::ops::waits::Waits;
use crate::profile::{Frames, Result};

/// Names of so many bytes are forgotten again: nobody else has them.
const MOST_NAMES: usize = 4 << 20;

pub(super) struct FileCalls<'a> {
    finder: Finder<'a>,
    /// Names of what was looked at, which are nobody else's.
    names: Frames,
    waits: Waits,
    known: Numbered<bool>,
}

impl<'a> FileCalls<'a> {
    pub(super) fn new(finder: Finder<'a>) -> FileCalls<'a> {
        FileCalls {
            finder,
            names: Frames::default(),
            waits: Waits::default(),
            known: Numbered::default(),
        }
    }

    /// Whether a stack is lost with a part of the chunk.
    pub(super) fn is_lost(&self, stack: u64) -> bool {
        self.finder.is_lost(stack)
    }

    /// Whether a thread with this stack, which seems to run, is in such a call.
    #[inline]
    pub(super) fn has(&mut self, stack: u64, budget: &mut Budget) -> Result<bool> {
        if let Some(known) = self.known.get(stack) {
            return Ok(known);
        }
        if self.names.text_bytes() > MOST_NAMES {
            self.names = Frames::default();
            self.waits = Waits::default();
            self.finder.forget();
        }
        let found = self.finder.find(stack, &mut self.names, budget)? == Found::Frames;
        let has = found && self.waits.is_file_call(&self.names, self.finder.frames());
        self.known.keep(stack, has);
        Ok(has)
    }
}
