//! A smaller tree with exact totals: what is left out is shown as a frame of its own under each parent.

use std::cmp::Reverse;

use crate::ops::rebuild::Rebuild;
use crate::profile::{Error, Kind, Node, Profile, Result, ROOT};

/// How much of a tree is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Keep {
    /// Frames with at least this part of the whole (0 to 1) in any value.
    Share(f64),
    /// This many frames: those with the largest part of the whole in any value.
    Frames(usize),
}

/// Shares of a whole are compared in this fixed point.
pub(crate) const ONE: u64 = 1 << 63;

/// The name of the frame that stands for `count` frames left out.
fn remainder_name(count: u64) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("({count} smaller frame{plural})")
}

/// How many frames a name such as `(12 smaller frames)` stands for; none for any other name.
pub fn smaller_frames(name: &str) -> Option<u64> {
    let inside = name.strip_prefix('(')?.strip_suffix(')')?;
    let (count, words) = inside.split_once(' ')?;
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let known = matches!(words, "smaller frame" | "smaller frames");
    (is_number && known).then(|| count.parse().ok())?
}

impl Profile {
    /// The largest frames, and under each parent one frame `(N smaller frames)` with all that is left out
    /// below it: totals stay exact at every node. A frame is never left out alone, as the one in its place
    /// would be no smaller.
    pub fn pruned(&self, keep: Keep) -> Result<Profile> {
        let shares = self.largest_shares();
        let mut kept = match keep {
            Keep::Share(share) if (0.0..=1.0).contains(&share) => {
                let least = (share * ONE as f64) as u64;
                shares.iter().map(|&part| part >= least.max(1)).collect()
            }
            Keep::Share(share) => {
                return Err(Error::Usage(format!("{share}: a share is from 0 to 1")));
            }
            Keep::Frames(0) => return Err(Error::Usage("no frame is to be kept".to_string())),
            Keep::Frames(count) => largest(&shares, count),
        };
        kept[ROOT as usize] = true;
        Ok(self.with_remainders(&shares, &kept)?.0)
    }

    /// For each node the part its total is of the whole, in the value in which that is largest.
    fn largest_shares(&self) -> Vec<u64> {
        let mut largest = vec![0u64; self.tree.len()];
        for value in 0..self.values().len() {
            let totals = self.node_totals(value);
            let whole = (totals[0] as u128).max(1);
            for (largest, total) in largest.iter_mut().zip(totals) {
                *largest = (*largest).max((total as u128 * u128::from(ONE) / whole) as u64);
            }
        }
        largest
    }

    /// A copy of the nodes kept, with frames that stand for the others; and where each node went.
    pub(crate) fn with_remainders(
        &self,
        shares: &[u64],
        kept: &[bool],
    ) -> Result<(Profile, Vec<Node>)> {
        let left_out = LeftOut::of(self, shares, kept);
        let mut copy = Rebuild::of(self);
        let mut nodes = vec![ROOT; self.tree.len()];
        // For each host the frame that stands for what is left out below it, once it is made.
        let mut remainders = vec![ROOT; self.tree.len()];
        let mut origins = vec![Some(ROOT)];
        copy.add_selves(ROOT, ROOT)?;
        // Nodes without any value are dropped, not counted.
        for node in self.tree.nodes().filter(|&node| shares[node as usize] > 0) {
            let host = left_out.host(node);
            let parent = nodes[host as usize];
            let (new, origin) = if kept[node as usize] || !left_out.has_remainder(host) {
                (copy.child(parent, self.tree.frame(node))?, Some(node))
            } else {
                let remainder = &mut remainders[host as usize];
                if *remainder == ROOT {
                    let name = remainder_name(left_out.frames(host));
                    *remainder = copy.child_named(parent, &name, Kind::Plain)?;
                }
                (*remainder, None)
            };
            if new as usize == origins.len() {
                origins.push(origin);
            }
            nodes[node as usize] = new;
            copy.add_selves(node, new)?;
        }
        let mut pruned = copy.finish();
        pruned.tiers = self.tiers.as_ref().map(|tiers| tiers.taken_over(&origins));
        Ok((pruned, nodes))
    }
}

/// Where the nodes go that are left out.
struct LeftOut {
    /// For each node its nearest ancestor that is kept.
    host: Vec<Node>,
    /// For each that is, how many nodes are left out below it ...
    nodes: Vec<u32>,
    /// ... and how many frames these stand for: what was left out before counts as what it was.
    frames: Vec<u64>,
}

impl LeftOut {
    /// Nodes without a share are not counted.
    fn of(profile: &Profile, shares: &[u64], kept: &[bool]) -> LeftOut {
        let tree = &profile.tree;
        let counts = profile.frames.all().map(smaller_frames);
        let counts: Vec<u64> = counts.map(|count| count.unwrap_or(1)).collect();
        let mut out = LeftOut {
            host: vec![ROOT; tree.len()],
            nodes: vec![0; tree.len()],
            frames: vec![0; tree.len()],
        };
        for node in tree.nodes() {
            let parent = tree.parent(node) as usize;
            let host = if kept[parent] {
                parent as Node
            } else {
                out.host[parent]
            };
            out.host[node as usize] = host;
            if !kept[node as usize] && shares[node as usize] > 0 {
                out.nodes[host as usize] += 1;
                let frames = &mut out.frames[host as usize];
                *frames = frames.saturating_add(counts[tree.frame(node).name() as usize]);
            }
        }
        out
    }

    /// The nearest ancestor that is kept.
    fn host(&self, node: Node) -> Node {
        self.host[node as usize]
    }

    /// Whether a frame stands below it for what is left out: a node that is left out alone stays.
    fn has_remainder(&self, host: Node) -> bool {
        self.nodes[host as usize] > 1
    }

    /// How many frames are left out below it.
    fn frames(&self, host: Node) -> u64 {
        self.frames[host as usize]
    }
}

/// The nodes with the largest shares. A parent has no less than its children and a smaller number, so
/// it is never left out while they are kept.
pub(crate) fn largest(shares: &[u64], count: usize) -> Vec<bool> {
    let mut nodes: Vec<Node> = (1..shares.len() as Node).collect();
    let by_share = |&node: &Node| (Reverse(shares[node as usize]), node);
    if count < nodes.len() {
        nodes.select_nth_unstable_by_key(count, by_share);
        nodes.truncate(count);
    }
    let mut kept = vec![false; shares.len()];
    for node in nodes {
        kept[node as usize] = true;
    }
    kept
}
