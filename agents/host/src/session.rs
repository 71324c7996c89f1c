//! One session: requests in, events out, until the work, the lease or the patience is over.

mod answers;

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::audit;
use crate::canary::Canary;
use crate::files::{read_regular, sha256};
use crate::host;
use crate::inbox::{Happening, Inbox};
use crate::lease;
use crate::outcome::Failure;
use crate::output::Output;
use crate::proc::scan;
use crate::proc::{read_text, stat};
use crate::protocol::{Event, Exclude, HostFacts, Input, Request, PROTOCOL};
use crate::recording::Report;
use crate::recordings::Recordings;
use crate::store::Store;
use crate::threads::unbroken;

/// Until the coordinator has named a lease.
const FIRST_LEASE: Duration = Duration::from_secs(30);
const LONGEST_LEASE: f64 = 3600.0;
/// Commands are cut at this many bytes, and further where very many of them would break the limit of a line.
const COMMAND: usize = 4096;
const ALL_COMMANDS: usize = 8 << 20;

/// How a session ends.
enum End {
    Bye,
    /// The coordinator is gone.
    Closed,
    Signal(i32),
    Overdue(&'static str),
    Refused(Failure),
}

struct Session {
    inbox: Inbox,
    output: Output,
    store: Store,
    host: HostFacts,
    name: String,
    lease: Duration,
    greeted: bool,
    excluded: HashSet<i32>,
    recordings: Option<Recordings>,
    canary: Option<Canary>,
}

/// Run a session on stdin and stdout; the process's exit code. With `once` nothing is kept for the next one.
pub fn run(once: bool) -> u8 {
    audit::begin();
    let mut output = Output::new();
    let store = if once {
        Ok(Store::in_memory())
    } else {
        Store::open()
    };
    let inbox =
        Inbox::open().map_err(|error| Failure::plain(format!("cannot listen to signals: {error}")));
    let (store, inbox) = match (store, inbox) {
        (Ok(store), Ok(inbox)) => (store, inbox),
        (Err(failure), _) | (_, Err(failure)) => return refuse(&mut output, failure),
    };
    let mut session = Session {
        inbox,
        output,
        store,
        host: host::facts(),
        name: session_name(),
        lease: FIRST_LEASE,
        greeted: false,
        excluded: scan::own_ancestry(),
        recordings: None,
        canary: None,
    };
    let end = unbroken(|| session.serve()).unwrap_or_else(End::Refused);
    session.close(end)
}

fn refuse(output: &mut Output, failure: Failure) -> u8 {
    eprintln!("hprofiler-agent: {}", failure.reason);
    output.send(&Event::Error {
        reason: failure.reason,
        remedy: failure.remedy,
    });
    1
}

/// Unlike that of any other session of this boot.
fn session_name() -> String {
    let stat = read_text("/proc/self/stat", 4096).and_then(|text| stat::parse(&text));
    format!(
        "{}-{}",
        std::process::id(),
        stat.map_or(0, |stat| stat.start_time)
    )
}

impl Session {
    fn serve(&mut self) -> End {
        loop {
            if self.output.gone() {
                return End::Closed;
            }
            let until = self.inbox.heard() + self.lease;
            lease::show(until);
            let limits = [
                self.deadline(),
                self.recordings.as_ref().and_then(Recordings::limit),
                self.canary.as_ref().and_then(Canary::limit),
            ];
            let until = limits.into_iter().flatten().fold(until, Instant::min);
            let end = match self.inbox.next(until) {
                Some(Happening::Input(Input::Request(request, payload))) => {
                    self.answer(request, payload)
                }
                Some(Happening::Input(Input::Bad(reason))) => Err(End::Refused(Failure::new(
                    reason,
                    "use a coordinator and an agent of the same version",
                ))),
                Some(Happening::Input(Input::Closed)) => Err(End::Closed),
                Some(Happening::Signal(signal)) => Err(End::Signal(signal)),
                Some(Happening::Report(pid, report)) => {
                    self.hear(pid, report);
                    Ok(())
                }
                None => Ok(()),
            };
            if let Err(end) = end.and_then(|()| self.overdue()) {
                return end;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let of_all = self.recordings.as_ref().and_then(Recordings::deadline);
        of_all.or_else(|| self.canary.as_ref()?.deadline())
    }

    /// Whether time is up: for a step, for the recording, for the coordinator.
    fn overdue(&mut self) -> Result<(), End> {
        if let Some(recordings) = &mut self.recordings {
            recordings.give_up(&mut self.output);
        }
        self.advance();
        let now = Instant::now();
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            return Err(End::Overdue("the recording should have been over long ago"));
        }
        if self.inbox.heard() + self.lease <= now {
            return Err(End::Overdue(
                "nothing was heard from the coordinator for the time of the lease",
            ));
        }
        Ok(())
    }

    fn answer(&mut self, request: Request, payload: Vec<u8>) -> Result<(), End> {
        let hello = matches!(request, Request::Hello { .. });
        if hello == self.greeted {
            return Err(End::Refused(Failure::plain(
                "a session begins with one hello",
            )));
        }
        let answered = match request {
            Request::Hello {
                protocol,
                lease_seconds,
                exclude,
                audit,
            } => {
                if !audit {
                    audit::end();
                }
                self.hello(protocol, lease_seconds, exclude)
            }
            Request::Put { name, sha256, .. } => self.put(&name, sha256, payload),
            Request::List => self.list(),
            Request::Find(find) => self.find(find),
            Request::Prepare(prepare) => self.prepare(*prepare),
            Request::Check(check) => self.check(*check),
            Request::Canary(canary) => self.canary(*canary),
            Request::Start => self.start(),
            Request::Stop => self.stop(),
            Request::Ping => Ok(()),
            Request::Audit => {
                self.output.send(&Event::Audited(audit::take()));
                Ok(())
            }
            Request::Clean { kept, dry, only } => self.clean(kept, dry, only),
            Request::Bye => return Err(End::Bye),
        };
        answered.map_err(End::Refused)
    }

    fn hello(
        &mut self,
        protocol: u32,
        lease_seconds: f64,
        exclude: Option<Exclude>,
    ) -> Result<(), Failure> {
        if protocol != PROTOCOL {
            return Err(Failure::new(
                format!("the agent speaks protocol {PROTOCOL} and not {protocol}"),
                "use a coordinator and an agent of the same version",
            ));
        }
        if !(lease_seconds > 0.0 && lease_seconds <= LONGEST_LEASE) {
            return Err(Failure::plain(format!(
                "a lease of {lease_seconds} s is not between 0 and {LONGEST_LEASE}"
            )));
        }
        self.greeted = true;
        self.lease = Duration::from_secs_f64(lease_seconds);
        self.output.set_patience(self.lease);
        // Numbers of processes mean nothing on another machine or in another pid namespace.
        let here = |e: &Exclude| {
            e.boot_id == self.host.boot_id && e.pid_namespace == self.host.pid_namespace
        };
        self.excluded.extend(
            exclude
                .filter(here)
                .map(|exclude| exclude.pids)
                .unwrap_or_default(),
        );
        self.output.send(&Event::Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            sha256: own_hash(),
            host: self.host.clone(),
            blobs: self.store.blobs(),
        });
        Ok(())
    }

