//! A handle of one process: later steps cannot hit another one with the same pid.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, SystemTime};

use rustix::fd::OwnedFd;
use rustix::fs::{openat, readlinkat, Dir, Mode, OFlags};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{kill_process, pidfd_open, pidfd_send_signal, Pid, PidfdFlags, Signal};

use super::maps::{self, Mapped, Mapping};
use super::named::Named;
use super::stat::{self, Stat};
use super::status::{self, Status};
use super::{path, read_text};
use crate::os::files::enter_folder;
use crate::os::lease::since_boot;
use crate::wire::outcome::{Code, Failure};

/// The open files that are looked at. Most systems allow no more.
const MOST_FILES: usize = 1 << 20;
const MOST_THREADS: usize = 5_000;

/// A descriptor of `/proc/PID` keeps its meaning. Once the process has ended, reads through it fail.
pub struct Target {
    pub pid: i32,
    pub start_time: u64,
    pub status: Status,
    /// The inode of its pid namespace; 0 if the agent may not see it.
    pid_namespace: u64,
    dir: OwnedFd,
    /// None on kernels before 5.3.
    pidfd: Option<OwnedFd>,
}

impl Target {
    pub fn open(pid: i32, start_time: u64) -> Result<Self, Failure> {
        let gone = || Failure::plain(format!("process {pid} has ended")).coded(Code::ProcessEnded);
        let number = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(gone)?;
        refuse_foreign_numbers()?;
        let dir = enter_folder(&path(&pid.to_string())).map_err(|_| gone())?;
        let pidfd = pidfd_open(number, PidfdFlags::empty()).ok();
        let text = read_at(&dir, "status", 1 << 20).ok_or_else(gone)?;
        let status = status::parse(pid, &text).ok_or_else(gone)?;
        let target = Self {
            pid,
            start_time,
            status,
            pid_namespace: pid_namespace(&dir).unwrap_or(0),
            dir,
            pidfd,
        };
        // Checked last: all that was opened before is now known to be of the right process.
        match target.stat() {
            Some(stat) if stat.start_time == start_time => Ok(target),
            Some(_) => Err(Failure::plain(format!(
                "process {pid} has ended; its pid now belongs to another process"
            ))
            .coded(Code::ProcessEnded)),
            None => Err(gone()),
        }
    }

    /// Whether this process has ended. False if that cannot be seen.
    pub fn has_ended(pid: i32, start_time: u64) -> bool {
        let stat = std::fs::read(format!("/proc/{pid}/stat"));
        refuse_foreign_numbers().is_ok() && tells_of_end(stat, start_time)
    }

    /// The names of its files begin with this, for every agent and in every pid namespace. No other process has the
    /// same.
    pub fn file_stem(&self) -> String {
        let number = self.status.namespace_pid;
        format!("{}-{number}-{}", self.pid_namespace, self.start_time)
    }

    /// When it began, by the clock of file times.
    pub fn began(&self) -> SystemTime {
        let ticks = Duration::from_secs(self.start_time) / clock_ticks_per_second() as u32;
        SystemTime::now() - since_boot().saturating_sub(ticks)
    }

    #[cfg(test)]
    pub fn own() -> Self {
        Self::open(std::process::id() as i32, stat::own().unwrap().start_time).unwrap()
    }

    /// None: the process has ended.
    pub fn stat(&self) -> Option<Stat> {
        stat::parse(&read_at(&self.dir, "stat", 4096)?).filter(Stat::lives)
    }

    pub fn read(&self, name: &str, limit: u64) -> Option<String> {
        read_at(&self.dir, name, limit)
    }

    /// The files that it maps, as in `maps::files`.
    pub fn mapped(&self, wanted: impl Fn(&Mapping) -> bool) -> Option<Vec<Mapped>> {
        maps::files(self.map()?, wanted)
    }

    pub fn mappings(&self) -> Option<Vec<Mapping>> {
        maps::mappings(self.map()?)
    }

