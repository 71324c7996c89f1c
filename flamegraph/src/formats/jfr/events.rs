//! The events that are samples of something: what each is called, and which of its fields matter.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::bytes::Cursor;
use super::chunk::Event;
use super::columns::Pair;
use super::layout::{Layout, Slots};
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
    /// DataDog's CPU sample, which stands for several.
    CpuWeighted,
    /// DataDog's sampled object, which stands for several.
    Weighted(Pair),
    /// An operation that took time, and may have moved bytes.
    Lasting(Pair),
    /// The JDK's sample of objects that live long.
    Old,
}

/// Slots of the fields that matter.
pub(super) const TIME: usize = 0;
pub(super) const THREAD: usize = 1;
pub(super) const STACK: usize = 2;
pub(super) const CLASS: usize = 3;
pub(super) const AMOUNT: usize = 4;
pub(super) const STATE: usize = 5;
/// The size of an allocation, if its amount is another; the bytes that an operation moved.
pub(super) const SIZE: usize = 6;
/// Time from the first to the last wall-clock sample of an event.
pub(super) const SPAN: usize = 7;
/// Where native memory was allocated.
pub(super) const ADDRESS: usize = 7;

/// An event's name and source, and the names of its fields, by slot.
type Row = (&'static str, Source, [&'static str; 8]);

const fn row(
    name: &'static str,
    source: Source,
    thread: &'static str,
    class: &'static str,
    [amount, size, span]: [&'static str; 3],
) -> Row {
    let fields = [
        "startTime",
        thread,
        "stackTrace",
        class,
        amount,
        "state",
        size,
        span,
    ];
    (name, source, fields)
}

/// The events that are read: name, source, the fields of the thread and the class, those of amount, size and span.
#[rustfmt::skip]
const SOURCES: &[Row] = {
    use Source::*;
    &[
        row("jdk.ExecutionSample", Execution, "sampledThread", "", ["", "", ""]),
        row("jdk.NativeMethodSample", Native, "sampledThread", "", ["", "", ""]),
        row("jdk.CPUTimeSample", CpuTime, "eventThread", "", ["samplingPeriod", "", ""]),
        row("profiler.WallClockSample", Wall, "sampledThread", "", ["samples", "", "timeSpan"]),
        row("jdk.ObjectAllocationInNewTLAB", Tlab, "eventThread", "objectClass", ["tlabSize", "allocationSize", ""]),
        row("jdk.ObjectAllocationOutsideTLAB", OutsideTlab, "eventThread", "objectClass", ["allocationSize", "", ""]),
        row("jdk.ObjectAllocationSample", Allocation, "eventThread", "objectClass", ["weight", "", ""]),
        row("profiler.LiveObject", Live, "eventThread", "objectClass", ["allocationSize", "", ""]),
        row("jdk.JavaMonitorEnter", Lock, "eventThread", "monitorClass", ["duration", "", ""]),
        row("jdk.ThreadPark", Lock, "eventThread", "parkedClass", ["duration", "", ""]),
        row("profiler.Malloc", Malloc, "eventThread", "", ["size", "", "address"]),
        row("jdk.SocketRead", Lasting(Pair::Socket), "eventThread", "", ["duration", "bytesRead", ""]),
        row("jdk.SocketWrite", Lasting(Pair::Socket), "eventThread", "", ["duration", "bytesWritten", ""]),
        row("jdk.FileRead", Lasting(Pair::File), "eventThread", "", ["duration", "bytesRead", ""]),
        row("jdk.FileWrite", Lasting(Pair::File), "eventThread", "", ["duration", "bytesWritten", ""]),
        row("jdk.JavaMonitorWait", Lasting(Pair::Wait), "eventThread", "monitorClass", ["duration", "", ""]),
        row("jdk.ThreadSleep", Lasting(Pair::Sleep), "eventThread", "", ["duration", "", ""]),
        row("jdk.OldObjectSample", Old, "eventThread", "", ["objectSize", "", ""]),
        row("datadog.ExecutionSample", CpuWeighted, "eventThread", "", ["weight", "", ""]),
        row("datadog.MethodSample", Wall, "eventThread", "", ["weight", "", ""]),
        row("datadog.ObjectSample", Weighted(Pair::Alloc), "eventThread", "objectClass", ["weight", "size", ""]),
        row("datadog.HeapLiveObject", Weighted(Pair::Live), "eventThread", "objectClass", ["weight", "size", ""]),
        row("datadog.ObjectAllocationInNewTLAB", Tlab, "eventThread", "objectClass", ["tlabSize", "allocationSize", ""]),
        row("datadog.ObjectAllocationOutsideTLAB", OutsideTlab, "eventThread", "objectClass", ["allocationSize", "", ""]),
    ]
};

/// A kind of event with stacks that is not read, and how many events of it have one.
pub(super) struct Unread {
    pub(super) name: String,
    layout: Layout,
    pub(super) events: u64,
}

impl Unread {
    /// Counts an event, if it has a stack.
    pub(super) fn count(&mut self, event: Event, bytes: &[u8]) {
        let mut slots = Slots::default();
        let mut cursor = Cursor::new(&bytes[..event.end], event.fields);
        let read = self.layout.read(&mut cursor, &mut slots);
        self.events += u64::from(read.is_some() && slots[0] != 0);
    }
}

/// Most kinds that are not read and are counted.
const MOST_UNREAD: usize = 256;

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
    pub(super) unread: HashMap<u64, Unread, RandomState>,
    pub(super) setting: Option<(u64, Layout)>,
    pub(super) thread_start: Option<(u64, Layout)>,
    pub(super) jvm: Option<(u64, Layout)>,
    /// Kinds whose setting `interval` is that between CPU samples, and that between wall-clock samples.
    pub(super) cpu_samples: [Option<u64>; 2],
    pub(super) wall_samples: Option<u64>,
    pub(super) active_recording: Option<u64>,
    /// Whether the JDK wrote the chunk.
    pub(super) of_jdk: bool,
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
        let is_read = |number| kinds.iter().any(|kind: &Kind| kind.number == number);
        let unread = types.with_field(b"stackTrace");
        let unread = unread
            .filter(|&(number, _)| !is_read(number))
            .filter_map(|(number, name)| {
                let unread = Unread {
                    name: String::from_utf8_lossy(name).into_owned(),
                    layout: Layout::of(types, number, &["stackTrace"])?,
                    events: 0,
                };
                Some((number, unread))
            });
        let unread = unread.take(MOST_UNREAD).collect();
        let find = |name, fields: &[&str]| {
            let number = types.id(name)?;
            Some((number, Layout::of(types, number, fields)?))
        };
        Kinds {
            kinds,
            table,
            setting: find("jdk.ActiveSetting", &["id", "name", "value"]),
            thread_start: find("jdk.ThreadStart", &["thread"]),
            jvm: find("jdk.JVMInformation", &["jvmVersion"]),
            unread,
            cpu_samples: ["jdk.ExecutionSample", "datadog.ExecutionSample"]
                .map(|name| types.id(name)),
            wall_samples: types.id("datadog.MethodSample"),
            active_recording: types.id("jdk.ActiveRecording"),
            // Profilers declare only the types that they write.
            of_jdk: types.id("jdk.GarbageCollection").is_some(),
        }
    }

    pub(super) fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        self.kinds.iter().map(|kind| kind.source)
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
