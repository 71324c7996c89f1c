//! Stops threads for the moment in which their registers and stacks are read.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{channel, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc::user_regs_struct;
use nix::sys::ptrace::{detach, getregs, interrupt, seize, Options};
use nix::unistd::Pid as NixPid;
use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};

use super::registers::unwind_registers;
use crate::os::threads::STACK;

/// How long to wait for threads to stop; one that has begun to wait for a disk does not.
const LIMIT: Duration = Duration::from_millis(5);
/// How long they stay stopped at most, even where their memory cannot be read.
const LONGEST: Duration = Duration::from_millis(50);
const POLL: Duration = Duration::from_micros(20);
/// `__WALL`: kernels before 4.7 otherwise wait for main threads only.
const ALL: u32 = 0x4000_0000;
/// `PTRACE_EVENT_STOP` in a thread's status: it stopped because it was asked to, or with its process.
const EVENT_STOP: i32 = 128;

/// What a thread had when it was stopped.
pub struct StoppedThread {
    pub thread: i32,
    pub registers: user_regs_struct,
    /// The bytes from the stack pointer on.
    pub stack: Vec<u8>,
}

/// What was read while threads were stopped.
pub struct Stop<T> {
    pub threads: Vec<StoppedThread>,
    /// 0: no thread stopped in time.
    pub time: Duration,
    /// Why the kernel did not let the agent stop a thread.
    pub refused: Option<Errno>,
    pub result: T,
}

/// Copies the registers and stacks of threads, and calls `read` before they go on. If that takes too long, they go on
/// meanwhile, and nothing of them is returned. None: the agent could not start a thread for it.
///
/// A thread of its own traces them: the kernel lets go of all that it traces when it ends, also of a thread that did
/// not stop in time, and when the agent is killed. A signal that such a thread was about to get is delivered then, which
/// is not lost since no status is taken from the kernel (`NOWAIT`). A stopped process remains stopped.
pub fn while_stopped<T>(
    threads: &[i32],
    memory: &File,
    size: impl Fn(u64) -> usize,
    read: impl FnOnce() -> T,
) -> Option<Stop<T>> {
    let (sender, stopped) = channel();
    let (done, finished) = channel::<()>();
    let trace = move || {
        let begin = Instant::now();
        let mut refused = None;
        let asked = threads.iter().copied().filter(|&thread| {
            let thread = NixPid::from_raw(thread);
            let asked = seize(thread, Options::empty()).and_then(|()| interrupt(thread));
            refused = refused.or(asked.err().filter(|&error| error != Errno::ESRCH));
            asked.is_ok()
        });
        let stopped = wait_for(asked.collect(), begin + LIMIT);
        let registers = stopped.iter().filter_map(|&(thread, _)| {
            let registers = getregs(NixPid::from_raw(thread)).ok()?;
            Some((thread, registers))
        });
        let _ = sender.send(registers.collect::<Vec<_>>());
        let in_time = finished.recv_timeout(LONGEST.saturating_sub(begin.elapsed()))
            != Err(RecvTimeoutError::Timeout);
        for &(thread, asked) in &stopped {
            if asked {
                let _ = detach(NixPid::from_raw(thread), None);
            }
        }
        let time = match stopped.is_empty() {
            true => Duration::ZERO,
            false => begin.elapsed(),
        };
        (time, refused, in_time)
    };
    let copy = |(thread, registers)| {
        let (pointer, ..) = unwind_registers(&registers);
        let mut stack = vec![0; size(pointer)];
        let read = memory.read_at(&mut stack, pointer).ok()?;
        stack.truncate(read);
        Some(StoppedThread {
            thread,
            registers,
            stack,
        })
    };
    thread::scope(|scope| {
        let tracer = thread::Builder::new().name("python stops".to_owned());
        let tracer = tracer.stack_size(STACK).spawn_scoped(scope, trace).ok()?;
        let stopped = stopped.recv().ok()?.into_iter();
        let mut threads: Vec<StoppedThread> = stopped.filter_map(copy).collect();
        let result = read();
        drop(done);
        let (time, refused, in_time) = tracer.join().ok()?;
        if !in_time {
            threads.clear();
        }
        Some(Stop {
            threads,
            time,
            refused,
            result,
        })
    })
}

/// The threads that stopped, and whether because they were asked to: another one is about to get a signal.
fn wait_for(mut threads: Vec<i32>, end: Instant) -> Vec<(i32, bool)> {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let options = options | WaitIdOptions::from_bits_retain(ALL);
    let mut stopped = Vec::new();
    loop {
        threads.retain(|&thread| {
            let Some(pid) = Pid::from_raw(thread) else {
                return false;
            };
            match waitid(WaitId::Pid(pid), options) {
                Ok(Some(status)) => {
                    let status = status.trapping_signal();
                    stopped.extend(status.map(|status| (thread, status >> 8 == EVENT_STOP)));
                    false
                }
                Ok(None) => true,
                Err(_) => false,
            }
        });
        if threads.is_empty() || Instant::now() >= end {
            return stopped;
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    use crate::os::proc::stat;

    const LONG: Duration = Duration::from_secs(120);

    struct Busy(Child);

    impl Busy {
        fn start() -> Self {
            Self(
                Command::new("sh")
                    .args(["-c", "while :; do :; done"])
                    .spawn()
                    .unwrap(),
            )
        }

        fn ticks(&self) -> u64 {
            stat::of(self.0.id() as i32).unwrap().cpu_ticks
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_process_goes_on_while_its_memory_does_not_answer() {
        let busy = Busy::start();
        while busy.ticks() == 0 {
            thread::yield_now();
        }
        let pid = busy.0.id() as i32;
        let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        let goes_on = || {
            let (before, begin) = (busy.ticks(), Instant::now());
            while busy.ticks() < before + 5 && begin.elapsed() < LONG {
                thread::yield_now();
            }
            busy.ticks() >= before + 5
        };
        // On a busy machine it may not stop in time, or not be read in time.
        let begin = Instant::now();
        let stops = |read: &dyn Fn() -> bool, wanted: &dyn Fn(&Stop<bool>) -> bool| loop {
            let stop = while_stopped(&[pid], &memory, |_| 16, read).unwrap();
            if wanted(&stop) {
                return stop;
            }
            assert!(begin.elapsed() < LONG);
        };
        let stop = stops(&goes_on, &|stop| !stop.time.is_zero());
        assert!(stop.result && stop.time >= LONGEST && stop.threads.is_empty());
        let stop = stops(&|| true, &|stop| !stop.threads.is_empty());
        assert_eq!((stop.threads.len(), stop.refused), (1, None));
    }
}
