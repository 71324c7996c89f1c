//! The files that locations lie in. A damaged mapping is no error: its locations have no module.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::tables::{decode, ById, Strings};
use crate::formats::pprof::proto;
use crate::profile::{module_of, Frame, Profile};

pub(super) struct Mappings<'a, 'm> {
    strings: &'m Strings<'a>,
    /// The strings that are their paths. A path may be long, and be that of millions of mappings.
    paths: ById<i64>,
    /// By a path's string its module, if it has one.
    by_path: HashMap<i64, Option<String>, RandomState>,
    /// Frames and paths that were noted: names are long, and stand on many lines.
    noted: HashSet<(u32, i64), RandomState>,
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
            noted: HashSet::default(),
        }
    }

    /// Notes that frames lie in this mapping.
    pub(super) fn note(&mut self, mapping: u64, frames: &[Frame], profile: &mut Profile) {
        let Some(&path) = self.paths.get(mapping) else {
            return;
        };
        let read = || module_of(&String::from_utf8_lossy(self.strings.bytes(path).ok()?));
        let Some(module) = self.by_path.entry(path).or_insert_with(read) else {
            return;
        };
        for frame in frames {
            if self.noted.insert((frame.index() as u32, path)) {
                let name = profile.frames.name_of(*frame);
                profile.modules.insert(name, frame.kind(), module);
            }
        }
    }
}
