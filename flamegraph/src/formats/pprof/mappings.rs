//! The files that locations lie in. A damaged mapping is no error: its locations have no module.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::tables::{decode, ById, Strings};
use crate::formats::pprof::proto;
use crate::profile::{module_of, Frame, Profile, MOST_MODULES};

/// In place of a module's number: nothing more will be known of a frame.
const ALL: u32 = u32::MAX;

pub(super) struct Mappings<'a, 'm> {
    strings: &'m Strings<'a>,
    /// The strings that are their paths. A path may be long, and be that of millions of mappings.
    paths: ById<i64>,
    /// By a path's string its module's number, if it has one.
    by_path: HashMap<i64, Option<u32>, RandomState>,
    numbers: HashMap<String, u32, RandomState>,
    modules: Vec<String>,
    /// Frames and modules that were noted: names are long, and stand on many lines.
    noted: HashSet<(u32, u32), RandomState>,
}

impl<'a, 'm> Mappings<'a, 'm> {
    pub(super) fn read(mappings: &[&[u8]], strings: &'m Strings<'a>) -> Mappings<'a, 'm> {
        let mut paths = ById::new();
        for (number, bytes) in mappings.iter().enumerate() {
            // Locations in none have the number 0. Of two that are called alike the first is meant.
            match decode::<proto::Mapping>(bytes, "mapping", number) {
                Ok(mapping) if mapping.id > 0 => paths.insert(mapping.id, mapping.filename),
                _ => false,
            };
        }
        Mappings {
            strings,
            paths,
            by_path: HashMap::default(),
            numbers: HashMap::default(),
            modules: Vec::new(),
            noted: HashSet::default(),
        }
    }

    /// Notes that frames lie in this mapping.
    pub(super) fn note(&mut self, mapping: u64, frames: &[Frame], profile: &mut Profile) {
        let Some(module) = self.module(mapping) else {
            return;
        };
        for frame in frames {
            let index = frame.index() as u32;
            if self.noted.contains(&(index, ALL)) || !self.noted.insert((index, module)) {
                continue;
            }
            let (name, text) = (
                profile.frames.name_of(*frame),
                &self.modules[module as usize],
            );
            if !profile.modules.insert(name, frame.kind(), text) {
                self.noted.insert((index, ALL));
            }
        }
    }

    fn module(&mut self, mapping: u64) -> Option<u32> {
        let path = *self.paths.get(mapping)?;
        if let Some(&known) = self.by_path.get(&path) {
            return known;
        }
        let bytes = self.strings.bytes(path).ok();
        let module = bytes.and_then(|bytes| module_of(&String::from_utf8_lossy(bytes)));
        let number = module.and_then(|module| self.number(module));
        self.by_path.insert(path, number);
        number
    }

    fn number(&mut self, module: String) -> Option<u32> {
        if let Some(&known) = self.numbers.get(&module) {
            return Some(known);
        }
        let number = self.modules.len();
        (number < MOST_MODULES).then(|| {
            self.modules.push(module.clone());
            self.numbers.insert(module, number as u32);
            number as u32
        })
    }
}
