//! Names the places of stacks, after the recording has ended.

use foldhash::{HashMap, HashMapExt};

use super::header::Header;
use super::modules::{ModuleId, Modules, SymbolId, NOWHERE, UNKNOWN};
use super::processes::Mode;
use super::stacks::{Place, Spot, SpotId, StackTree};
use crate::formats::options::{PerfOptions, ReadOptions};
use crate::formats::perf_script::{Names, StackLine, MOST_INLINED};
use crate::ops::frame_rules::{fits_any, slashed, BEGINS};
use crate::profile::{Kind, Result};
use crate::symbols::{Files, JitMap, JitMaps};

/// What is known of a symbol, or of the code at a spot.
pub(super) struct Named {
    /// Frames, from outside to inside.
    pub(super) frames: Vec<(String, Kind)>,
    /// Where they lie; nowhere if they were made at run time.
    pub(super) module: ModuleId,
    /// The module, if there is no symbol.
    pub(super) unknown: Option<ModuleId>,
    pub(super) mode: Mode,
    /// Whether a thread begins here: with and without having called something.
    begins: [bool; 2],
}

impl Named {
    pub(super) fn is_begin(&self, has_callee: bool) -> bool {
        self.begins[usize::from(has_callee)]
    }
}

/// Identifies a symbol; one without a name by its address, if that is in its frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    module: ModuleId,
    symbol: Option<SymbolId>,
    address: u64,
    mode: Mode,
    java: bool,
}

impl Key {
    pub(super) fn of(
        place: Place,
        symbol: Option<SymbolId>,
        (mode, java): (Mode, bool),
        script: Option<&ReadOptions>,
    ) -> Key {
        let has_address = symbol.is_none() && script.is_some_and(|script| script.perf.addrs);
        Key {
            module: place.module,
            symbol,
            address: if has_address { place.address } else { 0 },
            mode,
            java,
        }
    }
}

/// A spot that was not named yet.
const UNNAMED: u32 = u32::MAX;

/// Names spots; each symbol is named once.
pub(super) struct Naming<'a> {
    pub(super) modules: &'a mut Modules,
    header: &'a Header,
    files: Files<'a>,
    /// None in a file, whose maps are read like files of symbols.
    jit: Option<&'a JitMaps>,
    script: Option<&'a ReadOptions>,
    /// Maps that were found in files; none where there was none.
    found: HashMap<u32, Option<JitMap>>,
    /// By whether the command is a `java`, and spot.
    by_spot: [Vec<u32>; 2],
    /// Where nothing is mapped: by spot and process, too.
    unmapped: HashMap<(SpotId, u32, bool), u32>,
    by_symbol: HashMap<Key, u32>,
    all: Vec<Named>,
}

