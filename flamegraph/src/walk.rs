//! Walking a tree depth first, children in name order, without recursion.

use crate::frames::Frame;
use crate::profile::Profile;
use crate::tree::{Node, ROOT};

/// The children of every node, in name order (kinds of one name in the order of their codes).
pub(crate) struct Order {
    /// Where each node's children start in `children`; one entry more than there are nodes.
    starts: Vec<u32>,
    children: Vec<Node>,
}

impl Order {
    /// Linear in the nodes: they are dealt out by frame (unless they stand in order already), then,
    /// keeping that order, by parent.
    pub(crate) fn of(profile: &Profile) -> Order {
        let tree = &profile.tree;
        let parent = |node: Node| tree.parent(node) as usize;
        if profile.is_ordered() {
            let (children, starts) = deal(tree.nodes(), tree.len(), parent);
            return Order { starts, children };
        }
        let ranks = profile.frames.ranks();
        let key = |node: Node| {
            let frame = tree.frame(node);
            Frame::new(ranks[frame.name() as usize], frame.kind()).index()
        };
        let (by_frame, _) = deal(tree.nodes(), profile.frames.index_len(), key);
        let (children, starts) = deal(by_frame.iter().copied(), tree.len(), parent);
        Order { starts, children }
    }

    pub(crate) fn child_count(&self, node: Node) -> u32 {
        self.starts[node as usize + 1] - self.starts[node as usize]
    }

    /// Depth first from the root, which is the first node entered and the last one left.
    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk {
            order: self,
            path: Vec::new(),
            started: false,
        }
    }
}

/// A stable counting sort; also returns where each key's items start.
fn deal<I>(nodes: I, keys: usize, key: impl Fn(Node) -> usize) -> (Vec<Node>, Vec<u32>)
where
    I: Iterator<Item = Node> + Clone,
{
    let mut starts = vec![0u32; keys + 1];
    let mut count = 0;
    for node in nodes.clone() {
        starts[key(node) + 1] += 1;
        count += 1;
    }
    for index in 1..starts.len() {
        starts[index] += starts[index - 1];
    }
    let mut next = starts.clone();
    let mut dealt = vec![0; count];
    for node in nodes {
        let place = &mut next[key(node)];
        dealt[*place as usize] = node;
        *place += 1;
    }
    (dealt, starts)
}

/// One step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Enter(Node),
    Leave(Node),
}

/// The steps of a depth-first walk.
pub(crate) struct Walk<'a> {
    order: &'a Order,
    /// The nodes entered and not yet left, each with the place of its next child.
    path: Vec<(Node, u32)>,
    started: bool,
}

impl Walk<'_> {
    fn enter(&mut self, node: Node) -> Step {
        self.path.push((node, self.order.starts[node as usize]));
        Step::Enter(node)
    }
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let Some((node, next)) = self.path.last_mut() else {
            if self.started {
                return None;
            }
            self.started = true;
            return Some(self.enter(ROOT));
        };
        if *next < self.order.starts[*node as usize + 1] {
            let child = self.order.children[*next as usize];
            *next += 1;
            return Some(self.enter(child));
        }
        let node = *node;
        self.path.pop();
        Some(Step::Leave(node))
    }
}
