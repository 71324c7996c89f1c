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

/// Smaller shares are not worth a warning.
const WORTH_SAYING: f64 = 0.01;

impl Unknown {
    /// Warnings to print beside the picture.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let worth = |part: u64, whole: u64| part as f64 > whole as f64 * WORTH_SAYING;
        let mut warnings = Vec::new();
        if worth(self.leaf_samples, self.samples) || worth(self.unknown_frames, self.frames) {
            let leaves = percent(self.leaf_samples, self.samples);
            let frames = percent(self.unknown_frames, self.frames);
            let most = self.modules.iter().max_by_key(|(_, frames)| **frames);
            let module = most.map_or("", |(module, _)| module);
            warnings.push(format!(
                "{leaves:.1} % of samples end in an unknown function, {frames:.1} % of all frames are unknown, most of them in {module}"
            ));
        }
        if worth(self.copied_stacks, self.samples) {
            let copied = percent(self.copied_stacks, self.samples);
            warnings.push(format!(
                "{copied:.1} % of samples have copied user stacks, which are not walked: record with --call-graph fp"
            ));
        }
        warnings
    }

    /// Adds another recording's.
    pub(crate) fn merge(&mut self, other: &Unknown) {
        let add = |ours: &mut u64, theirs: u64| *ours = ours.saturating_add(theirs);
        add(&mut self.samples, other.samples);
        add(&mut self.leaf_samples, other.leaf_samples);
        add(&mut self.frames, other.frames);
        add(&mut self.unknown_frames, other.unknown_frames);
        add(&mut self.copied_stacks, other.copied_stacks);
        for (module, &frames) in &other.modules {
            add(self.modules.entry(module.clone()).or_default(), frames);
        }
    }
}
