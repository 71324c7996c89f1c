//! What the kernel lets the agent see by perf events.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::engine::Note;
use crate::proc::{read_text, status};

/// A table of the kernel's symbols is not longer, in bytes.
const MOST_SYMBOLS: u64 = 64 << 20;
const KALLSYMS: &str = "/proc/kallsyms";

/// The agent's own rights.
pub struct Rights {
    /// Whether samples may be taken in the kernel.
    pub kernel: bool,
    paranoid: Option<i32>,
    /// Whether the kernel tells it where its functions are.
    symbols: bool,
}

impl Rights {
    /// As they are for the calling thread.
    pub fn of_agent() -> Self {
        let paranoid = read_text("/proc/sys/kernel/perf_event_paranoid", 64)
            .and_then(|text| text.trim().parse::<i32>().ok());
        let status = read_text("/proc/self/status", 1 << 20)
            .and_then(|text| status::parse(std::process::id() as i32, &text));
        let privileged = status.is_some_and(|status| status.may_profile_kernel());
        Self {
            kernel: privileged || paranoid.is_some_and(|level| level <= 1),
            paranoid,
            symbols: File::open(KALLSYMS)
                .and_then(tells_addresses)
                .unwrap_or(false),
        }
    }

    /// What of it a user should know.
    pub fn note(&self) -> Option<Note> {
        if !self.kernel {
            let level = self
                .paranoid
                .map_or("not to be read".to_owned(), |level| level.to_string());
            return Some(Note::plain(format!(
                "user code only: kernel.perf_event_paranoid is {level}; become root or set it to 1 to see the kernel"
            )));
        }
        (!self.symbols).then(|| {
            Note::plain(
                "kernel functions have no names: connect as root, or set kernel.kptr_restrict to 0",
            )
        })
    }

    /// The kernel's symbols; none where they would be of no use. To be called by the thread whose rights these are.
    pub fn kernel_symbols(&self) -> io::Result<Option<Vec<u8>>> {
        if !(self.kernel && self.symbols) {
            return Ok(None);
        }
        let mut text = Vec::new();
        File::open(KALLSYMS)?
            .take(MOST_SYMBOLS)
            .read_to_end(&mut text)?;
        Ok(Some(text))
    }
}

/// To whom the kernel does not tell them all addresses are zero. (Some symbols are there on any kernel.)
fn tells_addresses(symbols: impl Read) -> io::Result<bool> {
    let reader = BufReader::new(symbols.take(1 << 20));
    for line in reader.lines().take(20_000) {
        let line = line?;
        let address = line.split(' ').next().unwrap_or_default();
        if address.chars().any(|digit| digit != '0') {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: &str = "0000000000000000 T startup_64\n0000000000000000 T do_idle\n";
    const TOLD: &str = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T startup_64\n";

    fn told(kernel: bool, paranoid: Option<i32>, table: &str) -> Option<String> {
        let symbols = tells_addresses(table.as_bytes()).unwrap();
        let rights = Rights {
            kernel,
            paranoid,
            symbols,
        };
        rights.note().map(|note| note.text)
    }

    #[test]
    fn where_the_kernel_hides_its_addresses_the_remedy_is_told() {
        for table in [HIDDEN, ""] {
            let note = told(true, Some(1), table).unwrap();
            assert!(note.contains("kernel functions have no names"), "{note}");
            assert!(note.contains("kernel.kptr_restrict to 0"), "{note}");
        }
        assert_eq!(told(true, Some(1), TOLD), None);
    }

    #[test]
    fn without_samples_of_the_kernel_its_names_do_not_matter() {
        for (level, word) in [(Some(2), "is 2"), (None, "not to be read")] {
            let note = told(false, level, HIDDEN).unwrap();
            assert!(
                note.contains("kernel.perf_event_paranoid") && note.contains(word),
                "{note}"
            );
            assert!(!note.contains("kptr_restrict"), "{note}");
        }
    }
}
