//! Where stubs and intrinsics stand if only callers count that are surely right.
//!
//! Without debug information the JVM knows which methods are inlined only at safepoints. Code that is entered without
//! one (see `ops/callers.rs`) then stands below the wrong inlined method. The compiled method itself is right, and so is
//! all that calls it. From start to start of a program other methods are inlined: profiles that are compared need a
//! caller that is right in all of them.

use std::collections::{HashMap, HashSet};

use crate::profile::{Kind, Node, Profile, Result, ROOT};

/// By method what other code costs that it may have called, or not, in each profile.
type Doubts = Vec<(Box<str>, Vec<i64>)>;

/// Code whose caller is unsure in less than this part of every profile, 1 in so many, moves no other stacks.
const FEW: i64 = 200;
/// The place of the outermost frames, below threads.
const TOP: u32 = 0;
/// A path that none of the profiles has.
const NOWHERE: u32 = u32::MAX;

/// Places of code without a sure caller in several profiles.
pub struct SureCallers {
    names: HashMap<Box<str>, u32>,
    /// Paths of names without threads, each by the path above it and its last name.
    places: HashMap<(u32, u32), u32>,
    /// Code with an unsure caller in any profile.
    code: HashSet<u32>,
    /// Where, below its nearest sure caller, code stands in one of the profiles whose other callers are unsure.
    sure: HashSet<(u32, u32)>,
    doubts: Doubts,
}

/// What is known of the nodes of one profile.
struct Places<'a> {
    profile: &'a Profile,
    heads: Vec<Node>,
    names: Vec<u32>,
    places: Vec<u32>,
}

/// Code that has the same sure callers: where it stands, where the compiled method is that called it, and its name.
type Moved = (u32, u32, u32);

impl SureCallers {
    /// Of profiles with one value that are to be compared.
    pub fn of(profiles: &[&Profile]) -> SureCallers {
        let mut all = SureCallers {
            names: HashMap::new(),
            places: HashMap::new(),
            code: HashSet::new(),
            sure: HashSet::new(),
            doubts: Vec::new(),
        };
        let seen: Vec<Places<'_>> = profiles.iter().map(|one| all.add(one)).collect();
        let totals: Vec<Vec<i64>> = profiles.iter().map(|one| one.node_totals(0)).collect();
        for (of, totals) in seen.iter().zip(&totals) {
            let mut costs: HashMap<(u32, u32), i64> = HashMap::new();
            for node in of
                .profile
                .tree
                .nodes()
                .filter(|&node| of.profile.has_unsure_caller(node))
            {
                let name = of.names[node as usize];
                all.code.insert(name);
                let above = of.places[of.compiled(node) as usize];
                *costs.entry((above, name)).or_default() += totals[node as usize];
            }
            let few = totals[ROOT as usize] / FEW;
            all.sure.extend(
                costs
                    .into_iter()
                    .filter(|&(_, cost)| cost > few)
                    .map(|(place, _)| place),
            );
        }
        all.doubts = all.doubts_of(&seen, &totals);
        all
    }

    /// All stacks, with this code below the nearest caller that is surely right in all the profiles.
    pub fn cut(&self, profile: &Profile) -> Result<Profile> {
        let of = self.find(profile);
        let mut above = vec![ROOT; profile.tree.len()];
        for node in profile.tree.nodes() {
            above[node as usize] = self.caller(&of, node);
        }
        profile.replanted(|_| true, |node| above[node as usize])
    }

    /// By method what it may have called besides, or not have called: of each profile the cost of such code.
    pub fn doubts(&self) -> &[(Box<str>, Vec<i64>)] {
        &self.doubts
    }

    /// Code with an unsure caller in any of the profiles.
    pub fn code(&self) -> Vec<&str> {
        let known = self
            .names
            .iter()
            .filter(|(_, name)| self.code.contains(name));
        let mut found: Vec<&str> = known.map(|(name, _)| &**name).collect();
        found.sort_unstable();
        found
    }

