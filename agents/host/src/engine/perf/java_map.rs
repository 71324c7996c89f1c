//! The names of a JVM's compiled code, which the JVM itself must list while it lives.
//!
//! Our own agent lists most, inlined methods too. A JVM that takes no agents writes a map by its own command, and a JVM
//! that cannot be asked may have a map already.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::time::{Duration, SystemTime};

use flamegraph::perf_data::JitMap;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{openat, unlinkat, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::companion::View;
use crate::engine::api::{Library, Note};
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::preflight::{last_set, refuse_disabled, Findings};
use crate::os::audit;
use crate::os::files::{enter_folder, open_regular};
use crate::os::identity::Namespaces;
use crate::staging::folders::{bases, is_library_file, let_library_go, run_folder, Held, PERFMAP};
use crate::wire::outcome::{Code, Failure};

/// How long a JVM may take to open its socket and answer everything.
const ANSWER: Duration = Duration::from_secs(10);
/// The largest map that is read, in bytes: less than the format's 256 MiB. A map of 100,000 methods is half as large.
const MOST: u64 = 64 << 20;
pub const NO_NAMES: &str = "Java methods have no names";
/// A file that we make and the JVM writes to.
const NEW: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::CLOEXEC);

#[derive(Debug, Clone)]
pub struct Java {
    pub is_hotspot: bool,
    /// Why nothing can attach to it, or why it takes no agents.
    pub no_attach: Option<Failure>,
    pub no_agents: Option<String>,
    pub frame_pointers: bool,
    pub debug_non_safepoints: bool,
}

impl Java {
    /// The calling thread must have no more rights than the JVM's user.
    pub fn look(findings: &Findings, namespaces: &Namespaces, pid: i32) -> Self {
        let options = findings.options(&namespaces.named);
        let disabled = last_set(&options, "DisableAttachMechanism") == Some(true);
        let no_agents = last_set(&options, "EnableDynamicAgentLoading") == Some(false);
        let no_agents =
            no_agents.then(|| "it was started with -XX:-EnableDynamicAgentLoading".to_owned());
        Self {
            is_hotspot: findings.library.is_some(),
            no_attach: refuse_disabled(pid, &options).err().filter(|_| disabled),
            no_agents: no_agents.or_else(|| other_profiler(findings)),
            frame_pointers: last_set(&options, "PreserveFramePointer") == Some(true),
            debug_non_safepoints: last_set(&options, "DebugNonSafepoints") == Some(true),
        }
    }

    pub fn takes_agents(&self) -> bool {
        self.no_attach.is_none() && self.no_agents.is_none()
    }
}

/// Nothing is loaded into a JVM that has another profiler. The JVM's own command loads nothing.
fn other_profiler(findings: &Findings) -> Option<String> {
    findings.library.as_ref()?;
    let other = findings
        .refusal
        .as_ref()
        .map(|refusal| refusal.reason.clone());
    let foreign = findings.foreign.first();
    let another = || {
        let path = foreign?;
        Some(format!(
            "another async-profiler ({path}) is loaded, so hprofiler loads no library"
        ))
    };
    let unknown = || {
        let sampled = findings.sampled && findings.ours.is_empty();
        sampled.then(|| "another profiler samples it, so hprofiler loads no library".to_owned())
    };
    other.or_else(another).or_else(unknown)
}

impl View {
    /// Get the best map from the JVM while it lives. Returns what the user should know about it.
    pub fn ask_for_map(&mut self) -> Vec<Note> {
        if !self.java.is_hotspot {
            self.map = self.existing();
            return Vec::new();
        }
        let asked =
            match self.java.no_attach.clone() {
                Some(failure) => Err(failure),
                None if self.target.stat().is_some() => self.ask(),
                None => Err(Failure::plain("the JVM ended before it could be asked")
                    .coded(Code::ProcessEnded)),
            };
        let failure = match asked {
            Ok((map, note)) => {
                self.map = Some(map);
                return note.into_iter().collect();
            }
            Err(failure) => failure,
        };
        self.map = self.existing();
        let names = match self.map {
            Some(_) => format!(
                "Java methods are named by {} as it was found",
                self.usual_path()
            ),
            None => NO_NAMES.to_owned(),
        };
        let note = Note::degraded(names).coded(Code::NoJavaNames);
        vec![note.because(failure)]
    }

    /// Notes on the names, as far as the agent knows without asking.
    pub fn foresee(&self) -> Vec<Note> {
        if !self.java.is_hotspot {
            return Vec::new();
        }
        let attach = Attach::new(&self.target, &self.namespaces);
        let no_attach = self.java.no_attach.clone().map_or(Ok(()), Err);
        let unnamed = no_attach.and_then(|()| attach.foresee()).err();
        let unnamed = unnamed.map(|failure| {
            Note::degraded(NO_NAMES)
                .coded(Code::NoJavaNames)
                .because(failure)
        });
        let coarse = self
            .java
            .no_agents
            .as_ref()
            .map(|reason| no_inlined(reason));
        unnamed.or(coarse).into_iter().collect()
    }

