//! Our library in the JVM that follows the names of threads, from the start of a recording to its end.
//!
//! It is loaded without being asked for only where the JVM prints no warning.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use flamegraph::SliceOf;
use rustix::fs::{openat, unlinkat, AtFlags, Mode, OFlags};

use super::events::feature;
use super::jvm::ANSWER;
use super::name_log::{Following, Rules, MOST_BYTES};
use crate::discovery::selector::compile_glob;
use crate::engine::api::{Library, Note, Shared};
use crate::jvm::attach::Attach;
use crate::jvm::preflight::{last_set, Findings};
use crate::os::audit;
use crate::os::files::open_regular;
use crate::os::identity::Namespaces;
use crate::os::lease::since_1970;
use crate::os::proc::named::Named;
use crate::os::proc::target::Target;
use crate::staging::folders::{bases, let_library_go, Held, THREAD_NAMES};
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::SliceRule;

/// The time between two polls: docs/internals/decisions/025-names-of-threads-are-polled.md.
const INTERVAL: Duration = Duration::from_millis(15);
/// The first version that warns of an agent that is loaded at run time.
const WARNS: u32 = 21;

pub struct ThreadNames {
    library: Arc<Library>,
    rules: Rules,
    /// Beginnings of names, as the library takes them.
    prefixes: String,
    /// Where the library lies while it is in use.
    held: Option<Held>,
    log: Option<File>,
    following: Following,
    /// When they were not followed any more, in microseconds since 1970; None if the process ended before.
    stopped: Option<i64>,
}

impl ThreadNames {
    /// Names that are wanted, if the job has slices by names of this JVM's threads. Err: they cannot be had.
    pub fn wanted(
        shared: &Shared,
        findings: &Findings,
        named: &Named,
        version: Option<&str>,
    ) -> Result<Option<Self>, Failure> {
        let main = findings.main_class(named);
        let rules = shared.slices.iter().filter(|rule| fits(rule, &main));
        let rules: Vec<_> = rules.collect();
        if rules.is_empty() || !shared.sampling.timeline {
            return Ok(None);
        }
        let unasked = !shared.sampling.thread_names && warns(&findings.options(named), version);
        if unasked {
            return Err(Failure::new(
                "the names of its threads were not followed: this JVM would print a warning about a dynamically loaded agent",
                "use --thread-names, or start the JVM with -XX:+EnableDynamicAgentLoading",
            ));
        }
        let library = shared.libraries.thread_names.clone().ok_or_else(|| {
            Failure::plain("the library that follows names of threads is missing on the host")
        })?;
        let mut prefixes: Vec<&str> = rules.iter().map(|rule| rule.prefix.as_str()).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        Ok(Some(Self {
            library,
            prefixes: prefixes.join("|"),
            rules: Rules::new(rules.into_iter())?,
            held: None,
            log: None,
            following: Following::default(),
            stopped: None,
        }))
    }

    /// Load the library from the first folder from which the JVM loads it. Without a stop it ends after `seconds`.
    pub fn start(
        &mut self,
        target: &Target,
        namespaces: &Namespaces,
        run: &Held,
        seconds: u64,
    ) -> Result<(), Failure> {
        let name = file(target);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(&run.dir, &name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Failure::plain(format!("no file for names: {error}")))?;
        audit::note("file", || format!("{}/{name}", run.path));
        let (interval, prefixes) = (INTERVAL.as_millis(), &self.prefixes);
        let options = format!("{interval},{seconds},{prefixes},{}/{name}", run.path);
        let attach = Attach::new(target, namespaces);
        let load = |path: &str| attach.load(path, &options, ANSWER);
        let bases = bases(namespaces);
        let loaded = self
            .library
            .load_from_first(&THREAD_NAMES, namespaces, &bases, load);
        let refused = |tried| Failure::plain(format!("the JVM does not load it: {tried}"));
        let (held, returned) = loaded.map_err(refused)?;
        self.held = Some(held);
        match returned? {
            0 => Ok(()),
            code => Err(Failure::plain(format!("its library returned {code}"))),
        }
    }

