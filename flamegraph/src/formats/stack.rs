//! Adding stack after stack to a tree: callers that two in a row share are found without a look-up.

use crate::profile::{Frame, Node, Profile, Result, ROOT};

/// The stack added last.
#[derive(Default)]
pub(crate) struct Stack {
    path: Vec<(Frame, Node)>,
}

impl Stack {
    /// The node of the last of these frames, which come root first; made if there is none.
    pub(crate) fn leaf(
        &mut self,
        profile: &mut Profile,
        frames: impl Iterator<Item = Frame>,
    ) -> Result<Node> {
        let (mut depth, mut shared) = (0, true);
        for frame in frames {
            shared = shared
                && self
                    .path
                    .get(depth)
                    .is_some_and(|&(before, _)| before == frame);
            if !shared {
                self.path.truncate(depth);
                let parent = self.path.last().map_or(ROOT, |&(_, node)| node);
                self.path.push((frame, profile.child(parent, frame)?));
            }
            depth += 1;
        }
        self.path.truncate(depth);
        Ok(self.path.last().map_or(ROOT, |&(_, node)| node))
    }
}
