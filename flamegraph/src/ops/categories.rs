//! What the work of a profile is: categories and phases of its stacks, by the rules of `rules/frames.yaml`.
//! `tests/viewer/vectors.json` has stacks with their categories; the viewer's `data/work.js` is tested by them, too.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::frame_rules::{fits_any, slashed, Table, WEAK, WHOLE};
use super::rule_index::{frame_category, APPLICATION, KERNEL, PHASES};
use crate::profile::{Kind, Profile, ROOT};

/// What no rule knows.
const OTHER: &str = "other";
const KERNEL_OTHER: &str = "kernel-other";
const NO_PHASE: &str = "";

/// The rules of `rules/frames.yaml` for many profiles. A name is matched with the patterns once, whichever profiles
/// have it.
#[derive(Default)]
pub struct WorkTable {
    /// The user's rules, which come first: categories and their patterns.
    own: Vec<(String, Vec<String>)>,
    /// Without and with frames of the kernel.
    names: [Names; 2],
}

/// The category of a frame by its name; None if it says nothing of its stack.
fn category<'a>(
    own: &'a [(String, Vec<String>)],
    name: &str,
    kind: Kind,
    kernel: bool,
) -> Option<&'a str> {
    let name = slashed(name);
    let own = own.iter().find(|(_, patterns)| {
        let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
        fits_any(&name, &patterns)
    });
    if let Some((category, _)) = own {
        return Some(category);
    }
    if kernel && kind == Kind::Kernel {
        return KERNEL.first(&name);
    }
    frame_category(&name).filter(|&category| category != APPLICATION || is_java(&name, kind))
}

/// Functions are not known to be anybody's.
fn is_java(name: &str, kind: Kind) -> bool {
    match kind {
        Kind::Interpreted | Kind::C1 | Kind::Jit | Kind::Inlined => name.contains('/'),
        _ => false,
    }
}

fn written_as(name: &str) -> Written {
    // What follows a hidden class: Foo$$Lambda$14/0x00000008000f2c40.
    let number = |pair: &[u8]| b"./+".contains(&pair[0]) && pair[1].is_ascii_digit();
    let end = name.as_bytes().windows(2).position(number);
    let name = end.map_or(name, |end| &name[..end]);
    if name.contains('/') {
        return Written::Method;
    }
    let begins_high = |text: &str| text.starts_with(char::is_uppercase);
    let (package, class) = name.rsplit_once('.').unwrap_or(("", name));
    let class_like = begins_high(class) || class.starts_with('$') || class.ends_with("[]");
    match class_like && !package.split('.').any(begins_high) {
        true => Written::Class,
        false => Written::Either,
    }
}

/// What the rules say of a frame by its name.
#[derive(Clone, Copy)]
struct Matched {
    /// A place in the categories, and in the phases.
    category: Option<u16>,
    phase: Option<u16>,
    written: Written,
}

/// What a name may be by how it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// `java.util.regex.Pattern$GroupHead`, `byte[]`.
    Class,
    /// `java/util/regex/Pattern.compile`.
    Method,
    Either,
}

impl Matched {
    /// Whether it is the class that a stack of allocations ends in, which says nothing of who works. Engines mark
    /// classes as inlined, or as of the kernel for an allocation outside of the thread's buffer. Where `kernel` is false
    /// these are the leaves. Other profiles may have lost their event's name, as folded text does: there classes are
    /// known by their own.
    fn is_class(self, kind: Kind, leaf: bool, kernel: bool) -> bool {
        match kind {
            Kind::Inlined | Kind::Kernel => match self.written {
                Written::Class => true,
                Written::Either => !kernel && leaf,
                Written::Method => false,
            },
            Kind::Plain => !kernel && leaf && self.written == Written::Class,
            _ => false,
        }
    }
}

impl WorkTable {
    /// By the rules of `rules/frames.yaml`, and by these before them: categories and their patterns. A pattern is a
    /// frame's name, in which `*` is any text, and `/` a dot as well.
    pub fn new(own: Vec<(String, Vec<String>)>) -> WorkTable {
        let slashed = |patterns: Vec<String>| patterns.iter().map(|one| slashed(one)).collect();
        let own = own.into_iter();
        WorkTable {
            own: own
                .map(|(name, patterns)| (name, slashed(patterns)))
                .collect(),
            ..WorkTable::default()
        }
    }

