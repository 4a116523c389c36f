//! The thread pools for guests: two lanes, so that short calls never wait behind long calls. Within a lane, actors are served in
//! rotation, and two actors can't use all threads for long calls; see [`Flow`].

mod queue;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Instant,
};

use keywright_core::request_id;
use tokio::sync::{Semaphore, oneshot};

use queue::FairQueue;
pub(crate) use queue::{Flow, NotRun, QueueLimits};

use crate::{
    engine::CALLING_THREAD_STACK_BYTES,
    measure::{LaneOccupancy, QueueMeasurements},
};

/// The niceness of the generate lane's threads (POSIX `nice`), so that key generation does not delay read requests.
const GENERATE_NICENESS: i32 = 10;

/// The reserved threads of the generate lane: two flows with long jobs leave one thread to a third flow.
pub(crate) const THREADS_RESERVED: usize = 2;

/// Both lanes.
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
            short: Lane::start(
                "brief",
                short,
                FairQueue::new(short, 0, queue),
                keep_priority,
            )?,
            generate: Lane::start("generate", generate, generate_queue, lower_priority)?,
        })
    }

    /// Returns the current occupancy of both lanes.
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
    measurements: Arc<QueueMeasurements>,
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
            measurements: Arc::default(),
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
        let request = request_id::current();
        let queued = Instant::now();
        let (lane, measurements) = (self.name, Arc::clone(&self.measurements));
        let job = Box::new(move || {
            measurements.waited(lane, queued.elapsed());
            if !reply.is_closed() {
                let _ = reply.send(request_id::run_with(request, work));
            }
        });
        (job, response)
    }

    /// Returns the number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Returns the current occupancy.
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

fn run_job(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        tracing::error!("a plugin call panicked in the host");
    }
}

fn keep_priority() {}

fn lower_priority() {
    // On Linux, the priority is per thread, and this only changes the calling thread's.
    if let Err(cause) = rustix::process::nice(GENERATE_NICENESS) {
        tracing::warn!(%cause, "could not lower the priority of a plugin thread");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    use super::*;

    fn lane(queue_length: usize) -> Lane {
        let queue = FairQueue::new(1, 0, limits(queue_length));
        Lane::start("test", 1, queue, keep_priority).unwrap()
    }

    fn limits(queue_length: usize) -> QueueLimits {
        QueueLimits {
            length_max: queue_length,
            length_per_actor_max: queue_length,
            retry_after: std::time::Duration::from_secs(7),
        }
    }

    /// Occupies the lane's thread until the sender is used or dropped.
    async fn occupy(lane: &Arc<Lane>) -> (mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let occupied = Arc::clone(lane);
        let task = tokio::spawn(async move {
            let _ = occupied
                .run(Flow::Server, move || {
                    let _ = begun.send(());
                    let _ = released.recv();
                })
                .await;
        });
        has_begun.await.unwrap();
        (release, task)
    }

    #[tokio::test]
    async fn bulk_work_waits_outside_the_limits_of_the_queue() {
        let lane = Arc::new(lane(1));
        let (release, _task) = occupy(&lane).await;
        let bulk: Vec<_> = (0..3)
            .map(|number| {
                let lane = Arc::clone(&lane);
                tokio::spawn(async move { lane.run_bulk(move || number).await })
            })
            .collect();
        while lane.queue.length() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lane.bulk_permits.available_permits(), 0);
        let other = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { lane.run(Flow::Server, || 7).await }
        });
        while lane.queue.length() == 1 {
            tokio::task::yield_now().await;
        }
        assert!(lane.run(Flow::Server, || 8).await.is_err());
        drop(release);
        assert_eq!(other.await.unwrap(), Ok(7));
        for (number, waiting) in bulk.into_iter().enumerate() {
            assert_eq!(waiting.await.unwrap(), Ok(number));
        }
        assert_eq!(lane.bulk_permits.available_permits(), 1);
    }

    #[tokio::test]
    async fn bulk_work_of_a_dropped_caller_keeps_its_permit_to_its_end() {
        let lane = Arc::new(lane(1));
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let caller = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move {
                lane.run_bulk(move || {
                    let _ = begun.send(());
                    let _ = released.recv();
                })
                .await
            }
        });
        has_begun.await.unwrap();
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(lane.bulk_permits.available_permits(), 0);
        drop(release);
        assert_eq!(lane.run_bulk(|| 1).await, Ok(1));
        assert_eq!(lane.bulk_permits.available_permits(), 1);
    }

    #[tokio::test]
    async fn occupancy_counts_running_and_waiting_calls() {
        let lane = Arc::new(lane(3));
        let idle = LaneOccupancy {
            lane: "test",
            threads: 1,
            threads_busy: 0,
            queue_length: 0,
            queue_length_max: 3,
        };
        assert_eq!(lane.occupancy(), idle);
        let (release, task) = occupy(&lane).await;
        let waiting = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { lane.run(Flow::Server, || 1).await }
        });
        while lane.queue.length() == 0 {
            tokio::task::yield_now().await;
        }
        let full = LaneOccupancy {
            threads_busy: 1,
            queue_length: 1,
            ..idle
        };
        assert_eq!(lane.occupancy(), full);
        drop(release);
        task.await.unwrap();
        assert_eq!(waiting.await.unwrap(), Ok(1));
        while lane.occupancy() != idle {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_job() {
        let lane = lane(1);
        assert_eq!(
            lane.run(Flow::Server, || assert!(std::hint::black_box(false)))
                .await,
            Err(NotRun::Panicked)
        );
        assert_eq!(lane.run(Flow::Server, || 1).await, Ok(1));
    }

    #[tokio::test]
    async fn queued_work_of_a_dropped_caller_is_not_started() {
        let lane = Arc::new(lane(2));
        let (release, _task) = occupy(&lane).await;
        let has_run = Arc::new(AtomicBool::new(false));
        let caller = tokio::spawn({
            let (lane, has_run) = (Arc::clone(&lane), Arc::clone(&has_run));
            async move {
                lane.run(Flow::Server, move || has_run.store(true, Ordering::SeqCst))
                    .await
            }
        });
        while lane.queue.length() == 0 {
            tokio::task::yield_now().await;
        }
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        drop(release);
        assert_eq!(lane.run(Flow::Server, || 1).await, Ok(1));
        assert!(!has_run.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn generate_threads_have_a_lower_priority() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let lanes = Lanes::start([1, 1], limits(1)).unwrap();
        assert_eq!(lanes.short.run(Flow::Server, own).await, Ok(before));
        assert_eq!(
            lanes.generate.run(Flow::Server, own).await,
            Ok((before + GENERATE_NICENESS).min(19))
        );
        assert_eq!(own(), before);
    }
}
