//! The session's answers to requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::following::Follow;
use super::Session;
use crate::commands::clean;
use crate::commands::doctor;
use crate::commands::dump::{Dumped, Dumping};
use crate::commands::memory;
use crate::discovery::find::{fit_into_line, may_be_meant, Finding};
use crate::discovery::scan::{self, Scanned, Seen};
use crate::engine::api::{Libraries, Library};
use crate::jvm::attach;
use crate::metrics::MetricsLog;
use crate::os::audit;
use crate::os::lease;
use crate::recording::group::{Recordings, FAREWELL};
use crate::session::backlog::Chunk;
use crate::session::inbox::Message;
use crate::session::resume::Token;
use crate::staging::shipped;
use crate::wire::events::Event;
use crate::wire::leftovers::Clean;
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::{Dump, Exclude, Find, Greeting, Prepare, Watched, PROTOCOL};

const LONGEST_LEASE: f64 = 3600.0;
/// The longest command in bytes, and the bytes of all commands in a line.
const COMMAND: usize = 4096;
const ALL_COMMANDS: usize = 8 << 20;

impl Session {
    pub(super) fn hello(&mut self, greeting: Greeting) -> Result<(), Failure> {
        let (protocol, lease) = (greeting.protocol, greeting.lease_seconds);
        if protocol != PROTOCOL {
            return Err(Failure::new(
                format!("the agent speaks protocol {PROTOCOL}, not {protocol}"),
                "use a coordinator and an agent of the same version",
            )
            .coded(Code::VersionMismatch));
        }
        if !(lease > 0.0 && lease <= LONGEST_LEASE) {
            return Err(Failure::plain(format!(
                "a lease of {lease} s is not between 0 and {LONGEST_LEASE}"
            ))
            .coded(Code::BadRequest));
        }
        self.token = greeting.resume.map(Token::new).transpose()?;
        self.greeted = true;
        self.lease = Duration::from_secs_f64(lease);
        self.output.set_patience(self.lease);
        // Pids mean nothing on another machine or in another pid namespace.
        let here = |e: &Exclude| {
            e.boot_id == self.host.boot_id && e.pid_namespace == self.host.pid_namespace
        };
        let excluded = greeting.exclude.filter(here);
        self.excluded
            .extend(excluded.map(|exclude| exclude.pids).unwrap_or_default());
        self.output.send(&Event::Hello {
            protocol: PROTOCOL,
            host: self.host.clone(),
            session: self.name.clone(),
            blobs: self.store.blobs(),
        });
        self.start_audit(greeting.audit);
        Ok(())
    }

    fn start_audit(&mut self, wanted: bool) {
        if wanted {
            let inbox = self.inbox.sender.clone();
            audit::send_with(move || {
                let _ = inbox.send(Message::AuditPending);
            });
            self.output.send_audit();
        } else {
            audit::end();
        }
    }

    pub(super) fn put(&mut self, name: &str, hash: String, bytes: Vec<u8>) -> Result<(), Failure> {
        self.store.put(&hash, bytes).map_err(|failure| Failure {
            reason: format!("{name}: {}", failure.reason),
            ..failure
        })?;
        self.output.send(&Event::Stored { sha256: hash });
        Ok(())
    }

    pub(super) fn list(&mut self) -> Result<(), Failure> {
        let Scanned {
            seen, overlooked, ..
        } = scan::processes(&self.excluded);
        let limit = COMMAND.min(ALL_COMMANDS / seen.len().max(1));
        let message = |process: Seen| {
            let label = process.plain_label();
            process.into_message(label, Default::default(), limit)
        };
        let all = seen.into_iter().map(message).collect();
        let (processes, left_out) = fit_into_line(all, usize::MAX);
        let ignored = left_out.into_iter().chain(may_be_meant(overlooked));
        let ignored = ignored.collect();
        self.output.send(&Event::Processes { processes, ignored });
        Ok(())
    }

    pub(super) fn find(&mut self, request: Find) -> Result<(), Failure> {
        let finding = Finding::new(request)?;
        let scanned = scan::processes(&self.excluded);
        let found = finding.among(scanned, &self.excluded);
        self.named.add(&found.processes, &found.ignored);
        self.output.send(&Event::Found {
            searched: found.searched,
            processes: found.processes,
            ignored: found.ignored,
        });
        Ok(())
    }

    pub(super) fn prepare(&mut self, request: Prepare) -> Result<(), Failure> {
        self.refuse_busy("prepare")?;
        let libraries = self.libraries(&request)?;
        let inbox = self.inbox.sender.clone();
        let send = move |pid, report| {
            // The session may be over.
            let _ = inbox.send(Message::Report(pid, report));
        };
        self.recordings = Some(Recordings::prepare(
            request,
            libraries,
            &self.host.name,
            &self.name,
            send,
        )?);
        self.advance();
        Ok(())
    }

