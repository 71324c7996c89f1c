//! Folded text long enough for several threads: the same profile, the same errors.

use std::fmt::Write;

use flamegraph::{read, Limits, Merger, ReadOptions};

use crate::support::{samples, text};

const LINES: usize = 90_000;

/// About 6 MB. Every line has its number, so that a lost or repeated line is noticed.
fn long_text() -> String {
    let mut text = String::new();
    for line in 0..LINES {
        let (module, class) = (line % 7, line % 101);
        writeln!(
            text,
            "java.lang.Thread.run_[j];org.example.Module{module}.call_[0];C{class}.run;f{line} {}",
            line % 5 + 1
        )
        .unwrap();
    }
    text
}

fn with_line(number: usize, line: &str) -> String {
    let mut lines: Vec<String> = long_text().lines().map(str::to_string).collect();
    lines[number - 1] = line.to_string();
    lines.join("\n")
}

fn error(text: &str, limits: Limits) -> String {
    let options = ReadOptions {
        limits,
        ..ReadOptions::default()
    };
    read(text.as_bytes(), &options).err().unwrap().to_string()
}

#[test]
fn several_threads_make_the_same_profile() {
    let long = long_text();
    let together = read(long.as_bytes(), &ReadOptions::default()).unwrap();
    let mut by_pieces = Merger::new();
    for piece in long.lines().collect::<Vec<_>>().chunks(LINES / 10) {
        by_pieces.add(samples(&piece.join("\n"))).unwrap();
    }
    let by_pieces = by_pieces.finish().unwrap().unwrap();
    assert!(text(&together) == text(&by_pieces));
    assert_eq!(together.node_count(), by_pieces.node_count());
    assert_eq!(together.total(0).unwrap(), by_pieces.total(0).unwrap());
}

#[test]
fn the_error_is_that_of_the_first_wrong_line() {
    let long = format!("{} 1", "x".repeat(70_000));
    let mut text = with_line(80_000, &long);
    write!(text, "\n{long}\n").unwrap();
    for _ in 0..3 {
        let error = error(&text, Limits::default());
        assert!(
            error.starts_with("folded text, line 80000: bytes of a frame name"),
            "{error}"
        );
    }
}

#[test]
fn limits_hold_for_all_threads_together() {
    let limits = Limits {
        cells: 90_000,
        ..Limits::default()
    };
    let error_of_nodes = error(&long_text(), limits);
    assert!(
        error_of_nodes.ends_with("nodes of the call tree: more than 90000"),
        "{error_of_nodes}"
    );
    let limits = Limits {
        text_bytes: 5_000_000,
        ..Limits::default()
    };
    assert_eq!(
        error(&long_text(), limits),
        "bytes of folded text: more than 5000000"
    );
    let text = with_line(1, "a 9223372036854775807");
    let error = error(&text, Limits::default());
    assert!(error.contains("the sum does not fit in 64 bits"), "{error}");
}
