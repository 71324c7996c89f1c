//! How much of a recording could not be named.

use std::collections::BTreeMap;

/// Samples and frames without a symbol. Counts are of samples of all events together; a frame counts
/// once in each sample it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// All samples.
    pub samples: u64,
    /// Samples whose leaf is not known.
    pub leaf_samples: u64,
    /// All frames.
    pub frames: u64,
    /// Frames that are not known.
    pub unknown_frames: u64,
    /// Those, by module; `[unknown]` is where nothing is mapped.
    pub modules: BTreeMap<String, u64>,
    /// Samples whose user stack was copied (`--call-graph dwarf`) and is not walked.
    pub copied_stacks: u64,
}

impl Unknown {
    /// Adds another recording's.
    pub(crate) fn merge(&mut self, other: &Unknown) {
        self.samples += other.samples;
        self.leaf_samples += other.leaf_samples;
        self.frames += other.frames;
        self.unknown_frames += other.unknown_frames;
        self.copied_stacks += other.copied_stacks;
        for (module, frames) in &other.modules {
            *self.modules.entry(module.clone()).or_default() += frames;
        }
    }
}
