//! What the work of a profile is: categories and phases of its stacks, by the rules of `rules/frames.yaml`.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::RandomState;

use super::frame_rules::{
    fits_any, slashed, Table, CATEGORIES, FRAMEWORKS, KERNEL, PHASES, WEAK, WHOLE,
};
use super::rebuild::Rebuild;
use crate::profile::{Kind, Profile, Result, ROOT};

/// What no rule knows.
const OTHER: &str = "other";
/// Code that is in no category and of no framework.
const APPLICATION: &str = "application";
const KERNEL_OTHER: &str = "kernel-other";
/// No phase.
const NONE: &str = "";
/// Categories that serve others, and exceptions.
const TRANSPARENT: [&str; 2] = ["library", "none"];

/// What stacks of one category and phase cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// A rule's name, "application", "kernel-other" or "other".
    pub category: String,
    /// "" if it is in none.
    pub phase: String,
    /// By the profile's values.
    pub values: Vec<i64>,
}

/// The rules, and those of the user, which come first: categories and their patterns.
#[derive(Default)]
pub struct WorkRules {
    own: Vec<(String, Vec<String>)>,
}

impl WorkRules {
    /// A pattern is a frame's name, in which `*` is any text, and `/` a dot as well.
    pub fn new(own: Vec<(String, Vec<String>)>) -> WorkRules {
        let slashed = |patterns: Vec<String>| patterns.iter().map(|one| slashed(one)).collect();
        let own = own.into_iter();
        WorkRules {
            own: own
                .map(|(name, patterns)| (name, slashed(patterns)))
                .collect(),
        }
    }

    /// The category of a frame by its name; None if it says nothing of its stack.
    fn category(&self, name: &str, kind: Kind, kernel: bool) -> Option<&str> {
        let name = slashed(name);
        let own = self.own.iter().find(|(_, patterns)| {
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            fits_any(&name, &patterns)
        });
        if let Some((category, _)) = own {
            return Some(category);
        }
        if kernel && kind == Kind::Kernel {
            return KERNEL.first(&name);
        }
        match CATEGORIES.first(&name) {
            Some(category) => Some(category).filter(|one| !TRANSPARENT.contains(one)),
            None => is_application(&name, kind).then_some(APPLICATION),
        }
    }
}

/// Whether a frame is a method of neither the JDK nor a framework. Functions are not known to be anybody's.
fn is_application(name: &str, kind: Kind) -> bool {
    let java = match kind {
        Kind::Interpreted | Kind::C1 | Kind::Jit | Kind::Inlined => name.contains('/'),
        _ => false,
    };
    java && FRAMEWORKS.first(name).is_none()
}

/// What is known of a frame's name.
#[derive(Clone, Copy)]
struct Known {
    /// A place in the categories, and in the phases.
    category: Option<u16>,
    phase: Option<u16>,
}

impl Profile {
    /// What the stacks of each category and phase cost; one walk over the tree.
    pub fn work(&self, rules: &WorkRules, kernel: bool) -> Vec<Work> {
        let mut names = Names::default();
        let nodes = self.work_of_nodes(rules, kernel, &mut names);
        let mut sums: BTreeMap<(u16, u16), Vec<i64>> = BTreeMap::new();
        let count = self.values().len();
        let selves: Vec<&[i64]> = (0..count).map(|value| self.selves(value)).collect();
        for (node, work) in nodes.into_iter().enumerate() {
            if selves.iter().any(|values| values[node] != 0) {
                let sum = sums.entry(work).or_insert_with(|| vec![0; count]);
                for (sum, values) in sum.iter_mut().zip(&selves) {
                    *sum = sum.saturating_add(values[node]);
                }
            }
        }
        let name = |place: u16| names.list[place as usize].clone();
        sums.into_iter()
            .map(|((category, phase), values)| Work {
                category: name(category),
                phase: name(phase),
                values,
            })
            .collect()
    }

