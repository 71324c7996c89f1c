//! The reverse call tree: stacks from the leaf to the root.

use crate::ops::rebuild::Rebuild;
use crate::profile::{Limits, Profile, Result, ROOT};

impl Profile {
    /// Every stack turned round, the leaf first. Inverted twice it has the same stacks as before.
    ///
    /// A reverse tree can have as many nodes as all stacks together have frames; more than a reader would
    /// accept are an error.
    pub fn inverted(&self) -> Result<Profile> {
        let own_cells = self.tree.len() * self.values().len();
        self.inverted_within(Limits::default().cells.max(own_cells))
    }

    fn inverted_within(&self, cells: usize) -> Result<Profile> {
        let values = self.values().to_vec();
        let mut copy = Rebuild::with(self, Profile::bounded(values, cells));
        copy.add_selves(ROOT, ROOT)?;
        for end in self.tree.nodes().filter(|&node| self.has_self(node)) {
            let (mut frame, mut node) = (end, ROOT);
            while frame != ROOT {
                node = copy.child(node, self.tree.frame(frame))?;
                frame = self.tree.parent(frame);
            }
            copy.add_selves(end, node)?;
        }
        Ok(copy.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::ValueType;

    #[test]
    fn a_reverse_tree_that_explodes_is_an_error() {
        // Each of 100 nested frames has samples of its own: 5,050 nodes when reversed.
        let mut profile = Profile::new(vec![ValueType::samples()]);
        let stack: Vec<String> = (0..100).map(|depth| format!("f{depth}")).collect();
        for depth in 1..=stack.len() {
            profile.add_stack(&stack[..depth], &[1]).unwrap();
        }
        assert_eq!(profile.inverted_within(5051).unwrap().node_count(), 5050);
        let error = profile.inverted_within(5000).err().unwrap().to_string();
        assert_eq!(error, "nodes of the call tree: more than 5000");
    }
}
