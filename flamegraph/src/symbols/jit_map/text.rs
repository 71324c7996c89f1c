//! Reads perf maps: one line `start size name` for each piece of code, numbers in hexadecimal.

use std::io::{BufRead, BufReader, Read};

use super::stretches::{settle, Claim, Stands};
use super::JitMap;
use crate::profile::{Error, Kind, Result};
use crate::symbols::python;
use crate::symbols::text_tables::map_entry;

/// Most bytes of such a text, and of one of its lines.
const MOST_BYTES: u64 = 256 << 20;
const MOST_LINE: u64 = 64 << 10;

/// The JVM's name for the interpreter's code.
pub(super) const INTERPRETER: &str = "Interpreter";

pub(super) fn read(input: impl Read) -> Result<JitMap> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut map = JitMap::default();
    let mut claims = Vec::new();
    let (mut line, mut bytes) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = input
            .by_ref()
            .take(MOST_LINE)
            .read_until(b'\n', &mut line)? as u64;
        if read == 0 {
            break;
        }
        bytes += read;
        if bytes > MOST_BYTES {
            return Err(Error::Limit {
                what: "bytes of a perf map",
                limit: MOST_BYTES,
            });
        }
        match map_entry(line.strip_suffix(b"\n").unwrap_or(&line)) {
            Some(entry) => map.add_entry(entry, &mut claims)?,
            None => map.malformed += u64::from(line != b"\n"),
        }
    }
    map.stretches = settle(claims, Stands::Last);
    Ok(map)
}

impl JitMap {
    fn add_entry(&mut self, entry: (u64, u64, &[u8]), claims: &mut Vec<Claim>) -> Result<()> {
        let (start, size, name) = entry;
        let python = python::of_perf_map(name);
        let method = method_name(name);
        let named = python.as_ref().map(String::as_bytes).or(method.as_deref());
        let id = self.push_name(named.unwrap_or(name))?;
        let kind = match method {
            _ if python.is_some() => Kind::Plain,
            Some(_) => Kind::Jit,
            None if self.names.name(id) == INTERPRETER => Kind::Interpreted,
            None if is_stub(name) => Kind::Plain,
            None => Kind::Jit,
        };
        claims.push(Claim {
            start,
            end: start.saturating_add(size),
            code: self.codes.len() as u32,
        });
        self.push_code(start, id, kind)
    }
}

/// A method as `Compiler.perfmap` writes it, `int java.util.HashMap.hash(java.lang.Object)`, as async-profiler
/// does: `java/util/HashMap.hash`. `None` if it is not such a text.
fn method_name(name: &[u8]) -> Option<Vec<u8>> {
    let inside = name.strip_suffix(b")")?;
    let before = &inside[..memchr::memchr(b'(', inside)?];
    let (_returned, method) = before.split_at(memchr::memchr(b' ', before)? + 1);
    let dot = memchr::memrchr(b'.', method)?;
    if method.contains(&b' ') {
        return None;
    }
    let mut named = method.to_vec();
    for byte in named[..dot].iter_mut().filter(|byte| **byte == b'.') {
        *byte = b'/';
    }
    Some(named)
}

/// Code of a JVM that is not a method.
fn is_stub(name: &[u8]) -> bool {
    const STUBS: [&[u8]; 12] = [
        b"StubRoutines",
        b"RuntimeStub",
        b"vtable ",
        b"itable ",
        b"I2C/C2I",
        b"Deopt",
        b"Uncommon",
        b"Exception",
        b"Safepoint",
        b"Stub Generator",
        b"MethodHandles",
        b"native",
    ];
    STUBS.iter().any(|stub| name.starts_with(stub))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_called_as_async_profiler_calls_them() {
        let cases = [
            (
                "int java.util.HashMap.hash(java.lang.Object)",
                Some("java/util/HashMap.hash"),
            ),
            (
                "void Deep.<init>(int, java.lang.String[])",
                Some("Deep.<init>"),
            ),
            ("StubRoutines (initial stubs)", None),
            ("Interpreter", None),
            ("LazyCompile:*f /x.js:1", None),
            ("f(x)", None),
            ("a b c.d()", None),
        ];
        for (written, expected) in cases {
            let name = method_name(written.as_bytes());
            assert_eq!(name.as_deref(), expected.map(str::as_bytes), "{written}");
        }
    }

    #[test]
    fn later_entries_cover_earlier_ones() {
        let text = b"100 100 old\n140 20 void a.B.c()\nnonsense\n\n180 10 Interpreter\n1f0 20 last\n0 0 none\n";
        let map = JitMap::text(&text[..]).unwrap();
        let cases = [
            (0xff, None),
            (0x100, Some(("old", Kind::Jit))),
            (0x140, Some(("a/B.c", Kind::Jit))),
            (0x160, Some(("old", Kind::Jit))),
            (0x18f, Some(("Interpreter", Kind::Interpreted))),
            (0x1f0, Some(("last", Kind::Jit))),
            (0x210, None),
            (0, None),
        ];
        for (address, expected) in cases {
            assert_eq!(map.find(address), Vec::from_iter(expected), "{address:x}");
        }
        assert_eq!((map.len(), map.malformed()), (5, 1));
    }
}