    /// The same profile with each stack below a frame of its category's name, such as `[json]`; `flat`: with
    /// nothing but these frames.
    pub fn by_category(&self, rules: &WorkRules, kernel: bool, flat: bool) -> Result<Profile> {
        let mut names = Names::default();
        let nodes = self.work_of_nodes(rules, kernel, &mut names);
        let mut rebuild = Rebuild::of(self);
        let mut path = Vec::new();
        for node in self.tree.nodes().filter(|&node| self.has_self(node)) {
            path.clear();
            let mut at = if flat { ROOT } else { node };
            while at != ROOT {
                path.push(self.tree.frame(at));
                at = self.tree.parent(at);
            }
            let category = format!("[{}]", names.list[nodes[node as usize].0 as usize]);
            let mut to = rebuild.child_named(ROOT, &category, Kind::Plain)?;
            for frame in path.iter().rev() {
                to = rebuild.child(to, *frame)?;
            }
            rebuild.add_selves(node, to)?;
        }
        Ok(rebuild.finish())
    }

    /// Each node's category and phase, by their places in `names`. `kernel` and `rules` are the same for all profiles
    /// with the same `names`.
    pub(super) fn work_of_nodes(
        &self,
        rules: &WorkRules,
        kernel: bool,
        names: &mut Names,
    ) -> Vec<(u16, u16)> {
        let [other, application, kernel_other, none] =
            [OTHER, APPLICATION, KERNEL_OTHER, NONE].map(|name| names.place(name));
        let members = |table: Table, names: &mut Names| -> Vec<u16> {
            let all = table.iter().flat_map(|(_, members)| members.iter());
            all.map(|name| names.place(name)).collect()
        };
        let (weak, whole) = (members(WEAK, names), members(WHOLE, names));
        let mut kernels = vec![kernel_other];
        kernels.extend(KERNEL.names().map(|name| names.place(name)));
        let mut known: Vec<Option<Known>> = vec![None; self.frames.index_len()];
        let mut found = vec![(other, none); self.tree.len()];
        for node in self.tree.nodes() {
            let frame = self.tree.frame(node);
            let (kind, index) = (frame.kind(), frame.index());
            let of_frame = *known[index].get_or_insert_with(|| {
                let name = self.frames.name_of(frame);
                if let Some(known) = names.known(name, kind) {
                    return known;
                }
                let phase = PHASES.first(name).map(|phase| names.place(phase));
                let category = rules.category(name, kind, kernel);
                let category = category.map(|category| names.place(category));
                names.remember(name, kind, Known { category, phase })
            });
            let parent = self.tree.parent(node);
            let (above, phase) = if parent == ROOT {
                (other, none)
            } else {
                found[parent as usize]
            };
            let in_kernel = kernel && kind == Kind::Kernel;
            let category = match of_frame.category {
                _ if whole.contains(&above) => above,
                Some(own) if weak.contains(&own) && ![other, application].contains(&above) => above,
                Some(own) => own,
                None if in_kernel && !kernels.contains(&above) => kernel_other,
                None => above,
            };
            let phase = match of_frame.phase {
                Some(own) if phase == none => own,
                _ => phase,
            };
            found[node as usize] = (category, phase);
        }
        found
    }
}

/// Names by their places, and what is known of frames of earlier profiles.
#[derive(Default)]
pub(super) struct Names {
    pub(super) list: Vec<String>,
    known: HashMap<String, [Option<Known>; Kind::ALL.len()], RandomState>,
}

impl Names {
    fn known(&self, name: &str, kind: Kind) -> Option<Known> {
        self.known.get(name)?[kind as usize]
    }

    fn remember(&mut self, name: &str, kind: Kind, known: Known) -> Known {
        self.known.entry(name.to_owned()).or_default()[kind as usize] = Some(known);
        known
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
    use crate::profile::ValueType;

    /// Of folded text.
    fn read(text: &str) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        for line in text.lines() {
            let (stack, count) = line.rsplit_once(' ').unwrap();
            let frames: Vec<&str> = stack.split(';').collect();
            profile
                .add_stack(&frames, &[count.parse().unwrap()])
                .unwrap();
        }
        profile
    }

    fn work(text: &str, rules: &WorkRules) -> Vec<(String, String, i64)> {
        let profile = read(text);
        let work = profile.work(rules, true).into_iter();
        work.map(|one| (one.category, one.phase, one.values[0]))
            .collect()
    }

    /// The category of one stack.
    fn category(stack: &str) -> String {
        let found = work(&format!("{stack} 1\n"), &WorkRules::default());
        assert_eq!(found.len(), 1);
        found[0].0.clone()
    }

