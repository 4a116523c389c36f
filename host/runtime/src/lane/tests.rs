use std::sync::{
    atomic::{AtomicBool, Ordering},
    mpsc,
};

use super::*;

fn lane(queue_length: usize) -> Lane {
    Lane::start("test", 1, limits(queue_length), keep_priority).unwrap()
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
async fn a_call_beyond_the_queue_length_is_refused_with_retry_after() {
    let lane = Arc::new(lane(1));
    let (release, _task) = occupy(&lane).await;
    let waiting = tokio::spawn({
        let lane = Arc::clone(&lane);
        async move { lane.run(Flow::Server, || 1).await }
    });
    while lane.queue.length() == 0 {
        tokio::task::yield_now().await;
    }
    let refused = lane.run(Flow::Server, || 2).await;
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
async fn bulk_work_waits_outside_a_full_queue() {
    let lane = Arc::new(lane(1));
    let (release, _task) = occupy(&lane).await;
    let in_turn: Vec<_> = (0..3)
        .map(|number| {
            let lane = Arc::clone(&lane);
            tokio::spawn(async move { lane.run_in_turn(move || number).await })
        })
        .collect();
    while lane.queue.length() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(lane.turns.available_permits(), 0);
    assert!(lane.run(Flow::Server, || 7).await.is_err());
    drop(release);
    for (number, waiting) in in_turn.into_iter().enumerate() {
        assert_eq!(waiting.await.unwrap(), Ok(number));
    }
    assert_eq!(lane.turns.available_permits(), 1);
}

#[tokio::test]
async fn bulk_work_holds_its_permit_to_its_end_without_a_caller() {
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

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_generate_lane_yields_to_others() {
    let own = || rustix::process::getpriority_process(None).unwrap();
    let before = own();
    let lanes = Lanes::start(1, limits(1)).unwrap();
    assert_eq!(lanes.brief.run(Flow::Server, own).await, Ok(before));
    assert_eq!(
        lanes.generate.run(Flow::Server, own).await,
        Ok((before + GENERATE_NICENESS).min(19))
    );
    assert_eq!(own(), before);
}