    /// The map by the first way that works.
    fn ask(&mut self) -> Result<(MapFile, Option<Note>), Failure> {
        let attach = Attach::new(&self.target, &self.namespaces);
        attach.await_motion();
        let attach = attach.within(ANSWER);
        let mut left = Vec::new();
        let by_agent = self.by_agent(&attach, &mut left);
        let asked = match by_agent {
            Ok(map) => {
                let coarse = "inlined methods are known only at safepoints (-XX:+DebugNonSafepoints improves this)";
                let coarse = (!self.java.debug_non_safepoints).then(|| Note::plain(coarse));
                Ok((map, coarse))
            }
            Err(failure) if attach.is_over() => Err(failure),
            Err(first) => match self.by_command(&attach, &mut left) {
                Ok(map) => Ok((map, Some(no_inlined(&first.reason)))),
                Err(failure) => Err(Failure::all([first, failure])),
            },
        };
        self.left.extend(left);
        asked
    }

    /// Put our agent into the first folder from which the JVM loads it, and take the map that it writes.
    fn by_agent(&self, attach: &Attach, left: &mut Vec<String>) -> Result<MapFile, Failure> {
        if let Some(reason) = &self.java.no_agents {
            return Err(Failure::plain(reason));
        }
        let not_sent = || {
            Failure::plain("the library that names Java code is missing on the host")
                .coded(Code::LibraryMissing)
        };
        let library = &self.shared.libraries.perfmap;
        let library = library.as_ref().ok_or_else(not_sent)?;
        let run = self.run_folder()?;
        let map = self.staged(attach, library, &run, left);
        left.extend(run.release(|_| true).err());
        map
    }

    fn run_folder(&self) -> Result<Held, Failure> {
        let bases = bases(&self.namespaces);
        run_folder(&self.namespaces, &bases, &self.shared.session).map_err(Failure::plain)
    }

    fn staged(
        &self,
        attach: &Attach,
        library: &Library,
        run: &Held,
        left: &mut Vec<String>,
    ) -> Result<MapFile, Failure> {
        let load = |path: &str| self.load(attach, path, run);
        let bases = bases(&self.namespaces);
        let loaded = library.load_from_first(&PERFMAP, &self.namespaces, &bases, load);
        let (held, returned) = loaded.map_err(|tried| {
            Failure::plain(format!("the JVM loads no agent: {tried}")).coded(Code::CannotLoad)
        })?;
        let let_go = match returned {
            Ok(_) => let_library_go(held, self.musl),
            Err(_) => held.release(is_library_file),
        };
        left.extend(let_go.err());
        self.written(run, returned?).map_err(Failure::plain)
    }

