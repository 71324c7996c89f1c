//! What all threads of processes do at one moment. Nothing is recorded, and nothing is loaded into a process.
//!
//! A JVM is asked by its own attach command, of a Python process a child of the agent reads the memory. Of others, and
//! of those that do not answer, the kernel says what their threads wait for.

mod threads;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flate2::write::GzEncoder;
use flate2::Compression;

use crate::engine::pyspy;
use crate::jvm::attach::Attach;
use crate::jvm::preflight::{self, refuse_no_attach, Findings};
use crate::jvm::young;
use crate::os::audit;
use crate::os::identity::Namespaces;
use crate::os::proc::target::Target;
use crate::os::threads::{hangs, no_thread, on_thread, unbroken, STACK};
use crate::os::worker_pool::{self, NoResult, Patience};
use crate::resources::folding::{Folding, Waiting};
use crate::resources::limits::Limits;
use crate::wire::events::{DumpHead, DumpKind};
use crate::wire::outcome::{Code, Failure, Outcome, Stage, Status};
use crate::wire::requests::{Dump, Watched};

use self::threads::Threads;

/// How many processes are asked at a time.
const AT_ONCE: usize = 8;
/// How long a JVM may take to answer, and how much more a JVM that searches its heap for owners.
const ANSWER: Duration = Duration::from_secs(10);
const SEARCH: Duration = Duration::from_secs(30);
/// How long all that is done for one process may take beside that, and how long all together.
const BESIDE: Duration = Duration::from_secs(15);
const ALL: Duration = Duration::from_secs(60);
/// The longest text of a process, in bytes, if the agent's memory is large enough for as many as are read at a time.
const MOST: u64 = 16 << 20;
const PARTS: u64 = 4 * AT_ONCE as u64;
/// The part of the agent's memory for texts that wait to be received.
const WAITING: u64 = 4;

/// What came of one process.
pub struct Dumped {
    pub text: Option<(DumpHead, Waiting)>,
    pub outcome: Outcome,
}

/// A dump that goes on.
pub struct Dumping {
    room: Arc<Folding>,
}

struct Asking {
    owners: bool,
    answer: Duration,
    limits: Limits,
    /// Over when nobody is asked any more.
    room: Arc<Folding>,
}

/// What a process answered.
struct Text {
    kind: DumpKind,
    text: String,
    cut: bool,
}

impl Dumping {
    /// Ask all processes. `send` gets what comes of each, and at the end None.
    pub fn begin(
        request: Dump,
        send: impl Fn(Option<Box<Dumped>>) + Send + 'static,
    ) -> Result<Self, Failure> {
        request.check()?;
        let limits = Limits::set(request.agent_cpu, request.processes.len());
        let waiting = limits.memory_part(WAITING) as usize;
        let answer = if request.owners {
            ANSWER + SEARCH
        } else {
            ANSWER
        };
        let patience = Patience {
            each: answer + BESIDE,
            all: answer + ALL,
        };
        let room = Arc::new(Folding::new(patience.each, waiting));
        let asking = Arc::new(Asking {
            owners: request.owners,
            answer,
            limits,
            room: room.clone(),
        });
        let work = move || {
            let pids: Vec<i32> = request.processes.iter().map(|one| one.pid).collect();
            let ask = move |one: Watched| asking.dump(&one);
            let on_result = |index: usize, dumped: Result<_, NoResult>| {
                let (text, outcome) = dumped.unwrap_or_else(|why| (None, undone(pids[index], why)));
                send(Some(Box::new(Dumped { text, outcome })));
            };
            worker_pool::run_each(request.processes, AT_ONCE, patience, ask, on_result);
            send(None);
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(work).map_err(|error| no_thread(0, &error))?;
        Ok(Self { room })
    }

    /// Ask nobody any more. Those that are asked now still answer.
    pub fn stop(&self) {
        self.room.end();
    }
}

fn undone(pid: i32, why: NoResult) -> Outcome {
    let failure = match why {
        NoResult::Stuck => hangs(pid),
        NoResult::NotStarted => Failure::plain(why.to_string()).coded(Code::TooManyThreads),
    };
    failure.at(pid, Stage::Dump)
}

impl Asking {
    fn dump(&self, one: &Watched) -> (Option<(DumpHead, Waiting)>, Outcome) {
        let dumped = unbroken(|| self.look(one)).and_then(|looked| looked);
        dumped.unwrap_or_else(|failure| (None, failure.at(one.pid, Stage::Dump)))
    }

