//! Our own compact profile: the call tree in columns, compressed. `FORMAT.md` describes it.
//!
//! It exists for the network: a third of pprof's size, as stacks are not repeated, a name shares the
//! beginning of the one before, and a callee is mostly one that its caller had before.

mod read;
mod recent;
mod times;
mod write;

pub(crate) use read::{detect, read_input};
pub(crate) use write::put_modules;

/// What every file begins with; the rest is one zlib stream. The second is of profiles with times.
const MAGIC: [&[u8; 4]; 2] = [b"HPT1", b"HPT2"];
