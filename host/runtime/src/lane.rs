//! The threads on which guests run: two lanes, so that short calls never wait behind long ones.

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
    pub(crate) fn start(
        threads_per_lane: usize,
        queue_length: usize,
        retry_after: Duration,
    ) -> io::Result<Self> {
        let lane =
            |name, before| Lane::start(name, threads_per_lane, queue_length, retry_after, before);
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

/// Threads that take work from one bounded queue.
pub(crate) struct Lane {
    name: &'static str,
    queue: flume::Sender<Job>,
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
        queue_length: usize,
        retry_after: Duration,
        before: fn(),
    ) -> io::Result<Self> {
        let (queue, jobs) = flume::bounded::<Job>(queue_length);
        let threads_busy = Arc::new(AtomicUsize::new(0));
        for number in 1..=threads {
            let (jobs, threads_busy) = (jobs.clone(), Arc::clone(&threads_busy));
            thread::Builder::new()
                .name(format!("plugin-{name}-{number}"))
                .stack_size(CALLING_THREAD_STACK_BYTES)
                .spawn(move || {
                    before();
                    while let Ok(job) = jobs.recv() {
                        threads_busy.fetch_add(1, Ordering::Relaxed);
                        run_job(job);
                        threads_busy.fetch_sub(1, Ordering::Relaxed);
                    }
                })?;
        }
        Ok(Self {
            name,
            queue,
            retry_after,
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
    /// When the queue is full, or the work panicked.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, NotRun> {
        let (job, answer) = job(self.name, work);
        match self.queue.try_send(job) {
            Ok(()) => answer.await.map_err(|_| NotRun::Panicked),
            Err(_) => Err(NotRun::QueueFull {
                retry_after: self.retry_after,
            }),
        }
    }

    /// As [`Lane::run`], for the parts of something larger: where the queue is full, it waits for a place. All such work
    /// together never has more places than there are threads, so that it uses them all, and others still find the queue
    /// as good as empty. A place is the work's own until it has ended, also when this future is dropped before.
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
        self.queue
            .send_async(job)
            .await
            .map_err(|_| NotRun::Panicked)?;
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
            queue_length: self.queue.len(),
            queue_length_max: self.queue.capacity().unwrap_or_default(),
        }
    }
}

/// Wraps work so that what it gives comes back, unless nobody waits for it any more.
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
mod tests {
    use std::sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    };

    use super::*;

    fn lane(queue_length: usize) -> Lane {
        Lane::start(
            "test",
            1,
            queue_length,
            Duration::from_secs(7),
            keep_priority,
        )
        .unwrap()
    }

    /// Occupies the lane's thread until the sender is used or dropped.
    async fn occupy(lane: &Arc<Lane>) -> (mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let occupied = Arc::clone(lane);
        let task = tokio::spawn(async move {
            let _ = occupied
                .run(move || {
                    let _ = begun.send(());
                    let _ = released.recv();
                })
                .await;
        });
        has_begun.await.unwrap();
        (release, task)
    }

    #[tokio::test]
    async fn one_past_the_queue_length_is_refused_with_the_time_to_wait() {
        let lane = Arc::new(lane(1));
        let (release, _task) = occupy(&lane).await;
        let waiting = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { lane.run(|| 1).await }
        });
        while lane.queue.is_empty() {
            tokio::task::yield_now().await;
        }
        let refused = lane.run(|| 2).await;
        assert_eq!(
            refused,
            Err(NotRun::QueueFull {
                retry_after: Duration::from_secs(7)
            })
        );
        drop(release);
        assert_eq!(waiting.await.unwrap(), Ok(1));
    }

    #[tokio::test]
    async fn work_in_turn_waits_where_other_work_is_refused_and_takes_one_place_a_thread() {
        let lane = Arc::new(lane(1));
        let (release, _task) = occupy(&lane).await;
        let in_turn: Vec<_> = (0..3)
            .map(|number| {
                let lane = Arc::clone(&lane);
                tokio::spawn(async move { lane.run_in_turn(move || number).await })
            })
            .collect();
        while lane.queue.is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(lane.turns.available_permits(), 0);
        assert!(lane.run(|| 7).await.is_err());
        drop(release);
        for (number, waiting) in in_turn.into_iter().enumerate() {
            assert_eq!(waiting.await.unwrap(), Ok(number));
        }
        assert_eq!(lane.turns.available_permits(), 1);
    }

    #[tokio::test]
    async fn work_in_turn_keeps_its_place_until_it_has_ended_though_its_caller_has_gone() {
        let lane = Arc::new(lane(1));
        let (release, released) = mpsc::channel::<()>();
        let (begun, has_begun) = oneshot::channel();
        let caller = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move {
                lane.run_in_turn(move || {
                    let _ = begun.send(());
                    let _ = released.recv();
                })
                .await
            }
        });
        has_begun.await.unwrap();
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert_eq!(lane.turns.available_permits(), 0);
        drop(release);
        assert_eq!(lane.run_in_turn(|| 1).await, Ok(1));
        assert_eq!(lane.turns.available_permits(), 1);
    }

    #[tokio::test]
    async fn its_occupancy_tells_what_runs_and_what_waits() {
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
            async move { lane.run(|| 1).await }
        });
        while lane.queue.is_empty() {
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
    async fn a_panic_ends_its_own_job_alone() {
        let lane = lane(1);
        assert_eq!(
            lane.run(|| assert!(std::hint::black_box(false))).await,
            Err(NotRun::Panicked)
        );
        assert_eq!(lane.run(|| 1).await, Ok(1));
    }

    #[tokio::test]
    async fn work_whose_caller_has_gone_is_not_begun() {
        let lane = Arc::new(lane(2));
        let (release, _task) = occupy(&lane).await;
        let has_run = Arc::new(AtomicBool::new(false));
        let caller = tokio::spawn({
            let (lane, has_run) = (Arc::clone(&lane), Arc::clone(&has_run));
            async move {
                lane.run(move || has_run.store(true, Ordering::SeqCst))
                    .await
            }
        });
        while lane.queue.is_empty() {
            tokio::task::yield_now().await;
        }
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        drop(release);
        assert_eq!(lane.run(|| 1).await, Ok(1));
        assert!(!has_run.load(Ordering::SeqCst));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_generate_lane_yields_to_others() {
        let own = || rustix::process::getpriority_process(None).unwrap();
        let before = own();
        let lanes = Lanes::start(1, 1, Duration::from_secs(1)).unwrap();
        assert_eq!(lanes.brief.run(own).await, Ok(before));
        assert_eq!(
            lanes.generate.run(own).await,
            Ok((before + GENERATE_NICENESS).min(19))
        );
        assert_eq!(own(), before);
    }
}
