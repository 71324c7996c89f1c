//! Operations: profiles from profiles.
//!
//! Each leaves what it was given as it was. None is recursive, none takes more than linear time in the
//! nodes (and what sorting them takes), and sums are checked.

mod callers;
mod canonical;
mod categories;
mod diff;
mod filter;
pub(crate) mod frame_rules;
mod invert;
mod many;
mod mean;
mod outliers;
mod pattern;
pub(crate) mod prune;
mod range;
pub(crate) mod rebuild;
mod rule_index;
mod select;
pub(crate) mod split;
mod stack_table;
mod sure_callers;
mod tables;
pub(crate) mod threads;
pub(crate) mod tiers;
mod top;
pub(crate) mod waiting;
pub(crate) mod waits;
mod work_table;

pub use callers::BROKEN_STACKS;
pub use canonical::NameRules;
pub use categories::WorkTable;
pub use diff::{Change, Diff};
pub use frame_rules::{category_label, category_patterns};
pub(crate) use many::{lock, on_all_processors};
pub use many::{read_all, read_mean};
pub use mean::MeanMerger;
pub use outliers::{Difference, Distance, Outliers};
pub use pattern::Pattern;
pub use prune::{smaller_frames, Keep};
pub use rule_index::frame_category;
pub use stack_table::{MethodSums, Samples, StackTable, Stacks, SumsOf};
pub use sure_callers::SureCallers;
pub use tables::NodeRow;
pub use threads::Threads;
pub use top::Method;
pub use waiting::{NamedWait, Waiter, DOING, DOING_KINDS};
pub use work_table::Work;
