//! In which module native functions lie, by their names: a program, a library, a part of the kernel.
//!
//! It stands beside the frames and is no part of them: profiles merge, compare and are written as stacks
//! as if it were not there.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

use crate::profile::Profile;
use crate::wire::put_varint;

/// Modules that are told of one name; of a name in more of them it is said that they are several.
const MOST_OF_ONE: usize = 3;
const SEVERAL: &str = "several modules";
const BETWEEN: &str = ", ";
/// Names of files have at most 255 bytes, and so many stand together.
const MOST_BYTES: usize = MOST_OF_ONE * (255 + BETWEEN.len());
/// Distinct modules and groups of them; those beyond are not told.
pub(crate) const MOST_MODULES: usize = 1 << 14;
/// Bytes of all names that have a module; names come from hosts.
const MOST_NAME_BYTES: usize = 64 << 20;

/// By a name its module, or a few with commas between. A copy costs nothing until it is changed.
#[derive(Clone, Default)]
pub(crate) struct ModuleTable(Arc<Table>);

#[derive(Clone, Default)]
struct Table {
    of: HashMap<Box<str>, Arc<str>, RandomState>,
    known: HashSet<Arc<str>, RandomState>,
    name_bytes: usize,
}

impl ModuleTable {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.of.is_empty()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.of.get(name).map(|module| &**module)
    }

    /// Remembers where a name lies: in the file of this path, or in what a table said before. Passes over memory,
    /// code that was made at run time, and what is not known.
    pub(crate) fn insert(&mut self, name: &str, path: &str) {
        if let Some(module) = module_of(path) {
            self.put(name, module);
        }
    }

    /// Remembers all that another table does.
    pub(crate) fn add(&mut self, other: &ModuleTable) {
        if self.is_empty() {
            self.0 = Arc::clone(&other.0);
        } else if !Arc::ptr_eq(&self.0, &other.0) {
            for (name, module) in &other.0.of {
                self.put(name, module);
            }
        }
    }

    /// The same table with other modules.
    #[cfg(feature = "recordings")]
    pub(crate) fn renamed<'a, T: AsRef<str>>(
        &'a self,
        rename: impl Fn(&'a str) -> T,
    ) -> ModuleTable {
        let mut renamed = ModuleTable::default();
        for (name, module) in &self.0.of {
            renamed.put(name, rename(module).as_ref());
        }
        renamed
    }

    /// The modules of some names as our own formats have them: how many, each of them, and a piece with a number for
    /// each name: 0, or the place of its module, counted from 1. Nothing where no name has one.
    pub(crate) fn table_of(&self, names: &[&str]) -> Vec<u8> {
        let (mut texts, mut numbers) = (Vec::new(), Vec::new());
        let mut places: HashMap<&str, u64, RandomState> = HashMap::default();
        for module in names.iter().map(|name| self.get(name)) {
            let place = module.map(|module| {
                let next = places.len() as u64 + 1;
                *places.entry(module).or_insert_with(|| {
                    put_text(&mut texts, module.as_bytes());
                    next
                })
            });
            put_varint(&mut numbers, place.unwrap_or(0));
        }
        let mut out = Vec::new();
        if !places.is_empty() {
            put_varint(&mut out, places.len() as u64);
            out.extend_from_slice(&texts);
            put_text(&mut out, &numbers);
        }
        out
    }

    fn put(&mut self, name: &str, module: &str) {
        let joined = match self.get(name) {
            Some(known) if known == module => return,
            Some(known) => joined(known, module),
            None => joined(module, module),
        };
        if self.get(name) != Some(&joined) {
            Arc::make_mut(&mut self.0).put(name, &joined);
        }
    }
}

impl Table {
    fn put(&mut self, name: &str, module: &str) {
        let module = match self.known.get(module) {
            Some(known) => Arc::clone(known),
            None if self.known.len() >= MOST_MODULES => return,
            None => {
                let module: Arc<str> = Arc::from(module);
                self.known.insert(Arc::clone(&module));
                module
            }
        };
        if let Some(place) = self.of.get_mut(name) {
            *place = module;
        } else if self.name_bytes + name.len() <= MOST_NAME_BYTES {
            self.name_bytes += name.len();
            self.of.insert(Box::from(name), module);
        }
    }
}

