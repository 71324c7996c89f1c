//! What a picture is drawn from: bars, parents before what stands on them.

use crate::profile::{Kind, Result};

/// One frame of the picture, in the units of the value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar<'a> {
    /// Without annotation; of the root empty.
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    /// 0 is the root.
    pub(super) level: u32,
    pub(super) start: i64,
    pub(super) length: i64,
    /// In a difference: the totals before and after.
    pub(super) sides: Option<[i64; 2]>,
}

/// Whether what stands on a bar is wanted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    Above,
    Next,
}

/// Something that can be drawn. It is visited more than once rather than kept: what is visited takes no
/// memory.
pub(super) trait Bars {
    /// The length of the root.
    fn total(&self) -> i64;

    /// Visits the root and what stands on it, depth first.
    fn visit(&self, visitor: &mut dyn FnMut(&Bar<'_>) -> Result<Visit>) -> Result<()>;
}
