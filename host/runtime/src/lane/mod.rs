//! The threads on which guests run: two lanes, so that short calls never wait behind long ones. Within a lane the calls of
//! one actor never wait behind all those of another: see [`Flow`].

mod queue;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::sync::{Semaphore, oneshot};
use tracing::Span;

pub(crate) use queue::Flow;
use queue::{FairQueue, NotQueued};

use crate::{
    engine::CALLING_THREAD_STACK_BYTES,
    measure::{self, LaneOccupancy},
};

/// By how much the threads of the generate lane are nicer than others (POSIX `nice`), so that requests that only read
/// keep their latency while keys are being made.
#[cfg(target_os = "linux")]
const GENERATE_NICENESS: i32 = 10;

/// Both lanes.
pub(crate) struct Lanes {
    /// For calls that are short: describing, normalizing, accepting, recovering, finding references.
    pub(crate) brief: Lane,
    /// For calls that may compute for long: making values.
    pub(crate) generate: Lane,
}

impl Lanes {
    /// Starts the threads of both lanes.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn start(threads_per_lane: usize, queue: QueueLimits) -> io::Result<Self> {
        let lane = |name, before| Lane::start(name, threads_per_lane, queue, before);
        Ok(Self {
            brief: lane("brief", keep_priority)?,
            generate: lane("generate", lower_priority)?,
        })
    }

    /// How full each of them is at this moment.
    pub(crate) fn occupancy(&self) -> [LaneOccupancy; 2] {
        [&self.brief, &self.generate].map(Lane::occupancy)
    }
}

/// How much may wait in a lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    /// How many calls may wait.
    pub(crate) length_max: usize,
    /// How many of them may be one actor's.
    pub(crate) length_per_actor_max: usize,
    /// After how long a refused caller is to retry.
    pub(crate) retry_after: Duration,
}

/// Threads that take work from one bounded queue.
pub(crate) struct Lane {
    name: &'static str,
    queue: Arc<FairQueue<Job>>,
    retry_after: Duration,
    threads: usize,
    threads_busy: Arc<AtomicUsize>,
    /// As many places as there are threads, for the work that waits for its turn.
    turns: Arc<Semaphore>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Lane {
    fn start(
        name: &'static str,
        threads: usize,
        limits: QueueLimits,
        before: fn(),
    ) -> io::Result<Self> {
        let queue = Arc::new(FairQueue::<Job>::new(
            limits.length_max,
            limits.length_per_actor_max,
        ));
        let threads_busy = Arc::new(AtomicUsize::new(0));
        for number in 1..=threads {
            let (jobs, threads_busy) = (Arc::clone(&queue), Arc::clone(&threads_busy));
            thread::Builder::new()
                .name(format!("plugin-{name}-{number}"))
                .stack_size(CALLING_THREAD_STACK_BYTES)
                .spawn(move || {
                    before();
                    while let Some(job) = jobs.pop() {
                        threads_busy.fetch_add(1, Ordering::Relaxed);
                        run_job(job);
                        threads_busy.fetch_sub(1, Ordering::Relaxed);
                    }
                })?;
        }
        Ok(Self {
            name,
            queue,
            retry_after: limits.retry_after,
            threads,
            threads_busy,
            turns: Arc::new(Semaphore::new(threads)),
        })
    }

    /// Runs work on one of the lane's threads and waits for what it gives.
    ///
    /// When this future is dropped, work that has not begun is left out, and what begun work gives is thrown away.
    ///
    /// # Errors
    /// When the queue is full, for all or for this flow, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        flow: Flow,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        let (job, answer) = job(self.name, work);
        let retry_after = self.retry_after;
        match self.queue.push(flow, job) {
            Ok(()) => answer.await.map_err(|_| NotRun::Panicked),
            Err(NotQueued::LaneFull) => Err(NotRun::QueueFull { retry_after }),
            Err(NotQueued::FlowFull) => Err(NotRun::ActorQueueFull { retry_after }),
        }
    }

    /// As [`Lane::run`], for the parts of something larger. All such work together is one flow, and never has more jobs in
    /// the lane than there are threads, running or waiting; further work waits outside. So it needs no room in the queue,
    /// can use all threads, and takes one turn of the rotation. A job counts until it has ended, also when this future is
    /// dropped before.
    ///
    /// # Errors
    /// When the work panicked.
    pub(crate) async fn run_in_turn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        // Neither is ever closed while the lane is there.
        let turn = Arc::clone(&self.turns)
            .acquire_owned()
            .await
            .map_err(|_| NotRun::Panicked)?;
        let (job, answer) = job(self.name, move || {
            let given = work();
            drop(turn);
            given
        });
        self.queue.push_beyond_limits(Flow::Bulk, job);
        answer.await.map_err(|_| NotRun::Panicked)
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// How full it is at this moment.
    pub(crate) fn occupancy(&self) -> LaneOccupancy {
        LaneOccupancy {
            lane: self.name,
            threads: self.threads,
            threads_busy: self.threads_busy.load(Ordering::Relaxed),
            queue_length: self.queue.length(),
            queue_length_max: self.queue.length_max(),
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Wraps work so that its result is sent back, unless the receiver is gone.
fn job<T: Send + 'static>(
    lane: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> (Job, oneshot::Receiver<T>) {
    let (reply, answer) = oneshot::channel();
    let span = Span::current();
    let queued = Instant::now();
    let job = Box::new(move || {
        measure::waited(lane, queued.elapsed());
        if !reply.is_closed() {
            let _ = reply.send(span.in_scope(work));
        }
    });
    (job, answer)
}

/// Why work gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// As many jobs of its actor wait as may.
    ActorQueueFull { retry_after: Duration },
    /// It panicked: a defect of the host.
    Panicked,
    /// As many jobs wait as may.
    QueueFull { retry_after: Duration },
}

fn run_job(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a plugin call panicked in the host");
    }
}

fn keep_priority() {}

#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux the priority is each thread's own, and this changes the calling thread's alone.
    if let Err(cause) = rustix::process::nice(GENERATE_NICENESS) {
        tracing::warn!(%cause, "the priority of a plugin thread could not be lowered");
    }
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

#[cfg(test)]
mod tests;
