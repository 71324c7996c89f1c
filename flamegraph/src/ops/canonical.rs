//! Canonical names: what is numbered anew in every JVM gets one name, by a file of rules.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::profile::{Error, Node, Profile, Result, ROOT};

/// A rule that would make a name longer leaves it as it is: rules of which each adds to what the one before it
/// added would never end.
const LONGEST: usize = 4096;
/// Bytes that one rule's pattern may take, compiled: a hundred of `\w` are more.
const MOST_COMPILED: usize = 1 << 20;
/// Most names that a thread remembers.
const MOST_REMEMBERED: usize = 100_000;

thread_local! {
    /// Names that the built-in rules leave alone: the processes of a job have most of them in common.
    static LEFT_ALONE: RefCell<HashSet<String, RandomState>> = RefCell::default();
}

/// How names are made canonical; `names.rules` in this folder shows how such a file is written.
#[derive(Clone, Debug, Default)]
pub struct NameRules {
    names: Vec<Rule>,
    /// All patterns of `names` at once: most names match none.
    any_name: RegexSet,
    threads: Vec<Rule>,
    modules: Vec<Rule>,
}

#[derive(Clone, Debug)]
struct Rule {
    pattern: Regex,
    replacement: String,
}

impl NameRules {
    /// The rules that come with the library: lambdas, method handles, accessors, proxies, hidden classes,
    /// numbers of threads and tasks.
    pub fn builtin() -> &'static NameRules {
        static BUILTIN: OnceLock<NameRules> = OnceLock::new();
        // A test holds that the file has no mistake.
        BUILTIN.get_or_init(|| NameRules::parse(include_str!("names.rules")).unwrap_or_default())
    }

    /// Reads a file of rules; what is wrong is said with its line.
    pub fn parse(text: &str) -> Result<NameRules> {
        let mut rules = NameRules::default();
        let mut section: Option<fn(&mut NameRules) -> &mut Vec<Rule>> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let wrong =
                |reason: String| Error::Usage(format!("name rules, line {number}: {reason}"));
            match line.trim() {
                "" => {}
                comment if comment.starts_with('#') => {}
                "[names]" => section = Some(|rules| &mut rules.names),
                "[threads]" => section = Some(|rules| &mut rules.threads),
                "[modules]" => section = Some(|rules| &mut rules.modules),
                rule => {
                    let rule = Rule::parse(rule).map_err(wrong)?;
                    let section = section.ok_or_else(|| {
                        wrong("it stands before [names], [threads] and [modules]".to_string())
                    })?;
                    section(&mut rules).push(rule);
                }
            }
        }
        let patterns = rules.names.iter().map(|rule| rule.pattern.as_str());
        let mut any = RegexSetBuilder::new(patterns);
        let any = any
            .size_limit(MOST_COMPILED * rules.names.len().max(1))
            .build();
        rules.any_name = any.map_err(|error| Error::Usage(format!("name rules: {error}")))?;
        Ok(rules)
    }

    /// What threads of this name and of others like it are called together: `pool-3-thread-12` is `pool-N-thread-N`.
    pub fn thread_group(&self, name: &str) -> String {
        replaced(&self.threads, name).into_owned()
    }

    /// The canonical form of a name; most names are left alone.
    pub fn canonical<'a>(&self, name: &'a str) -> Cow<'a, str> {
        match thread_name(name) {
            Some(thread) => Cow::Owned(format!("[{}]", replaced(&self.threads, thread))),
            None if self.leaves_alone(name) => Cow::Borrowed(name),
            None => replaced(&self.names, name),
        }
    }

    fn leaves_alone(&self, name: &str) -> bool {
        let alone = || !self.any_name.is_match(name);
        if !std::ptr::eq(self, NameRules::builtin()) {
            return alone();
        }
        LEFT_ALONE.with_borrow_mut(|known| {
            known.contains(name) || {
                let alone = alone();
                if alone && known.len() < MOST_REMEMBERED {
                    known.insert(name.to_owned());
                }
                alone
            }
        })
    }
}

impl Rule {
    fn parse(line: &str) -> std::result::Result<Rule, String> {
        let (pattern, replacement) = line
            .split_once(" =>")
            .ok_or("a rule is written REGEX => REPLACEMENT")?;
        let pattern = RegexBuilder::new(pattern.trim())
            .size_limit(MOST_COMPILED)
            .build();
        Ok(Rule {
            pattern: pattern.map_err(|error| error.to_string())?,
            replacement: replacement.trim().to_string(),
        })
    }
}

fn replaced<'a>(rules: &[Rule], name: &'a str) -> Cow<'a, str> {
    let mut name = Cow::Borrowed(name);
    for rule in rules {
        match rule.pattern.replace_all(&name, rule.replacement.as_str()) {
            Cow::Owned(changed) if changed.len() <= LONGEST.max(name.len()) => {
                name = Cow::Owned(changed);
            }
            _ => {}
        }
    }
    name
}

