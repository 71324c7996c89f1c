//! What the agent did on the host, for those who must show it: kept from the beginning on, and told as it happens,
//! where the greeting asks for it.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::wire::events::{Action, Audited};

/// More than this is only counted, and no text is longer, in characters.
const MOST: usize = 10_000;
const LONGEST: usize = 500;
/// All texts together, in bytes: as JSON each may become six, and a line of the protocol has 16 MiB.
const ALL: usize = 2 << 20;
/// What stands before paths of a process whose files are seen through a descriptor.
const SEEN_THROUGH: &str = "/proc/self/fd/";

static NOTES: Mutex<Option<Notes>> = Mutex::new(None);

thread_local! {
    /// The process for which the thread works, if for one only.
    static ABOUT: Cell<Option<i32>> = const { Cell::new(None) };
}

impl Notes {
    fn add(&mut self, action: Action) {
        if self.kept.entries.len() >= MOST || self.bytes + action.detail.len() > ALL {
            self.kept.dropped += 1;
            return;
        }
        self.bytes += action.detail.len();
        self.kept.entries.push(action);
    }

    fn is_empty(&self) -> bool {
        self.kept.entries.is_empty() && self.kept.dropped == 0
    }
}

/// Whoever tells what is kept, once there is somebody to be told.
type Wake = Box<dyn Fn() + Send>;

#[derive(Default)]
struct Notes {
    kept: Audited,
    /// Of its texts.
    bytes: usize,
    /// Whose the files are whose names begin with these words, up to the first dot.
    owners: HashMap<String, i32>,
    wake: Option<Wake>,
}

impl Notes {
    /// The process whose file this is by its name.
    fn owner(&self, what: &str, path: &str) -> Option<i32> {
        let name = path.rsplit('/').next()?;
        let stem = name.split('.').next()?;
        let is_file = matches!(what, "file" | "removed");
        self.owners.get(stem).copied().filter(|_| is_file)
    }
}

/// From now on all is kept.
pub fn begin() {
    notes().get_or_insert_default();
}

/// From now on what is kept is told: `wake` is called when there is something again.
pub fn tell(wake: impl Fn() + Send + 'static) {
    if let Some(notes) = &mut *notes() {
        notes.wake = Some(Box::new(wake));
    }
}

/// From now on nothing is kept.
pub fn end() {
    *notes() = None;
}

/// From now on the calling thread works for this process.
pub fn about(pid: i32) {
    ABOUT.set(Some(pid));
}

/// From now on files of this name, whatever follows its first dot, are known as this process's: in a folder that several
/// share the thread of any of them may be the one that removes them.
pub fn files_of(pid: i32, stem: String) {
    if let Some(notes) = &mut *notes() {
        notes.owners.insert(stem, pid);
    }
}

/// Keep what was done (`folder`, `file`, `removed`), or is about to be (`attach`, `signal`, `program`).
pub fn note(what: &'static str, detail: impl FnOnce() -> String) {
    if let Some(notes) = &mut *notes() {
        let first = notes.is_empty();
        let detail = plain(&detail());
        let pid = notes.owner(what, &detail).or(ABOUT.get());
        notes.add(Action {
            time: now(),
            what,
            pid,
            detail,
        });
        if let Some(wake) = notes.wake.as_ref().filter(|_| first) {
            wake();
        }
    }
}

/// What was kept since this was last asked for, if there is anything to tell.
pub fn take() -> Option<Audited> {
    let mut notes = notes();
    let notes = notes.as_mut().filter(|notes| notes.wake.is_some())?;
    let some = !notes.is_empty();
    notes.bytes = 0;
    some.then(|| std::mem::take(&mut notes.kept))
}

/// The rest of it: all is done. None where nobody is told.
pub fn last() -> Option<Audited> {
    let kept = take();
    let notes = notes().take()?;
    notes.wake.map(|_| Audited {
        last: true,
        ..kept.unwrap_or_default()
    })
}

fn notes() -> MutexGuard<'static, Option<Notes>> {
    NOTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Seconds since 1970.
pub fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}

fn plain(detail: &str) -> String {
    let rest = detail.strip_prefix(SEEN_THROUGH);
    let path = rest.and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    path.unwrap_or(detail).chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_the_processes_own() {
        assert_eq!(plain("/proc/self/fd/12/tmp/x"), "/tmp/x");
        assert_eq!(plain("/tmp/x"), "/tmp/x");
        assert_eq!(plain(&"x".repeat(900)).len(), LONGEST);
    }

    #[test]
    fn a_file_is_that_of_the_process_in_its_name() {
        let mut notes = Notes::default();
        notes.owners.insert("4026531836-7-99".to_owned(), 7007);
        for (what, path, want) in [
            (
                "removed",
                "/tmp/.hprofiler-run-1-2-0/4026531836-7-99.perf.map",
                Some(7007),
            ),
            (
                "file",
                "/tmp/.hprofiler-run-1-2-0/4026531836-7-99.map",
                Some(7007),
            ),
            (
                "removed",
                "/tmp/.hprofiler-run-1-2-0/4026531836-8-99.map",
                None,
            ),
            ("removed", "/tmp/.hprofiler-run-1-2-0", None),
            (
                "attach",
                "1 load /tmp/x/4026531836-7-99.jfr,log=/tmp/x/4026531836-7-99.log",
                None,
            ),
        ] {
            assert_eq!(notes.owner(what, path), want, "{path}");
        }
    }

    #[test]
    fn what_is_kept_fits_into_a_line() {
        let mut notes = Notes::default();
        for _ in 0..MOST {
            notes.add(Action {
                time: 1e9,
                what: "attach",
                pid: Some(1 << 22),
                detail: "\u{1}".repeat(LONGEST),
            });
        }
        let kept = notes.kept;
        assert_eq!(kept.entries.len() as u64 + kept.dropped, MOST as u64);
        assert!(serde_json::to_vec(&kept).unwrap().len() < 16 << 20);
    }
}
