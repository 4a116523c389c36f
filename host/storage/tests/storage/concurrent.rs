//! Concurrent writers, and writers that are dropped before they finish.

use std::{
    collections::HashSet,
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
};

use keywright_core::{
    credential::{CredentialName, Find, FindNames, LookupName},
    ports::{AppendCondition, Appended, CredentialRepository, NewVersion},
};
use tokio::task::{JoinHandle, yield_now};
use uuid::Uuid;

use crate::support::{Fixture, reader, version};

type Appending = JoinHandle<Appended>;

fn append(fixture: &Fixture, new: NewVersion, condition: AppendCondition) -> Appending {
    let credentials = fixture.database.clone();
    tokio::spawn(async move { credentials.append(new, condition, &[]).await.unwrap() })
}

/// Returns the ids of the written versions.
async fn written(appending: Vec<Appending>) -> HashSet<Uuid> {
    let mut written = HashSet::new();
    for appending in appending {
        if let Appended::Written(version) = appending.await.unwrap() {
            written.insert(version.id);
        }
    }
    written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_writers_adds_a_new_name_and_others_find_it() {
    let fixture = Fixture::new().await;
    for round in 0..5 {
        let name = format!("/new/{round}");
        let appending = (0..WRITERS).map(|_| {
            let new = version(&fixture, &name, "password", 1);
            append(&fixture, new, AppendCondition::NewestIs(None))
        });
        let mut outcomes = Vec::new();
        for appending in appending.collect::<Vec<_>>() {
            outcomes.push(appending.await.unwrap());
            // When any append returns, even a refused one, the written version must be readable.
            assert_eq!(fixture.all(&name).await.len(), 1);
        }
        let written = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Appended::Written(_)));
        assert_eq!(written.count(), 1);
        let changed = outcomes
            .iter()
            .filter(|outcome| matches!(outcome, Appended::Changed));
        assert_eq!(changed.count(), WRITERS - 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writers_have_the_outcomes_of_single_writers() {
    let fixture = Fixture::new().await;
    let there = fixture.append("/there", "password", 1).await;
    let there = fixture
        .database
        .version_by_id(there)
        .await
        .unwrap()
        .unwrap();
    let is = AppendCondition::CredentialIs;
    let mut appending = Vec::new();
    for number in 0..WRITERS {
        let name = format!("/own/{number}");
        let old = format!("/old/{number}");
        fixture.append(&old, "password", 1).await;
        for (name, credential_type, condition) in [
            (name.as_str(), "password", AppendCondition::NewestIs(None)),
            (old.as_str(), "password", AppendCondition::Always),
            ("/there", "password", is(there.credential_id)),
            ("/there", "password", is(Uuid::nil())),
            ("/there", "password", AppendCondition::NewestIs(None)),
            ("/there", "user", AppendCondition::Always),
            ("/There", "password", AppendCondition::Always),
            ("/absent", "password", is(there.credential_id)),
        ] {
            let new = version(&fixture, name, credential_type, 2);
            appending.push((new.clone(), append(&fixture, new, condition)));
        }
    }
    for (number, (new, appending)) in appending.into_iter().enumerate() {
        let outcome = appending.await.unwrap();
        match (number % 8, outcome) {
            (0..=2, Appended::Written(written)) => {
                assert_eq!(written.id, new.id);
                let read = fixture.database.version_by_id(new.id).await.unwrap();
                assert_eq!(read, Some(*written));
            }
            (3 | 4 | 7, Appended::Changed)
            | (5, Appended::TypeDiffers(_))
            | (6, Appended::CasingDiffers(_)) => {}
            (_, outcome) => panic!("{number}: {outcome:?}"),
        }
    }
    let all = fixture.all("/there").await;
    assert_eq!(all.len(), WRITERS + 1);
    assert!(all.is_sorted_by(|newer, older| newer.sequence > older.sequence));
    let newest = [LookupName::new("/there")];
    let newest = fixture.database.newest_by_names(&reader(), &newest).await;
    assert_eq!(newest.unwrap()[0].id, all[0].id);
    for names in [FindNames::containing("WN/"), FindNames::below("/own")] {
        let find = Find {
            names,
            expires_until: None,
        };
        assert_eq!(fixture.find(&find).await.unwrap().len(), WRITERS);
    }
    assert!(fixture.all("/absent").await.is_empty());
}

#[tokio::test]
async fn dropping_an_append_at_any_point_writes_all_or_nothing() {
    let fixture = Fixture::new().await;
    for polls in 1.. {
        let name = |part: &str| CredentialName::parse(&format!("/{polls}/{part}")).unwrap();
        let new = |part| NewVersion {
            name: name(part),
            ..version(&fixture, "/a", "password", 1)
        };
        let before = append(&fixture, new("before"), AppendCondition::Always);
        let credentials = fixture.database.clone();
        let dropped = new("dropped");
        let appending = async move {
            let appending = credentials.append(dropped, AppendCondition::Always, &[]);
            appending.await.unwrap()
        };
        let dropped = tokio::spawn(dropped_after(polls, appending));
        yield_now().await;
        let after = append(&fixture, new("after"), AppendCondition::Always);
        let outcome = dropped.await.unwrap();
        assert_eq!(written(vec![before, after]).await.len(), 2, "{polls} polls");
        // Waits for the work that the dropped append left behind.
        fixture.write(new("last")).await;
        let found = fixture.all(name("dropped").as_str()).await;
        let half = "select count(*) from credential c left join credential_version v
            on v.sequence = c.newest_sequence and v.sequence = c.current_sequence where v.sequence is null";
        assert_eq!(fixture.count(half).await, 0, "{polls} polls");
        if let Some(outcome) = outcome {
            assert!(matches!(outcome, Appended::Written(_)));
            assert_eq!(found.len(), 1);
            // An append is polled at its start, at its end and usually for each statement. On a slow machine, responses may
            // arrive before the next poll, so this append may have completed after unusually few polls.
            if polls > POLLS_MIN {
                break;
            }
        }
    }
}

/// Polls a future at most this many times, then drops it. Returns its output, or `None` if it was dropped.
async fn dropped_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polled = 0;
    poll_fn(|context| {
        polled += 1;
        match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if polled == polls => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

const WRITERS: usize = 24;

/// The test tries at least every number of polls up to this one.
const POLLS_MIN: usize = 12;