    /// Each node's category and phase, as indices into the returned list. `kernel` is false where frames
    /// of that kind are classes.
    pub(super) fn of_nodes(
        &mut self,
        profile: &Profile,
        kernel: bool,
    ) -> (Vec<(u16, u16)>, &[String]) {
        let names = &mut self.names[usize::from(kernel)];
        let [other, application, kernel_other, none] =
            [OTHER, APPLICATION, KERNEL_OTHER, NO_PHASE].map(|name| names.place(name));
        let members = |table: Table, names: &mut Names| -> Vec<u16> {
            let all = table.iter().flat_map(|(_, members)| members.iter());
            all.map(|name| names.place(name)).collect()
        };
        let (weak, whole) = (members(WEAK, names), members(WHOLE, names));
        let mut leaf = vec![true; profile.tree.len()];
        for node in profile.tree.nodes() {
            leaf[profile.tree.parent(node) as usize] = false;
        }
        let mut matched: Vec<Option<Matched>> = vec![None; profile.frames.index_len()];
        let mut work = vec![(other, none); profile.tree.len()];
        for node in profile.tree.nodes() {
            let frame = profile.tree.frame(node);
            let (kind, index) = (frame.kind(), frame.index());
            let of_frame = *matched[index].get_or_insert_with(|| {
                let name = profile.frames.name_of(frame);
                if let Some(before) = names.matched(name, kind) {
                    return before;
                }
                let phase = PHASES.first(name).map(|phase| names.place(phase));
                let category = category(&self.own, name, kind, kernel);
                let category = category.map(|category| names.place(category));
                let written = written_as(name);
                let of_frame = Matched {
                    category,
                    phase,
                    written,
                };
                names.remember(name, kind, of_frame)
            });
            let parent = profile.tree.parent(node);
            let (above, phase) = work[parent as usize];
            if of_frame.is_class(kind, leaf[node as usize], kernel) {
                work[node as usize] = (above, phase);
                continue;
            }
            let below_kernel = parent != ROOT && profile.tree.frame(parent).kind() == Kind::Kernel;
            let enters_kernel = kernel && kind == Kind::Kernel && !below_kernel;
            let category = match of_frame.category {
                _ if whole.contains(&above) => above,
                Some(own) if weak.contains(&own) && ![other, application].contains(&above) => above,
                Some(own) => own,
                None if enters_kernel => kernel_other,
                None => above,
            };
            let phase = match of_frame.phase {
                Some(own) if phase == none => own,
                _ => phase,
            };
            work[node as usize] = (category, phase);
        }
        (work, &names.list)
    }
}

/// Categories and phases by their places, and what the rules say of frames of earlier profiles.
#[derive(Default)]
struct Names {
    list: Vec<String>,
    matched: HashMap<String, [Option<Matched>; Kind::ALL.len()], RandomState>,
}

impl Names {
    fn matched(&self, name: &str, kind: Kind) -> Option<Matched> {
        self.matched.get(name)?[kind as usize]
    }

    fn remember(&mut self, name: &str, kind: Kind, matched: Matched) -> Matched {
        self.matched.entry(name.to_owned()).or_default()[kind as usize] = Some(matched);
        matched
    }

    /// There are a few dozen.
    fn place(&mut self, name: &str) -> u16 {
        let place = self.list.iter().position(|one| one == name);
        place.unwrap_or_else(|| {
            self.list.push(name.to_owned());
            self.list.len() - 1
        }) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_methods_are_written_differently() {
        for (names, expected) in [
            (
                &[
                    "java.util.regex.Pattern$GroupHead",
                    "java.util.regex.Pattern$GroupHead[]",
                    "byte[]",
                    "Session",
                    "scala.collection.immutable.$colon$colon",
                    "java.util.regex.Pattern$$Lambda$14/0x00000008000f2c40",
                    "java.util.regex.Pattern$$Lambda.0x00007f3c0c0a1238",
                ][..],
                Written::Class,
            ),
            (&["java/util/regex/Pattern.compile"], Written::Method),
            (
                &[
                    "java.util.regex.Pattern.compile",
                    "java.util.regex.Pattern.RemoveQEQuoting",
                    "Session.open",
                    "com.acme.order",
                    "vfs_read",
                    "tcp_v4_rcv.part.0",
                    "",
                ],
                Written::Either,
            ),
        ] {
            for name in names {
                assert_eq!(written_as(name), expected, "{name}");
            }
        }
    }
}
