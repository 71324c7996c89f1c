//! From a sample to the places its stack went through.

use super::modules::{ModuleId, NOWHERE};
use super::processes::{Mapped, Mode, Processes};
use crate::symbols::bytes::Bytes;

/// Addresses from here on are no addresses: they say whose the ones behind them are.
const FIRST_MARKER: u64 = -4095i64 as u64;
const HYPERVISOR: u64 = -32i64 as u64;
const KERNEL: u64 = -128i64 as u64;
const USER: u64 = -512i64 as u64;

/// One frame of a call chain: an address, and in which mappings it is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) ip: u64,
    pub(crate) mode: Mode,
    /// Of the mappings at the time; what was found out holds as long as this is the same.
    pub(crate) generation: u32,
}

/// A place in a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) module: ModuleId,
    /// The module's own address; the address itself where nothing is mapped.
    pub(crate) address: u64,
}

/// Puts the pointers of a chain (or, without one, of its instruction pointer) into `pointers`, leaf first.
pub(crate) fn pointers(
    chain: Option<Bytes<'_>>,
    ip: u64,
    mode: Mode,
    generations: Generations,
    pointers: &mut Vec<Pointer>,
) {
    pointers.clear();
    let Some(mut chain) = chain else {
        pointers.push(generations.pointer(ip, mode));
        return;
    };
    let mut mode = Mode::User;
    while let Some(ip) = chain.u64() {
        match ip {
            KERNEL => mode = Mode::Kernel,
            USER => mode = Mode::User,
            HYPERVISOR => mode = Mode::Other,
            // Garbage, followed as a frame pointer: perf gives up the whole chain, and so do we.
            FIRST_MARKER.. => return pointers.clear(),
            ip => pointers.push(generations.pointer(ip, mode)),
        }
    }
}

/// Of a process's mappings and the kernel's.
#[derive(Clone, Copy)]
pub(crate) struct Generations {
    pub(crate) user: u32,
    pub(crate) kernel: u32,
}

impl Generations {
    fn pointer(self, ip: u64, mode: Mode) -> Pointer {
        let generation = match mode {
            Mode::Kernel => self.kernel,
            Mode::User => self.user,
            Mode::Other => u32::MAX,
        };
        Pointer {
            ip,
            mode,
            generation,
        }
    }
}

/// Where an address of this process lies.
pub(crate) fn place(pointer: Pointer, pid: u32, processes: &Processes) -> Place {
    let mapped: Option<&Mapped> = match pointer.mode {
        Mode::Kernel => Some(&processes.kernel),
        Mode::User => processes.mapped(pid),
        Mode::Other => None,
    };
    match mapped.and_then(|mapped| mapped.space.find(pointer.ip)) {
        Some(mapping) => Place {
            module: mapping.module,
            address: mapping.address(pointer.ip),
        },
        None => Place {
            module: NOWHERE,
            address: pointer.ip,
        },
    }
}
