//! Operations: profiles from profiles.
//!
//! Each leaves what it was given as it was. None is recursive, none takes more than linear time in the
//! nodes (and what sorting them takes), and sums are checked.

mod diff;
mod invert;
mod many;
mod mean;
pub(crate) mod prune;
pub(crate) mod rebuild;
mod select;
pub(crate) mod split;
mod tables;
pub(crate) mod threads;
pub(crate) mod tiers;
mod top;

#[cfg(feature = "recordings")]
mod canonical;
#[cfg(feature = "formats")]
mod categories;
#[cfg(feature = "formats")]
mod filter;
#[cfg(feature = "recordings")]
pub(crate) mod frame_rules;
#[cfg(feature = "formats")]
mod outliers;
#[cfg(feature = "formats")]
mod pattern;
#[cfg(feature = "formats")]
mod range;
#[cfg(feature = "formats")]
mod rule_index;
#[cfg(feature = "formats")]
mod stack_table;
#[cfg(feature = "recordings")]
pub(crate) mod waits;
#[cfg(feature = "formats")]
mod work_table;

pub use diff::{Change, Diff, DiffNode};
pub(crate) use many::{lock, processors};
pub use many::{read_all, read_mean};
pub use mean::MeanMerger;
pub use prune::{smaller_frames, Keep};
pub use tables::{NodeRow, Tier};
pub use threads::Threads;
pub use top::Method;

#[cfg(feature = "recordings")]
pub use canonical::NameRules;
#[cfg(feature = "formats")]
pub use categories::WorkRules;
#[cfg(feature = "formats")]
pub use frame_rules::{category_label, category_patterns};
#[cfg(feature = "formats")]
pub use outliers::{Difference, Distance, Outliers};
#[cfg(feature = "formats")]
pub use pattern::Pattern;
#[cfg(feature = "formats")]
pub use rule_index::frame_category;
#[cfg(feature = "formats")]
pub use stack_table::{MethodSums, Samples, StackTable, Stacks, SumsOf};
#[cfg(feature = "recordings")]
pub use waits::WAIT_FRAMES;
#[cfg(feature = "formats")]
pub use work_table::{Work, WorkTable};
