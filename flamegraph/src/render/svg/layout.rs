//! The positions of a profile's frames.
//!
//! Children are side by side in name order from the start of their parent; the parent's self value is free space on the
//! right. Nodes that differ only in their tier are one bar. They are merged while walking, because most of a large tree
//! is too narrow to be drawn.

use super::options::Side;
use crate::profile::{deal, dominant, Frame, Kind, Node, Profile, Result, Shares, ROOT};

/// Which values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drawn {
    /// One.
    Value(usize),
    /// Two values, before and after; this side sets the widths.
    Change(Side),
}

/// A profile with the data of every node for its picture.
pub(super) struct Layout<'a> {
    profile: &'a Profile,
    /// Totals of all nodes: of the value, or before and after.
    totals: Vec<Vec<i64>>,
    /// The index of the totals that set the widths.
    widths: usize,
    /// Where each node's children start in `children`; one entry more than there are nodes.
    starts: Vec<u32>,
    children: Vec<Node>,
}

impl<'a> Layout<'a> {
    pub(super) fn of(profile: &'a Profile, drawn: Drawn) -> Layout<'a> {
        let (values, widths) = match drawn {
            Drawn::Value(value) => (vec![value], 0),
            Drawn::Change(side) => (vec![0, 1], side as usize),
        };
        let totals = values.iter().map(|&value| profile.node_totals(value));
        let tree = &profile.tree;
        let parent = |node: Node| tree.parent(node) as usize;
        let (children, starts) = deal(tree.nodes(), tree.len(), parent);
        Layout {
            profile,
            totals: totals.collect(),
            widths,
            starts,
            children,
        }
    }

    fn children_of(&self, node: Node) -> &[Node] {
        let node = node as usize;
        &self.children[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    fn frame(&self, node: Node) -> Frame {
        self.profile.tree.frame(node)
    }

    fn name(&self, node: Node) -> &'a str {
        self.profile.frames.name_of(self.frame(node))
    }

    fn is_one_bar(&self, one: Node, other: Node) -> bool {
        self.frame(one).name() == self.frame(other).name()
    }

    /// The bar of these nodes.
    fn bar(&self, nodes: &[Node], level: u32, start: i64) -> Bar<'a> {
        let sum = |side: usize| -> i64 {
            let totals = &self.totals[side];
            nodes.iter().map(|&node| totals[node as usize]).sum()
        };
        Bar {
            name: if level == 0 { "" } else { self.name(nodes[0]) },
            kind: self.kind(nodes, level),
            level,
            start,
            length: sum(self.widths),
            sides: (self.totals.len() == 2).then(|| [sum(0), sum(1)]),
        }
    }

    /// The kind that has most of the nodes' totals.
    fn kind(&self, nodes: &[Node], level: u32) -> Kind {
        match nodes {
            _ if level == 0 => Kind::Plain,
            [node] => self.frame(*node).kind(),
            _ => {
                let mut shares = Shares::default();
                for totals in &self.totals {
                    for &node in nodes {
                        let share = &mut shares[self.frame(node).kind() as usize];
                        *share = share.saturating_add(totals[node as usize]);
                    }
                }
                dominant(&shares)
            }
        }
    }
}

impl Bars for Layout<'_> {
    fn total(&self) -> i64 {
        self.totals[self.widths][ROOT as usize]
    }

