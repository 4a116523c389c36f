//! The thread pools for guests, and their queues: two lanes, so that short calls never wait behind long calls. Within a lane, actors
//! are served in rotation, and two actors can't use all threads for long calls; see [`Flow`].

use std::{
    collections::{HashMap, VecDeque},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use keywright_core::{log, permission::Actor};
use metrics::{Histogram, describe_gauge, describe_histogram, gauge, histogram};
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Semaphore, oneshot};

use crate::engine::CALLING_THREAD_STACK_BYTES;

/// The niceness of the generate lane's threads (POSIX `nice`), so that key generation does not delay read requests.
const GENERATE_NICENESS: i32 = 10;

/// The reserved threads of the generate lane: two flows with long jobs leave one thread to a third flow.
pub(crate) const THREADS_RESERVED: usize = 2;

pub(crate) struct Lanes {
    /// For short calls: all functions of guests except `generate`, and the host's checks of certificates.
    pub(crate) short: Lane,
    /// For long calls: `generate`.
    pub(crate) generate: Lane,
}

impl Lanes {
    /// Starts both lanes, each with its number of threads. Some threads of the generate lane are reserved for flows without a
    /// running job.
    pub(crate) fn start([short, generate]: [usize; 2], queue: QueueLimits) -> io::Result<Self> {
        let reserved = THREADS_RESERVED.min(generate.saturating_sub(1));
        let generate_queue = FairQueue::new(generate, reserved, queue);
        Ok(Self {
            // The name is the label `lane` of metrics, which is public.
            short: Lane::start("brief", short, FairQueue::new(short, 0, queue), || {})?,
            generate: Lane::start("generate", generate, generate_queue, lower_priority)?,
        })
    }

    pub(crate) fn occupancy(&self) -> [LaneOccupancy; 2] {
        [&self.short, &self.generate].map(Lane::occupancy)
    }
}

/// Threads that take work from one bounded queue.
pub(crate) struct Lane {
    name: &'static str,
    queue: Arc<FairQueue<Job>>,
    threads: usize,
    threads_busy: Arc<AtomicUsize>,
    /// The metric of the time that work waits for a thread.
    waits: Arc<OnceLock<Histogram>>,
    /// A permit per thread, for [`Lane::run_bulk`].
    bulk_permits: Arc<Semaphore>,
}

type Job = Box<dyn FnOnce() + Send>;

impl Lane {
    fn start(
        name: &'static str,
        threads: usize,
        queue: FairQueue<Job>,
        before: fn(),
    ) -> io::Result<Self> {
        let queue = Arc::new(queue);
        let threads_busy = Arc::new(AtomicUsize::new(0));
        for number in 1..=threads {
            let (jobs, threads_busy) = (Arc::clone(&queue), Arc::clone(&threads_busy));
            thread::Builder::new()
                .name(format!("plugin-{name}-{number}"))
                .stack_size(CALLING_THREAD_STACK_BYTES)
                .spawn(move || {
                    before();
                    let mut ended = None;
                    while let Some((flow, job)) = jobs.pop(ended) {
                        threads_busy.fetch_add(1, Ordering::Relaxed);
                        run_job(job);
                        threads_busy.fetch_sub(1, Ordering::Relaxed);
                        ended = Some(flow);
                    }
                })?;
        }
        Ok(Self {
            name,
            queue,
            threads,
            threads_busy,
            waits: Arc::default(),
            bulk_permits: Arc::new(Semaphore::new(threads)),
        })
    }

