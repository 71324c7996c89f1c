//! What of a sample's thread stands at the root of its stack.

/// How threads are told apart, where a format knows them.
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
    #[cfg(feature = "recordings")]
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
            #[cfg(feature = "recordings")]
            Threads::Groups => {
                let group = crate::ops::NameRules::builtin().thread_group(unbracketed(name));
                Some(format!("[{group}]"))
            }
            _ => Some(format!("[{}]", unbracketed(name))),
        }
    }
}

#[cfg(feature = "recordings")]
fn each(name: &[u8], tid: i64) -> Vec<u8> {
    // What async-profiler calls a thread whose name it does not know.
    if name.starts_with(b"[tid=") {
        return name.to_vec();
    }
    let space: &[u8] = if name.is_empty() { b"" } else { b" " };
    [b"[", name, space, b"tid=", tid.to_string().as_bytes(), b"]"].concat()
}

fn unbracketed(name: &str) -> &str {
    let inside = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'));
    inside.unwrap_or(name)
}

#[cfg(all(test, feature = "recordings"))]
mod tests {
    use super::*;

    fn frame(threads: Threads, name: &str) -> Option<String> {
        let frame = threads.frame(name.as_bytes(), 7)?;
        Some(String::from_utf8(frame).unwrap())
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
