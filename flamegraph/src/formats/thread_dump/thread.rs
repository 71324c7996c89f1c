//! One thread of a dump, as all forms have it.

use crate::profile::Result;

use super::places::Places;

/// A lock, by what the dump calls it: an address (`0x000000074276ea20`), or a class and a hash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lock {
    /// What tells it from other locks of the same dump.
    pub id: String,
    /// Its class, as Java writes it; "" if it is not known.
    pub class: String,
}

/// In which way a thread waits for a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitsFor {
    /// It is to enter a monitor.
    #[default]
    Monitor,
    /// It waits to be notified (`Object.wait`).
    Notify,
    /// It is parked: a lock, a condition or a queue of `java.util.concurrent`.
    Park,
}

impl WaitsFor {
    /// A word for programs.
    pub fn word(self) -> &'static str {
        match self {
            WaitsFor::Monitor => "monitor",
            WaitsFor::Notify => "notify",
            WaitsFor::Park => "park",
        }
    }
}

/// A thread of a dump. What the form does not have is empty.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// The number that the operating system has for it.
    pub number: Option<i64>,
    /// The number that Java has for it.
    pub java_number: Option<i64>,
    /// The JVM does not wait for it when it ends.
    pub daemon: bool,
    /// Its frames are of Python.
    pub of_python: bool,
    /// In the text, its frames have no "at".
    pub(super) unmarked: bool,
    /// A virtual thread.
    pub is_virtual: bool,
    /// As `Thread.State`, also of other programs' threads; "" if it is not known.
    pub state: &'static str,
    /// Its CPU time so far in seconds, if the JVM says that.
    pub cpu: Option<f64>,
    /// The numbers of its frames, leaf first.
    pub places: Vec<u32>,
    /// Which locks it holds.
    pub holds: Vec<Lock>,
    /// Which lock it waits for, and how.
    pub waits: Option<(WaitsFor, Lock)>,
    /// Java's number, or else the name, of the thread that has the lock which it waits for, if the dump says that.
    pub(super) owner: Owner,
}

/// Whose lock a thread waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Owner {
    #[default]
    Unknown,
    JavaNumber(i64),
    Name(String),
}

/// The state of a thread that the kernel runs; a JVM's own threads are "RUNNABLE" whatever they do.
pub(super) const RUNNING: &str = "RUNNING";

/// The states that are told apart.
pub(super) fn state_of(word: &str) -> &'static str {
    const STATES: [&str; 6] = [
        "NEW",
        "RUNNABLE",
        "BLOCKED",
        "WAITING",
        "TIMED_WAITING",
        "TERMINATED",
    ];
    match word {
        // A letter of /proc, of hprofiler's dumps of other processes.
        "R" => RUNNING,
        "S" | "D" | "I" => "WAITING",
        word => STATES
            .into_iter()
            .find(|state| *state == word)
            .unwrap_or(""),
    }
}

impl Thread {
    /// A thread in `Object.wait` has let go of the monitor that it waits for, although its stack says "locked".
    pub(super) fn let_go(&mut self) {
        if let Some((WaitsFor::Notify, lock)) = &self.waits {
            self.holds.retain(|held| held.id != lock.id);
        }
    }
}

/// A line of a deadlock that the JVM found.
#[derive(Clone, Debug, Default)]
pub(super) struct DeadlockLine {
    pub thread: String,
    pub lock: String,
    pub holder: String,
}

/// What readers give the threads to that they find.
pub(super) trait Sink {
    fn places(&mut self) -> &mut Places;
    /// The next threads are of another dump.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }
    fn thread(&mut self, thread: &mut Thread) -> Result<()>;
    /// Who waits for whom in a deadlock that the JVM found; `first`: another deadlock begins.
    fn deadlock(&mut self, _line: DeadlockLine, _first: bool) -> Result<()> {
        Ok(())
    }
}