    fn map(&self) -> Option<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let map = openat(&self.dir, "maps", flags, Mode::empty());
        map.ok().map(File::from)
    }

    /// Its open files, as in `/proc/PID/fd`. Err: one cannot be seen. None: the agent may not look.
    pub fn open_files(&self) -> Option<impl Iterator<Item = Result<String, Errno>>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = openat(&self.dir, "fd", flags, Mode::empty()).ok()?;
        let entries = Dir::read_from(&dir).ok()?.flatten();
        let numbers = entries.filter(|entry| !entry.file_name().to_bytes().starts_with(b"."));
        Some(numbers.take(MOST_FILES).filter_map(move |entry| {
            match readlinkat(&dir, entry.file_name(), Vec::new()) {
                Ok(link) => Some(Ok(link.to_string_lossy().into_owned())),
                Err(Errno::NOENT) => None, // closed meanwhile
                Err(error) => Some(Err(error)),
            }
        }))
    }

    /// Whether it is in the host's own user namespace, where every number means itself.
    pub fn has_users_of_host(&self) -> bool {
        let map = self.read("uid_map", 4096);
        // Kernels without user namespaces have no map.
        map.is_none_or(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]))
    }

    pub fn named(&self) -> Result<Named, Errno> {
        let root = self.open_link("root", OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(Named::new(root, self.read_link("cwd")))
    }

    /// Of the agent itself.
    pub fn own_status() -> Option<Status> {
        status::parse(
            std::process::id() as i32,
            &read_text("/proc/self/status", 1 << 20)?,
        )
    }

    pub fn status_now(&self) -> Option<Status> {
        status::parse(self.pid, &self.read("status", 1 << 20)?)
    }

    /// `root`, `cwd` or `ns/mnt`.
    pub fn open_link(&self, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        openat(&self.dir, name, flags | OFlags::CLOEXEC, Mode::empty())
    }

    /// The numbers of its threads, at most `MOST_THREADS`; none if it has ended.
    pub fn threads(&self) -> Vec<i32> {
        let folder = self.open_link("task", OFlags::RDONLY | OFlags::DIRECTORY);
        let entries = folder.and_then(Dir::new);
        let entries = entries.into_iter().flatten().flatten();
        let threads = entries.filter_map(|entry| entry.file_name().to_str().ok()?.parse().ok());
        threads.take(MOST_THREADS).collect()
    }

    pub fn read_link(&self, name: &str) -> Option<String> {
        readlinkat(&self.dir, name, Vec::new())
            .ok()?
            .into_string()
            .ok()
    }

    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        match (&self.pidfd, Pid::from_raw(self.pid)) {
            (Some(pidfd), _) => pidfd_send_signal(pidfd, signal),
            (None, Some(pid)) if self.stat().is_some() => kill_process(pid, signal),
            _ => Err(Errno::SRCH),
        }
    }
}

/// Signals use pids of the agent's own pid namespace, and `/proc` may show another one.
fn refuse_foreign_numbers() -> Result<(), Failure> {
    let shown = read_text(path("self/stat"), 4096)
        .and_then(|text| text.split(' ').next()?.parse::<u32>().ok());
    if shown == Some(std::process::id()) {
        return Ok(());
    }
    Err(Failure::new(
        "/proc shows another pid namespace than the agent's own",
        "run the agent where /proc is that of its own pid namespace",
    )
    .coded(Code::NotPermitted))
}

/// Whether `/proc/PID/stat` shows that this process has ended. (An agent without free descriptors cannot read it.)
fn tells_of_end(stat: io::Result<Vec<u8>>, start_time: u64) -> bool {
    match stat {
        Ok(text) => stat::parse(&String::from_utf8_lossy(&text))
            .is_some_and(|stat| stat.start_time != start_time || !stat.lives()),
        Err(error) => {
            let error = Errno::from_io_error(&error);
            matches!(error, Some(Errno::NOENT | Errno::SRCH))
        }
    }
}

/// From `pid:[4026531836]`.
fn pid_namespace(dir: &OwnedFd) -> Option<u64> {
    let link = readlinkat(dir, "ns/pid", Vec::new())
        .ok()?
        .into_string()
        .ok()?;
    link.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

fn read_at(dir: &OwnedFd, name: &str, limit: u64) -> Option<String> {
    let file = openat(dir, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut bytes = Vec::new();
    File::from(file).take(limit).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_has_not_ended() {
        let stat = read_text("/proc/self/stat", 4096).unwrap();
        let stat::Stat {
            start_time,
            threads,
            ..
        } = stat::parse(&stat).unwrap();
        let mut zombie = stat.clone();
        let state = zombie.rfind(") ").unwrap() + 2;
        zombie.replace_range(state..=state, "Z");
        // The tests' other threads are not the zombie's.
        let zombie = zombie.replacen(&format!(" {threads} 0 "), " 1 0 ", 1);
        for (stat, want) in [
            (Ok(stat), false),
            (Ok(zombie), true),
            (Err(Errno::MFILE), false),
            (Err(Errno::NOENT), true),
            (Err(Errno::SRCH), true),
        ] {
            let read = stat.clone().map(String::into_bytes);
            let ended = tells_of_end(read.map_err(io::Error::from), start_time);
            assert_eq!(ended, want, "{stat:?}");
        }
    }
}