/// A length and as many bytes.
fn put_text(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The name of the file with this path, if it is one.
fn module_of(path: &str) -> Option<&str> {
    const MEMORY: [&str; 8] = [
        "[unknown]",
        "[heap]",
        "[stack",
        "[anon",
        "//anon",
        "/anon_hugepage",
        "/dev/zero",
        "/SYSV",
    ];
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    let is_memory = MEMORY.iter().any(|start| path.starts_with(start));
    let is_map = path.starts_with("/tmp/perf-") && path.ends_with(".map");
    if is_memory || is_map || path.contains("/jitted-") {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    (!name.is_empty() && name.len() <= MOST_BYTES).then_some(name)
}

/// The modules of both, each once and in order: whichever came first, the text is the same.
fn joined(one: &str, other: &str) -> String {
    let both: BTreeSet<&str> = one.split(BETWEEN).chain(other.split(BETWEEN)).collect();
    if both.len() > MOST_OF_ONE || both.contains(SEVERAL) {
        return SEVERAL.to_string();
    }
    both.into_iter().collect::<Vec<_>>().join(BETWEEN)
}

impl Profile {
    /// The module that a function of this name lies in (`libc.so.6`), where that is known: a file's name
    /// without its folders, up to three of them with commas between, or `several modules`. Java's methods
    /// have none.
    pub fn module_of(&self, name: &str) -> Option<&str> {
        self.modules.get(name)
    }

    /// The names of frames that have a module, and the modules; in the names' order.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &str)> {
        let frames = self.used_frames();
        let mut names: Vec<&str> = frames
            .iter()
            .map(|&frame| self.frames.name_of(frame))
            .collect();
        names.sort_unstable();
        names.dedup();
        let known = |name| self.modules.get(name).map(|module| (name, module));
        names.into_iter().filter_map(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_module_by_its_file() {
        let cases = [
            ("/usr/lib/libc.so.6", Some("libc.so.6")),
            ("/tmp/x.so (deleted)", Some("x.so")),
            ("libjvm.so", Some("libjvm.so")),
            ("[kernel.kallsyms]", Some("[kernel.kallsyms]")),
            ("[ext4]", Some("[ext4]")),
            ("[vdso]", Some("[vdso]")),
            ("", None),
            ("/usr/lib/", None),
            ("[unknown]", None),
            ("//anon", None),
            ("[heap]", None),
            ("/tmp/perf-12.map", None),
            ("/x/jitted-12-3.so", None),
        ];
        for (path, expected) in cases {
            assert_eq!(module_of(path), expected, "{path}");
        }
        assert_eq!(module_of(&"x".repeat(MOST_BYTES + 1)), None);
    }

    #[test]
    fn a_name_in_several_modules_has_them_in_whichever_order_they_come() {
        let paths = ["/b/libc.so", "/a/libm.so", "[x]", "/c/libc.so"];
        for turn in 0..paths.len() {
            let mut table = ModuleTable::default();
            for place in 0..paths.len() {
                table.insert("f", paths[(turn + place) % paths.len()]);
            }
            assert_eq!(table.get("f"), Some("[x], libc.so, libm.so"));
            table.insert("f", "/one/more");
            table.insert("f", "libc.so");
            assert_eq!(table.get("f"), Some(SEVERAL));
        }
    }

    #[test]
    fn tables_add_up_and_a_copy_stays_as_it_was() {
        let mut one = ModuleTable::default();
        one.insert("f", "a");
        let before = one.clone();
        let mut other = ModuleTable::default();
        other.insert("f", "b, c");
        other.insert("g", "c");
        one.add(&other);
        assert_eq!((one.get("f"), one.get("g")), (Some("a, b, c"), Some("c")));
        assert_eq!((before.get("f"), before.get("g")), (Some("a"), None));
    }

    #[test]
    fn hosts_cannot_fill_it() {
        let mut table = ModuleTable::default();
        for number in 0..2 * MOST_MODULES {
            table.insert(&format!("f{number}"), &format!("m{number}"));
        }
        assert_eq!(table.0.known.len(), MOST_MODULES);
        let long = "n".repeat(MOST_NAME_BYTES / 2);
        for name in ["a", "b", "c"] {
            table.insert(&format!("{name}{long}"), "m1");
        }
        assert!(table.0.name_bytes <= MOST_NAME_BYTES);
    }
}
