//! What `perf script` prints, in the shapes that it has.

use flamegraph::Format;
use flamegraph::{read, Profile, ReadOptions};

use crate::support::{detected, text};

/// The stacks of a text, which is recognised, and how many of its lines were left out.
fn stacks(script: &str) -> (String, u64) {
    let profile: Profile = detected(script.as_bytes()).unwrap();
    (text(&profile), profile.malformed_lines())
}

#[test]
fn samples_without_a_stack_are_indented() {
    let switches = "\
            java  4021 [002]   100.100000: sched:sched_switch: prev_comm=java prev_prio=120 ==> next_prio=120
            java  4022 [003]   100.200000: sched:sched_switch: prev_comm=java prev_prio=120 ==> next_prio=120
         kworker  4023 [001]   100.300000: sched:sched_switch: prev_comm=kworker prev_state=I ==> next_comm=a
            java  4021 [002]   100.400000: sched:sched_switch: prev_comm=java prev_prio=120 ==> next_prio=0
";
    assert_eq!(stacks(switches), ("java 3\nkworker 1\n".into(), 0));
    // The command is a number in base 16, and the text ends like a frame's module.
    let calls = "\
            cafe  4021 [002]   100.100000: raw_syscalls:sys_enter: NR 0 (3, 7ff, 400)
            cafe  4021 [002]   100.200000: raw_syscalls:sys_enter: NR 1 (3, 7ff, 400)
";
    assert_eq!(stacks(calls), ("cafe 2\n".into(), 0));
    let only_frames = "\
            cafe  4021   100.100000:    7 cycles:  401120 work+0x1 (/srv/t)
            cafe  4021   100.200000:    5 cycles:  401120 work+0x2 (/srv/t)
";
    assert_eq!(stacks(only_frames), ("cafe;work 12\n".into(), 0));
    let mixed = "\
java 7 1.5: 3 cycles:
\tff f (/x)
            java     7 1.6: sched:sched_switch: prev_comm=java
java 7 1.7: 3 cycles:
\tff f (/x)
";
    assert_eq!(stacks(mixed), ("java;f 6\n".into(), 0));
}

#[test]
fn messages_of_perf_are_no_samples() {
    let before = "\
WARNING: The perf.data file's data size field is 0 which is unexpected.
Was the 'perf record' command properly terminated?
worker 21595 [000] 4525.744200000:     250000 cpu-clock:
\t          401120 work (/srv/bin/t)
\t          401080 main (/srv/bin/t)

";
    assert_eq!(stacks(before), ("worker;main;work 250000\n".into(), 0));
    let among = "
 instruction trace error type 1 time 4525.744123981 cpu 0 pid 2 tid 2 ip 0 code 8: Lost trace data
worker 2 [000] 4525.744200000:          1 branches:uH:
\t          401120 work (/srv/bin/t)

 instruction trace error type 1 time 4525.747173331 cpu 0 pid 2 tid 2 ip 0x7f85 code 7: Overflow packet
Lost 12
worker 2 [000] 4525.745200000:          1 branches:uH:
\t          401120 work (/srv/bin/t)
";
    assert_eq!(stacks(among), ("worker;work 2\n".into(), 3));
    let none = read(b"Lost 12\n", &ReadOptions::of(Some(Format::PerfScript)));
    assert!(none.is_err());
    let other = format!("{before}{}", "request took 12 ms\n".repeat(500));
    let error = detected(other.as_bytes()).err().unwrap().to_string();
    let expected = "perf script text, line 7: no part of a sample, as 500 of 503 lines";
    assert_eq!(error, expected);
}

#[test]
fn fields_may_be_missing_and_separated_by_tabs() {
    for header in [
        "java\t12\t[001]\t1.5:\t1\tcycles:",
        "java 12 1.5: cycles:",
        "java 12 1.5:",
        "java 12 1.5: 1",
        "java 12 cycles:",
        "java 12/13",
        "  java 12",
    ] {
        let script = format!("{header}\n\tff\tf+0x1 (/x)\n\n").repeat(2);
        assert_eq!(stacks(&script), ("java;f 2\n".into(), 0), "{header}");
    }
}
