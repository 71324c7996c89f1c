//! Sums up profiles whose nodes are in order by walking all trees at once, without look-ups.

use crate::profile::{Error, Frame, Frames, Node, Order, Profile, Result, Step, Tree, ROOT};

/// The nodes of a profile in the making.
pub(crate) struct Nodes {
    pub(crate) frames: Frames,
    pub(crate) tree: Tree,
    /// Self values: one column for each value type, one entry for each node.
    pub(crate) columns: Vec<Vec<i64>>,
}

/// Profiles that wait until they are added up together: every node is then walked once for each power of
/// this many profiles, not once for each profile that comes behind.
const TOGETHER: usize = 8;

/// Sums up many profiles in memory that grows with distinct stacks and time that grows with the sum of
/// the profiles' sizes (times the logarithm of their number).
#[derive(Default)]
pub struct Merger {
    /// Profiles as they came, then sums of several of them, then sums of those sums, and so on.
    levels: Vec<Vec<Profile>>,
}

impl Merger {
    /// A sum of nothing yet.
    pub fn new() -> Merger {
        Merger::default()
    }

    /// Adds one profile; see [`Profile::merge`].
    pub fn add(&mut self, profile: Profile) -> Result<()> {
        if let Some(other) = self.levels.iter().flatten().next() {
            other.check_same_values(profile.values())?;
        }
        let mut sum = profile.into_ordered()?;
        for level in 0.. {
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let waiting = &mut self.levels[level];
            waiting.push(sum);
            if waiting.len() < TOGETHER {
                break;
            }
            sum = added_up(std::mem::take(waiting))?;
        }
        Ok(())
    }

    /// The sum; none of no profiles.
    pub fn finish(self) -> Result<Option<Profile>> {
        let mut sum: Option<Profile> = None;
        for mut waiting in self.levels {
            waiting.extend(sum);
            sum = match waiting.len() {
                0 | 1 => waiting.pop(),
                _ => Some(added_up(waiting)?),
            };
        }
        Ok(sum)
    }
}

/// The sum of at least one profile. All have the same values and ordered nodes.
fn added_up(mut profiles: Vec<Profile>) -> Result<Profile> {
    let nodes = union(&profiles.iter().collect::<Vec<_>>())?;
    let mut sum = profiles.remove(0);
    for other in &profiles {
        sum.check_sums(other)?;
        sum.absorb(other);
    }
    sum.set_nodes(nodes);
    Ok(sum)
}

/// The nodes of all, whose nodes stand in order; those of the union do as well. Whether sums fit was or
/// will be checked.
pub(crate) fn union(profiles: &[&Profile]) -> Result<Nodes> {
    let frames: Vec<&Frames> = profiles.iter().map(|profile| &profile.frames).collect();
    let (frames, names) = union_of_names(&frames)?;
    let sides = profiles.iter().zip(&names);
    let mut sides: Vec<Side> = sides
        .map(|(profile, names)| Side::new(&profile.tree, names))
        .collect();
    let tree = union_of_trees(&mut sides)?;
    let values = profiles.first().map_or(0, |profile| profile.values().len());
    let columns = (0..values).map(|value| {
        let mut column = vec![0i64; tree.len()];
        for (profile, side) in profiles.iter().zip(&sides) {
            for (&amount, &node) in profile.selves(value).iter().zip(&side.went) {
                column[node as usize] = column[node as usize].wrapping_add(amount);
            }
        }
        column
    });
    let columns = columns.collect();
    Ok(Nodes {
        frames,
        tree,
        columns,
    })
}

/// All names in byte order, and where the names of each of the tables went.
fn union_of_names(tables: &[&Frames]) -> Result<(Frames, Vec<Vec<u32>>)> {
    let mut frames = Frames::default();
    let mut went: Vec<Vec<u32>> = vec![Vec::new(); tables.len()];
    loop {
        let next = |side: usize, went: &[Vec<u32>]| tables[side].get(went[side].len());
        let first = (0..tables.len()).filter_map(|side| next(side, &went)).min();
        let Some(name) = first else {
            return Ok((frames, went));
        };
        let id = frames.push_name(name)?;
        for side in 0..tables.len() {
            if next(side, &went) == Some(name) {
                went[side].push(id);
            }
        }
    }
}

