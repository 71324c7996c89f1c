//! Where a JVM writes its recording.

use std::cmp::Reverse;
use std::sync::Arc;

use rustix::fs::{open, Mode, OFlags};

use crate::os::free_space::Memory;
use crate::os::identity::Shoes;
use crate::resources::disk::DiskCap;
use crate::staging::folders::{could_make_run_folder, is_usual};

/// A folder where a recording may grow to this is as good as any, in bytes.
const PLENTY: u64 = 256 << 20;

/// The bases under which a recording could be written, best first; nothing is made. Err says why there is none.
///
/// The first of the usual bases with plenty of room comes first, or else the one with most room. The others come last:
/// what is left there is not found once the JVM has ended.
pub fn places(
    shoes: &Shoes,
    bases: &[String],
    session: &str,
    memory: &Arc<Memory>,
    recordings: usize,
) -> Result<Vec<(String, DiskCap)>, String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut places = Vec::new();
    let mut tried = Vec::new();
    for base in bases {
        let cap = could_make_run_folder(shoes, base, session).and_then(|()| {
            let folder = open(shoes.path(base), flags, Mode::empty());
            let folder = folder.map_err(|error| format!("{base}: {error}"))?;
            DiskCap::new(folder, memory, recordings).map_err(|reason| format!("{base} {reason}"))
        });
        match cap {
            Ok(cap) => places.push((base.clone(), cap)),
            Err(reason) => tried.push(reason),
        }
    }
    places.sort_by_key(|(base, cap)| (!is_usual(base), Reverse(cap.share.min(PLENTY) >> 20)));
    match places.is_empty() {
        true => Err(tried.join("; ")),
        false => Ok(places),
    }
}
