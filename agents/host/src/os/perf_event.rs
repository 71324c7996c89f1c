//! The kernel's performance events: their numbers, how to open them, how to read a group of them.

use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The kernel's types of events.
pub const HARDWARE: u32 = 0;
pub const SOFTWARE: u32 = 1;
pub const CACHE: u32 = 3;
pub const RAW: u32 = 4;
/// Processor counters that both engines know, with the kernel's type and number. The number of a cache event contains the cache, the
/// operation in its second byte (0 is load), and the result in its third (1 is miss).
pub const COUNTERS: [(&str, u32, u64); 11] = [
    ("cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("cache-references", HARDWARE, 2),
    ("cache-misses", HARDWARE, 3),
    ("branch-instructions", HARDWARE, 4),
    ("branch-misses", HARDWARE, 5),
    ("bus-cycles", HARDWARE, 6),
    ("ref-cycles", HARDWARE, 9),
    ("L1-dcache-load-misses", CACHE, 1 << 16),
    ("LLC-load-misses", CACHE, 1 << 16 | 2),
    ("dTLB-load-misses", CACHE, 1 << 16 | 3),
];
/// What groups are read with: the times that they were enabled and running, and all members at once.
const READ_GROUP: u64 = 1 | 2 | 8;
const DISABLED: u64 = 1;
const NO_KERNEL: u64 = 1 << 5;
const NO_HYPERVISOR: u64 = 1 << 6;
/// `PERF_EVENT_IOC_ENABLE`; a group's leader enables its members.
const ENABLE: libc::c_ulong = 0x2400;

/// What to count: the kernel's type of event, and its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    pub kind: u32,
    pub config: [u64; 3],
}

impl Encoding {
    pub const fn new(kind: u32, config: u64) -> Self {
        Self {
            kind,
            config: [config, 0, 0],
        }
    }

    /// A counter of `COUNTERS`.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = COUNTERS.iter();
        let (_, kind, config) = all.find(|(known, ..)| *known == name)?;
        Some(Self::new(*kind, *config))
    }
}

/// Whose events are counted.
#[derive(Debug, Clone, Copy)]
pub enum Whose {
    ThisThread,
    Thread(i32),
    Cpu(i32),
}

/// The second version of `struct perf_event_attr`.
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

/// Open an event of the calling thread for a moment, as if to sample it. Err has the kernel's error number.
pub fn try_sampling(encoding: Encoding) -> Result<(), i32> {
    let mut attributes = attributes(encoding);
    // Without kernel and hypervisor: on most hosts that needs no rights.
    attributes.flags = DISABLED | NO_KERNEL | NO_HYPERVISOR;
    attributes.period = 1_000_000;
    attributes.sample = 1;
    open(&attributes, Whose::ThisThread, None).map(drop)
}

/// Events that are counted at the same time. The first one is the leader.
pub struct Group {
    members: Vec<OwnedFd>,
}

/// The events of a group so far, and for how many nanoseconds it was to count, and did.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Counts {
    pub enabled: u64,
    pub running: u64,
    pub values: Vec<u64>,
}

impl Group {
    /// Begin to count. Err has the place of the event that was refused, and the kernel's error number.
    pub fn open(events: &[Encoding], whose: Whose, user_only: bool) -> Result<Self, (usize, i32)> {
        let mut members: Vec<OwnedFd> = Vec::with_capacity(events.len());
        for (place, encoding) in events.iter().enumerate() {
            let mut attributes = attributes(*encoding);
            attributes.read = READ_GROUP;
            if place == 0 {
                attributes.flags |= DISABLED;
            }
            if user_only {
                attributes.flags |= NO_KERNEL | NO_HYPERVISOR;
            }
            let opened = open(&attributes, whose, members.first());
            members.push(opened.map_err(|error| (place, error))?);
        }
        if let Some(leader) = members.first() {
            // SAFETY: the request takes no pointer.
            unsafe { libc::ioctl(leader.as_raw_fd(), ENABLE as _, 0) };
        }
        Ok(Self { members })
    }

    pub fn read(&self) -> Option<Counts> {
        let mut buffer = vec![0; 8 * (3 + self.members.len())];
        let length = rustix::io::read(self.members.first()?, &mut buffer).ok()?;
        let mut numbers = buffer[..length]
            .chunks_exact(8)
            .map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap_or_default()));
        let members = numbers.next()?;
        let counts = Counts {
            enabled: numbers.next()?,
            running: numbers.next()?,
            values: numbers.collect(),
        };
        (counts.values.len() as u64 == members).then_some(counts)
    }
}

fn attributes(encoding: Encoding) -> Attributes {
    let [config, config1, config2] = encoding.config;
    Attributes {
        kind: encoding.kind,
        size: size_of::<Attributes>() as u32,
        config,
        period: 0,
        sample: 0,
        read: 0,
        flags: 0,
        wakeup: 0,
        breakpoint: 0,
        config1,
        config2,
    }
}

fn open(attributes: &Attributes, whose: Whose, leader: Option<&OwnedFd>) -> Result<OwnedFd, i32> {
    const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    let (thread, cpu) = match whose {
        Whose::ThisThread => (0, -1),
        Whose::Thread(thread) => (thread, -1),
        Whose::Cpu(cpu) => (-1, cpu),
    };
    // SAFETY: the kernel reads as many bytes of the attributes as their size says, and they outlive the call.
    let opened = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            std::ptr::from_ref(attributes),
            thread,
            cpu,
            leader.map_or(-1, AsRawFd::as_raw_fd),
            CLOSE_ON_EXEC,
        )
    };
    if opened >= 0 {
        // SAFETY: this descriptor was opened just above and is nobody else's.
        return Ok(unsafe { OwnedFd::from_raw_fd(opened as i32) });
    }
    Err(Error::last_os_error().raw_os_error().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_counts_what_its_thread_does() {
        let events = [Encoding::new(SOFTWARE, 1), Encoding::new(SOFTWARE, 2)];
        let Ok(group) = Group::open(&events, Whose::ThisThread, true) else {
            return; // not permitted here
        };
        let before = group.read().unwrap();
        let touched = vec![1_u8; 4 << 20];
        let after = group.read().unwrap();
        assert_eq!(touched[4096], 1);
        assert!(after.running > before.running && after.enabled == after.running);
        assert!(after.values[0] > before.values[0], "{after:?}");
        assert!(after.values[1] > before.values[1], "{after:?}");
    }

    #[test]
    fn a_refused_event_is_named() {
        let events = [Encoding::new(SOFTWARE, 1), Encoding::new(SOFTWARE, 9999)];
        let refused = Group::open(&events, Whose::ThisThread, true).err();
        assert!(matches!(refused, Some((0 | 1, _))), "{refused:?}");
    }
}
