use std::sync::{
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use super::*;

fn lane(queue_length: usize) -> Lane {
    let queue = FairQueue::new(1, 0, limits(queue_length));
    Lane::start("test", 1, queue, || {}).unwrap()
}

fn limits(queue_length: usize) -> QueueLimits {
    QueueLimits {
        length_max: queue_length,
        length_per_actor_max: queue_length,
        retry_after: Duration::from_secs(7),
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
