//! Which values of the profile a sample counts for.

use super::events::Source;
use super::places::Tally;
use super::settings::Settings;
use crate::profile::{Error, Node, Profile, Result, ValueType};

/// A pair of values, in the order they have in the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Pair {
    Cpu,
    /// An event that async-profiler counted instead of time.
    Counted,
    /// The JDK's samples of Java code. They are the CPU samples, where it has no better ones.
    Execution,
    Native,
    Wall,
    /// Wall-clock samples of threads that do not run.
    OffCpu,
    Alloc,
    /// The JDK's samples of allocations. They are the allocations, where it did not record each TLAB's.
    AllocSamples,
    Live,
    Lock,
    Malloc,
    /// Native allocations that were not freed.
    Unfreed,
    Socket,
    SocketBytes,
    File,
    FileBytes,
    Wait,
    Sleep,
    Old,
}

pub(super) const PAIRS: usize = Pair::Old as usize + 1;

impl Pair {
    /// Whether samples differ in what they amount to.
    pub(super) fn has_amounts(self) -> bool {
        use Pair::{
            Alloc, AllocSamples, File, Live, Lock, Malloc, Old, Sleep, Socket, Unfreed, Wait,
        };
        matches!(
            self,
            Alloc
                | AllocSamples
                | Live
                | Lock
                | Malloc
                | Unfreed
                | Socket
                | File
                | Wait
                | Sleep
                | Old
        )
    }

    /// The bytes that operations of this pair move. They are the count of a pair of their own.
    pub(super) fn bytes(self) -> Option<Pair> {
        match self {
            Pair::Socket => Some(Pair::SocketBytes),
            Pair::File => Some(Pair::FileBytes),
            _ => None,
        }
    }

    /// The value that is the count.
    fn counted(self) -> ValueType {
        let (_, name, ..) = VALUES[self as usize];
        let is_bytes = matches!(self, Pair::SocketBytes | Pair::FileBytes);
        ValueType::new(name, if is_bytes { "bytes" } else { "count" })
    }

    /// The sum of what was added to the count, or to the amount, and more of it, which is not negative.
    #[inline]
    pub(super) fn sum(self, of_amounts: bool, sum: i64, more: i64) -> Result<i64> {
        match sum.checked_add(more) {
            Some(sum) if more >= 0 => Ok(sum),
            _ => Err(self.no_sum(of_amounts, more)),
        }
    }

    #[cold]
    fn no_sum(self, of_amounts: bool, more: i64) -> Error {
        let (_, _, amount, unit) = VALUES[self as usize];
        let value = match of_amounts {
            true => ValueType::new(amount, unit),
            false => self.counted(),
        };
        match more < 0 {
            true => Error::Usage(format!("{value}: {more} is negative")),
            false => Error::Overflow(value.to_string()),
        }
    }
}

/// For each pair, in the order of their numbers: name of the count, name and unit of the amount.
const VALUES: [(Pair, &str, &str, &str); PAIRS] = [
    (Pair::Cpu, "samples", "cpu", "nanoseconds"),
    (Pair::Counted, "samples", "", ""),
    (
        Pair::Execution,
        "execution_samples",
        "execution",
        "nanoseconds",
    ),
    (Pair::Native, "native_samples", "", ""),
    (Pair::Wall, "wall_samples", "wall", "nanoseconds"),
    (Pair::OffCpu, "offcpu_samples", "offcpu", "nanoseconds"),
    (Pair::Alloc, "alloc_objects", "alloc_space", "bytes"),
    (Pair::AllocSamples, "alloc_objects", "alloc_space", "bytes"),
    (Pair::Live, "inuse_objects", "inuse_space", "bytes"),
    (Pair::Lock, "contentions", "delay", "nanoseconds"),
    (Pair::Malloc, "native_allocs", "native_space", "bytes"),
    (
        Pair::Unfreed,
        "native_inuse_allocs",
        "native_inuse_space",
        "bytes",
    ),
    (
        Pair::Socket,
        "socket_operations",
        "socket_time",
        "nanoseconds",
    ),
    (Pair::SocketBytes, "socket_bytes", "", ""),
    (Pair::File, "file_operations", "file_time", "nanoseconds"),
    (Pair::FileBytes, "file_bytes", "", ""),
    (Pair::Wait, "waits", "wait_time", "nanoseconds"),
    (Pair::Sleep, "sleeps", "sleep_time", "nanoseconds"),
    (Pair::Old, "old_objects", "old_space", "bytes"),
];

/// What the samples of a kind count as. `default_state`: the thread's state is `STATE_DEFAULT`, or
/// `None` where the recording does not know that state, which only async-profiler since 3.0 has.
/// `of_jdk`: the JDK wrote the event.
pub(super) fn pair_of(
    source: Source,
    (default_state, of_jdk): (Option<bool>, bool),
    settings: &Settings,
) -> Pair {
    match (source, default_state) {
        (Source::Execution, None) if of_jdk => Pair::Execution,
        (Source::Execution, None) => settings.pair_of_event(),
        (Source::Execution, Some(false)) => Pair::Wall,
        (Source::Execution, Some(true)) if settings.counted_event().is_some() => Pair::Counted,
        (Source::Execution, Some(true)) | (Source::CpuTime | Source::CpuWeighted, _) => Pair::Cpu,
        (Source::Native, _) => Pair::Native,
        (Source::Wall, _) => Pair::Wall,
        (Source::Tlab | Source::OutsideTlab, _) => Pair::Alloc,
        (Source::Allocation, _) => Pair::AllocSamples,
        (Source::Live, _) => Pair::Live,
        (Source::Lock, _) => Pair::Lock,
        (Source::Malloc, _) => Pair::Malloc,
        (Source::Weighted(pair) | Source::Lasting(pair), _) => pair,
        (Source::Old, _) => Pair::Old,
    }
}

