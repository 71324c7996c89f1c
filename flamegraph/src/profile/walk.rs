//! Walking a tree depth first, children in name order, without recursion.

use crate::profile::{Frame, Node, Profile, ROOT};

/// The children of every node, in name order (kinds of one name in the order of their codes).
pub(crate) struct Order {
    /// How many children each node has.
    counts: Vec<u32>,
    /// Each node's parent.
    parents: Vec<Node>,
    /// All nodes but the root in the order of the walk; none where that is the order of their numbers.
    nodes: Option<Vec<Node>>,
}

impl Order {
    /// Linear in the nodes. Where they do not stand in order already, they are dealt out by frame, then,
    /// keeping that order, by parent.
    pub(crate) fn of(profile: &Profile) -> Order {
        let tree = &profile.tree;
        let parents: Vec<Node> = (0..tree.len() as Node)
            .map(|node| tree.parent(node))
            .collect();
        let mut counts = vec![0; tree.len()];
        for &parent in parents.iter().skip(1) {
            counts[parent as usize] += 1;
        }
        let nodes = (!profile.is_ordered()).then(|| preorder(profile));
        Order {
            counts,
            parents,
            nodes,
        }
    }

    pub(crate) fn child_count(&self, node: Node) -> u32 {
        self.counts[node as usize]
    }

    /// Depth first from the root, which is the first node entered and the last one left.
    pub(crate) fn walk(&self) -> Walk<'_> {
        Walk {
            order: self,
            path: Vec::new(),
            next: 0,
        }
    }

    /// For each node how many are entered before it.
    pub(crate) fn places(&self) -> Vec<Node> {
        let mut places = vec![ROOT; self.parents.len()];
        for place in 0..self.parents.len() {
            if let Some(node) = self.node(place) {
                places[node as usize] = place as Node;
            }
        }
        places
    }

    /// The node entered after that many others.
    fn node(&self, place: usize) -> Option<Node> {
        match &self.nodes {
            _ if place == 0 => Some(ROOT),
            Some(nodes) => nodes.get(place - 1).copied(),
            None => (place < self.parents.len()).then_some(place as Node),
        }
    }
}

/// All nodes but the root, depth first, children in name order.
fn preorder(profile: &Profile) -> Vec<Node> {
    let tree = &profile.tree;
    let ranks = profile.frames.ranks();
    let key = |node: Node| {
        let frame = tree.frame(node);
        Frame::new(ranks[frame.name() as usize], frame.kind()).index()
    };
    let (by_frame, _) = deal(tree.nodes(), profile.frames.index_len(), key);
    let parent = |node: Node| tree.parent(node) as usize;
    let (children, starts) = deal(by_frame.iter().copied(), tree.len(), parent);
    let mut nodes = Vec::with_capacity(children.len());
    // Nodes still to be entered, the next one last.
    let mut waiting = vec![ROOT];
    while let Some(node) = waiting.pop() {
        if node != ROOT {
            nodes.push(node);
        }
        let node = node as usize;
        let children = &children[starts[node] as usize..starts[node + 1] as usize];
        waiting.extend(children.iter().rev());
    }
    nodes
}

/// A stable counting sort; also returns where each key's items start.
pub(crate) fn deal<I>(nodes: I, keys: usize, key: impl Fn(Node) -> usize) -> (Vec<Node>, Vec<u32>)
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
    /// The nodes entered and not yet left.
    path: Vec<Node>,
    /// How many nodes were entered.
    next: usize,
}

impl Iterator for Walk<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if let Some(node) = self.order.node(self.next) {
            let parent = self.order.parents[node as usize];
            if node == ROOT || self.path.last() == Some(&parent) {
                self.next += 1;
                self.path.push(node);
                return Some(Step::Enter(node));
            }
        }
        self.path.pop().map(Step::Leave)
    }
}