    fn libraries(&self, request: &Prepare) -> Result<Libraries, Failure> {
        let blobs = &request.blobs;
        shipped::check(blobs)?;
        Ok(Libraries {
            async_profiler: self.library(blobs.async_profiler.as_deref())?,
            perfmap: self.library(blobs.perfmap.as_deref())?,
            thread_names: self.library(blobs.threadnames.as_deref())?,
        })
    }

    pub(super) fn refuse_busy(&self, asked: &str) -> Result<(), Failure> {
        let busy = match (&self.recordings, &self.dumping) {
            (Some(_), _) => "a recording",
            (_, Some(_)) => "a dump",
            _ => return Ok(()),
        };
        let reason = format!("{asked} is not possible during {busy}");
        Err(Failure::plain(reason).coded(Code::BadRequest))
    }

    pub(super) fn check(&mut self, request: Prepare) -> Result<(), Failure> {
        self.refuse_busy("check")?;
        shipped::check(&request.blobs)?;
        let checked = doctor::check(request, &self.host.name, &self.name)?;
        self.output.send(&Event::Checked(checked));
        Ok(())
    }

    fn library(&self, hash: Option<&str>) -> Result<Option<Arc<Library>>, Failure> {
        let stored = |hash: &str| {
            Ok(Arc::new(Library {
                bytes: self.store.get(hash)?,
                sha256: hash.to_owned(),
            }))
        };
        hash.map(stored).transpose()
    }

    pub(super) fn start(&mut self) -> Result<(), Failure> {
        let recordings = self
            .recordings
            .as_mut()
            .ok_or_else(|| Failure::plain("start came before prepare").coded(Code::BadRequest))?;
        recordings.start()?;
        self.keep();
        self.advance();
        Ok(())
    }

    pub(super) fn watch(
        &mut self,
        processes: Option<Vec<Watched>>,
        counters: Vec<String>,
    ) -> Result<(), Failure> {
        self.refuse_busy("watch")?;
        if let Some(processes) = processes {
            self.watched = Some(MetricsLog::watch(processes, counters));
        }
        let Some(watched) = &self.watched else {
            return Err(Failure::plain("the first watch has processes").coded(Code::BadRequest));
        };
        self.output.send(&Event::Metrics(watched.take()));
        Ok(())
    }

    pub(super) fn dump(&mut self, request: Dump) -> Result<(), Failure> {
        self.refuse_busy("dump")?;
        let inbox = self.inbox.sender.clone();
        self.dumping = Some(Dumping::begin(request, move |dumped| {
            // The session may be over.
            let _ = inbox.send(Message::Dump(dumped));
        })?);
        Ok(())
    }

    pub(super) fn handle_dump(&mut self, dumped: Option<Box<Dumped>>) {
        let Some(dumped) = dumped else {
            self.dumping = None;
            let left = attach::left();
            return self.output.send(&Event::Dumped { left });
        };
        if let Some((head, text)) = dumped.text {
            let text = Chunk::Result(text);
            self.output.send_with(&Event::Dump(head), text);
        }
        self.output.send(&Event::Outcome(dumped.outcome));
    }

    /// Wait until nobody is asked any more: an attach that is cut off would leave its trigger.
    pub(super) fn end_dump(&mut self) {
        let Some(dumping) = self.dumping.take() else {
            return;
        };
        dumping.stop();
        let until = Instant::now() + FAREWELL;
        while let Some(message) = self.inbox.next(until) {
            if matches!(message, Message::Dump(None)) {
                return;
            }
        }
    }

    pub(super) fn memory(&mut self, processes: Vec<Watched>, heap: bool) -> Result<(), Failure> {
        self.refuse_busy("memory")?;
        lease::show(Instant::now() + memory::limit(heap));
        let measured = memory::measure(processes, heap)?;
        self.output.send(&Event::Memory(measured));
        Ok(())
    }

    pub(super) fn clock(&mut self) -> Result<(), Failure> {
        self.output.send(&Event::Clock { time: audit::now() });
        Ok(())
    }

    pub(super) fn stop(&mut self) -> Result<(), Failure> {
        // A late stop, after the end of a recording, has nothing to do.
        if let Some(recordings) = &mut self.recordings {
            recordings.stop();
            self.follow = Follow::Nothing;
        }
        if let Some(dumping) = &self.dumping {
            dumping.stop();
        }
        self.advance();
        Ok(())
    }

    pub(super) fn clean(&mut self, order: Clean) -> Result<(), Failure> {
        self.refuse_busy("clean")?;
        let (excluded, own) = (&self.excluded, self.store.folder());
        let found = clean::clean(excluded, order, own);
        self.output.send(&Event::Leftovers(found));
        Ok(())
    }
}
