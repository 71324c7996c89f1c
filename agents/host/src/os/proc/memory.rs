//! What the kernel reads out of a process's memory: its command line, its environment, its map.
//!
//! It takes a lock for that, which the process's own threads hold while they wait for a page of a file system that
//! hangs: `ps` waits with them then, for as long as it takes. Here a thread waits, and the agent goes on without.

use std::time::Duration;

use rustix::process::geteuid;

use super::{read_bounded, read_text, stat, status};
use crate::os::worker::{Asides, Unheard, Whose};

static LOOKS: Asides = Asides::new(16, 64);
/// Looks at several processes at once; where one of them hangs each is looked at by itself.
static LOOKS_AT_SEVERAL: Asides = Asides::new(8, 8);
/// How long a process is waited for, and how long where so many hang already: a host is searched in seconds.
const PATIENCE: Duration = Duration::from_secs(1);
const MOMENT: Duration = Duration::from_millis(100);
const MANY: usize = 3;

/// What comes of a look at what a process has in memory.
pub fn look<T: Send + 'static>(
    whose: Whose,
    look: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unheard> {
    LOOKS.wait(whose, patience(&LOOKS), look)
}

/// The same for several processes, of which this is the first; None where one of them hangs.
pub fn look_at_several<T: Send + 'static>(
    first: i32,
    look: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let several = Whose::new(geteuid().as_raw(), first, 0);
    let patience = patience(&LOOKS_AT_SEVERAL);
    LOOKS_AT_SEVERAL.wait(several, patience, look).ok()
}

fn patience(looks: &Asides) -> Duration {
    match looks.left_behind() < MANY {
        true => PATIENCE,
        false => MOMENT,
    }
}

/// At most `limit` bytes of one of these files; None where it cannot be read, or not soon.
pub fn read(pid: i32, name: &str, limit: u64) -> Option<Vec<u8>> {
    let path = format!("/proc/{pid}/{name}");
    look(whose(pid)?, move || read_bounded(path, limit))
        .ok()
        .flatten()
}

fn whose(pid: i32) -> Option<Whose> {
    let status = status::parse(pid, &read_text(format!("/proc/{pid}/status"), 1 << 20)?)?;
    let stat = stat::parse(&read_text(format!("/proc/{pid}/stat"), 4096)?)?;
    Some(Whose::new(status.uid, pid, stat.start_time))
}

/// Why nothing is known of a process.
pub fn words(why: Unheard) -> &'static str {
    match why {
        Unheard::Hangs => {
            "it hangs, and its command line cannot be read (ps would wait for it as well)"
        }
        Unheard::TooMuch => "it was not looked at: too many processes hang, its user's or all",
        Unheard::NoThread => {
            "it was not looked at: the agent can start no thread (ulimit -u, pids.max)"
        }
    }
}