    /// Runs work on one of the lane's threads and returns its result.
    ///
    /// Dropping this future cancels work that has not started, and discards the result of running work.
    ///
    /// # Errors
    /// If the queue is full, this flow has too many queued jobs, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        flow: Flow,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        let (job, response) = self.job(work);
        self.queue.push(flow, job)?;
        response.await.map_err(|_| NotRun::Panicked)
    }

    /// Like [`Lane::run`], for the parts of bulk work. All bulk work is one flow, which is served once per rotation. It has a permit
    /// per thread for running and queued jobs, so the queue's limits do not apply. Further jobs wait for a permit. A job holds
    /// its permit until it ends, even if this future is dropped.
    pub(crate) async fn run_bulk<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.bulk_permits)
            .acquire_owned()
            .await
            .map_err(|_| NotRun::Panicked)?;
        let (job, response) = self.job(move || {
            let result = work();
            drop(permit);
            result
        });
        self.queue.push_bulk(job);
        response.await.map_err(|_| NotRun::Panicked)
    }

    /// Wraps work in a job that sends its result, and does nothing if the receiver was dropped.
    fn job<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> (Job, oneshot::Receiver<T>) {
        let (reply, response) = oneshot::channel();
        let request = log::request_id();
        let queued = Instant::now();
        let (lane, waits) = (self.name, Arc::clone(&self.waits));
        let job = Box::new(move || {
            waits
                .get_or_init(|| histogram!(QUEUE_WAIT, "lane" => lane))
                .record(queued.elapsed());
            if !reply.is_closed() {
                let _ = reply.send(log::with_request_id(request, work));
            }
        });
        (job, response)
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn occupancy(&self) -> LaneOccupancy {
        LaneOccupancy {
            lane: self.name,
            threads: self.threads,
            threads_busy: self.threads_busy.load(Ordering::Relaxed),
            queue_length: self.queue.length(),
            queue_length_max: self.queue.limits.length_max,
        }
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.queue.close();
    }
}

fn run_job(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a plugin call panicked in the host");
    }
}

fn lower_priority() {
    // On Linux, the priority is per thread, and this only changes the calling thread's.
    if let Err(cause) = rustix::process::nice(GENERATE_NICENESS) {
        tracing::warn!(%cause, "could not lower the priority of a plugin thread");
    }
}

/// The flow of a job. Flows are served in rotation, regardless of how many jobs each has waiting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flow {
    /// The requests of one actor.
    Actor(Actor),
    /// All bulk work together.
    Bulk,
    /// The server's own calls.
    Server,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueLimits {
    pub(crate) length_max: usize,
    /// The maximum number of waiting calls of one actor.
    pub(crate) length_per_actor_max: usize,
    /// The time after which a refused caller should retry.
    pub(crate) retry_after: Duration,
}

/// The reason why work returned no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotRun {
    /// The actor has the maximum number of waiting jobs.
    ActorQueueFull { retry_after: Duration },
    /// It panicked: a defect of the host.
    Panicked,
    /// The lane has the maximum number of waiting jobs.
    QueueFull { retry_after: Duration },
}

/// Waiting jobs, in one queue per flow.
struct FairQueue<J> {
    state: Mutex<State<J>>,
    has_changed: Condvar,
    limits: QueueLimits,
}

struct State<J> {
    by_flow: HashMap<Flow, Jobs<J>>,
    /// The flows with waiting jobs, in the order in which they are served.
    rotation: VecDeque<Flow>,
    length: usize,
    threads_idle: usize,
    threads_reserved: usize,
    is_closed: bool,
}

/// The jobs of a flow.
struct Jobs<J> {
    waiting: VecDeque<J>,
    running: usize,
}

impl<J> FairQueue<J> {
    /// Creates a queue for a number of threads, of which some are reserved for flows without a running job.
    fn new(threads: usize, threads_reserved: usize, limits: QueueLimits) -> Self {
        Self {
            state: Mutex::new(State {
                by_flow: HashMap::new(),
                rotation: VecDeque::new(),
                length: 0,
                threads_idle: threads,
                threads_reserved,
                is_closed: false,
            }),
            has_changed: Condvar::new(),
            limits,
        }
    }

    /// Appends a job to the queue of its flow. A flow without waiting jobs may add one to a full lane: otherwise two flows could keep
    /// all others out.
    ///
    /// # Errors
    /// If the lane or the flow is full. If both are, reports the lane.
    fn push(&self, flow: Flow, job: J) -> Result<(), NotRun> {
        let retry_after = self.limits.retry_after;
        let state = self.state.lock();
        let waiting = state.waiting(&flow);
        if waiting > 0 && state.length - state.waiting(&Flow::Bulk) >= self.limits.length_max {
            return Err(NotRun::QueueFull { retry_after });
        }
        if waiting >= self.limits.length_per_actor_max {
            return Err(NotRun::ActorQueueFull { retry_after });
        }
        self.add(state, flow, job);
        Ok(())
    }

    /// Queues bulk work. It is exempt from the limits and does not count towards them, because its caller limits it.
    fn push_bulk(&self, job: J) {
        self.add(self.state.lock(), Flow::Bulk, job);
    }

    fn add(&self, mut state: MutexGuard<'_, State<J>>, flow: Flow, job: J) {
        let jobs = state.by_flow.entry(flow.clone()).or_default();
        jobs.waiting.push_back(job);
        if jobs.waiting.len() == 1 {
            state.rotation.push_back(flow);
        }
        state.length += 1;
        drop(state);
        self.has_changed.notify_one();
    }

