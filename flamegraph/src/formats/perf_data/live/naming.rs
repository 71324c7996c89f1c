//! What the places of stacks are called, found out when the recording is over.

use foldhash::{HashMap, HashMapExt};

use super::begins::is_begin;
use super::stack_tree::{Spot, SpotId, StackTree};
use crate::formats::options::PerfOptions;
use crate::formats::perf_data::header::Header;
use crate::formats::perf_data::modules::{ModuleId, Modules, NOWHERE, UNKNOWN};
use crate::formats::perf_data::processes::Mode;
use crate::formats::perf_script::{Names, StackLine};
use crate::ops::waits::WaitFrame;
use crate::profile::{Kind, Result};
use crate::symbols::Files;
use crate::symbols::{JitMap, JitMaps};

/// What is known of a spot.
pub(super) struct Named {
    /// Frames, from outside to inside.
    pub(super) frames: Vec<(String, Kind)>,
    /// What each says of its thread's wait.
    pub(super) waits: Vec<WaitFrame>,
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

/// Names spots, each once.
pub(super) struct Naming<'a> {
    pub(super) modules: &'a mut Modules,
    header: &'a Header,
    files: Files<'a>,
    jit: &'a JitMaps,
    /// Maps that were found in files; none where there was none.
    found: HashMap<u32, Option<JitMap>>,
    /// By spot and, where nothing is mapped, process.
    named: HashMap<(SpotId, u32), usize>,
    all: Vec<Named>,
}

impl<'a> Naming<'a> {
    pub(super) fn new(
        modules: &'a mut Modules,
        header: &'a Header,
        files: Files<'a>,
        jit: &'a JitMaps,
    ) -> Naming<'a> {
        Naming {
            modules,
            header,
            files,
            jit,
            found: HashMap::new(),
            named: HashMap::new(),
            all: Vec::new(),
        }
    }

    /// What a spot in a stack of this process is called, as a number for [`Naming::named`].
    pub(super) fn of(&mut self, spot: SpotId, pid: u32, stacks: &StackTree) -> Result<usize> {
        let Spot { place, mode } = stacks.spots[spot as usize];
        let key = (spot, if place.module == NOWHERE { pid } else { 0 });
        if let Some(&known) = self.named.get(&key) {
            return Ok(known);
        }
        let made_by = match self.modules.made_by(place.module) {
            None if place.module == NOWHERE && mode == Mode::User => Some(pid),
            made_by => made_by,
        };
        let made = made_by.and_then(|pid| self.made_code(pid, place.address));
        let named = match made {
            Some(frames) => Named {
                waits: waits(&frames),
                frames,
                module: NOWHERE,
                unknown: None,
                mode,
                begins: [false; 2],
            },
            None => self.compiled(Spot { place, mode })?,
        };
        let number = self.all.len();
        self.all.push(named);
        self.named.insert(key, number);
        Ok(number)
    }

    pub(super) fn named(&self, number: usize) -> &Named {
        &self.all[number]
    }

    /// The frames of code that a process made at run time.
    fn made_code(&mut self, pid: u32, address: u64) -> Option<Vec<(String, Kind)>> {
        let map = match self.jit.get(&pid) {
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

    /// The frame of a program's, a library's or the kernel's code.
    fn compiled(&mut self, spot: Spot) -> Result<Named> {
        let Spot { mut place, mode } = spot;
        let mut symbol = match self.modules.made_by(place.module) {
            // Its map was asked.
            Some(_) => None,
            None => self
                .modules
                .symbol(place.module, place.address, self.header, &self.files),
        };
        if mode == Mode::Kernel && place.module == NOWHERE {
            symbol = self
                .modules
                .kernel_symbol(place.address, self.header, &self.files);
            if symbol.is_some() {
                place.module = self.modules.kernel;
            }
        }
        let module = self.modules.name(place.module);
        let begins =
            [false, true].map(|has_callee| is_begin(symbol.as_deref(), module, has_callee));
        let frames = frame(symbol.as_deref(), module, mode)?;
        Ok(Named {
            waits: waits(&frames),
            frames,
            module: place.module,
            unknown: symbol.is_none().then_some(place.module),
            mode,
            begins,
        })
    }
}

fn waits(frames: &[(String, Kind)]) -> Vec<WaitFrame> {
    let frames = frames.iter();
    frames
        .map(|(name, kind)| WaitFrame::of(name, *kind))
        .collect()
}

/// The frame of a symbol as stackcollapse-perf.pl names it; the kernel's are told apart by who ran.
fn frame(symbol: Option<&str>, module: &str, mode: Mode) -> Result<Vec<(String, Kind)>> {
    let line = StackLine {
        address: b"",
        symbol: symbol.unwrap_or(UNKNOWN).as_bytes(),
        module: module.as_bytes(),
    };
    let names = Names {
        options: &PerfOptions::default(),
        java: false,
    };
    let mut frames = Vec::with_capacity(1);
    names.each(&line, |annotated| -> Result<()> {
        let (name, kind) = Kind::split(annotated);
        let kind = match mode {
            Mode::Kernel => Kind::Kernel,
            Mode::User | Mode::Other => kind,
        };
        frames.push((String::from_utf8_lossy(name).into_owned(), kind));
        Ok(())
    })?;
    Ok(frames)
}