    fn look(&self, one: &Watched) -> Result<(Option<(DumpHead, Waiting)>, Outcome), Failure> {
        let cancelled = || Failure::plain("not asked: the dump was ended").coded(Code::Cancelled);
        if self.room.is_over() {
            return Err(cancelled());
        }
        self.limits.rest();
        let target = Target::open(one.pid, one.start_time)?;
        let (time, began) = (audit::now(), Instant::now());
        let (text, mut notes) = match self.ask(&target) {
            Ok(text) => (text, Vec::new()),
            Err(failure) => (self.of_kernel(&target), failure.into_iter().collect()),
        };
        let seconds = began.elapsed().as_secs_f64();
        let threads = Threads::of(&target);
        if threads.is_empty() {
            return Err(
                Failure::plain(format!("process {} has ended", one.pid)).coded(Code::ProcessEnded)
            );
        }
        if text.cut {
            notes.push(cut(text.text.len()));
        }
        // One at a time, and none while too many wait to be received.
        let turn = self.room.turn().ok_or_else(cancelled)?;
        let bytes = self.room.wait(compressed(&text.text));
        drop(turn);
        let head = DumpHead {
            pid: one.pid,
            kind: text.kind,
            time,
            seconds,
            cpu: threads.cpu_seconds(),
            size: bytes.as_ref().len(),
        };
        Ok((Some((head, bytes)), outcome(one.pid, notes)))
    }

    fn most(&self) -> usize {
        MOST.min(self.limits.memory_part(PARTS)) as usize
    }

    /// What the process itself says. Err: it says nothing, perhaps for a reason.
    fn ask(&self, target: &Target) -> Result<Text, Option<Failure>> {
        young::await_start(target);
        let findings = preflight::look(target);
        let (kind, answer) = if findings.is_openj9() {
            return Err(Some(openj9(target.pid)));
        } else if findings.is_jvm {
            (DumpKind::Jvm, self.ask_jvm(target, &findings))
        } else if pyspy::suits(&findings) {
            let ask = || pyspy::dump::ask(target, &findings, &self.limits, self.most());
            (DumpKind::Python, on_thread(target.pid, "dump", ask))
        } else {
            return Err(None);
        };
        let (text, cut) = answer?;
        Ok(Text { kind, text, cut })
    }

    fn ask_jvm(&self, target: &Target, findings: &Findings) -> Result<(String, bool), Failure> {
        let before = Threads::of(target);
        let ask = || {
            let namespaces = Namespaces::enter(target)?;
            refuse_no_attach(target.pid, &findings.options(&namespaces.named))?;
            let attach = Attach::new(target, &namespaces).within(self.answer);
            attach.thread_dump(self.owners, self.answer, self.most())
        };
        on_thread(target.pid, "dump", ask).map_err(|failure| match failure.code {
            Code::AttachTimeout => before.explain(failure, target),
            _ => failure,
        })
    }

    fn of_kernel(&self, target: &Target) -> Text {
        let (text, cut) = Threads::of(target).text(target, self.most());
        Text {
            kind: DumpKind::Native,
            text,
            cut,
        }
    }
}

fn openj9(pid: i32) -> Failure {
    let reason = format!(
        "process {pid} is an OpenJ9 JVM: hprofiler asks only HotSpot JVMs for their threads"
    );
    let remedy = "take its dump with its own jcmd PID Thread.print";
    Failure::new(reason, remedy).coded(Code::Openj9)
}

fn cut(size: usize) -> Failure {
    let reason = format!(
        "its text is longer than {} MiB: the rest is cut off",
        size >> 20
    );
    Failure::plain(reason)
        .coded(Code::DumpCut)
        .with("bytes", size)
}

fn compressed(text: &str) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::default());
    // Memory takes all that is written.
    let _ = to.write_all(text.as_bytes());
    to.finish().unwrap_or_default()
}

/// Of a process that was dumped; with notes, not as it was meant.
fn outcome(pid: i32, notes: Vec<Failure>) -> Outcome {
    if notes.is_empty() {
        let done = Failure::plain("").coded(Code::Dumped).at(pid, Stage::Dump);
        return Outcome {
            status: Status::Ok,
            ..done
        };
    }
    let several = notes.len() > 1;
    let all = Failure::all(notes.clone()).at(pid, Stage::Dump);
    Outcome {
        status: Status::Degraded,
        notes: if several { notes } else { Vec::new() },
        ..all
    }
}