    fn add<'a>(&mut self, profile: &'a Profile) -> Places<'a> {
        let heads = profile.threads_and_waits();
        let size = profile.tree.len();
        let (mut names, mut places) = (vec![NOWHERE; size], vec![TOP; size]);
        for node in profile.tree.nodes() {
            let text = profile.frames.name_of(profile.tree.frame(node));
            let next = self.names.len() as u32;
            let name = match self.names.get(text) {
                Some(&known) => known,
                None => *self.names.entry(text.into()).or_insert(next),
            };
            names[node as usize] = name;
            if heads[node as usize] != node {
                let above = places[profile.tree.parent(node) as usize];
                let next = self.places.len() as u32 + 1;
                places[node as usize] = *self.places.entry((above, name)).or_insert(next);
            }
        }
        Places {
            profile,
            heads,
            names,
            places,
        }
    }

    /// The same of a profile that brings nothing new.
    fn find<'a>(&self, profile: &'a Profile) -> Places<'a> {
        let heads = profile.threads_and_waits();
        let size = profile.tree.len();
        let (mut names, mut places) = (vec![NOWHERE; size], vec![TOP; size]);
        for node in profile.tree.nodes() {
            let text = profile.frames.name_of(profile.tree.frame(node));
            let name = self.names.get(text).copied().unwrap_or(NOWHERE);
            names[node as usize] = name;
            if heads[node as usize] != node {
                let above = places[profile.tree.parent(node) as usize];
                places[node as usize] = self.places.get(&(above, name)).copied().unwrap_or(NOWHERE);
            }
        }
        Places {
            profile,
            heads,
            names,
            places,
        }
    }

    /// The nearest caller of a node that is surely right in all profiles.
    fn caller(&self, of: &Places<'_>, node: Node) -> Node {
        let parent = of.profile.tree.parent(node);
        let name = of.names[node as usize];
        if !self.code.contains(&name) || !is_java(of.kind(parent)) {
            return parent;
        }
        let mut sure = match of.profile.has_unsure_caller(node) {
            true => of.compiled(node),
            false => parent,
        };
        let head = of.heads[node as usize];
        let mut above = sure;
        while above != head && above != ROOT {
            if self.sure.contains(&(of.places[above as usize], name)) {
                sure = above;
            }
            above = of.profile.tree.parent(above);
        }
        sure
    }

    fn doubts_of(&self, seen: &[Places<'_>], totals: &[Vec<i64>]) -> Doubts {
        let mut costs: HashMap<Moved, Vec<i64>> = HashMap::new();
        let mut callers: HashMap<(u32, u32), HashSet<u32>> = HashMap::new();
        // What is on the way to a place.
        let mut above: HashMap<u32, HashSet<u32>> = HashMap::new();
        for (at, of) in seen.iter().enumerate() {
            for node in of.profile.tree.nodes() {
                let parent = of.profile.tree.parent(node);
                let sure = self.caller(of, node);
                if sure == parent && !of.profile.has_unsure_caller(node) {
                    continue;
                }
                let (place, name) = (of.places[sure as usize], of.names[node as usize]);
                let compiled = of.places[of.compiled(node) as usize];
                let cost = costs
                    .entry((place, compiled, name))
                    .or_insert_with(|| vec![0; seen.len()]);
                cost[at] += totals[at][node as usize];
                let wrong = callers.entry((place, name)).or_default();
                wrong.extend(of.names_up(parent, sure));
                above
                    .entry(place)
                    .or_insert_with(|| of.names_up(sure, of.heads[node as usize]).collect());
            }
        }
        let inlined = inlined(seen, &costs);
        let (mut at_place, mut of_code) = (HashMap::new(), HashMap::new());
        for (&(place, _, name), cost) in &costs {
            add(at_place.entry(place).or_default(), cost);
            add(of_code.entry((place, name)).or_default(), cost);
        }
        let mut sums: HashMap<u32, Vec<i64>> = HashMap::new();
        let mut doubt = |place: u32, method: u32, cost: &[i64]| {
            if !above[&place].contains(&method) {
                add(sums.entry(method).or_default(), cost);
            }
        };
        // Each method once for each code: most have the same places.
        for (place, cost) in &at_place {
            inlined[place]
                .iter()
                .for_each(|&method| doubt(*place, method, cost));
        }
        for (key, cost) in &of_code {
            let others = callers[key].difference(&inlined[&key.0]);
            others.for_each(|&method| doubt(key.0, method, cost));
        }
        for (&(place, compiled, name), cost) in &costs {
            let (known, wrong) = (&inlined[&place], &callers[&(place, name)]);
            let others = inlined[&compiled].iter();
            others
                .filter(|method| !known.contains(method) && !wrong.contains(method))
                .for_each(|&method| doubt(place, method, cost));
        }
        let known = self.names.iter();
        let mut found: Doubts = known
            .filter_map(|(text, name)| Some((text.clone(), sums.remove(name)?)))
            .collect();
        found.sort_unstable();
        found
    }
}