    /// Keep the log open and delete its name, which ends the library's work.
    pub fn stop(&mut self, target: &Target, namespaces: &Namespaces, run: &Held) {
        let name = file(target);
        let now = since_1970().as_micros() as i64;
        self.stopped = target.stat().map(|_| now);
        let opened = open_regular(&run.dir, &name, Some(namespaces.uid), MOST_BYTES);
        self.log = opened.ok().map(|(file, _)| file);
        if unlinkat(&run.dir, &name, AtFlags::empty()).is_ok() {
            audit::note("removed", || format!("{}/{name}", run.path));
        }
    }

    /// The slices by the names of threads until now. Those before `since`, in microseconds since 1970, are not asked for
    /// any more.
    pub fn slices_so_far(
        &mut self,
        target: &Target,
        namespaces: &Namespaces,
        run: &Held,
        since: i64,
    ) -> Option<Arc<dyn SliceOf>> {
        let name = file(target);
        let opened = open_regular(&run.dir, &name, Some(namespaces.uid), MOST_BYTES);
        self.following.forget(since);
        let log = self.following.read(opened.ok()?.0, &self.rules).ok()?;
        (!log.is_empty()).then(|| Arc::new(log) as Arc<dyn SliceOf>)
    }

    /// The slices by the names of threads, None without any; and what should be known of them.
    pub fn slices(&mut self) -> (Option<Arc<dyn SliceOf>>, Option<Note>) {
        let Some(log) = self.log.take() else {
            return (None, None);
        };
        match self.following.read(log, &self.rules) {
            Ok(log) => {
                let note = log.missing(self.stopped).map(incomplete);
                let log = (!log.is_empty()).then(|| Arc::new(log) as Arc<dyn SliceOf>);
                (log, note)
            }
            Err(error) => {
                let why = format!("the log cannot be read: {error}");
                (None, Some(unread(Failure::plain(why))))
            }
        }
    }

    /// Err: what is left.
    pub fn leave(self, musl: bool) -> Result<(), String> {
        self.held.map_or(Ok(()), |held| let_library_go(held, musl))
    }
}

/// Without names, slices come from the times of tasks alone.
pub fn unread(failure: Failure) -> Note {
    let why = Failure {
        code: Code::ThreadNamesUnread,
        ..failure
    };
    Note::plain("slices by names of threads are missing").because(why)
}

fn incomplete(why: Failure) -> Note {
    Note::plain("slices by names of threads are incomplete").because(why)
}

fn fits(rule: &SliceRule, main_class: &str) -> bool {
    let is_like = |glob: &String| compile_glob(glob).is_ok_and(|glob| glob.is_match(main_class));
    rule.main_class.is_empty() || rule.main_class.iter().any(is_like)
}

/// Whether the JVM prints a warning when an agent is loaded at run time. One of unknown version may.
fn warns(options: &[String], version: Option<&str>) -> bool {
    let recent = version
        .and_then(feature)
        .is_none_or(|version| version >= WARNS);
    recent && last_set(options, "EnableDynamicAgentLoading") != Some(true)
}

fn file(target: &Target) -> String {
    format!("{}.names", target.file_stem())
}

#[cfg(test)]
mod tests {
    #[test]
    fn which_jvms_warn() {
        let warns = |options: &str, version| {
            let options: Vec<String> = options.split(' ').map(str::to_owned).collect();
            super::warns(&options, version)
        };
        assert!(!warns("", Some("1.8.0_412")) && !warns("", Some("20")));
        assert!(warns("", Some("21.0.1")) && warns("", Some("25")) && warns("", None));
        assert!(!warns("-XX:+EnableDynamicAgentLoading", Some("25")));
    }
}
