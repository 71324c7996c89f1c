//! What BPF tools print: maps of bpftrace that have stacks, and the stacks of bcc's tools.

mod bcc;
mod bpftrace;
mod stacks;

pub(crate) use bcc::{detect as detect_bcc, read_input as read_bcc};
pub(crate) use bpftrace::{detect as detect_bpftrace, read_input as read_bpftrace};
