//! Clients that randomly change the same few names.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use keywright_harness::Server;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    CALLS_MIN,
    checker::{Call, Id, Mode},
    recorder::Recorder,
};

const PASSWORDS: [&str; 4] = ["/password/a", "/password/b", "/password/c", "/password/d"];
/// Self-signed certificates that are created and deleted.
const CERTIFICATES: [&str; 2] = ["/certificate/a", "/certificate/b"];
/// Signs the leaves and is never deleted.
const AUTHORITY: &str = "/authority";
const LEAVES: [&str; 2] = ["/leaf/a", "/leaf/b"];
const CLIENTS_PER_SERVER: usize = 4;
/// Minimum number of calls of all clients together, some of which may have no clear outcome.
const ENOUGH: usize = CALLS_MIN * 2;

/// Runs clients of all servers for a while, then reads everything once more, and returns the recorded calls.
pub(super) async fn run_clients(servers: &[Arc<Server>], duration: Duration) -> Vec<Call> {
    let start = Instant::now();
    let mut history = prepared(&servers[0], start).await;
    let ends = start + duration;
    let calls = Arc::<AtomicUsize>::default();
    let mut clients = JoinSet::new();
    for (number, server) in servers.iter().enumerate() {
        for client in 0..CLIENTS_PER_SERVER {
            let recorder = Recorder::new(server, format!("{client} at {number}"), start);
            clients.spawn(work(recorder, ends, Arc::clone(&calls)));
        }
    }
    for calls in clients.join_all().await {
        history.extend(calls);
    }
    for (number, server) in servers.iter().enumerate() {
        let mut last = Recorder::new(server, format!("the last at {number}"), start);
        for name in PASSWORDS.iter().chain(&LEAVES).chain(&CERTIFICATES) {
            last.read(name).await;
        }
        for name in CERTIFICATES {
            last.read_certificate(name).await;
        }
        history.extend(last.into_calls());
    }
    history
}

/// Creates the initial state.
async fn prepared(server: &Arc<Server>, start: Instant) -> Vec<Call> {
    let mut first = Recorder::new(server, "the first".to_owned(), start);
    first
        .generate_certificate(AUTHORITY, Mode::NoOverwrite, None)
        .await;
    for leaf in LEAVES {
        first
            .generate_certificate(leaf, Mode::NoOverwrite, Some(AUTHORITY))
            .await;
    }
    first.into_calls()
}

/// Runs until this time, and on a busy machine until all clients together have done enough.
async fn work(mut recorder: Recorder, ends: Instant, calls: Arc<AtomicUsize>) -> Vec<Call> {
    let mut seen: Option<(&str, Id)> = None;
    while calls.fetch_add(1, Ordering::Relaxed) < ENOUGH || Instant::now() < ends {
        match random(10) {
            0..7 => change_password(&mut recorder, &mut seen).await,
            7 => change_leaf(&mut recorder).await,
            _ => change_certificate(&mut recorder).await,
        }
    }
    recorder.into_calls()
}

async fn change_password(recorder: &mut Recorder, seen: &mut Option<(&'static str, Id)>) {
    let name = PASSWORDS[random(PASSWORDS.len())];
    let length = if random(4) == 0 { 24 } else { 20 };
    match random(20) {
        0..4 => {
            recorder
                .generate_password(name, Mode::NoOverwrite, length)
                .await;
        }
        4..9 => {
            recorder
                .generate_password(name, Mode::Converge, length)
                .await;
        }
        9..11 => {
            recorder
                .generate_password(name, Mode::Overwrite, length)
                .await;
        }
        11 => {
            let value = Uuid::new_v4().to_string();
            recorder.set_password(name, &value).await;
        }
        12 => recorder.regenerate(name).await,
        13..15 => recorder.delete(name).await,
        15..18 => {
            if let Some(&newest) = recorder.read(name).await.first() {
                *seen = Some((name, newest));
            }
        }
        _ => {
            if let Some((name, id)) = *seen {
                recorder.read_version(name, id).await;
            }
        }
    }
}

async fn change_certificate(recorder: &mut Recorder) {
    let name = CERTIFICATES[random(CERTIFICATES.len())];
    if random(12) == 0 {
        return recorder.delete(name).await;
    }
    let Some((credential, versions)) = recorder.read_certificate(name).await else {
        return recorder
            .generate_certificate(name, Mode::NoOverwrite, None)
            .await;
    };
    let any = versions[random(versions.len())];
    match random(8) {
        0..2 => recorder.regenerate_as_transitional(name, credential).await,
        2..4 => {
            recorder
                .move_transitional(name, credential, Some(any))
                .await;
        }
        4 => recorder.move_transitional(name, credential, None).await,
        5 => {
            recorder
                .generate_certificate(name, Mode::Overwrite, None)
                .await;
        }
        6 => recorder.delete_version(name, credential, any).await,
        _ => {
            recorder
                .generate_certificate(name, Mode::Converge, None)
                .await;
        }
    }
}

async fn change_leaf(recorder: &mut Recorder) {
    let name = LEAVES[random(LEAVES.len())];
    match random(6) {
        0..2 => recorder.regenerate_in_bulk(AUTHORITY, &LEAVES).await,
        2 => {
            recorder
                .generate_certificate(name, Mode::Overwrite, Some(AUTHORITY))
                .await;
        }
        3 => {
            recorder
                .generate_certificate(name, Mode::Converge, Some(AUTHORITY))
                .await;
        }
        _ => drop(recorder.read(name).await),
    }
}

/// Returns a number below a bound. Histories are not reproducible, because the interleaving of calls depends on the
/// machine.
fn random(bound: usize) -> usize {
    let number = Uuid::new_v4().as_u128() % u128::try_from(bound).unwrap();
    usize::try_from(number).unwrap()
}
