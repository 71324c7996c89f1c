//! Which code a JVM has where: asked of the JVM itself while it lives.
//!
//! Our own agent tells most (inlined methods too). Where a JVM takes no agents its own command writes a map, and where
//! it cannot be asked at all there may be a map that it was told to write.

use std::path::Path;
use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::fs::{openat, Mode, OFlags, CWD};

use super::placeholder::{self, Late, Placeholder};
use super::written::{Form, Written};
use crate::engine::api::Library;
use crate::engine::api::Note;
use crate::jvm::attach::{Attach, Reply};
use crate::jvm::hsperf;
use crate::jvm::preflight::{last_set, refuse_disabled, Findings};
use crate::os::audit;
use crate::os::identity::Shoes;
use crate::os::proc::target::Target;
use crate::staging::folders::{
    bases, is_library_file, let_library_go, run_folder, stage_library, Held, PERFMAP,
};
use crate::wire::outcome::{Code, Failure};

/// How long a JVM may take to tell its code, to open its socket and all answers together.
const ANSWER: Duration = Duration::from_secs(10);
const MAP: &str = "map";
/// Where there is no map.
pub const NO_NAMES: &str = "Java methods have no names";

/// What the JVM's options say of it.
#[derive(Debug, Clone)]
pub struct Java {
    /// Whether it is a JVM that may be asked.
    pub is_hotspot: bool,
    /// Why it cannot be attached to at all, or why it takes no agents.
    pub no_attach: Option<Failure>,
    pub no_agents: Option<String>,
    pub frame_pointers: bool,
    pub debug_non_safepoints: bool,
}

impl Java {
    /// To be called by a thread that has no more rights than the JVM's user.
    pub fn look(findings: &Findings, shoes: &Shoes, pid: i32) -> Self {
        let mut options = findings.launched.options(&shoes.named);
        // What it publishes is what came of all options, so it counts last.
        options.extend(hsperf::options(&shoes.named, &findings.performance_data));
        let disabled = last_set(&options, "DisableAttachMechanism") == Some(true);
        let no_agents = last_set(&options, "EnableDynamicAgentLoading") == Some(false);
        let no_agents =
            no_agents.then(|| "it was started with -XX:-EnableDynamicAgentLoading".to_owned());
        Self {
            is_hotspot: findings.library.is_some(),
            no_attach: refuse_disabled(pid, &options).err().filter(|_| disabled),
            no_agents: no_agents.or_else(|| taken(findings, shoes)),
            frame_pointers: last_set(&options, "PreserveFramePointer") == Some(true),
            debug_non_safepoints: last_set(&options, "DebugNonSafepoints") == Some(true),
        }
    }

    pub fn takes_agents(&self) -> bool {
        self.no_attach.is_none() && self.no_agents.is_none()
    }
}

/// Into a JVM that another profiler has nothing is loaded. What it is asked by its own commands loads nothing.
fn taken(findings: &Findings, shoes: &Shoes) -> Option<String> {
    findings.library.as_ref()?;
    let other = findings
        .refusal
        .as_ref()
        .map(|refusal| refusal.reason.clone());
    let another =
        |path| format!("another async-profiler ({path}) is loaded, so hprofiler loads no library");
    other.or_else(|| {
        findings
            .foreign(&shoes.named)
            .into_iter()
            .next()
            .map(another)
    })
}

/// A JVM that may be asked, and where.
pub struct Asked<'a> {
    pub target: &'a Target,
    pub shoes: &'a Shoes,
    pub java: &'a Java,
    pub musl: bool,
    pub session: &'a str,
    pub library: Option<&'a Library>,
}

/// What was found out, and what could not be deleted.
#[derive(Default)]
pub struct Answer {
    pub map: Option<Written>,
    pub notes: Vec<Note>,
    pub left: Vec<String>,
    pub late: Option<Late>,
}

