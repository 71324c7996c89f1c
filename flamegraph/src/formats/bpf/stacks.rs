//! The stack whose lines are being read, leaf first, and the profile it goes to.

use crate::formats::stack::Stack;
use crate::profile::{Error, Frame, Limits, Profile, Result, ValueType};

/// Deeper than any stack of the kernel.
const MOST_FRAMES: usize = 1 << 16;

pub(super) struct Stacks<'l> {
    pub(super) profile: Profile,
    limits: &'l Limits,
    /// The frames so far, leaf first.
    frames: Vec<Frame>,
    stack: Stack,
}

impl<'l> Stacks<'l> {
    pub(super) fn new(values: Vec<ValueType>, limits: &'l Limits) -> Stacks<'l> {
        Stacks {
            profile: Profile::bounded(values, limits.cells),
            limits,
            frames: Vec::new(),
            stack: Stack::default(),
        }
    }

    /// Adds a line of a stack: `symbol`, `symbol+offset`, `symbol+offset (module)`, also behind an address.
    pub(super) fn push(&mut self, line: &[u8]) -> Result<()> {
        let line = line.trim_ascii();
        let (line, module) = match memchr::memmem::rfind(line, b" (") {
            Some(at) if line.ends_with(b")") && matches!(line[at + 2], b'/' | b'[') => {
                (&line[..at], &line[at + 2..line.len() - 1])
            }
            _ => (line, &[][..]),
        };
        let is_hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
        let behind_address = line.iter().position(|&byte| byte == b' ').filter(|&space| {
            let address = line[..space].strip_prefix(b"0x").unwrap_or(&line[..space]);
            address.len() >= 8 && is_hex(address)
        });
        let symbol = &line[behind_address.map_or(0, |space| space + 1)..];
        let name = match symbol.strip_prefix(b"0x") {
            // Different addresses of code without symbols are not different functions.
            Some(address) if is_hex(address) => b"[unknown]",
            _ => without_offset(symbol),
        };
        if name.len() > self.limits.name_bytes {
            return Err(Error::Limit {
                what: "bytes of a frame name",
                limit: self.limits.name_bytes as u64,
            });
        }
        if self.frames.len() == MOST_FRAMES {
            return Err(Error::Limit {
                what: "frames of a stack",
                limit: MOST_FRAMES as u64,
            });
        }
        let frame = self.profile.frames.intern(name)?;
        self.frames.push(frame);
        if !module.is_empty() {
            let name = self.profile.frames.name_of(frame);
            let module = String::from_utf8_lossy(module);
            self.profile.modules.insert(name, frame.kind(), &module);
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }

    /// Counts the stack, below a frame of this name if it is not empty, and begins the next one.
    pub(super) fn count(&mut self, root: &[u8], value: usize, amount: i64) -> Result<()> {
        if !root.is_empty() {
            let name = self.profile.frames.intern(root)?;
            self.frames.push(name);
        }
        let frames = self.frames.iter().rev().copied();
        let leaf = self.stack.leaf(&mut self.profile, frames)?;
        self.frames.clear();
        self.profile.add(leaf, value, amount)
    }
}

/// `vfs_read` of `vfs_read+157` and `vfs_read+0x9d`.
fn without_offset(symbol: &[u8]) -> &[u8] {
    let Some(plus) = memchr::memrchr(b'+', symbol) else {
        return symbol;
    };
    let offset = &symbol[plus + 1..];
    let digits = offset.strip_prefix(b"0x").unwrap_or(offset);
    let is_offset = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    if is_offset && plus > 0 {
        &symbol[..plus]
    } else {
        symbol
    }
}
