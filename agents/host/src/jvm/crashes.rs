//! The files that JVMs write when they crash. Their folders may be in a file system that hangs, or full of traps.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::Duration;

use rustix::fd::AsFd;
use rustix::fs::{statat, AtFlags, CWD};

use crate::os::identity::Shoes;
use crate::os::proc::target::Target;

/// How long is waited for the folders; a test must not fail because a machine is busy.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });

/// Looks for a process's crash files, on a thread that has its user and files, also once the process has ended.
pub struct Crashes {
    ask: Sender<()>,
    told: Receiver<Vec<String>>,
    /// Those that were there before; None where the folders did not answer.
    before: Option<Vec<String>>,
}

impl Crashes {
    pub fn of(pid: i32, start_time: u64) -> Self {
        let (ask, asked) = channel();
        let (tell, told) = channel();
        let look = move || {
            let Ok(target) = Target::open(pid, start_time) else {
                return;
            };
            let Ok(shoes) = Shoes::put_on(&target) else {
                return;
            };
            let name = format!("hs_err_pid{}.log", target.status.namespace_pid);
            while tell.send(there(&shoes, &name)).is_ok() && asked.recv().is_ok() {}
        };
        let thread = thread::Builder::new().name(format!("crashes {pid}"));
        // Without the thread nothing is told.
        let _ = thread.spawn(look);
        let before = told.recv_timeout(PATIENCE).ok();
        Self { ask, told, before }
    }

    /// A crash file that was not there before, as the process sees it.
    pub fn since(&self) -> Option<String> {
        let before = self.before.as_ref()?;
        self.ask.send(()).ok()?;
        let there = self.told.recv_timeout(PATIENCE).ok()?;
        there.into_iter().find(|path| !before.contains(path))
    }
}

fn there(shoes: &Shoes, name: &str) -> Vec<String> {
    let has =
        |dir: &dyn AsFd, path: &str| statat(dir.as_fd(), path, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    let in_tmp = format!("/tmp/{name}");
    let tmp = has(&CWD, &shoes.path(&in_tmp)).then_some(in_tmp);
    let cwd = shoes.cwd.as_ref().filter(|cwd| has(cwd, name));
    let folder = shoes.cwd_path.as_deref().unwrap_or("its working directory");
    tmp.into_iter()
        .chain(cwd.map(|_| format!("{folder}/{name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::proc::stat;

    #[test]
    fn only_what_is_new_is_told() {
        let pid = std::process::id() as i32;
        let crashes = Crashes::of(pid, stat::own().unwrap().start_time);
        assert_eq!(crashes.since(), None);
        let path = format!("/tmp/hs_err_pid{pid}.log");
        std::fs::write(&path, "").unwrap();
        let found = crashes.since();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found, Some(path));
        assert_eq!(crashes.since(), None);
    }
}
