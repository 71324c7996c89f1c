//! A thread beside the process: it sees the process's files as the process's user, and does there what is asked of it.
//!
//! perf itself is run by the agent with the agent's own rights, so it takes two threads.

use std::sync::mpsc::{channel, Receiver, Sender};
use std::thread;
use std::time::Duration;

use super::companion::Companion;
use crate::engine::api::Job;
use crate::os::threads::{hangs, no_thread, unbroken};
use crate::wire::outcome::Failure;

type Work = Box<dyn FnOnce(&mut Companion) + Send>;

/// How long the thread may take to see the process's files.
const ENTER: Duration = Duration::from_secs(10);

/// The other thread. It ends when this is dropped and its work is done.
pub struct Beside {
    orders: Sender<Work>,
    pid: i32,
}

impl Beside {
    /// Begin it; it takes the process's user at once, so that it sees its files even after its end.
    pub fn begin(job: &Job) -> Result<Self, Failure> {
        let (orders, to_do) = channel::<Work>();
        let (tell, told) = channel();
        let pid = job.chosen.pid;
        let copy = job.clone();
        let run = move || match Companion::enter(&copy) {
            Ok(mut companion) => {
                let _ = tell.send(Ok(()));
                for work in to_do {
                    // Who waits for it learns that nothing comes.
                    let _ = unbroken(|| work(&mut companion));
                }
            }
            Err(failure) => drop(tell.send(Err(failure))),
        };
        let thread = thread::Builder::new().name(format!("beside {pid}"));
        thread.spawn(run).map_err(|error| no_thread(pid, &error))?;
        let beside = Self { orders, pid };
        told.recv_timeout(ENTER).map_err(|_| beside.hangs())??;
        Ok(beside)
    }

    /// Have something done; what comes of it comes by the channel.
    pub fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Companion) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (sender, receiver) = channel();
        let work = move |companion: &mut Companion| {
            // Nobody may wait any more.
            let _ = sender.send(work(companion));
        };
        // If the thread is no more, the channel says so.
        let _ = self.orders.send(Box::new(work));
        receiver
    }

    /// Have something done and wait for it.
    pub fn do_now<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut Companion) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let answer = self.ask(work).recv_timeout(patience);
        answer.map_err(|_| self.hangs())
    }

    pub fn hangs(&self) -> Failure {
        hangs(self.pid)
    }
}
