//! The job goes first at disks, and where memory is short. With processors the agent keeps to its pace (`limits`).

use std::fs;

use crate::os::proc::read_text;

/// Class 3 of `ioprio_set(2)`: a disk is asked when nobody else asks it.
const IDLE_DISK: libc::c_long = 3 << 13;
/// `IOPRIO_WHO_PROCESS`.
const PROCESS: libc::c_long = 1;
/// Whom the kernel ends first when memory is over.
const FIRST: i32 = 1000;
const SCORE: &str = "/proc/self/oom_score_adj";

/// To be called before there are threads: they, and the programs that are run, inherit it. It takes no rights, and
/// where a kernel does not have it nothing else is to be done.
pub fn be_modest() {
    // SAFETY: takes three numbers and changes no memory.
    unsafe { libc::syscall(libc::SYS_ioprio_set, PROCESS, 0 as libc::c_long, IDLE_DISK) };
    let score = read_text(SCORE, 16).and_then(|text| text.trim().parse::<i32>().ok());
    if score.is_some_and(|score| score < FIRST) {
        let _ = fs::write(SCORE, FIRST.to_string());
    }
}
