//! What of a sample's thread stands at the root of its stack.

use crate::profile::{Kind, Node, Profile, Result, ROOT};

/// How threads are distinguished, where a format knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// Not at all.
    #[default]
    Off,
    /// Each has a frame `[name tid=N]`.
    Each,
    /// A group of threads has a frame `[canonical name]`: numbers in the name are `N`.
    Groups,
}

impl Threads {
    /// The root frame of a thread of this name and number; `None`: there is to be none.
    pub(crate) fn frame(self, name: &[u8], tid: i64) -> Option<Vec<u8>> {
        match self {
            Threads::Off => None,
            Threads::Each => Some(each(name, tid)),
            Threads::Groups => {
                let name = String::from_utf8_lossy(name);
                let group = match &*name {
                    "" => "unknown thread".to_string(),
                    name => crate::ops::NameRules::builtin().thread_group(unbracketed(name)),
                };
                Some(format!("[{group}]").into_bytes())
            }
        }
    }

    /// The root frame of a thread of which only a text is known, such as a label.
    pub(crate) fn frame_of_label(self, name: &str) -> Option<String> {
        match self {
            Threads::Off => None,
            Threads::Groups => {
                let group = crate::ops::NameRules::builtin().thread_group(unbracketed(name));
                Some(format!("[{group}]"))
            }
            _ => Some(format!("[{}]", unbracketed(name))),
        }
    }
}

fn each(name: &[u8], tid: i64) -> Vec<u8> {
    // What async-profiler calls a thread whose name it does not know.
    if name.starts_with(b"[tid=") {
        return name.to_vec();
    }
    let space: &[u8] = if name.is_empty() { b"" } else { b" " };
    [b"[", name, space, b"tid=", tid.to_string().as_bytes(), b"]"].concat()
}

fn unbracketed(name: &str) -> &str {
    thread_of(name).unwrap_or(name)
}

/// What a frame in brackets says: at the root of a stack, its thread.
pub(crate) fn thread_of(frame: &str) -> Option<&str> {
    frame.strip_prefix('[')?.strip_suffix(']')
}

impl Profile {
    /// The thread of a node that is an outermost frame in brackets. A frame with a kind is code; one without a name, or
    /// with brackets within the brackets, would be another when it is read as a label.
    pub(crate) fn thread_at(&self, node: Node) -> Option<&str> {
        let outermost = node != ROOT && self.tree.parent(node) == ROOT;
        let frame = outermost.then(|| self.tree.frame(node))?;
        let name = (frame.kind() == Kind::Plain).then(|| self.frames.name_of(frame))?;
        thread_of(name).filter(|thread| !thread.is_empty() && thread_of(thread).is_none())
    }

    /// How many outermost frames are in brackets: they name threads.
    pub fn thread_count(&self) -> usize {
        let nodes = self.tree.nodes();
        nodes.filter(|&node| self.thread_at(node).is_some()).count()
    }

    /// The stacks without the outermost frame where that is in brackets, which names a thread.
    pub fn without_threads(&self) -> Result<Profile> {
        let (copy, _) = self.mapped(|copy, node, parent| match self.thread_at(node) {
            Some(_) => Ok(parent),
            None => copy.child(parent, self.tree.frame(node)),
        })?;
        Ok(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(threads: Threads, name: &str) -> Option<String> {
        let frame = threads.frame(name.as_bytes(), 7)?;
        Some(String::from_utf8(frame).unwrap())
    }

    #[test]
    fn stacks_without_threads_add_up() {
        let mut profile = Profile::new(vec![crate::profile::ValueType::samples()]);
        for (stack, samples) in [
            (&["[a]", "x", "[libc.so]"][..], 1),
            (&["[b]", "x", "[libc.so]"], 20),
            (&["[b]"], 300),
            (&["x"], 4000),
        ] {
            profile.add_stack(stack, &[samples]).unwrap();
        }
        let mut folded = Vec::new();
        let plain = profile.without_threads().unwrap();
        plain.write_folded(&mut folded, 0, true).unwrap();
        assert_eq!(
            String::from_utf8(folded).unwrap(),
            " 300\nx 4000\nx;[libc.so] 21\n"
        );
        assert_eq!(plain.total(0).unwrap(), 4321);
    }

    #[test]
    fn threads_alone_and_in_groups() {
        assert_eq!(frame(Threads::Off, "main"), None);
        for (name, each, group) in [
            (
                "pool-1-thread-12",
                "[pool-1-thread-12 tid=7]",
                "[pool-N-thread-N]",
            ),
            ("", "[tid=7]", "[unknown thread]"),
            ("[tid=99]", "[tid=99]", "[tid=N]"),
        ] {
            assert_eq!(frame(Threads::Each, name).as_deref(), Some(each));
            assert_eq!(frame(Threads::Groups, name).as_deref(), Some(group));
        }
    }
}
