//! One recording as the group sees it: how far it is, and until when its step may take.

use std::fs::File;
use std::sync::mpsc::{channel, Sender};
use std::thread;
use std::time::Instant;

use crate::engine::api::Job;
use crate::metrics::Chosen;
use crate::os::threads::{self, STACK};
use crate::recording::process::{self, Finished, Order, Report};
use crate::wire::outcome::Stage;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Preparing,
    Ready,
    Starting,
    Running,
    Over,
}

pub struct Member {
    pub pid: i32,
    pub start_time: u64,
    pub phase: Phase,
    /// When its phase ends at the latest. None: it waits for an order, or for the end of the recording.
    pub limit: Option<Instant>,
    /// Whether its thread has ended.
    pub ended: bool,
    /// The file of a JVM's performance data.
    published: Option<File>,
    /// Whether it starts as soon as it is ready.
    joins: bool,
    orders: Sender<Order>,
}

impl Member {
    /// Prepare a process on a thread of its own, whose reports `send` gets. If it `joins`, it has its order to start.
    pub fn launch(
        job: Job,
        limit: Instant,
        joins: bool,
        send: impl Fn(i32, Report) + Clone + Send + Sync + 'static,
    ) -> Self {
        let (orders, mut to_follow) = channel();
        let (pid, start_time) = (job.chosen.pid, job.chosen.start_time);
        if joins {
            let _ = orders.send(Order::Start);
        }
        let send = move |report| send(pid, report);
        let send_from_thread = send.clone();
        let thread = thread::Builder::new()
            .name(format!("process {pid}"))
            .stack_size(STACK);
        let run = move || process::run(&job, &mut to_follow, &send_from_thread);
        if let Err(error) = thread.spawn(run) {
            let outcome = threads::no_thread(pid, &error).at(pid, Stage::Prepare);
            send(Report::Over(Box::new(Finished::without_profiles(outcome))));
        }
        Self {
            pid,
            start_time,
            phase: Phase::Preparing,
            limit: Some(limit),
            ended: false,
            published: None,
            joins,
            orders,
        }
    }

    /// A recording that has ended takes no orders.
    pub fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    pub fn start(&mut self, limit: Instant) {
        self.phase = Phase::Starting;
        self.limit = Some(limit);
        self.order(Order::Start);
    }

    /// It was prepared. One that joins starts until `limit`.
    pub fn ready(&mut self, published: Option<File>, limit: Instant) {
        (self.phase, self.limit) = match self.joins {
            true => (Phase::Starting, Some(limit)),
            false => (Phase::Ready, None),
        };
        self.published = published;
    }

    /// Whose metrics are read, with the file that its JVM publishes.
    pub fn measured(&mut self) -> Chosen {
        Chosen {
            pid: self.pid,
            start_time: self.start_time,
            published: self.published.take(),
        }
    }

    pub fn over(&mut self) {
        self.phase = Phase::Over;
        self.limit = None;
    }

    pub fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// Give up one that takes too long. None: it does not.
    pub fn give_up(&mut self, now: Instant) -> Option<Finished> {
        self.limit.filter(|limit| *limit <= now)?;
        let stage = match self.phase {
            Phase::Preparing => Stage::Prepare,
            Phase::Ready | Phase::Starting => Stage::Start,
            Phase::Running | Phase::Over => Stage::Record,
        };
        self.over();
        self.order(Order::Abort);
        let hangs = threads::hangs(self.pid).at(self.pid, stage);
        Some(Finished::without_profiles(hangs).explained(self.pid, self.start_time))
    }

    #[cfg(test)]
    pub fn of(pid: i32, phase: Phase, limit: Option<Instant>) -> Self {
        Self {
            pid,
            start_time: 0,
            phase,
            limit,
            ended: phase == Phase::Over,
            published: None,
            joins: false,
            orders: channel().0,
        }
    }
}
