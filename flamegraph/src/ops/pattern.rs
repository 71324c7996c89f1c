//! Regular expressions over the names of frames.

use regex::Regex;

use crate::profile::{Error, Profile, Result, ROOT};

/// A regular expression found anywhere in a frame's name; annotations are no part of the name.
///
/// Matching takes time linear in the name, whatever the expression.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles an expression; one that is none, or too large, is an error that says why.
    pub fn new(text: &str) -> Result<Pattern> {
        let wrong = |error| Error::Usage(format!("not a regular expression: {error}"));
        Regex::new(text).map(Pattern).map_err(wrong)
    }

    /// Whether the expression is found in this name.
    pub fn is_in(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl Profile {
    /// For each name whether any of the patterns is found in it.
    pub(crate) fn named_by(&self, patterns: &[Pattern]) -> Vec<bool> {
        (0..self.frames.len() as u32)
            .map(|name| {
                let name = self.frames.name(name);
                patterns.iter().any(|pattern| pattern.is_in(name))
            })
            .collect()
    }

    /// For each node whether any of the patterns is found in its frame or in one above it.
    /// Each name is looked at once, however many nodes have it.
    pub(crate) fn reached(&self, patterns: &[Pattern]) -> Vec<bool> {
        let names = self.named_by(patterns);
        let mut reached = vec![false; self.tree.len()];
        debug_assert!(!reached[ROOT as usize]);
        for node in self.tree.nodes() {
            reached[node as usize] = reached[self.tree.parent(node) as usize]
                || names[self.tree.frame(node).name() as usize];
        }
        reached
    }
}
