//! The events that are samples of something: what each is called, and which of its fields matter.

use super::layout::Layout;
use super::metadata::Types;

/// What kind of sample an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// async-profiler's CPU or wall-clock sample, or the JDK's sample of a thread in Java code.
    Execution,
    /// The JDK's sample of a thread in native code, which may run or wait.
    Native,
    /// The JDK's sample at equal steps of a thread's CPU time.
    CpuTime,
    Wall,
    /// An allocation that opened a new TLAB, which is what it counts as.
    Tlab,
    OutsideTlab,
    /// The JDK's sample of allocations, with a weight.
    Allocation,
    Live,
    Lock,
    Malloc,
}

/// Slots of the fields that matter.
pub(super) const TIME: usize = 0;
pub(super) const THREAD: usize = 1;
pub(super) const STACK: usize = 2;
pub(super) const CLASS: usize = 3;
pub(super) const AMOUNT: usize = 4;
pub(super) const STATE: usize = 5;
/// The size of an allocation, if its amount is another.
pub(super) const SIZE: usize = 6;
/// Time from the first to the last wall-clock sample of an event.
pub(super) const SPAN: usize = 7;

/// Each event with its source and the names of its fields, by slot.
const SOURCES: &[(&str, Source, [&str; 8])] = {
    use Source::*;
    const fn fields(
        thread: &'static str,
        class: &'static str,
        amount: &'static str,
    ) -> [&'static str; 8] {
        [
            "startTime",
            thread,
            "stackTrace",
            class,
            amount,
            "state",
            "",
            "",
        ]
    }
    let mut wall = fields("sampledThread", "", "samples");
    wall[SPAN] = "timeSpan";
    let mut in_tlab = fields("eventThread", "objectClass", "tlabSize");
    in_tlab[SIZE] = "allocationSize";
    &[
        (
            "jdk.ExecutionSample",
            Execution,
            fields("sampledThread", "", ""),
        ),
        (
            "jdk.NativeMethodSample",
            Native,
            fields("sampledThread", "", ""),
        ),
        (
            "jdk.CPUTimeSample",
            CpuTime,
            fields("eventThread", "", "samplingPeriod"),
        ),
        ("profiler.WallClockSample", Wall, wall),
        ("jdk.ObjectAllocationInNewTLAB", Tlab, in_tlab),
        (
            "jdk.ObjectAllocationOutsideTLAB",
            OutsideTlab,
            fields("eventThread", "objectClass", "allocationSize"),
        ),
        (
            "jdk.ObjectAllocationSample",
            Allocation,
            fields("eventThread", "objectClass", "weight"),
        ),
        (
            "profiler.LiveObject",
            Live,
            fields("eventThread", "objectClass", "allocationSize"),
        ),
        (
            "jdk.JavaMonitorEnter",
            Lock,
            fields("eventThread", "monitorClass", "duration"),
        ),
        (
            "jdk.ThreadPark",
            Lock,
            fields("eventThread", "parkedClass", "duration"),
        ),
        ("profiler.Malloc", Malloc, fields("eventThread", "", "size")),
    ]
};

/// A kind of event that is read.
pub(super) struct Kind {
    number: u64,
    pub(super) source: Source,
    pub(super) layout: Layout,
}

/// The kinds of a chunk, by number.
pub(super) struct Kinds {
    kinds: Vec<Kind>,
    /// For small numbers the place in `kinds`, and one more; 0: it is not there.
    table: Vec<u8>,
    pub(super) setting: Option<(u64, Layout)>,
    pub(super) execution_sample: Option<u64>,
    pub(super) active_recording: Option<u64>,
}

const TABLE: u64 = 4096;

impl Kinds {
    pub(super) fn of(types: &Types<'_>) -> Kinds {
        let mut kinds = Vec::new();
        let mut table = vec![0; TABLE as usize];
        for (name, source, fields) in SOURCES {
            let Some(number) = types.id(name) else {
                continue;
            };
            let Some(layout) = Layout::of(types, number, fields) else {
                continue;
            };
            let layout = layout.shortened();
            kinds.push(Kind {
                number,
                source: *source,
                layout,
            });
            if number < TABLE {
                table[number as usize] = kinds.len() as u8;
            }
        }
        let setting = types.id("jdk.ActiveSetting");
        Kinds {
            kinds,
            table,
            setting: setting
                .and_then(|id| Some((id, Layout::of(types, id, &["id", "name", "value"])?))),
            execution_sample: types.id("jdk.ExecutionSample"),
            active_recording: types.id("jdk.ActiveRecording"),
        }
    }

    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Kind> {
        if number < TABLE {
            return self
                .kinds
                .get(usize::from(self.table[number as usize]).wrapping_sub(1));
        }
        self.kinds.iter().find(|kind| kind.number == number)
    }
}
