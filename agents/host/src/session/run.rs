//! One session: requests in, events out, until the work, the lease or a time limit is over.

mod answers;
mod following;
mod reconnect;

use std::collections::HashSet;
use std::io::Write;
use std::time::{Duration, Instant};

use signal_hook::consts::SIGHUP;

use self::following::{Follow, Named};
use crate::commands::dump::Dumping;
use crate::discovery::scan;
use crate::jvm::attach;
use crate::metrics::MetricsLog;
use crate::os::host;
use crate::os::lease;
use crate::os::proc::stat;
use crate::os::threads::unbroken;
use crate::recording::group::{Recordings, FAREWELL};
use crate::recording::process::Report;

use crate::session::inbox::Input;
use crate::session::inbox::{Inbox, Message};
use crate::session::output::Output;
use crate::session::resume::{Control, Token};
use crate::staging::store::Store;
use crate::wire::events::{Event, HostFacts};
use crate::wire::outcome::{Code, Failure};
use crate::wire::requests::Request;

/// Until the coordinator sets a lease.
const FIRST_LEASE: Duration = Duration::from_secs(30);

/// How often to check, after the end, whether JVMs have handled their signals.
const LOOK: Duration = Duration::from_millis(250);

enum End {
    Bye,
    /// The coordinator is gone.
    Closed,
    Signal(i32),
    Overdue(&'static str),
    Refused(Failure),
    /// Another agent used this connection, and has ended with this exit code.
    Forwarded(u8),
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
    named: Named,
    follow: Follow,
    watched: Option<MetricsLog>,
    dumping: Option<Dumping>,
    /// Set if the session may be resumed.
    token: Option<Token>,
    listens: bool,
    /// Since when the coordinator is gone, while results are kept for it.
    lost: Option<Instant>,
    /// The agent whose stdin and stdout are used, after a reconnect.
    control: Option<Control>,
}

/// Run a session on stdin and stdout. Returns the exit code. With `once` nothing is kept for the next one.
pub fn run(once: bool) -> u8 {
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
        named: Named::default(),
        follow: Follow::default(),
        watched: None,
        dumping: None,
        token: None,
        listens: false,
        lost: None,
        control: None,
    };
    let end = unbroken(|| session.serve()).unwrap_or_else(End::Refused);
    session.close(end)
}

fn refuse(output: &mut Output, failure: Failure) -> u8 {
    complain(&failure.reason);
    output.send(&Event::Error(failure));
    1
}

/// Stderr may be closed with the connection.
fn complain(what: &str) {
    let _ = writeln!(std::io::stderr(), "hprofiler-agent: {what}");
}

/// Unique for this boot.
fn session_name() -> String {
    format!(
        "{}-{}",
        std::process::id(),
        stat::own().map_or(0, |stat| stat.start_time)
    )
}

impl Session {
    fn serve(&mut self) -> End {
        loop {
            lease::show(self.lease_ends());
            let limit = self.recordings.as_ref().and_then(Recordings::limit);
            let until = limit.into_iter().fold(self.lease_ends(), Instant::min);
            // Over a slow connection one answer may take longer than any limit. Messages that arrived meanwhile come
            // first.
            let end = match self.inbox.next(until) {
                Some(message) => self.take(message).and_then(|()| self.check_connection()),
                None => self.overdue(),
            };
            if let Err(end) = end {
                return end;
            }
        }
    }

