//! The modules code lies in, and the symbols of each, read when they are first needed.

use foldhash::{HashMap, HashMapExt};

use super::header::Header;
use super::processes::Mode;
use super::stacks::Place;
pub(crate) use crate::symbols::SymbolId;
use crate::symbols::Symbols;
use crate::symbols::{Files, Proof};

/// What modules and symbols are called that are not known.
pub(crate) const UNKNOWN: &str = "[unknown]";
/// What perf calls the kernel.
pub(crate) const KERNEL: &str = "[kernel.kallsyms]";
/// Most bytes of all modules' names; what is beyond is mapped from nowhere.
const MOST_NAMES: usize = 64 << 20;

/// The number of a module; [`NOWHERE`] is that of addresses where nothing is mapped.
pub(crate) type ModuleId = u32;
pub(crate) const NOWHERE: ModuleId = 0;

/// Where a module's symbols are to be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nowhere: data, or nothing.
    None,
    /// A program or library.
    Elf,
    /// Code made at run time by the process of this pid.
    PerfMap(u32),
    Vdso,
    /// The kernel and its modules; kallsyms knows them by their addresses.
    Kernel,
    /// One piece of code that is its own only symbol (a BPF program).
    Itself,
}

/// Distinguishes mapped files of the same path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    pub(crate) build_id: Option<Vec<u8>>,
    /// Device, inode and its generation, from the kernel; two containers' files differ in them.
    pub(crate) file: Option<[u8; 24]>,
    /// The inode alone.
    pub(crate) inode: Option<u64>,
}

struct Module {
    name: String,
    source: Source,
    identity: Identity,
    /// The process that mapped it last.
    pid: u32,
    symbols: Option<Symbols>,
    loaded: bool,
}

/// All modules of a recording.
pub(crate) struct Modules {
    most: usize,
    all: Vec<Module>,
    index: HashMap<(String, Identity), ModuleId>,
    /// The kernel itself, without its modules.
    pub(crate) kernel: ModuleId,
    kernel_symbols: Option<Symbols>,
    kernel_loaded: bool,
    /// A symbol of the kernel and its address when recorded, until the kernel's symbols are loaded.
    kernel_anchor: Option<(Vec<u8>, u64)>,
    /// How far up the kernel is now from where it was.
    kernel_moved: u64,
    /// In bytes.
    symbols_held: usize,
    symbols_left_out: u64,
    /// Modules whose symbols were not read, because those of others took all room.
    unread: u64,
    name_bytes: usize,
    /// Modules that were not taken in, each time one was met.
    pub(crate) left_out: u64,
}

impl Modules {
    /// No modules yet, and never more than so many.
    pub(crate) fn new(most: usize) -> Modules {
        let mut modules = Modules {
            most,
            all: Vec::new(),
            index: HashMap::new(),
            kernel: 1,
            kernel_symbols: None,
            kernel_loaded: false,
            kernel_anchor: None,
            kernel_moved: 0,
            symbols_held: 0,
            symbols_left_out: 0,
            unread: 0,
            name_bytes: 0,
            left_out: 0,
        };
        modules.push(UNKNOWN, Source::None, Identity::default(), 0);
        modules.push(KERNEL, Source::Kernel, Identity::default(), 0);
        modules
    }

    fn push(&mut self, name: &str, source: Source, identity: Identity, pid: u32) {
        self.all.push(Module {
            name: name.to_string(),
            source,
            identity,
            pid,
            symbols: None,
            loaded: false,
        });
    }

    /// The module of this name and identity, made if there is none.
    pub(crate) fn intern(
        &mut self,
        name: &str,
        source: Source,
        identity: Identity,
        pid: u32,
    ) -> ModuleId {
        let key = (name.to_string(), identity);
        if let Some(&known) = self.index.get(&key) {
            self.all[known as usize].pid = pid;
            return known;
        }
        if self.all.len() >= self.most || self.name_bytes >= MOST_NAMES {
            self.left_out += 1;
            return NOWHERE;
        }
        self.name_bytes += name.len();
        let id = self.all.len() as ModuleId;
        self.push(name, source, key.1.clone(), pid);
        self.index.insert(key, id);
        id
    }

    /// The process whose code a module is, if that was made at run time.
    pub(crate) fn made_by(&self, module: ModuleId) -> Option<u32> {
        match self.all[module as usize].source {
            Source::PerfMap(pid) => Some(pid),
            _ => None,
        }
    }

    pub(crate) fn name(&self, module: ModuleId) -> &str {
        &self.all[module as usize].name
    }

    pub(crate) fn anchor_kernel(&mut self, symbol: &[u8], address: u64) {
        self.kernel_anchor = Some((symbol.to_vec(), address));
    }

