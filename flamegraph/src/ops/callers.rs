//! Stacks whose callers are not known, or not for sure.

use crate::ops::rebuild::Rebuild;
use crate::ops::waits::WAIT_FRAMES;
use crate::profile::{Kind, Node, Profile, Result, ROOT};

/// The frame of stacks that have lost their callers.
pub const BROKEN_STACKS: &str = "(broken stacks)";

impl Profile {
    /// Each stack without its callers: below its thread, what it waits for and [`BROKEN_STACKS`] it keeps its innermost
    /// frame outside of the kernel, and the kernel's frames below that.
    pub fn without_callers(&self) -> Result<Profile> {
        let mut copy = Rebuild::of(self);
        copy.add_selves(ROOT, ROOT)?;
        let heads = self.threads_and_waits();
        // Where each head is in the copy.
        let mut begins = vec![ROOT; self.tree.len()];
        let mut kept = Vec::new();
        for node in self.tree.nodes() {
            let (parent, head) = (self.tree.parent(node), heads[node as usize]);
            if head == node {
                begins[node as usize] =
                    copy.child(begins[parent as usize], self.tree.frame(node))?;
            }
            if !self.has_self(node) {
                continue;
            }
            kept.clear();
            let mut next = node;
            while next != head {
                kept.push(next);
                let in_kernel = self.tree.frame(next).kind() == Kind::Kernel;
                next = if in_kernel {
                    self.tree.parent(next)
                } else {
                    head
                };
            }
            let begin = begins[head as usize];
            let mut to = copy.child_named(begin, BROKEN_STACKS, Kind::Plain)?;
            for &node in kept.iter().rev() {
                to = copy.child(to, self.tree.frame(node))?;
            }
            copy.add_selves(node, to)?;
        }
        Ok(copy.finish())
    }

    /// For each node its thread, or what that waits for, if stacks begin with it; else the root.
    pub(crate) fn threads_and_waits(&self) -> Vec<Node> {
        let mut heads = vec![ROOT; self.tree.len()];
        for node in self.tree.nodes() {
            let parent = self.tree.parent(node);
            let above = heads[parent as usize];
            let name = self.frames.name_of(self.tree.frame(node));
            let waits = above == parent && WAIT_FRAMES.contains(&name);
            heads[node as usize] = match self.thread_at(node).is_some() || waits {
                true => node,
                false => above,
            };
        }
        heads
    }

    /// What stacks cost whose innermost Java frame may be wrong.
    pub fn unsure_callers(&self, value: usize) -> i64 {
        let mut unsure = vec![false; self.tree.len()];
        let mut sum = 0;
        for node in self.tree.nodes() {
            let above = unsure[self.tree.parent(node) as usize];
            unsure[node as usize] = above || self.has_unsure_caller(node);
            if unsure[node as usize] {
                sum += self.selves(value)[node as usize];
            }
        }
        sum
    }

    /// Whether a node is code that a compiled Java method enters without a safepoint. A native method looks the same,
    /// unless the Java frame was inlined, which native methods are not.
    pub(crate) fn has_unsure_caller(&self, node: Node) -> bool {
        let frame = self.tree.frame(node);
        let parent = self.tree.parent(node);
        let caller = match parent {
            ROOT => return false,
            _ => self.tree.frame(parent).kind(),
        };
        let name = self.frames.name_of(frame);
        match (caller, frame.kind()) {
            (Kind::C1 | Kind::Jit | Kind::Inlined, Kind::Kernel) => true,
            (Kind::C1 | Kind::Jit, Kind::Plain) => is_leaf(name) && !is_entry(name),
            (Kind::Inlined, Kind::Plain) => !is_entry(name),
            _ => false,
        }
    }
}

/// Parts of the names of HotSpot's stubs, and of its functions that compiled code calls.
const LEAVES: [&str; 16] = [
    "::",
    "arraycopy",
    "_fill",
    "implCompress",
    "aescrypt",
    "AESCrypt",
    "ghash",
    "base64_",
    "updateBytes",
    "ToLen",
    "mulAdd",
    "montgomery",
    "poly1305",
    "chacha20",
    "vectorizedMismatch",
    "StubRoutines",
];

fn is_leaf(name: &str) -> bool {
    LEAVES.iter().any(|part| name.contains(part))
}

/// The JVM's entries, and interpreted code, are called at safepoints, where the callers are known.
fn is_entry(name: &str) -> bool {
    name.ends_with("_Java") || name.contains("Runtime") || name == "Interpreter"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(stacks: &[(&str, i64)], make: fn(&Profile) -> Result<Profile>) -> String {
        let mut profile = Profile::new(vec![crate::profile::ValueType::samples()]);
        for (stack, samples) in stacks {
            let frames: Vec<&str> = stack.split(';').collect();
            profile.add_stack(&frames, &[*samples]).unwrap();
        }
        let mut folded = Vec::new();
        let made = make(&profile).unwrap();
        made.write_folded(&mut folded, 0, true).unwrap();
        String::from_utf8(folded).unwrap()
    }

    #[test]
    fn broken_stacks_keep_what_ran() {
        let stacks = [
            ("[T];wrong;a/B.run_[j];f", 1),
            ("[T];f", 2),
            ("[T];[lock];wrong;read;sys_read_[k];vfs_read_[k]", 3),
            ("[T];[libc.so];f", 4),
            ("[T];[libc.so]", 5),
            ("[T];irq_[k]", 6),
            ("[T]", 7),
            ("wrong;f", 8),
        ];
        assert_eq!(
            made(&stacks, Profile::without_callers),
            "(broken stacks);f 8
[T];(broken stacks) 7
[T];(broken stacks);[libc.so] 5
[T];(broken stacks);f 7
[T];(broken stacks);irq_[k] 6
[T];[lock];(broken stacks);read;sys_read_[k];vfs_read_[k] 3
"
        );
    }

    #[test]
    fn code_below_compiled_methods_has_no_sure_caller() {
        let stacks = [
            ("[T];a/B.run_[j];a/B.f_[i];new_intrinsic;x", 1),
            ("[T];a/B.run_[j];md5_implCompressMB", 10),
            ("[T];a/B.run_[j];os::javaTimeNanos;vdso", 20),
            (
                "[T];a/B.run_[j];java/util/zip/Deflater.deflate_[j];Java_deflate",
                30,
            ),
            ("[T];a/B.run_[1];irq_[k]", 2),
            ("[T];a/B.run_[j];_new_array_Java;slow", 3),
            ("[T];a/B.run_[0];md5", 4),
            ("[T];a/B.run_[j];a/B.f_[i]", 5),
            ("[T];start_thread;md5", 6),
        ];
        made(&stacks, |profile| {
            assert_eq!(profile.unsure_callers(0), 33);
            Ok(profile.clone())
        });
    }
}
