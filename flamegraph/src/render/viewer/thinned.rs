//! The union without its thinnest subtrees: made in one pass, in order, and nothing is looked up.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::ops::prune::{remainder_name, LeftOut};
use crate::profile::{Frame, Frames, Kind, Node, Nodes, Profile, Result, Tree, ROOT};

/// A copy of the nodes that are kept, with frames that stand for the others, and for each node the one it went to.
///
/// The nodes stand in order, as those of the copy do. Those without a share are dropped. A node that is kept has a
/// parent that is, and stands for no others.
pub(super) fn thinned(
    union: &Profile,
    shares: &[u64],
    kept: &[bool],
) -> Result<(Profile, Vec<Node>)> {
    let left_out = LeftOut::of(union, shares, kept);
    let stays = |node: Node| {
        let place = node as usize;
        shares[place] > 0 && (kept[place] || !left_out.has_remainder(left_out.host(node)))
    };
    let stays: Vec<bool> = (0..union.tree.len() as Node).map(stays).collect();
    let names = Names::of(union, &stays, &left_out)?;
    let mut copy = Builder::of(union, &left_out, &names);
    for node in union.tree.nodes().filter(|&node| stays[node as usize]) {
        copy.take(node);
    }
    copy.close_above(0);
    for node in union.tree.nodes().filter(|&node| !stays[node as usize]) {
        copy.went[node as usize] = copy.remainders[left_out.host(node) as usize];
    }
    let (tree, went) = (Tree::of(copy.parents, copy.frames), copy.went);
    let mut thinned = Profile::new(Vec::new());
    thinned.modules = union.modules.clone();
    thinned.set_nodes(Nodes {
        frames: names.frames,
        tree,
        columns: Vec::new(),
    });
    Ok((thinned, went))
}

/// The copy's names, in byte order.
struct Names {
    frames: Frames,
    /// For each name of the union that is still needed its number here.
    numbers: Vec<u32>,
    /// Those of the frames that stand for so many others.
    remainders: HashMap<u64, u32, RandomState>,
}

impl Names {
    fn of(union: &Profile, stays: &[bool], left_out: &LeftOut) -> Result<Names> {
        let mut names = Names {
            frames: Frames::default(),
            numbers: vec![0; union.frames.len()],
            remainders: HashMap::default(),
        };
        let mut used = vec![false; union.frames.len()];
        for node in union.tree.nodes().filter(|&node| stays[node as usize]) {
            used[union.tree.frame(node).name() as usize] = true;
        }
        let hosts = (0..stays.len() as Node).filter(|&host| left_out.has_remainder(host));
        for host in hosts {
            names.remainders.insert(left_out.frames(host), 0);
        }
        let counts = names.remainders.keys();
        let mut made: Vec<(String, u64)> = counts.map(|&n| (remainder_name(n), n)).collect();
        made.sort_unstable();
        let mut made = made.into_iter().peekable();
        for (number, name) in union.frames.all().enumerate().filter(|&(n, _)| used[n]) {
            while let Some(before) = made.next_if(|(made, _)| made.as_str() < name) {
                names.push_remainder(before)?;
            }
            names.numbers[number] = match made.next_if(|(made, _)| made == name) {
                Some(same) => names.push_remainder(same)?,
                None => names.frames.push_name(name)?,
            };
        }
        for behind in made {
            names.push_remainder(behind)?;
        }
        Ok(names)
    }

    fn push_remainder(&mut self, (name, count): (String, u64)) -> Result<u32> {
        let number = self.frames.push_name(&name)?;
        self.remainders.insert(count, number);
        Ok(number)
    }
}

/// A node whose descendants are being taken.
struct Open {
    node: Node,
    copy: Node,
    /// The frame that stands for what is left out below it, until it has its place among the children.
    remainder: Option<Frame>,
}

/// The copy in the making.
struct Builder<'a> {
    union: &'a Profile,
    left_out: &'a LeftOut,
    names: &'a Names,
    parents: Vec<Node>,
    frames: Vec<Frame>,
    /// Where each of the union's nodes went.
    went: Vec<Node>,
    /// Where what is left out below each went.
    remainders: Vec<Node>,
    path: Vec<Open>,
}

impl<'a> Builder<'a> {
    fn of(union: &'a Profile, left_out: &'a LeftOut, names: &'a Names) -> Builder<'a> {
        let mut copy = Builder {
            union,
            left_out,
            names,
            parents: vec![ROOT],
            frames: vec![Frame::ROOT],
            went: vec![ROOT; union.tree.len()],
            remainders: vec![ROOT; union.tree.len()],
            path: Vec::new(),
        };
        copy.open(ROOT, ROOT);
        copy
    }

    /// Takes the next node that stays.
    fn take(&mut self, node: Node) {
        let (parent, frame) = (self.union.tree.parent(node), self.union.tree.frame(node));
        let depth = self.path.iter().rposition(|open| open.node == parent);
        self.close_above(depth.map_or(0, |depth| depth + 1));
        let number = self.names.numbers[frame.name() as usize];
        let frame = Frame::new(number, frame.kind());
        let top = self.path.len() - 1;
        self.put_remainder(top, |remainder| remainder < frame);
        let copy = self.push(self.path[top].copy, frame);
        self.went[node as usize] = copy;
        self.open(node, copy);
    }

    fn open(&mut self, node: Node, copy: Node) {
        let remainder = self.left_out.has_remainder(node).then(|| {
            let name = self.names.remainders[&self.left_out.frames(node)];
            Frame::new(name, Kind::Plain)
        });
        self.path.push(Open {
            node,
            copy,
            remainder,
        });
    }

    /// Leaves all nodes of the path but so many.
    fn close_above(&mut self, depth: usize) {
        while self.path.len() > depth {
            self.put_remainder(self.path.len() - 1, |_| true);
            self.path.pop();
        }
    }

    /// Puts what stands for the rest below a node of the path behind its children so far, if it is its turn.
    fn put_remainder(&mut self, depth: usize, is_its_turn: impl Fn(Frame) -> bool) {
        let open = &mut self.path[depth];
        let (node, copy) = (open.node, open.copy);
        if open.remainder.is_some_and(is_its_turn) {
            if let Some(frame) = open.remainder.take() {
                self.remainders[node as usize] = self.push(copy, frame);
            }
        }
    }

    fn push(&mut self, parent: Node, frame: Frame) -> Node {
        self.parents.push(parent);
        self.frames.push(frame);
        self.parents.len() as Node - 1
    }
}