/// The values of a pair: that of the count, and that of what it amounts to.
pub(super) type Values = (usize, Option<usize>);

/// The values of the profile for each pair that was seen.
#[derive(Default)]
pub(super) struct Columns {
    values: [Option<Values>; PAIRS],
}

impl Columns {
    /// Adds the samples of a place.
    pub(super) fn add(
        &mut self,
        profile: &mut Profile,
        node: Node,
        tally: &Tally,
        cells: usize,
    ) -> Result<()> {
        let (pair, amount) = (tally.place.pair, tally.amount);
        let (counts, amounts) = match self.values[pair as usize] {
            Some(known) if known.1.is_some() || amount.is_none() => known,
            _ => self.make(profile, pair, amount.is_some(), cells)?,
        };
        profile.add(node, counts, tally.count)?;
        match (amounts, amount) {
            (Some(amounts), Some(amount)) => profile.add(node, amounts, amount),
            _ => Ok(()),
        }
    }

    fn make(
        &mut self,
        profile: &mut Profile,
        pair: Pair,
        with_amount: bool,
        cells: usize,
    ) -> Result<(usize, Option<usize>)> {
        let (_, _, amount, unit) = VALUES[pair as usize];
        let counts = match self.values[pair as usize] {
            Some((counts, _)) => counts,
            None => profile.push_value(pair.counted(), cells)?,
        };
        let amounts = match with_amount && !amount.is_empty() {
            true => Some(profile.push_value(ValueType::new(amount, unit), cells)?),
            false => None,
        };
        self.values[pair as usize] = Some((counts, amounts));
        Ok((counts, amounts))
    }

    /// Adds values that were to be sampled and have no sample, so that similar recordings have the same values.
    fn make_sampled(
        &mut self,
        profile: &mut Profile,
        settings: &Settings,
        (off_cpu, cells): (bool, usize),
    ) -> Result<()> {
        for (pair, with_amount) in settings.sampled() {
            // The JDK's own samples count the same as async-profiler's.
            let instead = match pair {
                Pair::Cpu => Pair::Execution,
                Pair::Execution => Pair::Cpu,
                Pair::Alloc => Pair::AllocSamples,
                Pair::AllocSamples => Pair::Alloc,
                other => other,
            };
            if !self.has(pair) && !self.has(instead) {
                self.make(profile, pair, with_amount, cells)?;
            }
        }
        match self.values[Pair::Wall as usize] {
            Some((_, amounts)) if off_cpu && !self.has(Pair::OffCpu) => self
                .make(profile, Pair::OffCpu, amounts.is_some(), cells)
                .map(|_| ()),
            _ => Ok(()),
        }
    }

    fn has(&self, pair: Pair) -> bool {
        self.values[pair as usize].is_some()
    }

    /// Names and orders the values, with those of what was to be sampled; a profile with none has those of
    /// CPU time. Returns which pairs there are, and their values.
    pub(super) fn finish(
        mut self,
        profile: &mut Profile,
        settings: &Settings,
        (off_cpu, cells): (bool, usize),
        share_error: u32,
    ) -> Result<Vec<(Pair, Values)>> {
        self.make_sampled(profile, settings, (off_cpu, cells))?;
        if self.values.iter().all(Option::is_none) {
            self.make(profile, Pair::Cpu, true, cells)?;
        }
        if !self.has(Pair::Cpu) {
            // The JDK's samples of Java code are the best there is.
            if let Some((counts, _)) = self.values[Pair::Execution as usize] {
                let skips = settings.skips_stubs() && profile.total(counts)? > 0;
                profile.set_skips_stubs(skips);
            }
            self.rename(profile, Pair::Execution, Pair::Cpu);
        } else if let Some((_, amounts)) = &mut self.values[Pair::Execution as usize] {
            *amounts = None;
        }
        if self.has(Pair::Alloc) {
            // Both kinds were recorded: they are the same allocations.
            self.values[Pair::AllocSamples as usize] = None;
        } else {
            profile.set_alloc_share_error(share_error);
        }
        if let (Some((counts, _)), Some(event)) = (
            self.values[Pair::Counted as usize],
            settings.counted_event(),
        ) {
            profile.rename_value(counts, ValueType::new(event, "count"));
        }
        let (mut order, mut found) = (Vec::new(), Vec::new());
        for (&(pair, ..), values) in VALUES.iter().zip(self.values) {
            let Some((counts, amounts)) = values else {
                continue;
            };
            let place = order.len();
            found.push((pair, (place, amounts.map(|_| place + 1))));
            order.extend([Some(counts), amounts].into_iter().flatten());
        }
        profile.keep_values(&order);
        Ok(found)
    }

    fn rename(&mut self, profile: &mut Profile, from: Pair, to: Pair) {
        let Some((counts, amounts)) = self.values[from as usize].take() else {
            return;
        };
        let (_, _, amount, unit) = VALUES[to as usize];
        profile.rename_value(counts, to.counted());
        if let Some(amounts) = amounts {
            profile.rename_value(amounts, ValueType::new(amount, unit));
        }
        self.values[to as usize] = Some((counts, amounts));
    }
}

/// Ticks as nanoseconds.
#[inline]
pub(super) fn nanoseconds(ticks: i64, per_second: i64) -> Result<i64> {
    if per_second == 1_000_000_000 {
        return Ok(ticks);
    }
    let nanoseconds = i128::from(ticks) * 1_000_000_000 / i128::from(per_second);
    i64::try_from(nanoseconds).map_err(|_| Error::Overflow("a time span in nanoseconds".into()))
}
