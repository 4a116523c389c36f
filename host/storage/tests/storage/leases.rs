//! Leases.

use keywright_core::ports::{Lease, Leases};
use uuid::Uuid;

use crate::support::{Fixture, at};

fn lease(name: &'static str, holder: u128) -> Lease {
    Lease {
        name,
        holder: Uuid::from_u128(holder),
    }
}

#[tokio::test]
async fn a_lease_can_be_acquired_by_another_holder_after_it_expires() {
    let fixture = Fixture::new().await;
    let leases = fixture.database.leases();
    let (one, two) = (lease("a", 1), lease("a", 2));
    assert!(leases.acquire(&one, at(0), at(1_000)).await.unwrap());
    for (now, may_take) in [(0, false), (999, false), (1_000, true)] {
        let taken = leases.acquire(&two, at(now), at(2_000)).await.unwrap();
        assert_eq!(taken, may_take, "{now}");
    }
    assert!(!leases.acquire(&one, at(1_000), at(3_000)).await.unwrap());
    assert!(!leases.renew(&one, at(3_000)).await.unwrap());
    let other_work = lease("b", 1);
    assert!(leases.acquire(&other_work, at(0), at(1_000)).await.unwrap());
}

#[tokio::test]
async fn the_holder_may_acquire_and_renew_its_lease_again() {
    let fixture = Fixture::new().await;
    let leases = fixture.database.leases();
    let (one, two) = (lease("a", 1), lease("a", 2));
    assert!(!leases.renew(&one, at(500)).await.unwrap());
    assert!(leases.acquire(&one, at(0), at(1_000)).await.unwrap());
    assert!(leases.acquire(&one, at(1), at(2_000)).await.unwrap());
    assert!(!leases.acquire(&two, at(1_999), at(9_000)).await.unwrap());
    assert!(leases.renew(&one, at(3_000)).await.unwrap());
    assert!(!leases.acquire(&two, at(2_999), at(9_000)).await.unwrap());
    assert!(leases.acquire(&two, at(3_000), at(9_000)).await.unwrap());
}

#[tokio::test]
async fn only_the_holder_can_release_a_lease() {
    let fixture = Fixture::new().await;
    let leases = fixture.database.leases();
    let (one, two) = (lease("a", 1), lease("a", 2));
    assert!(leases.acquire(&one, at(0), at(1_000)).await.unwrap());
    leases.release(&two).await.unwrap();
    assert!(!leases.acquire(&two, at(1), at(1_000)).await.unwrap());
    leases.release(&one).await.unwrap();
    assert!(leases.acquire(&two, at(1), at(1_000)).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_concurrent_callers_acquires_a_lease() {
    let fixture = Fixture::new().await;
    for round in 0..10 {
        let (now, until) = (at(round * 10), at(round * 10 + 10));
        let takers = (1..=8).map(|holder| {
            let leases = fixture.database.leases();
            tokio::spawn(async move { leases.acquire(&lease("a", holder), now, until).await })
        });
        let mut taken = 0;
        for taker in takers.collect::<Vec<_>>() {
            taken += u32::from(taker.await.unwrap().unwrap());
        }
        assert_eq!(taken, 1, "{round}");
    }
}
