//! Summing up profiles whose nodes stand in order: a walk over both trees, without a look-up.

use std::cmp::Ordering;

use crate::error::{Error, Result};
use crate::frames::{Frame, Frames};
use crate::profile::Profile;
use crate::tree::{Node, Tree, ROOT};
use crate::walk::{Order, Step};

/// The nodes of a profile in the making.
pub(crate) struct Nodes {
    pub(crate) frames: Frames,
    pub(crate) tree: Tree,
    /// Self values: one column for each value type, one entry for each node.
    pub(crate) columns: Vec<Vec<i64>>,
}

/// Sums up many profiles in memory that grows with distinct stacks and time that grows with the sum of
/// the profiles' sizes (times the logarithm of their number): small sums wait until they are many.
#[derive(Default)]
pub struct Merger {
    /// Sums that wait, each more than twice as large as the next.
    sums: Vec<Profile>,
}

impl Merger {
    /// A sum of nothing yet.
    pub fn new() -> Merger {
        Merger::default()
    }

    /// Adds one profile; see [`Profile::merge`].
    pub fn add(&mut self, profile: Profile) -> Result<()> {
        if let Some(first) = self.sums.first() {
            first.check_same_values(profile.values())?;
        }
        let mut sum = profile.into_ordered()?;
        while let Some(last) = self.sums.pop() {
            if last.node_count() / 2 > sum.node_count() {
                self.sums.push(last);
                break;
            }
            sum.merge(&last)?;
        }
        self.sums.push(sum);
        Ok(())
    }

    /// The sum; none of no profiles.
    pub fn finish(mut self) -> Result<Option<Profile>> {
        let Some(mut sum) = self.sums.pop() else {
            return Ok(None);
        };
        while let Some(larger) = self.sums.pop() {
            sum.merge(&larger)?;
        }
        Ok(Some(sum))
    }
}

/// The nodes of both, whose nodes stand in order; those of the union do as well. The sums were checked.
pub(crate) fn union(one: &Profile, other: &Profile) -> Result<Nodes> {
    let (frames, names) = union_of_names(&one.frames, &other.frames)?;
    let mut merged = [
        Side::new(&one.tree, &names[0]),
        Side::new(&other.tree, &names[1]),
    ];
    let tree = union_of_trees(&mut merged)?;
    let [one_side, other_side] = merged;
    let columns = (0..one.values().len()).map(|value| {
        let mut column = vec![0; tree.len()];
        for (profile, side) in [(one, &one_side), (other, &other_side)] {
            for (&amount, &node) in profile.selves(value).iter().zip(&side.went) {
                column[node as usize] += amount;
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

/// All names in byte order, and where each of the two profiles' names went.
fn union_of_names(one: &Frames, other: &Frames) -> Result<(Frames, [Vec<u32>; 2])> {
    let mut frames = Frames::default();
    let mut went = [
        Vec::with_capacity(one.len()),
        Vec::with_capacity(other.len()),
    ];
    loop {
        let (ours, theirs) = (one.get(went[0].len()), other.get(went[1].len()));
        let (Some(name), order) = first(ours, theirs) else {
            return Ok((frames, went));
        };
        let id = frames.push_name(name)?;
        if order != Ordering::Greater {
            went[0].push(id);
        }
        if order != Ordering::Less {
            went[1].push(id);
        }
    }
}

/// The smaller of two, or the one there is, and how they compare.
fn first<'a>(one: Option<&'a str>, other: Option<&'a str>) -> (Option<&'a str>, Ordering) {
    let order = match (one, other) {
        (Some(one), Some(other)) => one.cmp(other),
        (Some(_), None) => Ordering::Less,
        _ => Ordering::Greater,
    };
    (
        if order == Ordering::Greater {
            other
        } else {
            one
        },
        order,
    )
}

/// One of two trees being walked in preorder.
struct Side<'a> {
    tree: &'a Tree,
    /// Its names among those of both.
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
}

/// The union in the making.
struct Union {
    parents: Vec<Node>,
    frames: Vec<Frame>,
    /// The node at each depth on the way to the last one.
    path: Vec<Node>,
}

impl Union {
    /// Adds a node at this depth behind the last one.
    fn push(&mut self, depth: u32, frame: Frame) -> Node {
        let (node, depth) = (self.parents.len() as Node, depth as usize);
        self.parents.push(self.path[depth - 1]);
        self.frames.push(frame);
        self.path.truncate(depth);
        self.path.push(node);
        node
    }

    /// Takes over a side's next node and what is below it.
    fn push_subtree(&mut self, side: &mut Side<'_>) {
        let top = side.depth();
        while {
            let node = self.push(side.depth(), side.frame());
            side.went.push(node);
            side.depth() > top
        } {}
    }
}

/// Of two next nodes the deeper one comes first: it is below a node the other one is behind. Nodes of the
/// same depth have the same parent in the union, as the trees are left together and entered together.
fn union_of_trees(sides: &mut [Side<'_>; 2]) -> Result<Tree> {
    let [one, other] = sides;
    if one.tree.len() + other.tree.len() > Tree::MOST {
        return Err(Error::Limit {
            what: "nodes of the call tree",
            limit: Tree::MOST as u64,
        });
    }
    let room = one.tree.len().max(other.tree.len());
    let mut union = Union {
        parents: Vec::with_capacity(room),
        frames: Vec::with_capacity(room),
        path: vec![ROOT],
    };
    union.parents.push(ROOT);
    union.frames.push(Frame::ROOT);
    loop {
        let depth = one.depth();
        let order = match other.depth().cmp(&depth) {
            Ordering::Equal if depth == 0 => break,
            Ordering::Equal => one.frame().cmp(&other.frame()),
            deeper => deeper,
        };
        match order {
            Ordering::Less => union.push_subtree(one),
            Ordering::Greater => union.push_subtree(other),
            Ordering::Equal => {
                let node = union.push(depth, one.frame());
                one.went.push(node);
                other.went.push(node);
            }
        }
    }
    Ok(Tree::of(union.parents, union.frames))
}

impl Nodes {
    /// A profile's nodes in preorder, children by name, names numbered in byte order.
    pub(crate) fn in_order(profile: &Profile) -> Result<Nodes> {
        let (frames, names) = sorted_names(&profile.frames)?;
        let (mut parents, mut new_frames) = (vec![ROOT], vec![Frame::ROOT]);
        let mut from = vec![ROOT];
        let mut path = Vec::new();
        for step in Order::of(profile).walk() {
            match step {
                Step::Enter(ROOT) => path.push(ROOT),
                Step::Enter(node) => {
                    let frame = profile.tree.frame(node);
                    parents.push(path[path.len() - 1]);
                    new_frames.push(Frame::new(names[frame.name() as usize], frame.kind()));
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
        Ok(Nodes {
            frames,
            tree: Tree::of(parents, new_frames),
            columns,
        })
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
    use crate::values::ValueType;

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
        for number in 0..50 {
            let own = format!("a;own{}", number % 7);
            merger.add(profile(&["a;b", &own])).unwrap();
        }
        assert!(merger.sums.len() < 4, "what waits stays small");
        let sum = merger.finish().unwrap().unwrap();
        assert_eq!((sum.total(0).unwrap(), sum.node_count()), (100, 9));
        assert!(Merger::new().finish().unwrap().is_none());
    }
}