impl Asked<'_> {
    /// The best map there is.
    pub fn map(&self) -> Answer {
        let mut answer = Answer::default();
        if !self.java.is_hotspot {
            answer.map = self.existing();
            return answer;
        }
        let lives = self.target.stat().is_some();
        let failure = match self.java.no_attach.as_ref() {
            Some(failure) => failure.clone(),
            None if lives => match self.ask(&mut answer) {
                Ok(()) => return answer,
                Err(failure) => failure,
            },
            None => {
                Failure::plain("the JVM ended before it could be asked").coded(Code::ProcessEnded)
            }
        };
        answer.map = self.existing();
        let names = match answer.map {
            Some(_) => format!(
                "Java methods are named by {} as it was found",
                self.usual_path()
            ),
            None => NO_NAMES.to_owned(),
        };
        answer.notes.push(
            Note::degraded(names)
                .coded(Code::NoJavaNames)
                .because(failure),
        );
        answer
    }

    /// What would be said of the names, as far as that can be seen without asking.
    pub fn foresee(&self) -> Vec<Note> {
        if !self.java.is_hotspot {
            return Vec::new();
        }
        let attach = Attach::new(self.target, self.shoes);
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

    /// Ask the JVM in one way after the other, while it has time. Why none worked, if none did.
    fn ask(&self, answer: &mut Answer) -> Result<(), Failure> {
        let attach = Attach::new(self.target, self.shoes);
        attach.await_motion();
        let attach = attach.within(ANSWER);
        let first = match self.by_agent(&attach, answer) {
            Ok(map) => {
                answer.map = Some(map);
                if !self.java.debug_non_safepoints {
                    let coarse = "inlined methods are known only at safepoints (-XX:+DebugNonSafepoints improves this)";
                    answer.notes.push(Note::plain(coarse));
                }
                return Ok(());
            }
            Err(failure) if attach.is_over() => return Err(failure),
            Err(failure) => failure,
        };
        match self.by_command(&attach, answer) {
            Ok(map) => {
                answer.notes.push(no_inlined(&first.reason));
                answer.map = Some(map);
                Ok(())
            }
            Err(failure) => Err(Failure::all([first, failure])),
        }
    }

    fn by_agent(&self, attach: &Attach, answer: &mut Answer) -> Result<Written, Failure> {
        if let Some(reason) = &self.java.no_agents {
            return Err(Failure::plain(reason));
        }
        let not_sent = || {
            Failure::plain("the library that names Java code is missing on the host")
                .coded(Code::LibraryMissing)
        };
        let library = self.library.ok_or_else(not_sent)?;
        let run = self.run_folder()?;
        let map = self.staged(attach, library, &run, answer);
        answer.left.extend(run.release(|_| true).err());
        map
    }

    fn run_folder(&self) -> Result<Held, Failure> {
        run_folder(self.shoes, &bases(self.shoes), self.session).map_err(Failure::plain)
    }

    /// Put the library in the first folder from which the JVM loads it, have the map written, and let the library go.
    fn staged(
        &self,
        attach: &Attach,
        library: &Library,
        run: &Held,
        answer: &mut Answer,
    ) -> Result<Written, Failure> {
        let mut tried = Vec::new();
        for base in bases(self.shoes) {
            let staged =
                stage_library(self.shoes, &PERFMAP, &base, &library.sha256, &library.bytes);
            let held = match staged {
                Ok(held) => held,
                Err(reason) => {
                    tried.push(reason);
                    continue;
                }
            };
            let loaded = self.load(attach, &held, run);
            let let_go = match loaded {
                Ok(_) => let_library_go(held, self.musl),
                Err(_) => held.release(is_library_file),
            };
            answer.left.extend(let_go.err());
            match loaded? {
                Reply::Returned(code) => return self.written(run, code).map_err(Failure::plain),
                Reply::Refused(text) => tried.push(text),
            }
        }
        let tried = tried.join("; ");
        Err(Failure::plain(format!("the JVM loads no agent: {tried}")).coded(Code::CannotLoad))
    }

    fn load(&self, attach: &Attach, held: &Held, run: &Held) -> Result<Reply, Failure> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let name = self.file();
        openat(&run.dir, &name, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
            Failure::plain(format!("no file for the map: {error}")).coded(Code::NoWritableFolder)
        })?;
        audit::note("file", || format!("{}/{name}", run.path));
        let library = format!("{}/{}", held.path, PERFMAP.file);
        attach.load(&library, &format!("{}/{name}", run.path), ANSWER)
    }

    fn file(&self) -> String {
        format!("{}.{MAP}", self.target.file_stem())
    }

    /// The map that the agent wrote, whole if it returned 0; else its reason why not is in the file.
    fn written(&self, run: &Held, code: i32) -> Result<Written, String> {
        let written = Written::open(&run.dir, &self.file(), self.shoes.uid, Form::Binary)?;
        if code == 0 {
            return Ok(written);
        }
        let reason = written.read().err();
        Err(reason.unwrap_or_else(|| format!("the agent in the JVM returned {code}")))
    }

    /// A map by the JVM's own command: 17 and later have it, and 25 writes it where it is told to.
    fn by_command(&self, attach: &Attach, answer: &mut Answer) -> Result<Written, Failure> {
        let run = self.run_folder()?;
        let path = format!("{}/{}", run.path, self.file());
        let asked = attach.command(&format!("Compiler.perfmap {path}"), ANSWER);
        let mut late = None;
        let map = match asked {
            Err(failure) => Err(failure),
            Ok((true, _)) => self.text(&run.dir, &self.file()).map_err(Failure::plain),
            Ok((false, words)) if words.contains("Unknown diagnostic command") => Err(
                Failure::plain("this version has no Compiler.perfmap (JDK 17 and later have it)")
                    .coded(Code::JdkTooOld),
            ),
            Ok((false, _)) => self.by_command_in_tmp(attach, &run, &mut late),
        };
        match late {
            Some(placeholder) => answer.late = Some(Late::new(placeholder, run)),
            None => drop(run.release(|_| true)),
        }
        map
    }

    /// Versions that are told no path write to `/tmp`. A map that is there is not ours to have written over.
    fn by_command_in_tmp(
        &self,
        attach: &Attach,
        run: &Held,
        late: &mut Option<Placeholder>,
    ) -> Result<Written, Failure> {
        let tmp = self.tmp().map_err(Failure::plain)?;
        self.remove_left(&tmp);
        let stem = self.target.file_stem();
        let placeholder = Placeholder::make(run, &stem, tmp, self.usual_name())?;
        match attach.command("Compiler.perfmap", ANSWER) {
            Ok((true, _)) => placeholder.written(self.shoes.uid).map_err(Failure::plain),
            Ok((false, words)) => Err(Failure::plain(format!(
                "Compiler.perfmap: {}",
                words.chars().take(200).collect::<String>()
            ))),
            Err(failure) => {
                // The JVM has the command all the same, and writes once it goes on.
                *late = Some(placeholder);
                Err(failure)
            }
        }
    }

    /// One that was there before the process is of another one that had its number.
    fn existing(&self) -> Option<Written> {
        let tmp = self.tmp().ok()?;
        self.remove_left(&tmp);
        let map = self.text(&tmp, &self.usual_name()).ok()?;
        map.is_since(self.target.began()).then_some(map)
    }

    fn remove_left(&self, tmp: &OwnedFd) {
        let base = self.shoes.path("/tmp");
        placeholder::remove_left(&base, tmp, &self.usual_name(), self.shoes.uid);
    }

    fn text(&self, dir: &OwnedFd, name: &str) -> Result<Written, String> {
        Written::open(dir, name, self.shoes.uid, Form::Text)
    }

    fn tmp(&self) -> Result<OwnedFd, String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, self.shoes.path("/tmp"), flags, Mode::empty())
            .map_err(|error| format!("/tmp: {error}"))
    }

    fn usual_name(&self) -> String {
        format!("perf-{}.map", self.target.status.namespace_pid)
    }

    fn usual_path(&self) -> String {
        Path::new("/tmp")
            .join(self.usual_name())
            .display()
            .to_string()
    }
}

fn no_inlined(why: &str) -> Note {
    Note::plain(format!("inlined Java methods are not visible: {why}")).coded(Code::NoInlining)
}