    /// The symbol of a place. What the kernel frees after its start is not in the record of its mapping.
    pub(super) fn symbol_at(
        &mut self,
        place: &mut Place,
        mode: Mode,
        header: &Header,
        files: &Files<'_>,
    ) -> Option<SymbolId> {
        if mode == Mode::Kernel && place.module == NOWHERE {
            let symbol = self.find_kernel(place.address, header, files)?;
            place.module = self.kernel;
            return Some(symbol);
        }
        self.find(place.module, place.address, header, files)
    }

    /// The symbol at a module's own address (of the kernel: at the address itself).
    pub(crate) fn find(
        &mut self,
        module: ModuleId,
        address: u64,
        header: &Header,
        files: &Files<'_>,
    ) -> Option<SymbolId> {
        match self.all[module as usize].source {
            Source::None => None,
            Source::Itself => Some(0),
            Source::Kernel => self.find_kernel(address, header, files),
            Source::Elf | Source::PerfMap(_) | Source::Vdso => {
                self.load(module, header, files);
                self.all[module as usize].symbols.as_mut()?.find(address)
            }
        }
    }

    /// The name of a symbol that was found in this module.
    pub(crate) fn symbol_name(&self, module: ModuleId, symbol: SymbolId) -> String {
        let module = &self.all[module as usize];
        match (module.source, &self.kernel_symbols, &module.symbols) {
            (Source::Kernel, Some(kernel), _) => {
                let mut name = kernel.name(symbol);
                // A module's symbol has the module behind it.
                if let Some(tab) = name.find('\t') {
                    name.truncate(tab);
                }
                name
            }
            (Source::Elf | Source::PerfMap(_) | Source::Vdso, _, Some(symbols)) => {
                symbols.name(symbol)
            }
            _ => module.name.clone(),
        }
    }

    fn load(&mut self, module: ModuleId, header: &Header, files: &Files<'_>) {
        let module = &mut self.all[module as usize];
        if std::mem::replace(&mut module.loaded, true) {
            return;
        }
        if !files.have_room_beside(self.symbols_held) {
            self.unread += 1;
            return;
        }
        let named = || header.build_id(module.name.as_bytes());
        let build_id = module.identity.build_id.as_ref().or_else(named);
        let wanted = Proof {
            build_id: build_id.map(Vec::as_slice),
            inode: module.identity.inode,
        };
        module.symbols = match module.source {
            Source::Elf => files.elf(&module.name, wanted, module.pid),
            Source::PerfMap(pid) => files.perf_map(pid),
            Source::Vdso => files.vdso(wanted.build_id, &header.os_release),
            Source::None | Source::Kernel | Source::Itself => None,
        };
        if let Some(symbols) = &module.symbols {
            self.symbols_held += symbols.bytes();
            self.symbols_left_out = self.symbols_left_out.saturating_add(symbols.left_out);
        }
    }

    /// Warnings about symbols that were left out.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let symbols = (self.symbols_left_out > 0).then(|| {
            let count = self.symbols_left_out;
            format!("{count} symbols were left out, they were too many, or their names too long")
        });
        let modules = (self.unread > 0).then(|| {
            let count = self.unread;
            format!("the symbols of {count} modules were left out, there were too many")
        });
        symbols.into_iter().chain(modules)
    }

    /// The kernel's symbol at an address.
    pub(crate) fn find_kernel(
        &mut self,
        address: u64,
        header: &Header,
        files: &Files<'_>,
    ) -> Option<SymbolId> {
        if !std::mem::replace(&mut self.kernel_loaded, true) {
            let build_id = header.build_id(KERNEL.as_bytes());
            let build_id = build_id.map(Vec::as_slice);
            self.kernel_symbols = files.kernel(build_id, &header.os_release);
            self.symbols_held += self.kernel_symbols.as_ref().map_or(0, Symbols::bytes);
        }
        let kernel = self.kernel_symbols.as_mut()?;
        if let Some((symbol, then)) = self.kernel_anchor.take() {
            // The list of another boot: the kernel was elsewhere in memory.
            let listed = kernel.start_of(&symbol);
            self.kernel_moved = listed.map_or(0, |listed| listed.wrapping_sub(then));
        }
        kernel.find(address.wrapping_add(self.kernel_moved))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbols::SymbolOptions;

    /// This program's own symbols are a few megabytes.
    #[test]
    fn symbols_that_there_was_no_room_for_are_warned_of() {
        let program = std::env::current_exe().unwrap();
        let warnings = |memory| {
            let options = SymbolOptions {
                root: "/".into(),
                memory,
                ..SymbolOptions::none()
            };
            let mut modules = Modules::new(3);
            let name = program.to_str().unwrap();
            let module = modules.intern(name, Source::Elf, Identity::default(), 0);
            modules.find(module, 0, &Header::default(), &Files::new(&options));
            modules.warnings().collect::<Vec<_>>()
        };
        assert_eq!(warnings(1 << 30), [""; 0]);
        let warned = warnings(256 << 10);
        assert!(warned.len() == 1 && warned[0].contains(" symbols were left out"));
    }
}