/// One of several trees being walked in preorder.
struct Side<'a> {
    tree: &'a Tree,
    /// Its names among those of all.
    names: &'a [u32],
    /// How deep each node is; the root, and what is behind the last node, is at 0.
    depths: Vec<u32>,
    /// Where each node so far went in the union.
    went: Vec<Node>,
}

impl<'a> Side<'a> {
    fn new(tree: &'a Tree, names: &'a [u32]) -> Side<'a> {
        let mut depths = Vec::with_capacity(tree.len() + 1);
        depths.push(0);
        for node in tree.nodes() {
            depths.push(depths[tree.parent(node) as usize] + 1);
        }
        depths.push(0);
        let mut went = Vec::with_capacity(tree.len());
        went.push(ROOT);
        Side {
            tree,
            names,
            depths,
            went,
        }
    }

    /// How deep the next node is.
    fn depth(&self) -> u32 {
        self.depths[self.went.len()]
    }

    /// The frame of the next node, which there must be.
    fn frame(&self) -> Frame {
        let frame = self.tree.frame(self.went.len() as Node);
        Frame::new(self.names[frame.name() as usize], frame.kind())
    }

    /// What the next node's turn depends on: the largest is next. 0 behind the last node.
    ///
    /// Of two next nodes the deeper one comes first: it is below a node the other one is behind. Nodes of
    /// the same depth have the same parent in the union, as the trees are left together and entered
    /// together; of them the smaller frame comes first.
    fn turn(&self) -> u64 {
        match self.depth() {
            0 => 0,
            depth => u64::from(depth) << 32 | (u32::MAX as usize - self.frame().index()) as u64,
        }
    }
}

/// The union in the making.
struct Union {
    parents: Vec<Node>,
    frames: Vec<Frame>,
    /// The node at each depth on the way to the last one.
    path: Vec<Node>,
}

impl Union {
    fn new(room: usize) -> Union {
        let mut union = Union {
            parents: Vec::with_capacity(room),
            frames: Vec::with_capacity(room),
            path: vec![ROOT],
        };
        union.parents.push(ROOT);
        union.frames.push(Frame::ROOT);
        union
    }

    /// Adds a node at this depth behind the last one.
    fn push(&mut self, depth: u32, frame: Frame) -> Node {
        let (node, depth) = (self.parents.len() as Node, depth as usize);
        self.parents.push(self.path[depth - 1]);
        self.frames.push(frame);
        self.path.truncate(depth);
        self.path.push(node);
        node
    }

    /// Copies the rest of a subtree that only this side has.
    fn push_subtree(&mut self, side: &mut Side<'_>, depth: u32) {
        while side.depth() > depth {
            let node = self.push(side.depth(), side.frame());
            side.went.push(node);
        }
    }
}

