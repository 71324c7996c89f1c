//! The files of locations. A damaged mapping is not an error: its locations have no module.

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use super::tables::{decode, ById, Parts, Strings};
use crate::formats::pprof::proto;
use crate::profile::{module_of, Frame, Profile};

pub(super) struct Mappings<'a, 'm> {
    strings: &'m Strings<'a>,
    /// The string ids of their paths. Millions of mappings may share a long path.
    paths: ById<i64>,
    /// The module of each path, by string id, if it has one.
    by_path: HashMap<i64, Option<String>, RandomState>,
    /// Frames and paths that were noted: names are long and repeat often.
    noted: HashSet<(u32, i64), RandomState>,
}

impl<'a, 'm> Mappings<'a, 'm> {
    pub(super) fn read(parts: &'m Parts<'a>) -> Mappings<'a, 'm> {
        let mut paths = ById::new();
        for (number, bytes) in parts.mappings.iter().enumerate() {
            // Locations without a mapping have the id 0. Of two mappings with one id the first counts.
            match decode::<proto::Mapping>(bytes, "mapping", number) {
                Ok(mapping) if mapping.id > 0 => paths.insert(mapping.id, mapping.filename),
                _ => false,
            };
        }
        Mappings {
            strings: &parts.strings,
            paths,
            by_path: HashMap::default(),
            noted: HashSet::default(),
        }
    }

    /// Sets the module of frames to that of a mapping.
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