impl<'a> Naming<'a> {
    pub(super) fn new(
        modules: &'a mut Modules,
        header: &'a Header,
        files: Files<'a>,
        jit: Option<&'a JitMaps>,
        script: Option<&'a ReadOptions>,
    ) -> Naming<'a> {
        Naming {
            modules,
            header,
            files,
            jit,
            script,
            found: HashMap::new(),
            by_spot: Default::default(),
            unmapped: HashMap::new(),
            by_symbol: HashMap::new(),
            all: Vec::new(),
        }
    }

    /// What a spot in a stack of this process is called, as a number for [`Naming::named`].
    pub(super) fn of(
        &mut self,
        spot: SpotId,
        (pid, java): (u32, bool),
        stacks: &StackTree,
    ) -> Result<u32> {
        let Spot { place, mode } = stacks.spots[spot as usize];
        let is_mapped = place.module != NOWHERE;
        let known = match is_mapped {
            true => self.by_spot[usize::from(java)].get(spot as usize),
            false => self.unmapped.get(&(spot, pid, java)),
        };
        if let Some(&known) = known.filter(|&&known| known != UNNAMED) {
            return Ok(known);
        }
        let made_by = match self.modules.made_by(place.module) {
            None if place.module == NOWHERE && mode == Mode::User => Some(pid),
            made_by => made_by,
        };
        let made = made_by.and_then(|pid| self.made_code(pid, place.address));
        let number = match made {
            Some(frames) => self.push(Named {
                frames,
                module: NOWHERE,
                unknown: None,
                mode,
                begins: [false; 2],
            }),
            None => self.compiled(place, mode, java)?,
        };
        if is_mapped {
            let by_spot = &mut self.by_spot[usize::from(java)];
            by_spot.resize(stacks.spots.len(), UNNAMED);
            by_spot[spot as usize] = number;
        } else {
            self.unmapped.insert((spot, pid, java), number);
        }
        Ok(number)
    }

    pub(super) fn named(&self, number: u32) -> &Named {
        &self.all[number as usize]
    }

    /// How many names there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    fn push(&mut self, named: Named) -> u32 {
        self.all.push(named);
        self.all.len() as u32 - 1
    }

    /// The frames of code that a process made at run time.
    fn made_code(&mut self, pid: u32, address: u64) -> Option<Vec<(String, Kind)>> {
        let map = match self.jit?.get(&pid) {
            Some(map) => map,
            None => {
                let files = &self.files;
                let find = || JitMap::text(files.perf_map_file(pid)?).ok();
                self.found.entry(pid).or_insert_with(find).as_ref()?
            }
        };
        let frames = map.find(address);
        let owned = frames
            .into_iter()
            .map(|(name, kind)| (name.to_string(), kind));
        Some(owned.collect()).filter(|frames: &Vec<_>| !frames.is_empty())
    }

    /// The symbol of a place.
    pub(super) fn symbol(&mut self, place: &mut Place, mode: Mode) -> Option<SymbolId> {
        self.modules
            .symbol_at(place, mode, self.header, &self.files)
    }

    /// A program's, a library's or the kernel's code.
    fn compiled(&mut self, mut place: Place, mode: Mode, java: bool) -> Result<u32> {
        let map_was_asked = self.jit.is_some() && self.modules.made_by(place.module).is_some();
        let symbol = match map_was_asked {
            true => None,
            false => self.symbol(&mut place, mode),
        };
        let key = Key::of(place, symbol, (mode, java), self.script);
        if let Some(&known) = self.by_symbol.get(&key) {
            return Ok(known);
        }
        let name = symbol.map(|symbol| self.modules.symbol_name(place.module, symbol));
        let module = self.modules.name(place.module);
        let begins = [false, true].map(|has_callee| is_begin(name.as_deref(), module, has_callee));
        let named = Named {
            frames: self.frames(name.as_deref(), place, mode, java)?,
            module: place.module,
            unknown: symbol.is_none().then_some(place.module),
            mode,
            begins,
        };
        let number = self.push(named);
        self.by_symbol.insert(key, number);
        Ok(number)
    }

    /// The frames of a symbol as stackcollapse-perf.pl names them. A stream's are the kernel's by who ran.
    fn frames(
        &self,
        symbol: Option<&str>,
        place: Place,
        mode: Mode,
        java: bool,
    ) -> Result<Vec<(String, Kind)>> {
        let address = format!("{:x}", place.address);
        let line = StackLine {
            address: address.as_bytes(),
            symbol: symbol.unwrap_or(UNKNOWN).as_bytes(),
            module: self.modules.name(place.module).as_bytes(),
        };
        let by_default = PerfOptions::default();
        let options = self.script.map_or(&by_default, |script| &script.perf);
        let most = self
            .script
            .map_or(usize::MAX, |script| script.limits.name_bytes);
        let of_kernel = self.script.is_none() && mode == Mode::Kernel;
        let mut frames = Vec::with_capacity(1);
        Names { options, java }.each(&line, |annotated| -> Result<()> {
            if frames.len() < MOST_INLINED {
                let (name, kind) = Kind::split(&annotated[..annotated.len().min(most)]);
                let kind = if of_kernel { Kind::Kernel } else { kind };
                frames.push((String::from_utf8_lossy(name).into_owned(), kind));
            }
            Ok(())
        })?;
        Ok(frames)
    }
}

/// Whether the outermost user frame of a stack is where a thread begins. A frame without a symbol in the C library
/// is, if it called something: only there does a walk along frame pointers end up in that library.
fn is_begin(symbol: Option<&str>, module: &str, has_callee: bool) -> bool {
    let fits = |wanted: &str, name: &str| {
        let rules = BEGINS.iter().filter(|(rule, _)| *rule == wanted);
        let name = slashed(name);
        rules
            .into_iter()
            .any(|(_, patterns)| fits_any(&name, patterns))
    };
    let Some(symbol) = symbol else {
        let file = module.rsplit('/').next().unwrap_or(module);
        return has_callee && fits("libraries", file);
    };
    let plain = symbol.split(['@', '.']).next().unwrap_or(symbol);
    fits("functions", plain.trim_start_matches('_')) || fits("functions", symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_begin_in_few_places() {
        let begins = [
            (Some("__libc_start_call_main"), "/lib/libc.so.6", true),
            (
                Some("__libc_start_main@@GLIBC_2.34"),
                "/lib/libc.so.6",
                true,
            ),
            (Some("__clone3"), "/lib/libc.so.6", true),
            (Some("_start"), "/bin/x", false),
            (Some("runtime.goexit.abi0"), "/bin/go", true),
            (None, "/usr/lib/libc.so.6", true),
        ];
        for (symbol, module, has_callee) in begins {
            assert!(is_begin(symbol, module, has_callee), "{symbol:?} {module}");
        }
        let others = [
            (Some("read"), "/lib/libc.so.6", true),
            (Some("work"), "/bin/x", true),
            (None, "/usr/lib/libc.so.6", false),
            (None, "[unknown]", true),
        ];
        for (symbol, module, has_callee) in others {
            assert!(!is_begin(symbol, module, has_callee), "{symbol:?} {module}");
        }
    }
}