    fn load(&self, attach: &Attach, library: &str, run: &Held) -> Result<Reply, Failure> {
        let flags = NEW | OFlags::TRUNC | OFlags::NOFOLLOW;
        let name = self.file();
        openat(&run.dir, &name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
            Failure::plain(format!("no file for the map: {error}")).coded(Code::NoWritableFolder)
        })?;
        audit::note("file", || format!("{}/{name}", run.path));
        attach.load(library, &format!("{}/{name}", run.path), ANSWER)
    }

    fn file(&self) -> String {
        format!("{}.map", self.target.file_stem())
    }

    /// The map that our agent wrote. If it did not return 0, its reason is in the file.
    fn written(&self, run: &Held, code: i32) -> Result<MapFile, String> {
        let written = MapFile::open(&run.dir, &self.file(), self.namespaces.uid, Form::Binary)?;
        if code == 0 {
            return Ok(written);
        }
        let reason = written.read().err();
        Err(reason.unwrap_or_else(|| format!("the agent in the JVM returned {code}")))
    }

    /// By the JVM's own command, which JDK 17 and later have. JDK 25 writes the map to the given path.
    fn by_command(&self, attach: &Attach, left: &mut Vec<String>) -> Result<MapFile, Failure> {
        let run = self.run_folder()?;
        let path = format!("{}/{}", run.path, self.file());
        let map = match attach.command(&format!("Compiler.perfmap {path}"), ANSWER) {
            Err(failure) => Err(failure),
            Ok((true, _)) => self.text(&run.dir, &self.file()).map_err(Failure::plain),
            Ok((false, words)) if words.contains("Unknown diagnostic command") => Err(
                Failure::plain("this version has no Compiler.perfmap (JDK 17 and later have it)")
                    .coded(Code::JdkTooOld),
            ),
            Ok((false, _)) => self.by_command_in_tmp(attach, left),
        };
        left.extend(run.release(|_| true).err());
        map
    }

    /// JDK 17 to 24 write `/tmp/perf-PID.map`. We make that file first, so that the JVM neither follows a link nor
    /// overwrites a map of its user's.
    fn by_command_in_tmp(
        &self,
        attach: &Attach,
        left: &mut Vec<String>,
    ) -> Result<MapFile, Failure> {
        let tmp = self.tmp().map_err(Failure::plain)?;
        let (name, path) = (self.usual_name(), self.usual_path());
        let made = openat(&tmp, &name, NEW | OFlags::EXCL, Mode::RUSR | Mode::WUSR);
        made.map_err(|error| {
            let failure = match error {
                Errno::EXIST => Failure::new(
                    format!("{path} exists, and the JVM would overwrite it"),
                    format!("remove {path} if nobody needs it"),
                ),
                error => Failure::plain(format!("{path}: {error}")),
            };
            failure.coded(Code::NoWritableFolder)
        })?;
        audit::note("file", || path.clone());
        let answered = attach.command("Compiler.perfmap", ANSWER);
        let map = match answered {
            Ok((true, _)) => self.text(&tmp, &name).map_err(Failure::plain),
            Ok((false, words)) => {
                let words: String = words.chars().take(200).collect();
                Err(Failure::plain(format!("Compiler.perfmap: {words}")))
            }
            Err(failure) => {
                left.push(format!("{path}, which the JVM may still write"));
                return Err(failure);
            }
        };
        match unlinkat(&tmp, &name, AtFlags::empty()) {
            Ok(()) => audit::note("removed", || path.clone()),
            Err(error) => left.push(format!("{path}: {error}")),
        }
        map
    }

    /// A map that was there before. A file older than the process belonged to another process with its pid.
    fn existing(&self) -> Option<MapFile> {
        let map = self.text(&self.tmp().ok()?, &self.usual_name()).ok()?;
        map.is_since(self.target.began()).then_some(map)
    }

    fn text(&self, dir: &OwnedFd, name: &str) -> Result<MapFile, String> {
        MapFile::open(dir, name, self.namespaces.uid, Form::Text)
    }

    fn tmp(&self) -> Result<OwnedFd, String> {
        enter_folder(&self.namespaces.path("/tmp")).map_err(|error| format!("/tmp: {error}"))
    }

    fn usual_name(&self) -> String {
        format!("perf-{}.map", self.target.status.namespace_pid)
    }

    fn usual_path(&self) -> String {
        format!("/tmp/{}", self.usual_name())
    }
}

fn no_inlined(why: &str) -> Note {
    Note::plain(format!("inlined Java methods are not visible: {why}")).coded(Code::NoInlining)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Our own agent's.
    Binary,
    /// `perf-PID.map`.
    Text,
}

/// A map as the JVM wrote it: an open file, whose name may be gone. It is read when the recording is folded, so that
/// the agent holds one map in memory, however many JVMs end together.
pub struct MapFile {
    file: File,
    form: Form,
}

impl MapFile {
    /// The map must belong to the owner. Err says why there is none.
    pub fn open(dir: impl AsFd, name: &str, owner: u32, form: Form) -> Result<Self, String> {
        match open_regular(dir, name, Some(owner), MOST) {
            Ok((_, 0)) => Err("the map is empty".to_owned()),
            Ok((file, _)) => Ok(Self { file, form }),
            Err(error) => Err(unreadable(&error)),
        }
    }

    fn is_since(&self, time: SystemTime) -> bool {
        let written = self.file.metadata().and_then(|file| file.modified());
        written.is_ok_and(|written| written >= time)
    }

    /// Its owner may have changed it.
    pub fn read(mut self) -> Result<JitMap, String> {
        self.file.rewind().map_err(|error| unreadable(&error))?;
        let bytes = self.file.take(MOST);
        let read = match self.form {
            Form::Binary => JitMap::binary(bytes),
            Form::Text => JitMap::text(bytes),
        };
        match read {
            Ok(map) if map.is_empty() => Err("the map is empty".to_owned()),
            read => read.map_err(|error| error.to_string()),
        }
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("the map cannot be read: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::files::tests::Folder;
    use crate::os::proc::target::Target;
    use rustix::process::geteuid;
    use std::time::Duration;

    #[test]
    fn a_map_of_before_the_process_is_told_from_its_own() {
        let folder = Folder::new();
        let path = folder.put("map", "1000 10 a.b\n");
        let dir = File::open(&*folder).unwrap();
        let began = Target::own().began();
        let is_since = || {
            let map = MapFile::open(&dir, "map", geteuid().as_raw(), Form::Text);
            map.unwrap().is_since(began)
        };
        assert!(is_since());
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(began - Duration::from_millis(1)).unwrap();
        assert!(!is_since());
    }
}
