//! Files of other tools that contradict themselves or are too large: errors that say where.

use flamegraph::{read, Format, Limits, ReadOptions, Threads};

use crate::golden::OTHER_TOOLS;
use crate::support::{error, folded};

fn refused(format: Format, text: &str) -> String {
    error(read(text.as_bytes(), &ReadOptions::of(Some(format))))
}

#[test]
fn flame_graphs_of_async_profiler() {
    let graph = |pool: &str, calls: &str| {
        let text = format!("const cpool = [\n{pool}\n];\n{calls}\n");
        refused(Format::AsyncHtml, &text)
    };
    for (pool, calls, expected) in [
        (
            "'all',\n'~b'",
            "n(3,2)",
            ", line 3: a name shares more than there is",
        ),
        ("'all',\n'b", "n(3,2)", ", line 3: a name without its end"),
        (
            "'all'",
            "n(3,2)\nu(8,1)",
            ", line 5: name 1 does not exist (there are 1)",
        ),
        (
            "'all',\n' b'",
            "n(3,2)\nu(8,3)",
            ", line 6: a frame is wider than its caller",
        ),
        (
            "'all',\n' b'",
            "n(3,2)\nf(8,2,0,1)",
            ", line 6: level 2 has no caller",
        ),
        (
            "'all',\n' b'",
            "n(3,2)\nu(15,1)",
            ", line 6: an unknown type of frame",
        ),
        ("'all'", "n(3,x)", ", line 4: a number is wrong"),
        ("'all'", "n()", ", line 4: a number is missing"),
        ("'all'", "", ": there is no frame"),
    ] {
        assert_eq!(
            graph(pool, calls),
            format!("async-profiler's flame graph{expected}")
        );
    }
    let old = refused(Format::AsyncHtml, "f(0,0,12,3,'all'\nf(1,0,12,3,'a\n");
    assert_eq!(
        old,
        "async-profiler's flame graph, line 2: a name without its end"
    );
}

#[test]
fn profiles_of_firefox() {
    let text = std::fs::read_to_string(format!("{OTHER_TOOLS}/firefox-shared.json")).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        refused(Format::Firefox, &text.replacen(from, to, 1))
    };
    for (from, to, expected) in [
        ("[null,0,1]", "[null,1,1]", "stack 1 has the caller 1"),
        (
            "[null,0,1]",
            "[null,0]",
            "the columns of stackTable have different lengths",
        ),
        (
            "\"frame\":[0,1,2]",
            "\"frame\":[0,1,3]",
            "frame 3 does not exist",
        ),
        (
            "\"func\":[0,1,2]",
            "\"func\":[0,9,2]",
            "function 9 does not exist",
        ),
        (
            "\"name\":[0,1,2]",
            "\"name\":[0,1,3]",
            "string 3 does not exist",
        ),
        (
            "\"stack\":[2,1,2]",
            "\"stack\":[2,7,2]",
            "thread 0: sample 1: stack 7 does not exist",
        ),
        ("[3,1,1]", "[3,1]", "thread 0: fewer numbers than samples"),
        (
            "[3,1,1]",
            "[3,1,1,1]",
            "thread 0: more numbers than samples",
        ),
        ("[3,1,1]", "[3,1e300,1]", "thread 0: sample 1: 1"),
        (
            "\"bytes\"",
            "\"furlongs\"",
            "thread 1: unknown weights \"furlongs\"",
        ),
        (
            "[3,1,1]",
            "[3,-4,1]",
            "thread 0: sample 1: -4 is negative: differences of profiles are not read",
        ),
    ] {
        let error = changed(from, to);
        assert!(
            error.starts_with(&format!("Firefox profile: {expected}")),
            "{error}"
        );
    }
    let options = ReadOptions {
        threads: Threads::Each,
        ..ReadOptions::default()
    };
    let profile = read(text.as_bytes(), &options).unwrap();
    assert_eq!(
        folded(&profile, 0),
        "[a];start;parse 1\n[a];start;parse;alloc 4\n"
    );
    assert_eq!(folded(&profile, 1), "[b];start;parse;alloc 100\n");
}

/// A few threads of a few bytes could name long stacks again and again.
#[test]
fn stacks_that_are_looked_up_again_are_limited() {
    let columns = |first: &str, count: usize| {
        let numbers = (0..count).map(|number| number.to_string());
        let all = std::iter::once(first.to_string()).chain(numbers);
        all.collect::<Vec<_>>().join(",")
    };
    let count = 500;
    let (prefix, frames) = (
        columns("null", count),
        "0".to_string() + &",0".repeat(count),
    );
    let threads =
        (0..40).map(|thread| format!(r#"{{"name":"t{thread}","samples":{{"stack":[{count}]}}}}"#));
    let threads = threads.collect::<Vec<_>>().join(",");
    let text = format!(
        r#"{{"meta":{{}},"shared":{{"stringArray":["a"],"stackTable":{{"frame":[{frames}],"prefix":[{prefix}]}},
        "frameTable":{{"func":[0]}},"funcTable":{{"name":[0]}}}},"threads":[{threads}]}}"#
    );
    let options = ReadOptions {
        threads: Threads::Each,
        limits: Limits {
            cells: 10_000,
            ..Limits::default()
        },
        ..ReadOptions::of(Some(Format::Firefox))
    };
    let message = error(read(text.as_bytes(), &options));
    assert!(message.ends_with(": more than 10000"), "{message}");
}

#[test]
fn texts_of_bpf_tools_without_stacks() {
    let none = refused(Format::Bpftrace, "@x: 5\n@count[java]: 3\n");
    assert_eq!(none, "bpftrace's maps: there is no map with stacks as keys");
    let none = refused(Format::Bcc, "    a\n    b\n");
    assert_eq!(
        none,
        "bcc's stacks: there is no stack with a command and a number"
    );
    let large = refused(
        Format::Bpftrace,
        "@[\n    a+1\n]: 9223372036854775807\n@[\n    b+1\n]: 1\n",
    );
    let expected = "bpftrace's maps, line 6: samples (count): the sum does not fit in 64 bits";
    assert_eq!(large, expected);
}

#[test]
fn heap_dumps() {
    let dump = |header: &str, stack: &str, numbers: &str| {
        let text = format!("{header}\n@ {stack}\n  t*: {numbers}\n");
        refused(Format::Jemalloc, &text)
    };
    for (header, stack, numbers, expected) in [
        (
            "heap_v2/",
            "0x1",
            "1: 2 [0: 0]",
            "line 1: the interval of samples is missing",
        ),
        (
            "heap_v1",
            "0x1",
            "1: 2 [0: 0]",
            "line 3: the interval of samples is missing",
        ),
        (
            "heap_v2/1",
            "0x1 here",
            "1: 2 [0: 0]",
            "line 2: here is not an address",
        ),
        ("heap_v2/1", "0x1", "1", "line 3: two numbers are missing"),
        (
            "heap_v2/1",
            "0x1",
            "1: 18446744073709551615",
            "line 3: a number does not fit in 64 bits",
        ),
    ] {
        let error = dump(header, stack, numbers);
        assert_eq!(error, format!("jemalloc heap dump, {expected}"));
    }
}
