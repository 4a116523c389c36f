//! The queue of a lane: one queue per flow, served in rotation.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use keywright_core::permission::Actor;
use parking_lot::{Condvar, Mutex, MutexGuard};

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

/// The limits of a lane's queue.
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
pub(super) struct FairQueue<J> {
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
    pub(super) fn new(threads: usize, threads_reserved: usize, limits: QueueLimits) -> Self {
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
    pub(super) fn push(&self, flow: Flow, job: J) -> Result<(), NotRun> {
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
    pub(super) fn push_bulk(&self, job: J) {
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
    pub(super) fn pop(&self, ended: Option<Flow>) -> Option<(Flow, J)> {
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
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_changed.notify_all();
    }

    pub(super) fn length(&self) -> usize {
        self.state.lock().length
    }

    pub(super) fn length_max(&self) -> usize {
        self.limits.length_max
    }
}

impl<J> State<J> {
    /// Returns the number of waiting jobs of this flow.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn queue<J>(length_max: usize, length_per_actor_max: usize) -> FairQueue<J> {
        let limits = QueueLimits {
            length_max,
            length_per_actor_max,
            retry_after: Duration::ZERO,
        };
        FairQueue::new(100, 0, limits)
    }

    fn actor(name: &str) -> Flow {
        Flow::Actor(Actor::of_lookup(name))
    }

    #[test]
    fn flows_are_served_in_rotation_and_each_in_order() {
        let queue = queue(100, 50);
        for number in 0..50 {
            queue.push(actor("many"), format!("many {number}")).unwrap();
        }
        queue.push(actor("one"), "one".to_owned()).unwrap();
        queue.push_bulk("bulk".to_owned());
        let taken: Vec<_> = (0..5).filter_map(|_| Some(queue.pop(None)?.1)).collect();
        assert_eq!(taken, ["many 0", "one", "bulk", "many 1", "many 2"]);
    }

    #[test]
    fn reserved_threads_only_run_first_jobs_of_a_flow() {
        let queue = FairQueue::new(4, 2, queue::<()>(100, 50).limits);
        for number in 0..4 {
            queue.push(actor("a"), number).unwrap();
        }
        let next = |ended: Option<&str>| queue.pop(ended.map(actor)).map(|(_, job)| job);
        assert_eq!([next(None), next(None)], [Some(0), Some(1)]);
        for number in [10, 11] {
            queue.push(actor("b"), number).unwrap();
        }
        assert_eq!(next(None), Some(10));
        queue.push(actor("c"), 20).unwrap();
        assert_eq!(next(None), Some(20));
        assert_eq!(next(Some("b")), Some(11));
        queue.close();
        assert_eq!(next(Some("c")), None);
        assert_eq!(next(Some("a")), None);
        assert_eq!(next(Some("b")), Some(2));
    }

    #[test]
    fn jobs_run_on_all_threads_that_an_ended_job_releases() {
        let queue = FairQueue::new(3, 1, queue::<()>(100, 50).limits);
        for (name, number) in [("a", 0), ("b", 10), ("a", 1), ("b", 11)] {
            queue.push(actor(name), number).unwrap();
        }
        let next = |ended: Option<&str>| queue.pop(ended.map(actor)).map(|(_, job)| job);
        assert_eq!([next(None), next(None)], [Some(0), Some(10)]);
        std::thread::scope(|threads| {
            let idle = threads.spawn(|| next(None));
            // The thread takes one job, and wakes the idle thread for the other.
            let taken = next(Some("b"));
            assert_eq!(
                [taken, idle.join().unwrap()].iter().flatten().sum::<i32>(),
                1 + 11
            );
        });
    }

    #[test]
    fn a_full_lane_accepts_one_job_of_each_other_flow() {
        let queue = queue(3, 2);
        assert_eq!(queue.push(actor("a"), ()), Ok(()));
        assert_eq!(queue.push(actor("a"), ()), Ok(()));
        let refused = queue.push(actor("a"), ());
        assert!(matches!(refused, Err(NotRun::ActorQueueFull { .. })));
        assert_eq!(queue.push(actor("b"), ()), Ok(()));
        assert_eq!(queue.push(actor("c"), ()), Ok(()));
        for name in ["a", "b", "c"] {
            let refused = queue.push(actor(name), ());
            assert!(matches!(refused, Err(NotRun::QueueFull { .. })));
        }
    }

    #[test]
    fn limits_neither_count_nor_refuse_bulk_work() {
        let queue = queue(1, 1);
        queue.push_bulk(());
        queue.push_bulk(());
        assert_eq!(queue.push(actor("a"), ()), Ok(()));
        let refused = queue.push(actor("a"), ());
        assert!(matches!(refused, Err(NotRun::QueueFull { .. })));
        queue.push_bulk(());
        assert_eq!(queue.length(), 4);
        queue.close();
        assert_eq!(std::iter::from_fn(|| queue.pop(None)).count(), 4);
    }
}