    fn take(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::Input(_, Input::Request(request, payload)) => {
                self.mark_found();
                self.answer(request, payload)
            }
            Message::Input(_, Input::Bad(reason)) => Err(End::Refused(
                Failure::new(reason, "use a coordinator and an agent of the same version")
                    .coded(Code::BadRequest),
            )),
            Message::Input(_, Input::Closed) => self.lose("it was closed", End::Closed),
            Message::Signal(SIGHUP) => self.lose("it was hung up", End::Signal(SIGHUP)),
            Message::Signal(signal) => Err(End::Signal(signal)),
            Message::Report(pid, report) => {
                self.handle_report(pid, report);
                Ok(())
            }
            Message::Appeared(matches) => {
                self.appeared(matches);
                Ok(())
            }
            Message::Dump(dumped) => {
                self.handle_dump(dumped);
                Ok(())
            }
            Message::Successor(successor) => {
                self.switch_connection(successor);
                Ok(())
            }
            Message::AuditPending => {
                self.output.send_audit();
                Ok(())
            }
        }
    }

    /// The time of a step, or of the coordinator, may be over.
    fn overdue(&mut self) -> Result<(), End> {
        if let Some(recordings) = &mut self.recordings {
            recordings.give_up(&mut self.output);
        }
        self.advance();
        self.check_connection()?;
        match self.lost {
            _ if self.lease_ends() > Instant::now() => Ok(()),
            Some(_) => Err(End::Overdue(
                "the coordinator was lost and did not reconnect",
            )),
            None => {
                let why = "the coordinator was silent for longer than the lease";
                self.lose(why, End::Overdue(why))
            }
        }
    }

    /// If another connection waits, it is in the inbox and will continue.
    fn check_connection(&mut self) -> Result<(), End> {
        match self.lost.is_none() && self.output.gone() && !self.output.is_wanted() {
            true => self.lose("nothing can be sent", End::Closed),
            false => Ok(()),
        }
    }

    fn answer(&mut self, request: Request, payload: Vec<u8>) -> Result<(), End> {
        let hello = matches!(request, Request::Hello { .. });
        if hello == self.greeted {
            return Err(End::Refused(
                Failure::plain("a session starts with one hello").coded(Code::BadRequest),
            ));
        }
        let answered = match request {
            Request::Hello(greeting) => self.hello(greeting),
            Request::Put { name, sha256, .. } => self.put(&name, sha256, payload),
            Request::List => self.list(),
            Request::Find(find) => self.find(find),
            Request::Prepare(prepare) => self.prepare(*prepare),
            Request::Check(check) => self.check(*check),
            Request::Follow(find) => self.follow(*find),
            Request::Join { processes } => self.join(processes),
            Request::Start => self.start(),
            Request::Stop => self.stop(),
            Request::Watch {
                processes,
                counters,
            } => self.watch(processes, counters),
            Request::Dump(dump) => self.dump(dump),
            Request::Memory { processes, heap } => self.memory(processes, heap),
            Request::Ping => Ok(()),
            Request::Clock => self.clock(),
            Request::Resume { token, received } => return self.resume(token, received),
            Request::Received { bytes } => {
                self.received(bytes);
                Ok(())
            }
            Request::Clean(order) => self.clean(order),
            Request::Bye => return Err(End::Bye),
        };
        answered.map_err(End::Refused)
    }

    fn handle_report(&mut self, pid: i32, report: Report) {
        if let Some(recordings) = &mut self.recordings {
            recordings.handle_report(pid, report, &mut self.output);
        }
        self.advance();
    }

    fn advance(&mut self) {
        let Some(recordings) = &mut self.recordings else {
            return;
        };
        if recordings.advance(&mut self.output) {
            let left = recordings.left_by_now();
            self.recordings = None;
            self.follow = Follow::Nothing;
            let left = left.into_iter().chain(attach::left()).collect();
            self.output.send(&Event::Done { left });
        }
        self.follow_while_open();
    }

    /// Leave nothing behind, whatever the end; then report it.
    fn close(mut self, end: End) -> u8 {
        // Whoever cleans up meanwhile is to let it.
        lease::show(Instant::now() + FAREWELL);
        let of_all = self.recordings.take();
        let of_all =
            of_all.map(|recordings| recordings.abandon(|until| self.inbox.next_report(until)));
        self.end_dump();
        let left = of_all.into_iter().flatten();
        let left: Vec<String> = left.chain(attach::left()).collect();
        lease::show(Instant::now());
        for path in &left {
            complain(&format!("left behind: {path}"));
        }
        let stays = matches!(end, End::Bye | End::Closed) && !attach::see_off();
        match end {
            End::Forwarded(_) => {}
            _ if stays => self.output.send_audit(), // later actions are not reported
            _ => self.output.send_last_audit(),
        }
        if matches!(end, End::Bye) && (stays || !left.is_empty()) {
            self.output.send(&Event::Left { left });
        }
        let control = self.control.take();
        let code = self.code(end);
        if let Some(control) = control {
            control.end(code);
        }
        if stays {
            self.finish_work();
        }
        code
    }

    /// Stay for one more lease, with closed output, until JVMs have read what tells them the meaning of their signal.
    fn finish_work(&mut self) {
        self.output.close();
        let end = Instant::now() + self.lease;
        lease::show(end);
        while Instant::now() < end && !attach::see_off() {
            if let Some(Message::Signal(signal)) = self.inbox.next(Instant::now() + LOOK) {
                if signal != SIGHUP {
                    return;
                }
            }
        }
    }

    fn code(&mut self, end: End) -> u8 {
        match end {
            End::Bye | End::Closed => 0,
            End::Forwarded(code) => code,
            End::Signal(signal) => {
                complain(&format!("ended by signal {signal}"));
                (128 + signal).clamp(1, 255) as u8
            }
            End::Overdue(reason) => refuse(
                &mut self.output,
                Failure::new(reason, "check the connection").coded(Code::ConnectionLost),
            ),
            End::Refused(failure) => refuse(&mut self.output, failure),
        }
    }
}
