//! The stacks that bcc's `profile` and `offcputime` print when they are not told to fold them (`-f`):
//!
//! ```text
//!     leaf
//!     caller
//!     -                java (31227)
//!         6
//! ```
//!
//! The command is the root frame.

use super::stacks::Stacks;
use crate::formats::folded::{Tally, Wrong};
use crate::formats::perf_script::Lines;
use crate::formats::ReadOptions;
use crate::profile::{Bounded, Error, Profile, Result, ValueType};
use crate::source::Input;

const NAME: &str = "bcc's stacks";
/// Longer than the name of any command.
const MOST_COMMAND_BYTES: usize = 256;
/// What `offcputime` prints first; its numbers are microseconds.
const OFF_CPU: &[u8] = b"off-CPU time (us)";

/// Whether a stack ends with a command, and a number follows.
pub(crate) fn detect(head: &[u8]) -> bool {
    let mut lines = head.split(|&byte| byte == b'\n').peekable();
    while let Some(line) = lines.next() {
        if command(line).is_some() && lines.peek().is_some_and(|next| number(next).is_some()) {
            return true;
        }
    }
    false
}

/// `java` of `    -                java (31227)`.
fn command(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"    -")?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii();
    let bracket = memchr::memmem::rfind(rest, b" (")?;
    let pid = rest[bracket + 2..].strip_suffix(b")")?;
    let is_pid = !pid.is_empty() && pid.iter().all(u8::is_ascii_digit);
    is_pid.then_some(rest[..bracket].trim_ascii_end())
}

/// The number of an indented line that has nothing else.
fn number(line: &[u8]) -> Option<i64> {
    let digits = line.strip_prefix(b"     ")?.trim_ascii();
    std::str::from_utf8(digits).ok()?.parse().ok()
}

pub(crate) fn read_input(input: Input<'_>, options: &ReadOptions) -> Result<Profile> {
    let limits = &options.limits;
    let is_off_cpu = memchr::memmem::find(input.head(), OFF_CPU).is_some();
    let (value, factor) = match is_off_cpu {
        true => (ValueType::new("offcpu", "nanoseconds"), 1000),
        false => (ValueType::samples(), 1),
    };
    let text = Bounded::new(input, "bytes of bcc's output", limits.text_bytes);
    let mut lines = Lines::new(text);
    let mut stacks = Stacks::new(vec![value], limits);
    let mut root: Option<Vec<u8>> = None;
    let (mut good, mut malformed) = (0, 0);
    let mut tally = Tally::default();
    loop {
        let line_number = lines.number() + 1;
        let at_line = |error: Error| error.at(NAME, line_number);
        let Some(line) = lines.next().map_err(at_line)? else {
            break;
        };
        let line = line.trim_ascii_end();
        if !line.is_empty() && !is_message(line) {
            let foreign = root.is_none() && !line.starts_with(b"    ");
            tally.count(line_number, foreign.then_some(Wrong::NoCount));
        }
        if let Some(root) = root.take() {
            match number(line).and_then(|number| number.checked_mul(factor)) {
                Some(amount) if amount >= 0 => {
                    stacks.count(&root, 0, amount).map_err(at_line)?;
                    good += 1;
                }
                _ => malformed += 1,
            }
            stacks.clear();
        } else if let Some(command) = command(line) {
            let name = plain(command);
            root = Some(name[..name.len().min(MOST_COMMAND_BYTES)].to_vec());
        } else if line == b"    --" {
            // Between the frames of the kernel and those of the program.
        } else if line.starts_with(b"    ") {
            stacks.push(plain(line.trim_ascii())).map_err(at_line)?;
        } else {
            stacks.clear();
        }
    }
    if good == 0 {
        let reason = "there is no stack with a command and a number".to_string();
        return Err(Error::Damaged(NAME, reason));
    }
    tally.check_most(NAME, options.format.is_some())?;
    let mut profile = stacks.profile;
    profile.add_malformed_lines(malformed + u64::from(root.is_some()));
    profile.into_ordered()
}

/// What the tools print beside stacks.
fn is_message(line: &[u8]) -> bool {
    let messages: [&[u8]; 3] = [b"Sampling at ", b"Tracing off-CPU time", b"WARNING: "];
    messages.iter().any(|message| line.starts_with(message))
}

/// `vfs_read` of `b'vfs_read'`, as older versions print it.
fn plain(name: &[u8]) -> &[u8] {
    let inner = name
        .strip_prefix(b"b'")
        .and_then(|name| name.strip_suffix(b"'"));
    inner.unwrap_or(name)
}