fn union_of_trees(sides: &mut [Side<'_>]) -> Result<Tree> {
    let nodes = sides.iter().map(|side| side.tree.len());
    if nodes.clone().sum::<usize>() > Tree::MOST {
        return Err(Error::Limit {
            what: "nodes of the call tree",
            limit: Tree::MOST as u64,
        });
    }
    let mut union = Union::new(nodes.max().unwrap_or(0));
    let mut turns: Vec<u64> = sides.iter().map(Side::turn).collect();
    loop {
        let turn = turns.iter().copied().max().unwrap_or(0);
        let Some(first) = turns.iter().position(|&other| other == turn && turn > 0) else {
            return Ok(Tree::of(union.parents, union.frames));
        };
        let depth = (turn >> 32) as u32;
        let node = union.push(depth, sides[first].frame());
        let mut alone = true;
        for other in first..sides.len() {
            if turns[other] == turn {
                sides[other].went.push(node);
                turns[other] = sides[other].turn();
                alone &= other == first;
            }
        }
        if alone {
            union.push_subtree(&mut sides[first], depth);
            turns[first] = sides[first].turn();
        }
    }
}

impl Nodes {
    /// A profile's nodes in preorder, children by name, names numbered in byte order; and where each node went.
    pub(crate) fn in_order(profile: &Profile) -> Result<(Nodes, Vec<Node>)> {
        let (frames, names) = sorted_names(&profile.frames)?;
        let (mut parents, mut new_frames) = (vec![ROOT], vec![Frame::ROOT]);
        let mut from = vec![ROOT];
        let mut went = vec![ROOT; profile.tree.len()];
        let mut path = Vec::new();
        for step in Order::of(profile).walk() {
            match step {
                Step::Enter(ROOT) => path.push(ROOT),
                Step::Enter(node) => {
                    let frame = profile.tree.frame(node);
                    parents.push(path[path.len() - 1]);
                    new_frames.push(Frame::new(names[frame.name() as usize], frame.kind()));
                    went[node as usize] = from.len() as Node;
                    path.push(from.len() as Node);
                    from.push(node);
                }
                Step::Leave(_) => {
                    path.pop();
                }
            }
        }
        let columns = (0..profile.values().len()).map(|value| {
            let selves = profile.selves(value);
            from.iter().map(|&node| selves[node as usize]).collect()
        });
        let columns = columns.collect();
        let nodes = Nodes {
            frames,
            tree: Tree::of(parents, new_frames),
            columns,
        };
        Ok((nodes, went))
    }
}

/// The names in byte order, and where each went.
fn sorted_names(names: &Frames) -> Result<(Frames, Vec<u32>)> {
    let ranks = names.ranks();
    let mut by_rank = vec![0; ranks.len()];
    for (name, &rank) in ranks.iter().enumerate() {
        by_rank[rank as usize] = name as u32;
    }
    let mut sorted = Frames::default();
    for name in by_rank {
        sorted.push_name(names.name(name))?;
    }
    Ok((sorted, ranks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValueType;

    fn profile(stacks: &[&str]) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        for stack in stacks {
            let frames: Vec<&str> = stack.split(';').collect();
            profile.add_stack(&frames, &[1]).unwrap();
        }
        profile
    }

    fn folded(profile: &Profile) -> String {
        let mut out = Vec::new();
        profile.write_folded(&mut out, 0, true).unwrap();
        String::from_utf8(out).unwrap()
    }

    const ONE: [&str; 5] = ["b;x", "b;a_[j]", "a;z;y", "b;a_[0];c", "b;a_[j]"];
    const OTHER: [&str; 4] = ["c", "a;zz", "b;a_[j];q", "a;z;y"];

    #[test]
    fn ordering_changes_no_stack() {
        let profile = profile(&ONE);
        assert!(!profile.is_ordered());
        let before = folded(&profile);
        let ordered = profile.into_ordered().unwrap();
        assert!(ordered.is_ordered());
        assert_eq!(folded(&ordered), before);
    }

    #[test]
    fn a_walk_over_two_trees_is_what_looking_up_makes() {
        for (one, other) in [
            (&ONE[..], &OTHER[..]),
            (&OTHER, &ONE),
            (&ONE, &[]),
            (&[], &ONE),
        ] {
            let mut looked_up = profile(one);
            looked_up.graft(&profile(other)).unwrap();
            let all: Vec<&str> = one.iter().chain(other).copied().collect();
            let mut walked = profile(one).into_ordered().unwrap();
            walked
                .merge(&profile(other).into_ordered().unwrap())
                .unwrap();
            assert!(walked.is_ordered());
            assert_eq!(walked.node_count(), looked_up.node_count());
            assert_eq!(folded(&walked), folded(&profile(&all)));
        }
    }

    #[test]
    fn many_sums_are_one() {
        let mut merger = Merger::new();
        for number in 0..500 {
            let own = format!("a;own{}", number % 7);
            merger.add(profile(&["a;b", &own])).unwrap();
        }
        let waiting: usize = merger.levels.iter().map(Vec::len).sum();
        assert!(waiting < 3 * TOGETHER, "what waits stays small");
        let sum = merger.finish().unwrap().unwrap();
        assert_eq!((sum.total(0).unwrap(), sum.node_count()), (1000, 9));
        assert!(sum.is_ordered());
        assert!(Merger::new().finish().unwrap().is_none());
    }

    #[test]
    fn a_sum_of_many_that_does_not_fit_is_an_error() {
        let mut merger = Merger::new();
        let mut large = Profile::new(vec![ValueType::samples()]);
        large.add_stack(&["a"], &[i64::MAX / 3]).unwrap();
        for _ in 0..4 {
            merger.add(large.clone()).unwrap();
        }
        let error = merger.finish().err().unwrap().to_string();
        assert!(error.ends_with("does not fit in 64 bits"), "{error}");
    }
}
