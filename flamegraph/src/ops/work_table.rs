//! Sums of work over many profiles: by category, phase and slice.

use std::collections::BTreeMap;

use super::categories::WorkTable;
use super::rebuild::Rebuild;
use super::split::Split;
use super::stack_table::Timed;
use crate::profile::{Kind, Node, Profile, Result, ROOT};

/// A category (a rule's name, "application", "kernel-other" or "other"), a phase and a slice, with "" for none; and what
/// their stacks cost.
pub type Work = (String, String, String, i64);

impl WorkTable {
    /// What the stacks of each category, phase and slice cost in the first value; one walk over the tree. `kernel` is false
    /// where frames of that kind are classes.
    pub fn sums(&mut self, profile: &Profile, kernel: bool) -> Result<Vec<Work>> {
        profile.check_value(0)?;
        let (nodes, names) = self.of_nodes(profile, kernel);
        let selves = profile.selves(0);
        let slices = profile.times().map_or(&[][..], |times| &times.slices);
        let timed = Timed::of(profile, 0).filter(|_| !slices.is_empty());
        let mut sums: BTreeMap<(u16, u16, u16), i64> = BTreeMap::new();
        for node in (0..profile.tree.len() as Node).filter(|&node| selves[node as usize] != 0) {
            let (own, (category, phase)) = (selves[node as usize], nodes[node as usize]);
            let mut add = |slice, value| {
                let sum = sums.entry((category, phase, slice)).or_default();
                *sum = sum.saturating_add(value);
            };
            match timed.as_ref().and_then(|timed| timed.rows_of(node)) {
                None => add(0, own),
                Some((rows, weights)) => {
                    let mut split = Split::new(own as u128, weights.iter().sum());
                    for (row, &weight) in rows.iter().zip(&weights) {
                        add(row.slice, split.next(weight));
                    }
                }
            }
        }
        let slice = |number: u16| {
            usize::from(number)
                .checked_sub(1)
                .map(|place| &slices[place])
        };
        Ok(sums
            .into_iter()
            .map(|((category, phase, number), value)| {
                let slice = slice(number).map_or_else(String::new, |slice| slice.name.clone());
                let [category, phase] = [category, phase].map(|place| &names[usize::from(place)]);
                (category.clone(), phase.clone(), slice, value)
            })
            .collect())
    }

    /// The same profile with each stack below a frame of its category's name, such as `[json]`; `flat`: with nothing but
    /// these frames.
    pub fn by_category(&mut self, profile: &Profile, kernel: bool, flat: bool) -> Result<Profile> {
        let (nodes, names) = self.of_nodes(profile, kernel);
        let mut rebuild = Rebuild::of(profile);
        let mut path = Vec::new();
        for node in profile.tree.nodes().filter(|&node| profile.has_self(node)) {
            path.clear();
            let mut at = if flat { ROOT } else { node };
            while at != ROOT {
                path.push(profile.tree.frame(at));
                at = profile.tree.parent(at);
            }
            let category = format!("[{}]", names[usize::from(nodes[node as usize].0)]);
            let mut to = rebuild.child_named(ROOT, &category, Kind::Plain)?;
            for frame in path.iter().rev() {
                to = rebuild.child(to, *frame)?;
            }
            rebuild.add_selves(node, to)?;
        }
        Ok(rebuild.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Row, Slice, Times, ValueType};

    const JSON: [&str; 2] = ["com/acme/A.b_[j]", "com/google/gson/G.c_[j]"];

    fn profile(stacks: &[(&[&str], i64)]) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        for (frames, count) in stacks {
            profile.add_stack(frames, &[*count]).unwrap();
        }
        profile
    }

    fn sums(profile: &Profile) -> Vec<(String, String, i64)> {
        let sums = WorkTable::default().sums(profile, true).unwrap();
        let sums = sums.into_iter();
        sums.map(|(category, _, slice, value)| (category, slice, value))
            .collect()
    }

    #[test]
    fn the_phase_is_of_the_frame_nearest_to_the_root() {
        let generated = "org/apache/spark/sql/catalyst/expressions/GeneratedClass$GeneratedIteratorForCodegenStage1";
        let frames = [
            "x",
            &format!("{generated}.hashAgg_doAggregateWithKeys_0$_[j]"),
            &format!("{generated}.scan_nextBatch_0$_[j]"),
        ];
        let work = WorkTable::default()
            .sums(&profile(&[(&frames, 3)]), true)
            .unwrap();
        let texts = ["scan", "aggregate", ""].map(str::to_owned);
        let [category, phase, slice] = texts;
        assert_eq!(work, [(category, phase, slice, 3)]);
    }

    #[test]
    fn slices_add_up_to_the_whole() {
        let mut profile = profile(&[(&JSON, 7), (&JSON[..1], 4)]);
        let row = |node, slice, samples| Row {
            node,
            slice,
            samples,
            ..Row::default()
        };
        let slices = ["stage 1.0", "stage 2.0"].map(|name| Slice {
            name: name.to_owned(),
            certain: true,
        });
        let rows = vec![row(1, 1, 3), row(1, 0, 1), row(2, 1, 1), row(2, 2, 2)];
        profile.set_times(Some(Times::new(0, 20_000, slices.to_vec(), rows)));
        let of =
            |category: &str, slice: &str, value| (category.to_owned(), slice.to_owned(), value);
        assert_eq!(
            sums(&profile),
            [
                of("application", "", 1),
                of("application", "stage 1.0", 3),
                of("json", "stage 1.0", 2),
                of("json", "stage 2.0", 5),
            ]
        );
    }

    #[test]
    fn names_known_from_a_profile_serve_the_next() {
        let mut table = WorkTable::new(vec![("pricing".to_owned(), vec!["com.acme.*".to_owned()])]);
        let mut category = |frames: &[&str], kernel| {
            let work = table.sums(&profile(&[(frames, 1)]), kernel).unwrap();
            work[0].0.clone()
        };
        assert_eq!(category(&JSON, true), "json");
        assert_eq!(category(&JSON[..1], true), "pricing");
        // The same name is of another kind, and in memory profiles a class, which decides nothing.
        assert_eq!(category(&["com.acme.A_[k]"], false), "other");
        assert_eq!(category(&["a", "vfs_read_[k]"], true), "kernel-files");
        assert_eq!(category(&["a", "vfs_read_[k]"], false), "other");
        assert_eq!(category(&["a", "vfs_read"], true), "other");
    }

    #[test]
    fn stacks_below_their_categories() {
        let profile = profile(&[(&JSON, 2), (&JSON[..1], 1)]);
        let divided = WorkTable::default()
            .by_category(&profile, true, false)
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
}