    fn visit(&self, visitor: &mut dyn FnMut(&Bar<'_>) -> Result<Visit>) -> Result<()> {
        // Bars to visit, the next one last. The nodes of the last bar are at the end of `nodes`.
        let mut waiting = vec![Waiting::ROOT];
        let mut nodes = vec![ROOT];
        let mut above: Vec<Node> = Vec::new();
        while let Some(Waiting {
            level,
            start,
            first,
        }) = waiting.pop()
        {
            above.clear();
            if visitor(&self.bar(&nodes[first..], level, start))? == Visit::Above {
                for &node in &nodes[first..] {
                    above.extend_from_slice(self.children_of(node));
                }
            }
            nodes.truncate(first);
            let key = |&node: &Node| (self.name(node), self.frame(node).index());
            above.sort_unstable_by(|one, other| key(one).cmp(&key(other)));
            self.queue(&above, level + 1, start, &mut nodes, &mut waiting);
        }
        Ok(())
    }
}

/// A bar still to be visited.
struct Waiting {
    level: u32,
    start: i64,
    /// Where its nodes begin.
    first: usize,
}

impl Waiting {
    const ROOT: Waiting = Waiting {
        level: 0,
        start: 0,
        first: 0,
    };
}

impl Layout<'_> {
    /// Queues the bars of these sorted nodes; the first bar is visited first.
    fn queue(
        &self,
        above: &[Node],
        level: u32,
        start: i64,
        nodes: &mut Vec<Node>,
        waiting: &mut Vec<Waiting>,
    ) {
        let totals = &self.totals[self.widths];
        let length = |nodes: &[Node]| nodes.iter().map(|&node| totals[node as usize]).sum::<i64>();
        let mut end = start + length(above);
        for bar in above
            .chunk_by(|&one, &other| self.is_one_bar(one, other))
            .rev()
        {
            end -= length(bar);
            waiting.push(Waiting {
                level,
                start: end,
                first: nodes.len(),
            });
            nodes.extend_from_slice(bar);
        }
    }
}

/// One frame of the picture, in the units of the value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar<'a> {
    /// Without annotation; empty for the root.
    pub(super) name: &'a str,
    pub(super) kind: Kind,
    /// 0 is the root.
    pub(super) level: u32,
    pub(super) start: i64,
    pub(super) length: i64,
    /// In a difference: the totals before and after.
    pub(super) sides: Option<[i64; 2]>,
}

/// Whether to visit the bars above a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Visit {
    Above,
    Next,
}

/// Something to draw. It is visited several times, which takes no memory.
pub(super) trait Bars {
    /// The length of the root.
    fn total(&self) -> i64;

    /// Visits the root and the bars above it, depth first.
    fn visit(&self, visitor: &mut dyn FnMut(&Bar<'_>) -> Result<Visit>) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValueType;

    fn profile(stacks: &[(&[&str], i64)]) -> Profile {
        let mut profile = Profile::new(vec![ValueType::samples()]);
        for (stack, count) in stacks {
            profile.add_stack(stack, &[*count]).unwrap();
        }
        profile
    }

    fn bars(profile: &Profile) -> Vec<(String, u32, i64, i64)> {
        let layout = Layout::of(profile, Drawn::Value(0));
        let mut bars = Vec::new();
        layout
            .visit(&mut |bar| {
                let name = format!("{}{}", bar.name, bar.kind.suffix());
                bars.push((name, bar.level, bar.start, bar.length));
                Ok(Visit::Above)
            })
            .unwrap();
        bars
    }

    fn bar(name: &str, level: u32, start: i64, length: i64) -> (String, u32, i64, i64) {
        (name.to_string(), level, start, length)
    }

    #[test]
    fn children_stand_in_name_order_from_their_parents_start() {
        let profile = profile(&[(&["b"], 1), (&["a", "y"], 2), (&["a", "x"], 3), (&["a"], 4)]);
        assert_eq!(
            bars(&profile),
            [
                bar("", 0, 0, 10),
                bar("a", 1, 0, 9),
                bar("x", 2, 0, 3),
                bar("y", 2, 3, 2),
                bar("b", 1, 9, 1)
            ]
        );
    }

    #[test]
    fn what_nobody_looks_at_takes_its_place_all_the_same() {
        let profile = profile(&[(&["a"], 100_000), (&["b", "c"], 1), (&["d"], 50_000)]);
        let layout = Layout::of(&profile, Drawn::Value(0));
        let mut seen = Vec::new();
        let look = &mut |bar: &Bar<'_>| {
            seen.push((bar.level, bar.start));
            Ok(if bar.length > 1 {
                Visit::Above
            } else {
                Visit::Next
            })
        };
        layout.visit(look).unwrap();
        assert_eq!(seen, [(0, 0), (1, 0), (1, 100_000), (1, 100_001)]);
    }
}
