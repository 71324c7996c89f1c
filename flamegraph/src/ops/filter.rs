//! Some stacks of a profile, by regular expressions on their frames.

use crate::ops::pattern::Pattern;
use crate::ops::rebuild::Rebuild;
use crate::profile::{Kind, Node, Profile, Result, ROOT};

impl Profile {
    /// The stacks with a frame in which any of the patterns is found. With those of
    /// [`excluding`](Profile::excluding) they are all stacks, each once.
    pub fn including(&self, patterns: &[Pattern]) -> Result<Profile> {
        let reached = self.reached(patterns);
        self.replanted(|node| reached[node as usize], |node| self.tree.parent(node))
    }

    /// The stacks without such a frame.
    pub fn excluding(&self, patterns: &[Pattern]) -> Result<Profile> {
        let reached = self.reached(patterns);
        self.replanted(
            |node| !reached[node as usize],
            |node| self.tree.parent(node),
        )
    }

    /// The stacks through a frame. With `callers` they stay whole, as
    /// pprof's `focus` leaves them; without, they start at the outermost such frame, as with pprof's `show_from`.
    pub fn focused(&self, pattern: &Pattern, callers: bool) -> Result<Profile> {
        let reached = self.reached(std::slice::from_ref(pattern));
        let keeps = |node: Node| reached[node as usize];
        self.replanted(keeps, |node| {
            if callers {
                self.tree.parent(node)
            } else {
                self.cut(&reached, node, ROOT)
            }
        })
    }

    /// All stacks, without what is above the outermost frame in which the pattern is found. Stacks
    /// without such a frame stay as they are, so totals never change.
    pub fn trimmed(&self, pattern: &Pattern) -> Result<Profile> {
        let reached = self.reached(std::slice::from_ref(pattern));
        self.replanted(|_| true, |node| self.cut(&reached, node, ROOT))
    }

    /// The stacks through a frame in which any of the patterns is found, from the outermost such frame on. Frames
    /// in brackets at the root, which name threads and waits, stay above it.
    pub fn below(&self, patterns: &[Pattern]) -> Result<Profile> {
        let reached = self.reached(patterns);
        let heads = self.heads();
        self.replanted(
            |node| reached[node as usize],
            |node| self.cut(&reached, node, heads[self.tree.parent(node) as usize]),
        )
    }

    /// All stacks, without the innermost frames as long as a pattern is found in them or, with `kernel`, they are the
    /// kernel's: what they cost is their caller's. A stack of nothing else keeps its outermost frame, and
    /// frames in brackets at the root stay, so totals never change.
    pub fn into_callers(&self, patterns: &[Pattern], kernel: bool) -> Result<Profile> {
        let means = self.named_by(patterns);
        let heads = self.heads();
        let mut ends: Vec<Node> = (0..self.tree.len() as Node).collect();
        for node in self.tree.nodes() {
            let (frame, parent) = (self.tree.frame(node), self.tree.parent(node));
            let goes = means[frame.name() as usize] || kernel && frame.kind() == Kind::Kernel;
            if goes && heads[parent as usize] != parent {
                ends[node as usize] = ends[parent as usize];
            }
        }
        self.ending_at(&ends)
    }

    /// A copy whose stacks end in the nodes given for each, which are on the way to it.
    fn ending_at(&self, ends: &[Node]) -> Result<Profile> {
        let mut is_end = vec![false; self.tree.len()];
        for node in self.tree.nodes().filter(|&node| self.has_self(node)) {
            is_end[ends[node as usize] as usize] = true;
        }
        let mut copy = Rebuild::of(self);
        let nodes = self.copy_paths(&mut copy, |node| is_end[node as usize])?;
        for (node, &end) in (0..).zip(ends) {
            copy.add_selves(node, nodes[end as usize])?;
        }
        Ok(copy.finish())
    }

    /// For each node the last of the bracketed frames that its stack begins with; the root where there is none.
    fn heads(&self) -> Vec<Node> {
        let mut heads = vec![ROOT; self.tree.len()];
        for node in self.tree.nodes() {
            let parent = self.tree.parent(node);
            let name = self.frames.name_of(self.tree.frame(node));
            let bracketed = name.starts_with('[') && name.ends_with(']');
            let is_head =
                heads[parent as usize] == parent && bracketed && !name.starts_with("[unknown");
            heads[node as usize] = if is_head {
                node
            } else {
                heads[parent as usize]
            };
        }
        heads
    }

    /// What a node goes under: its parent, or `top` if the node is the outermost of the frames reached.
    fn cut(&self, reached: &[bool], node: Node, top: Node) -> Node {
        let parent = self.tree.parent(node);
        if reached[node as usize] && !reached[parent as usize] {
            top
        } else {
            parent
        }
    }

    /// A copy of the stacks that end in nodes for which `keeps` holds. Each node goes under the one that `above`
    /// names: its parent, or another that is above it.
    pub(crate) fn replanted(
        &self,
        keeps: impl Fn(Node) -> bool,
        above: impl Fn(Node) -> Node,
    ) -> Result<Profile> {
        let needed = self.needed(|node| keeps(node) && self.has_self(node), &above);
        let mut copy = Rebuild::of(self);
        let mut nodes = vec![ROOT; self.tree.len()];
        if keeps(ROOT) {
            copy.add_selves(ROOT, ROOT)?;
        }
        for node in self.tree.nodes().filter(|&node| needed[node as usize]) {
            let parent = nodes[above(node) as usize];
            nodes[node as usize] = copy.child(parent, self.tree.frame(node))?;
            if keeps(node) {
                copy.add_selves(node, nodes[node as usize])?;
            }
        }
        Ok(copy.finish())
    }
}