impl Places<'_> {
    fn kind(&self, node: Node) -> Kind {
        match node {
            ROOT => Kind::Plain,
            _ => self.profile.tree.frame(node).kind(),
        }
    }

    /// The compiled method that a node's caller is, or is inlined in; its thread if there is none.
    fn compiled(&self, node: Node) -> Node {
        let head = self.heads[node as usize];
        let mut above = self.profile.tree.parent(node);
        while above != head && above != ROOT && self.kind(above) == Kind::Inlined {
            above = self.profile.tree.parent(above);
        }
        above
    }

    /// The names from a node upwards, to one above it that does not count.
    fn names_up(&self, from: Node, to: Node) -> impl Iterator<Item = u32> + '_ {
        let next = |&node: &Node| Some(self.profile.tree.parent(node));
        std::iter::successors(Some(from), next)
            .take_while(move |&node| node != to && node != ROOT)
            .map(|node| self.names[node as usize])
    }
}

/// The methods that are inlined in the compiled methods at these places, in any of the profiles.
fn inlined(seen: &[Places<'_>], costs: &HashMap<Moved, Vec<i64>>) -> HashMap<u32, HashSet<u32>> {
    let places = costs
        .keys()
        .flat_map(|&(place, compiled, _)| [place, compiled]);
    let mut found: HashMap<u32, HashSet<u32>> =
        places.map(|place| (place, HashSet::new())).collect();
    for of in seen {
        for node in of.profile.tree.nodes() {
            if of.kind(node) == Kind::Inlined {
                let compiled = of.places[of.compiled(node) as usize];
                if let Some(methods) = found.get_mut(&compiled) {
                    methods.insert(of.names[node as usize]);
                }
            }
        }
    }
    found
}

/// Adds costs in each profile to sums, which are none at first.
fn add(sums: &mut Vec<i64>, costs: &[i64]) {
    sums.resize(costs.len(), 0);
    for (sum, cost) in sums.iter_mut().zip(costs) {
        *sum += cost;
    }
}

fn is_java(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Interpreted | Kind::C1 | Kind::Jit | Kind::Inlined
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValueType;

    fn profile(stacks: &[(&str, i64)]) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        for (stack, samples) in stacks {
            let frames: Vec<&str> = stack.split(';').collect();
            profile.add_stack(&frames, &[*samples]).unwrap();
        }
        profile
    }

    fn cut(sure: &SureCallers, profile: &Profile) -> String {
        let mut folded = Vec::new();
        let cut = sure.cut(profile).unwrap();
        cut.write_folded(&mut folded, 0, true).unwrap();
        String::from_utf8(folded).unwrap()
    }

    #[test]
    fn code_stands_below_the_nearest_caller_that_is_sure_in_both() {
        // Hashing is 250 and 550: once with its callers inlined, once with one that is compiled by itself.
        let before = profile(&[
            ("[T];main_[0];hash_[j];get_[i];map_[i];sha;irq_[k]", 250),
            ("[T];main_[0];hash_[j];update_[i]", 10),
            ("[T];main_[0];match_[j];next_[i]", 700),
            ("[T];main_[0];match_[j];next_[i];irq_[k]", 3),
            ("[T];main_[0];match_[j];slow::new", 37),
        ]);
        let after = profile(&[
            ("[U];main_[0];hash_[j];update_[j];sha;irq_[k]", 550),
            ("[U];main_[0];match_[j];next_[i]", 450),
        ]);
        let sure = SureCallers::of(&[&before, &after]);
        assert_eq!(
            cut(&sure, &before),
            "[T];main_[0];hash_[j];sha;irq_[k] 250
[T];main_[0];hash_[j];update_[i] 10
[T];main_[0];match_[j];irq_[k] 3
[T];main_[0];match_[j];next_[i] 700
[T];main_[0];match_[j];slow::new 37
"
        );
        assert_eq!(
            cut(&sure, &after),
            "[U];main_[0];hash_[j];sha;irq_[k] 550
[U];main_[0];match_[j];next_[i] 450
"
        );
        let doubts: Vec<String> = sure
            .doubts()
            .iter()
            .map(|(name, costs)| format!("{name} {costs:?}"))
            .collect();
        assert_eq!(
            doubts,
            [
                "get [250, 550]",
                "map [250, 550]",
                "next [40, 0]",
                "update [250, 550]"
            ]
        );
        assert_eq!(sure.code(), ["irq", "sha", "slow::new"]);
    }

    #[test]
    fn a_caller_that_is_inlined_in_one_profile_is_not_sure_in_another() {
        let inlined = profile(&[("main_[j];hash_[i];sha", 50), ("main_[j];other_[i]", 50)]);
        let apart = profile(&[("main_[0];hash_[j];sha", 50), ("main_[0];other_[j]", 50)]);
        let sure = SureCallers::of(&[&inlined, &apart]);
        assert_eq!(
            cut(&sure, &apart),
            "main_[0];other_[j] 50\nmain_[0];sha 50\n"
        );
        assert_eq!(sure.doubts().len(), 2);
    }
}
