//! The inputs that fuzzing found worth keeping, and what a fuzz target does with each of them: no panic, no hanging, no
//! heap of memory. What is kept of a target is one file in `corpus`: an input a line, `NAME.txt` with the escapes of a
//! byte string for text, `NAME.hex` for bytes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// How long one input may take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// How much memory an input may take, in bytes.
const MOST: usize = 256 << 20;

/// Run these targets with everything that is kept for them. Panics where one fails, or there is nothing.
pub fn replay(corpus: &Path, targets: &[&'static str], run: fn(&str, &[u8])) {
    for &target in targets {
        let kept = inputs(corpus, target);
        assert!(!kept.is_empty(), "nothing is kept of {target}");
        for (number, input) in kept.into_iter().enumerate() {
            let shown: Vec<u8> = input.iter().copied().take(200).collect();
            let (done, told) = channel();
            thread::spawn(move || {
                LEFT.set(MOST);
                run(target, &input);
                LEFT.set(usize::MAX);
                done.send(()).expect("somebody waits");
            });
            let ended = told.recv_timeout(PATIENCE);
            let shown = shown.escape_ascii();
            assert!(
                ended.is_ok(),
                "{target}, input {number}: {ended:?}: {shown}"
            );
        }
    }
}

/// The inputs kept for a target.
fn inputs(corpus: &Path, target: &str) -> Vec<Vec<u8>> {
    let read = |form: &str| fs::read_to_string(corpus.join(format!("{target}.{form}"))).ok();
    let decoded = |text: String, decode: fn(&str) -> Option<Vec<u8>>| {
        let lines = text.lines().enumerate();
        let wrong = |number| panic!("{target}: line {number} cannot be read");
        lines
            .map(|(number, line)| decode(line).unwrap_or_else(|| wrong(number + 1)))
            .collect()
    };
    let bytes = read("hex").map(|text| decoded(text, of_hex));
    bytes
        .or_else(|| read("txt").map(|text| decoded(text, of_escapes)))
        .unwrap_or_default()
}

fn of_hex(line: &str) -> Option<Vec<u8>> {
    let pairs = line.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

fn of_escapes(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.bytes();
    let mut bytes = Vec::new();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    of_hex(std::str::from_utf8(&digits).ok()?)?[0]
                }
                other => other,
            },
            other => other,
        });
    }
    Some(bytes)
}

thread_local! {
    /// What the thread may still take, in bytes.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The system's memory, of which a thread gets no more than it may take: beyond that the program ends.
pub struct Bounded;

// SAFETY: what the system's allocator promises is passed on; giving nothing is always allowed.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let left = LEFT.get();
        if left == usize::MAX {
            // SAFETY: the caller's promises are the system allocator's conditions.
            return unsafe { System.alloc(layout) };
        }
        match left.checked_sub(layout.size()) {
            Some(rest) => {
                LEFT.set(rest);
                // SAFETY: as above.
                unsafe { System.alloc(layout) }
            }
            None => std::ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let left = LEFT.get();
        if left != usize::MAX {
            LEFT.set((left + layout.size()).min(MOST));
        }
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) };
    }
}