    fn hear(&mut self, pid: i32, report: Report) {
        if let Some(recordings) = &mut self.recordings {
            recordings.hear(pid, report, &mut self.output);
        } else if let Some(canary) = &mut self.canary {
            canary.hear(pid, report);
        }
        self.advance();
    }

    fn advance(&mut self) {
        if let Some(canary) = &mut self.canary {
            let watched = canary.go_on(&self.host.name, &self.name, &self.inbox);
            if let Some(watched) = watched {
                self.canary = None;
                self.output.send(&Event::Watched(watched));
            }
        }
        let Some(recordings) = &mut self.recordings else {
            return;
        };
        if recordings.advance(&mut self.output) {
            let left = self
                .recordings
                .take()
                .map(|recordings| recordings.left_by_now())
                .unwrap_or_default();
            self.output.send(&Event::Done { left });
        }
    }

    /// Leave nothing behind, whatever the end; then say why.
    fn close(mut self, end: End) -> u8 {
        lease::show(Instant::now());
        let of_all = self.recordings.take();
        let of_all = of_all.map(|recordings| recordings.abandon(&self.inbox));
        let canary = self.canary.take();
        let of_canary = canary.map(|canary| canary.abandon(&self.inbox));
        for path in of_all.into_iter().chain(of_canary).flatten() {
            eprintln!("hprofiler-agent: left behind: {path}");
        }
        match end {
            End::Bye | End::Closed => 0,
            End::Signal(signal) => {
                eprintln!("hprofiler-agent: ended by signal {signal}");
                (128 + signal).clamp(1, 255) as u8
            }
            End::Overdue(reason) => refuse(
                &mut self.output,
                Failure::new(reason, "see whether the connection is alive"),
            ),
            End::Refused(failure) => refuse(&mut self.output, failure),
        }
    }
}

fn own_hash() -> String {
    let root = rustix::fs::CWD;
    let path = std::env::current_exe().ok();
    let bytes = path.and_then(|path| read_regular(root, path.to_str()?, None, 64 << 20).ok());
    bytes.map(|bytes| sha256(&bytes)).unwrap_or_default()
}
