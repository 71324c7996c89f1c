//! `/proc/PID/stat`: parent, state, CPU time, start time, memory.

use super::{path, read_text};

/// Times in clock ticks, `start_time` since boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    pub state: char,
    pub ppid: i32,
    pub major_faults: u64,
    /// User and system.
    pub cpu_ticks: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// Of its children that have ended, and of theirs.
    pub reaped_ticks: u64,
    pub threads: u64,
    pub start_time: u64,
    pub resident_pages: u64,
}

impl Stat {
    /// A zombie has ended, unless other threads still run: then only its first thread has ended.
    pub fn lives(&self) -> bool {
        match self.state {
            'Z' => self.threads > 1,
            state => state != 'X',
        }
    }

    /// By a signal or a debugger.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Of the agent itself.
pub fn own() -> Option<Stat> {
    parse(&read_text(path("self/stat"), 4096)?)
}

/// None: there is no such process.
pub fn of(pid: i32) -> Option<Stat> {
    parse(&read_text(path(&format!("{pid}/stat")), 4096)?)
}

/// When a process started, and its program's name: another program, or another process with this pid, has others.
pub fn identity(pid: i32) -> Option<(u64, String)> {
    let line = read_text(path(&format!("{pid}/stat")), 4096)?;
    let (_, name) = line[..line.rfind(')')?].split_once('(')?;
    Some((parse(&line)?.start_time, name.to_owned()))
}

/// The program's name may contain spaces and parentheses, so the fields are counted from the last closing one.
pub fn parse(line: &str) -> Option<Stat> {
    let fields: Vec<&str> = line[line.rfind(')')? + 1..]
        .split_ascii_whitespace()
        .collect();
    // proc(5) numbers the fields from 1. The state, first after the name, is number 3.
    let field = |number: usize| fields.get(number - 3).copied();
    let number = |number| field(number)?.parse::<u64>().ok();
    Some(Stat {
        state: field(3)?.chars().next()?,
        ppid: field(4)?.parse().ok()?,
        major_faults: number(12)?,
        cpu_ticks: number(14)?.saturating_add(number(15)?),
        user_ticks: number(14)?,
        system_ticks: number(15)?,
        reaped_ticks: number(16)?.saturating_add(number(17)?),
        threads: number(20)?,
        start_time: number(22)?,
        resident_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "S 12 1 1 0 -1 4194304 100 0 5 0 30 12 3 4 20 0 9 0 98765 1 2 3";

    #[test]
    fn names_may_hold_anything() {
        for name in ["java", "a b", "x) R 1 (y", ") ) )", ""] {
            let stat = parse(&format!("77 ({name}) {TAIL}\n"));
            assert_eq!(
                stat,
                Some(Stat {
                    state: 'S',
                    ppid: 12,
                    major_faults: 5,
                    cpu_ticks: 42,
                    user_ticks: 30,
                    system_ticks: 12,
                    reaped_ticks: 7,
                    threads: 9,
                    start_time: 98765,
                    resident_pages: 2,
                }),
                "{name}"
            );
        }
    }

    #[test]
    fn a_process_lives_as_long_as_one_of_its_threads() {
        for (tail, lives) in [
            (TAIL.to_owned(), true),
            (TAIL.replace("S 12", "Z 12"), true),
            (TAIL.replace("S 12", "Z 12").replace(" 9 0", " 1 0"), false),
            (TAIL.replace("S 12", "X 12"), false),
        ] {
            let stat = parse(&format!("77 (java) {tail}\n")).unwrap();
            assert_eq!(stat.lives(), lives, "{tail}");
        }
    }

    #[test]
    fn what_is_cut_is_none() {
        assert_eq!(parse(""), None);
        assert_eq!(parse("1 (x) S 1 2"), None);
        assert_eq!(parse("1 (x)"), None);
    }
}