    /// Waits for the next job: the oldest job of the next flow in the rotation. `None` once the queue is closed and empty.
    /// `ended` is the flow of the previous job of this thread.
    fn pop(&self, ended: Option<Flow>) -> Option<(Flow, J)> {
        let mut state = self.state.lock();
        if let Some(flow) = ended {
            state.end(&flow);
        }
        loop {
            if let Some(job) = state.take() {
                // The end of the previous job may also have made a second job runnable, on an idle thread.
                if !state.rotation.is_empty() {
                    self.has_changed.notify_one();
                }
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            self.has_changed.wait(&mut state);
        }
    }

    /// Closes the queue: threads end once it is empty.
    fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_changed.notify_all();
    }

    fn length(&self) -> usize {
        self.state.lock().length
    }
}

impl<J> State<J> {
    fn waiting(&self, flow: &Flow) -> usize {
        self.by_flow.get(flow).map_or(0, |jobs| jobs.waiting.len())
    }

    fn take(&mut self) -> Option<(Flow, J)> {
        let next = if self.threads_idle > self.threads_reserved {
            0
        } else {
            let mut rotation = self.rotation.iter();
            rotation
                .position(|flow| self.by_flow.get(flow).is_some_and(|jobs| jobs.running == 0))?
        };
        let flow = self.rotation.remove(next)?;
        let jobs = self.by_flow.get_mut(&flow)?;
        let job = jobs.waiting.pop_front()?;
        jobs.running += 1;
        if !jobs.waiting.is_empty() {
            self.rotation.push_back(flow.clone());
        }
        self.threads_idle -= 1;
        self.length -= 1;
        Some((flow, job))
    }

    /// Counts a job of this flow as ended.
    fn end(&mut self, flow: &Flow) {
        self.threads_idle += 1;
        let Some(jobs) = self.by_flow.get_mut(flow) else {
            return;
        };
        jobs.running -= 1;
        if jobs.running == 0 && jobs.waiting.is_empty() {
            self.by_flow.remove(flow);
        }
    }
}

impl<J> Default for Jobs<J> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            running: 0,
        }
    }
}

/// The occupancy of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneOccupancy {
    /// The lane: `brief` for short calls, or `generate`.
    pub lane: &'static str,
    /// Its threads.
    pub threads: usize,
    /// The busy threads.
    pub threads_busy: usize,
    /// The waiting calls.
    pub queue_length: usize,
    /// The maximum number of waiting calls.
    pub queue_length_max: usize,
}

impl LaneOccupancy {
    /// Sets the gauges of the lane.
    pub fn record(&self) {
        for (name, number) in [
            (LANE_THREADS, self.threads),
            (LANE_THREADS_BUSY, self.threads_busy),
            (LANE_QUEUE_LENGTH, self.queue_length),
            (LANE_QUEUE_LENGTH_MAX, self.queue_length_max),
        ] {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            gauge!(name, "lane" => self.lane).set(number);
        }
    }
}

/// Registers the descriptions of the metrics of lanes.
pub(crate) fn describe_metrics() {
    describe_histogram!(
        QUEUE_WAIT,
        "Time that plugin calls waited for a thread, by lane, in seconds."
    );
    describe_gauge!(LANE_THREADS, "Threads of each lane of plugin calls.");
    describe_gauge!(
        LANE_THREADS_BUSY,
        "Busy threads of each lane of plugin calls."
    );
    describe_gauge!(
        LANE_QUEUE_LENGTH,
        "Plugin calls that wait for a thread, by lane."
    );
    describe_gauge!(
        LANE_QUEUE_LENGTH_MAX,
        "Maximum number of plugin calls that may wait for a thread, by lane; further calls are refused."
    );
}

/// The time that a plugin call waited for a thread.
pub const QUEUE_WAIT: &str = "keywright_plugin_queue_wait_seconds";

const LANE_THREADS: &str = "keywright_plugin_lane_threads";
const LANE_THREADS_BUSY: &str = "keywright_plugin_lane_threads_busy";
const LANE_QUEUE_LENGTH: &str = "keywright_plugin_lane_queue_length";
const LANE_QUEUE_LENGTH_MAX: &str = "keywright_plugin_lane_queue_length_max";

#[cfg(test)]
mod tests;
