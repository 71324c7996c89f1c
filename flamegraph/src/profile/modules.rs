//! The module of each native function, by its name: a program, a library, a part of the kernel.
//!
//! Modules are kept in a table of their own and are no part of the frames: profiles merge, compare and are written
//! as stacks without them.

use std::collections::BTreeSet;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::profile::{Kind, Profile};

/// Most modules listed for one name. A name in more modules has `several modules`.
const MOST_OF_ONE: usize = 3;
const SEVERAL: &str = "several modules";
const BETWEEN: &str = ", ";
/// Most bytes of such a list: file names have at most 255 bytes.
const MOST_BYTES: usize = MOST_OF_ONE * (255 + BETWEEN.len());

/// Most names in a table. A small profile can have many millions, each with a long list.
const MOST_NAMES: usize = 1 << 20;

/// By a frame's name its module, or a few with commas between. Frames of the kernel and others are apart: what is
/// called alike lies elsewhere. A copy costs nothing until it is changed.
#[derive(Clone, Default)]
pub(crate) struct ModuleTable(Arc<[ByName; 2]>);

type ByName = HashMap<Box<str>, Box<str>, RandomState>;

/// The index of the table for frames of this kind. Java methods and wakers have no module.
fn world(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Plain => Some(0),
        Kind::Kernel => Some(1),
        _ => None,
    }
}

impl ModuleTable {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(HashMap::is_empty)
    }

    pub(crate) fn get(&self, name: &str, kind: Kind) -> Option<&str> {
        self.0[world(kind)?].get(name).map(|module| &**module)
    }

    /// Remembers where a frame lies: in the file of this path, or in what a table said before. Passes over memory,
    /// code that was made at run time, and what is not known.
    pub(crate) fn insert(&mut self, name: &str, kind: Kind, path: &str) {
        if let (Some(world), Some(module)) = (world(kind), module_of(path)) {
            self.put(world, name, &module);
        }
    }

    /// Remembers all that another table does.
    pub(crate) fn add(&mut self, other: &ModuleTable) {
        if self.is_empty() {
            self.0 = Arc::clone(&other.0);
        } else if !Arc::ptr_eq(&self.0, &other.0) {
            for (world, of) in other.0.iter().enumerate() {
                for (name, module) in of {
                    self.put(world, name, module);
                }
            }
        }
    }

    /// Remembers of one name what another table does of a name.
    pub(crate) fn copy(&mut self, name: &str, other: &ModuleTable, theirs: &str) {
        for (world, of) in other.0.iter().enumerate() {
            if let Some(module) = of.get(theirs) {
                self.put(world, name, module);
            }
        }
    }

    /// The same table with other modules: of a name in several each is renamed.
    pub(crate) fn renamed<'a, T: AsRef<str>>(
        &'a self,
        rename: impl Fn(&'a str) -> T,
    ) -> ModuleTable {
        let mut renamed = ModuleTable::default();
        for (world, of) in self.0.iter().enumerate() {
            for (name, modules) in of {
                for module in modules.split(BETWEEN) {
                    if module == SEVERAL {
                        renamed.put(world, name, SEVERAL);
                    } else if let Some(module) = module_of(rename(module).as_ref()) {
                        renamed.put(world, name, &module);
                    }
                }
            }
        }
        renamed
    }

    fn put(&mut self, world: usize, name: &str, module: &str) {
        let joined = match self.0[world].get(name).map(|known| &**known) {
            Some(known) if known == SEVERAL || known == module => return,
            Some(known) => joined(known, module),
            None if self.0.iter().map(HashMap::len).sum::<usize>() >= MOST_NAMES => return,
            None => module.to_string(),
        };
        Arc::make_mut(&mut self.0)[world].insert(name.into(), joined.into());
    }
}

