//! The recordings of a session, and the order in which the coordinator hears of them.

use std::sync::mpsc::{channel, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::files::sha256;
use crate::inbox::{Happening, Inbox};
use crate::outcome::{Failure, Outcome};
use crate::output::Output;
use crate::protocol::{Event, Pid, Prepare, ProfileHead};
use crate::recording::{self, Job, Library, Order, Report};

/// A host with more JVMs than this is to be profiled in parts.
const MAX_PROCESSES: usize = 512;
/// How long recordings may take to end when nobody waits for their results any more.
const FAREWELL: Duration = Duration::from_secs(30);
const STACK: usize = 512 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Preparing,
    Ready,
    Starting,
    Running,
    Over,
}

/// How far all of them are together; the coordinator is told as each step is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Wait,
    Start,
    Record,
}

struct Recording {
    pid: i32,
    phase: Phase,
    orders: Sender<Order>,
}

type Result = (Option<(ProfileHead, Vec<u8>)>, Outcome);

/// The recordings of one `prepare`, from there to `done`.
pub struct Recordings {
    all: Vec<Recording>,
    step: Step,
    duration: f64,
    /// Results that came before the coordinator was told that all have started.
    early: Vec<Result>,
    left: Vec<String>,
}

impl Recordings {
    /// Begin to prepare, each process on its own thread.
    pub fn prepare(
        request: Prepare,
        library: Vec<u8>,
        host: &str,
        session: &str,
        inbox: &Inbox,
    ) -> std::result::Result<Self, Failure> {
        if request.processes.len() > MAX_PROCESSES {
            return Err(Failure::new(
                format!(
                    "{} processes are more than the {MAX_PROCESSES} that one session takes",
                    request.processes.len()
                ),
                "choose fewer with a narrower selector",
            ));
        }
        let library = Arc::new(Library {
            sha256: sha256(&library),
            bytes: library,
        });
        let folding = Arc::new(Mutex::new(()));
        let mut all = Vec::new();
        for chosen in request.processes {
            let job = Job {
                chosen,
                sampling: request.sampling.clone(),
                library: library.clone(),
                session: session.to_owned(),
                host: host.to_owned(),
                folding: folding.clone(),
            };
            all.push(launch(job, inbox)?);
        }
        Ok(Self {
            all,
            step: Step::Prepare,
            duration: request.sampling.duration,
            early: Vec::new(),
            left: Vec::new(),
        })
    }

    /// Start all that are ready; Err where the coordinator asks for it at the wrong time.
    pub fn start(&mut self) -> std::result::Result<(), Failure> {
        if self.step != Step::Wait {
            return Err(Failure::plain(
                "start was asked for before ready was told, or twice",
            ));
        }
        self.step = Step::Start;
        for recording in self
            .all
            .iter_mut()
            .filter(|recording| recording.phase == Phase::Ready)
        {
            recording.phase = Phase::Starting;
            let _ = recording.orders.send(Order::Start);
        }
        Ok(())
    }

    /// End all early and keep their results; those that were not started have none.
    pub fn stop(&mut self) {
        self.order(Order::Stop);
        if matches!(self.step, Step::Prepare | Step::Wait) {
            self.step = Step::Start;
        }
    }

    fn order(&self, order: Order) {
        for recording in &self.all {
            // One that has ended does not listen any more.
            let _ = recording.orders.send(order);
        }
    }

    /// By when all must be over once they were started.
    pub fn deadline(&self) -> Instant {
        Instant::now()
            + Duration::from_secs_f64(self.duration.clamp(0.0, 86_400.0))
            + Duration::from_secs(60)
    }

    /// Take in what a recording tells.
    pub fn hear(&mut self, pid: i32, report: Report, output: &mut Output) {
        let Some(recording) = self.all.iter_mut().find(|recording| recording.pid == pid) else {
            return;
        };
        match report {
            Report::Prepared => recording.phase = Phase::Ready,
            Report::Started { event } => {
                recording.phase = Phase::Running;
                output.send(&Event::Started { pid, event });
            }
            Report::Over {
                profile,
                outcome,
                left,
            } => {
                // Of a process that has started the coordinator hears no more until all have.
                let early = recording.phase == Phase::Running && self.step == Step::Start;
                recording.phase = Phase::Over;
                self.left.extend(left);
                match early {
                    true => self.early.push((profile, outcome)),
                    false => send_result((profile, outcome), output),
                }
            }
        }
    }

    /// Tell of the steps that are complete by now; true once all is done.
    pub fn advance(&mut self, output: &mut Output) -> bool {
        if self.step == Step::Prepare && !self.any(Phase::Preparing) {
            self.step = Step::Wait;
            let ready = self
                .all
                .iter()
                .filter(|recording| recording.phase == Phase::Ready);
            output.send(&Event::Ready {
                processes: ready.map(|recording| Pid { pid: recording.pid }).collect(),
            });
        }
        if self.step == Step::Start && !self.any(Phase::Starting) {
            self.step = Step::Record;
            let running = self
                .all
                .iter()
                .filter(|recording| recording.phase == Phase::Running)
                .count();
            output.send(&Event::Recording {
                processes: running + self.early.len(),
            });
            for result in self.early.drain(..) {
                send_result(result, output);
            }
        }
        self.step == Step::Record && self.all_over()
    }

    fn any(&self, phase: Phase) -> bool {
        self.all.iter().any(|recording| recording.phase == phase)
    }

    fn all_over(&self) -> bool {
        self.all
            .iter()
            .all(|recording| recording.phase == Phase::Over)
    }

    /// What could not be deleted.
    pub fn left(self) -> Vec<String> {
        self.left
    }

    /// Have all end now and wait for it, in vain no longer than a while. What could not be deleted or ended.
    pub fn abandon(mut self, inbox: &Inbox) -> Vec<String> {
        self.order(Order::Abort);
        let until = Instant::now() + FAREWELL;
        while !self.all_over() {
            match inbox.next(until) {
                Some(Happening::Report(pid, Report::Over { left, .. })) => {
                    self.left.extend(left);
                    self.all.retain(|recording| recording.pid != pid);
                }
                Some(_) => {}
                None => break,
            }
        }
        let stuck = self
            .all
            .iter()
            .filter(|recording| recording.phase != Phase::Over);
        self.left
            .extend(stuck.map(|recording| format!("process {} does not answer", recording.pid)));
        self.left
    }
}

fn launch(job: Job, inbox: &Inbox) -> std::result::Result<Recording, Failure> {
    let (orders, to_follow) = channel();
    let pid = job.chosen.pid;
    let tell = recording::tagged(pid, inbox.sender.clone());
    let thread = thread::Builder::new()
        .name(format!("jvm {pid}"))
        .stack_size(STACK);
    thread
        .spawn(move || recording::run(job, &to_follow, &tell))
        .map_err(|error| {
            Failure::new(
                format!("no thread for process {pid}: {error}"),
                "raise the limit of processes (ulimit -u)",
            )
        })?;
    Ok(Recording {
        pid,
        phase: Phase::Preparing,
        orders,
    })
}

fn send_result((profile, outcome): Result, output: &mut Output) {
    if let Some((head, bytes)) = profile {
        output.send_with(&Event::Profile(head), &bytes);
    }
    output.send(&Event::Outcome(outcome));
}
