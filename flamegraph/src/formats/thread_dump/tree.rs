//! The call tree of threads: what each of them waits for, and its stack.

use std::borrow::Cow;

use foldhash::HashMap;

use crate::formats::stack::Stack;
use crate::ops::waits::{wait_of, waits_idly, Wait, WaitFrame};
use crate::ops::NameRules;
use crate::profile::{Frame, Kind, Limits, Node, Profile, Result, ValueType};

use super::places::Places;
use super::thread::{Thread, RUNNING};

/// What stands above the functions of a thread of Python that does not run.
const PYTHON_WAITS: &str = "[waiting]";
/// A thread that runs, of which no stack is known.
const NO_STACK: &str = "[unknown]";
/// The value: a thread counts once.
const THREADS: &str = "threads";

pub(super) struct Tree {
    pub(super) profile: Profile,
    /// How places are called in the tree, and what they say of waits; by their numbers.
    known: HashMap<u32, (Frame, WaitFrame)>,
    path: Vec<Frame>,
    ends: Vec<WaitFrame>,
    last: Stack,
    /// How names are made canonical, if they are.
    rules: Option<&'static NameRules>,
}

impl Tree {
    pub(super) fn new(limits: &Limits) -> Tree {
        let values = vec![ValueType::new(THREADS, "count")];
        Tree {
            profile: Profile::bounded(values, limits.cells),
            known: HashMap::default(),
            path: Vec::new(),
            ends: Vec::new(),
            last: Stack::default(),
            rules: None,
        }
    }

    /// A tree of canonical names: lambdas and such are numbered anew in each JVM.
    pub(super) fn canonical(limits: &Limits) -> Tree {
        Tree {
            rules: Some(NameRules::builtin()),
            ..Tree::new(limits)
        }
    }

    /// The node of a thread's stack, below `root` if that is given.
    pub(super) fn node(
        &mut self,
        places: &Places,
        thread: &Thread,
        root: Option<&[u8]>,
    ) -> Result<Node> {
        self.path.clear();
        self.ends.clear();
        for &number in &thread.places {
            let (frame, wait) = self.frame(places, number)?;
            self.path.push(frame);
            self.ends.push(wait);
        }
        if let Some(wait) = self.wait(thread) {
            self.path.push(self.profile.frames.intern(wait.as_bytes())?);
        }
        if let Some(root) = root {
            let name = self.profile.frames.intern_name(root)?;
            self.path.push(Frame::new(name, Kind::Plain));
        }
        let frames = self.path.iter().rev().copied();
        self.last.leaf(&mut self.profile, frames)
    }

    /// What is said above the stack: what a thread waits for.
    fn wait(&mut self, thread: &Thread) -> Option<&'static str> {
        let waits = ["WAITING", "TIMED_WAITING"].contains(&thread.state);
        if thread.state == "BLOCKED" {
            return Some(Wait::Lock.frame());
        }
        if thread.places.is_empty() {
            return Some(match thread.state {
                RUNNING => NO_STACK,
                _ => Wait::Idle.frame(),
            });
        }
        if !thread.of_python {
            return match waits {
                true => Some(match wait_of(&self.ends) {
                    // The kernel's futex: it may be a lock or a condition.
                    Wait::Lock => Wait::Condition.frame(),
                    wait => wait.frame(),
                }),
                false => waits_idly(&self.ends).then(|| Wait::Idle.frame()),
            };
        }
        if !waits {
            return None;
        }
        self.ends.push(WaitFrame::of(PYTHON_WAITS, Kind::Plain));
        Some(match waits_idly(&self.ends) {
            true => Wait::Idle.frame(),
            false => PYTHON_WAITS,
        })
    }

    fn frame(&mut self, places: &Places, number: u32) -> Result<(Frame, WaitFrame)> {
        if let Some(&known) = self.known.get(&number) {
            return Ok(known);
        }
        let place = places.get(number);
        let name = match self.rules {
            Some(rules) => rules.canonical(&place.name),
            None => Cow::Borrowed(&*place.name),
        };
        let number_of_name = self.profile.frames.intern_name(name.as_bytes())?;
        let known = (
            Frame::new(number_of_name, place.kind),
            WaitFrame::of(&name, place.kind),
        );
        self.known.insert(number, known);
        Ok(known)
    }
}