    #[test]
    fn the_frame_nearest_to_the_leaf_decides() {
        for (stack, expected) in [
            (
                "a;com/acme/Job.run_[j];net/jpountz/lz4/LZ4.compress_[j];java/util/A.b_[j]",
                "compression",
            ),
            (
                "org/apache/spark/shuffle/sort/ShuffleExternalSorter.x_[j];net/jpountz/lz4/L.c_[j]",
                "compression",
            ),
            // The job's code that a library calls is no work of that library.
            (
                "com/fasterxml/jackson/core/A.b_[j];com/acme/Part.read_[j]",
                "application",
            ),
            (
                "com/fasterxml/jackson/core/A.b_[j];org/apache/spark/X.y_[j]",
                "json",
            ),
            (
                "org/apache/spark/X.y_[j];java/util/HashMap.get_[j]",
                "other",
            ),
            ("main;work", "other"),
            (
                "[MainThread];process (pyspark/worker.py);Frame.apply (pandas/core/frame.py)",
                "python-work",
            ),
        ] {
            assert_eq!(category(stack), expected, "{stack}");
        }
    }

    #[test]
    fn strings_and_copies_are_of_what_calls_them() {
        let copy = "java/util/Arrays.copyOf_[j]";
        assert_eq!(
            category(&format!("com/fasterxml/jackson/core/A.b_[j];{copy}")),
            "json"
        );
        assert_eq!(category(&format!("com/acme/Job.run_[j];{copy}")), "copies");
        assert_eq!(
            category("com/acme/Job.run_[j];java/lang/String.concat_[j]"),
            "strings"
        );
    }

    #[test]
    fn whole_threads_and_the_kernel() {
        assert_eq!(
            category("[GC Thread#0];memcpy;asm_exc_page_fault_[k]"),
            "gc"
        );
        assert_eq!(category("[C2 CompilerThread0];Compile::Compile"), "jit");
        let reads = "com/acme/Job.run_[j];read;vfs_read_[k]";
        assert_eq!(category(reads), "kernel-files");
        assert_eq!(category(&format!("{reads};copy_[k]")), "kernel-files");
        assert_eq!(
            category(&format!("{reads};handle_mm_fault_[k]")),
            "kernel-memory"
        );
        assert_eq!(
            category("com/acme/Job.run_[j];do_syscall_64_[k]"),
            "kernel-other"
        );
        // A class that was allocated outside of a TLAB.
        let profile = read("com/acme/Job.run_[j];byte[]_[k] 1\n");
        assert_eq!(
            profile.work(&WorkRules::default(), false)[0].category,
            "application"
        );
    }

    #[test]
    fn the_phase_is_of_the_frame_nearest_to_the_root() {
        let stage = "org/apache/spark/sql/catalyst/expressions/GeneratedClass$GeneratedIteratorForCodegenStage1";
        let text = format!(
            "x;{stage}.hashAgg_doAggregateWithKeys_0$_[j];{stage}.scan_nextBatch_0$_[j] 3\n"
        );
        assert_eq!(
            work(&text, &WorkRules::default()),
            [("scan".to_owned(), "aggregate".to_owned(), 3)]
        );
    }

    #[test]
    fn stacks_below_their_categories() {
        let profile = read("com/acme/A.b_[j];com/google/gson/G.c_[j] 2\ncom/acme/A.b_[j] 1\n");
        let divided = profile
            .by_category(&WorkRules::default(), true, false)
            .unwrap();
        let mut stacks = Vec::new();
        divided
            .each_stack(|frames, values| {
                let names: Vec<&str> = frames.iter().map(|(name, _)| *name).collect();
                stacks.push((names.join(";"), values[0]));
                Ok::<_, ()>(())
            })
            .unwrap();
        assert_eq!(
            stacks,
            [
                ("[application];com/acme/A.b".to_owned(), 1),
                ("[json];com/acme/A.b;com/google/gson/G.c".to_owned(), 2)
            ]
        );
    }

    #[test]
    fn rules_of_the_user_come_first() {
        let rules = WorkRules::new(vec![(
            "pricing".to_owned(),
            vec!["com.acme.pricing.*".to_owned()],
        )]);
        let text = "com/acme/pricing/Model.fit_[j] 2\ncom/acme/Job.run_[j] 1\n";
        assert_eq!(
            work(text, &rules),
            [
                ("application".to_owned(), String::new(), 1),
                ("pricing".to_owned(), String::new(), 2)
            ]
        );
    }
}