/// The name of the file with this path, if it is one; of what a table said before the same text.
pub(crate) fn module_of(path: &str) -> Option<String> {
    let path = whole(path);
    let is_map = path.starts_with("/tmp/perf-") && path.ends_with(".map");
    if is_memory(path) || is_map || path.contains("/jitted-") {
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    let parts = name.split(BETWEEN).map(whole);
    let text = set_of(parts.filter(|part| !part.is_empty() && !is_memory(part)));
    (!text.is_empty() && text.len() <= MOST_BYTES).then_some(text)
}

/// A path without the kernel's suffix for deleted files.
fn whole(mut path: &str) -> &str {
    while let Some(shorter) = path.strip_suffix(" (deleted)") {
        path = shorter;
    }
    path
}

/// Memory without a file, as the kernel calls it.
fn is_memory(path: &str) -> bool {
    const MEMORY: [&str; 11] = [
        "[unknown]",
        "[heap]",
        "[stack",
        "[anon",
        "//anon",
        "/anon_hugepage",
        "anon_inode:",
        "/memfd:",
        "memfd:",
        "/dev/zero",
        "/SYSV",
    ];
    MEMORY.iter().any(|start| path.starts_with(start))
}

/// The modules of both, each once and in order: whichever came first, the text is the same.
fn joined(one: &str, other: &str) -> String {
    set_of(one.split(BETWEEN).chain(other.split(BETWEEN)))
}

fn set_of<'a>(modules: impl Iterator<Item = &'a str>) -> String {
    let all: BTreeSet<&str> = modules.collect();
    if all.len() > MOST_OF_ONE || all.contains(SEVERAL) {
        return SEVERAL.to_string();
    }
    all.into_iter().collect::<Vec<_>>().join(BETWEEN)
}

impl Profile {
    /// The module that a function of this name lies in (`libc.so.6`), where that is known: a file's name
    /// without its folders, up to three of them with commas between, or `several modules`. Frames that are
    /// neither plain nor of the kernel have none, nor have Java's methods.
    pub fn module_of(&self, name: &str, kind: Kind) -> Option<&str> {
        self.modules.get(name, kind)
    }

    /// The names of frames that have a module, and the modules; in the names' order. What is called alike in the
    /// kernel and elsewhere stands twice.
    pub fn modules(&self) -> impl Iterator<Item = (&str, &str)> {
        let frames = self.used_frames().into_iter();
        let named = frames.map(|frame| (self.frames.name_of(frame), frame.kind()));
        let known =
            named.filter_map(|(name, kind)| Some((name, kind, self.modules.get(name, kind)?)));
        let mut known: Vec<(&str, Kind, &str)> = known.collect();
        known.sort_unstable();
        known.into_iter().map(|(name, _, module)| (name, module))
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
            ("/x/[heap]", None),
            ("/memfd:jit (deleted)", None),
            ("memfd:jit", None),
            ("anon_inode:[io_uring]", None),
            (", ", None),
            ("b (deleted), a, ", Some("a, b")),
            ("/x (deleted) (deleted)", Some("x")),
        ];
        for (path, expected) in cases {
            let module = module_of(path);
            assert_eq!(module.as_deref(), expected, "{path}");
            assert_eq!(module.as_deref().and_then(module_of), module, "{path}");
        }
        assert_eq!(module_of(&"x".repeat(MOST_BYTES + 1)), None);
    }

    #[test]
    fn a_name_in_several_modules_has_them_in_whichever_order_they_come() {
        let paths = ["/b/libc.so", "/a/libm.so", "[x]", "/c/libc.so"];
        for turn in 0..paths.len() {
            let mut table = ModuleTable::default();
            for place in 0..paths.len() {
                table.insert("f", Kind::Plain, paths[(turn + place) % paths.len()]);
            }
            assert_eq!(table.get("f", Kind::Plain), Some("[x], libc.so, libm.so"));
            table.insert("f", Kind::Plain, "/one/more");
            table.insert("f", Kind::Plain, "libc.so");
            assert_eq!(table.get("f", Kind::Plain), Some(SEVERAL));
        }
    }

    #[test]
    fn tables_add_up_and_a_copy_stays_as_it_was() {
        let mut one = ModuleTable::default();
        one.insert("f", Kind::Plain, "a");
        let before = one.clone();
        let mut other = ModuleTable::default();
        other.insert("f", Kind::Plain, "b, c");
        other.insert("g", Kind::Plain, "c");
        one.add(&other);
        assert_eq!(
            (one.get("f", Kind::Plain), one.get("g", Kind::Plain)),
            (Some("a, b, c"), Some("c"))
        );
        assert_eq!(
            (before.get("f", Kind::Plain), before.get("g", Kind::Plain)),
            (Some("a"), None)
        );
    }
}