/// The thread's name of a frame `[name tid=N]`.
fn thread_name(frame: &str) -> Option<&str> {
    let inside = frame.strip_prefix('[')?.strip_suffix(']')?;
    let (name, id) = inside.rsplit_once(" tid=")?;
    (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

impl Profile {
    /// The same profile with canonical names, so that profiles of different JVMs merge; totals do not change.
    /// What was renamed is remembered: see [`raw_names`](Profile::raw_names).
    pub fn canonical(&self, rules: &NameRules) -> Result<Profile> {
        let renames = self.renames(|name| rules.canonical(name));
        let mut renamed = self.renamed(&renames, |_| true)?;
        if !rules.modules.is_empty() {
            let canonical = |module| replaced(&rules.modules, module);
            renamed.modules = renamed.modules.renamed(canonical);
        }
        Ok(renamed)
    }

    /// The stacks under groups of threads: a thread frame `[pool-1-thread-7 tid=4711]` at the root becomes
    /// `[pool-N-thread-N]`. An error where no stack starts with a thread frame.
    pub fn by_thread_group(&self, rules: &NameRules) -> Result<Profile> {
        let renames = self.renames(|name| match thread_name(name) {
            Some(_) => rules.canonical(name),
            None => Cow::Borrowed(name),
        });
        let is_top = |node: Node| self.tree.parent(node) == ROOT;
        let is_thread = |node: Node| renames[self.tree.frame(node).name() as usize].is_some();
        let mut nodes = self.tree.nodes();
        if !self.is_empty() && !nodes.any(|node| is_top(node) && is_thread(node)) {
            return Err(Error::Usage(
                "no stack starts with a thread frame [name tid=N]".to_string(),
            ));
        }
        self.renamed(&renames, is_top)
    }

    /// What each name becomes; none for those that stay.
    fn renames<'a>(&'a self, rename: impl Fn(&'a str) -> Cow<'a, str>) -> Vec<Option<String>> {
        let names = (0..self.frames.len() as u32).map(|name| self.frames.name(name));
        names
            .map(|name| match rename(name) {
                Cow::Owned(new) if new != name => Some(new),
                _ => None,
            })
            .collect()
    }

    fn renamed(&self, renames: &[Option<String>], at: impl Fn(Node) -> bool) -> Result<Profile> {
        if renames.iter().all(Option::is_none) {
            return Ok(self.clone());
        }
        let (mut renamed, _) = self.mapped(|copy, node, parent| {
            let frame = self.tree.frame(node);
            match &renames[frame.name() as usize] {
                Some(name) if at(node) => copy.child_named(parent, name, frame.kind()),
                _ => copy.child(parent, frame),
            }
        })?;
        for (name, new) in (0..).zip(renames) {
            if let Some(new) = new {
                let raw = self.frames.name(name);
                renamed.raw_names.insert(new, raw);
                renamed.modules.copy(new, &self.modules, raw);
            }
        }
        Ok(renamed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_groups() {
        let group = |name: &str| NameRules::builtin().thread_group(name);
        for (name, expected) in [
            ("main", "main"),
            ("pool-3-thread-12", "pool-N-thread-N"),
            (
                "Executor task launch worker for task 3.0 in stage 1.0 (TID 5)",
                "Executor task launch worker",
            ),
            (
                "Executor task launch worker for task 12",
                "Executor task launch worker",
            ),
            (
                "Executor task launch worker-7",
                "Executor task launch worker-N",
            ),
            ("GC Thread#3", "GC Thread#N"),
            ("G1 Conc#0", "G1 Conc#N"),
            ("C2 CompilerThread0", "C2 CompilerThreadN"),
            ("qtp12345-67", "qtpN-N"),
            (
                "qtp1186339926-31-acceptor-0@2c4a1d1f-ServerConnector@6c3708b3{HTTP/1.1}",
                "qtpN-N-acceptor-N@N-ServerConnector@N{HTTP/N.N}",
            ),
            ("ForkJoinPool-1-worker-3", "ForkJoinPool-N-worker-N"),
            (
                "ForkJoinPool.commonPool-worker-3",
                "ForkJoinPool.commonPool-worker-N",
            ),
            ("shuffle-server-4-1", "shuffle-server-N-N"),
            (
                "IPC Server handler 7 on default port 8020",
                "IPC Server handler N on default port N",
            ),
            ("dispatcher-event-loop-3", "dispatcher-event-loop-N"),
            (
                "DataXceiver for client at /10.0.0.7:51234",
                "DataXceiver for client at /N.N.N.N:N",
            ),
            ("task-0b9c5e0e-8f7a-4c8e-9d55-0a1b2c3d4e5f", "task-N"),
            // As the kernel cuts names off: 15 bytes.
            ("pool-3-thread-1", "pool-N-thread-N"),
            ("pool-12-thread-", "pool-N-thread-N"),
            ("pool-123-thread", "pool-N-thread-N"),
            ("ForkJoinPool-1-", "ForkJoinPool-N-worker-N"),
            ("ForkJoinPool-12", "ForkJoinPool-N-worker-N"),
            ("ForkJoinPool.co", "ForkJoinPool.commonPool-worker-N"),
            ("Executor task l", "Executor task l"),
            ("dispatcher-even", "dispatcher-even"),
            ("IPC Server hand", "IPC Server hand"),
            ("shuffle-server-", "shuffle-server-N"),
            ("GC Thread#12", "GC Thread#N"),
            ("kworker/u8:3-ev", "kworker/uN:N-ev"),
        ] {
            assert_eq!(group(name), expected, "{name}");
        }
    }

    #[test]
    fn names_do_not_grow_without_end() {
        let adds_to_itself = format!("[names]\n{}", "() => aaaa\n".repeat(100));
        let rules = NameRules::parse(&adds_to_itself).expect("these are rules");
        let longest = rules.canonical("name").len();
        assert!((LONGEST / 5..=LONGEST).contains(&longest), "{longest}");
    }

    #[test]
    fn a_long_name_is_made_canonical_all_the_same() {
        let package = "a/".repeat(LONGEST);
        let canonical = NameRules::builtin()
            .canonical(&format!("{package}Job$$Lambda$12/34.run"))
            .into_owned();
        assert_eq!(canonical, format!("{package}Job$$Lambda.run"));
    }

    #[test]
    fn a_pattern_that_takes_much_memory_is_refused_with_its_line() {
        let refused = NameRules::parse("[names]\n(?:\\w{99}){9} => w\n").expect_err("it is large");
        assert!(
            refused.to_string().contains("name rules, line 2: "),
            "{refused}"
        );
    }
}
