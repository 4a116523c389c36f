//! Servers that are killed during start-up.

use std::time::Instant;

use rand::RngExt;

use super::{
    seed::Seed,
    store::{Engine, Store},
};

#[tokio::test]
async fn a_store_survives_kills_during_its_first_start_on_sqlite() {
    start_again(Engine::Sqlite).await;
}

#[tokio::test]
async fn a_store_survives_kills_during_its_first_start_on_postgres() {
    start_again(Engine::Postgres).await;
}

/// Creates stores whose first servers are killed at times spread over the duration of start-up.
async fn start_again(engine: Engine) {
    let Some(mut store) = Store::new(engine) else {
        return;
    };
    let mut choices = Seed::of_this_run().choices(0);
    let begun = Instant::now();
    let server = store.start().await;
    let start = begun.elapsed();
    store.kill(server).await;
    for _ in 0..STARTS {
        store.empty();
        for _ in 0..choices.random_range(1..4) {
            let after = start.mul_f64(choices.random_range(0.0..1.0));
            store.kill_while_it_starts(after).await;
        }
        let server = store.start().await;
        let set = server.set("/a", "value", "v".into()).await.expect(200);
        let set = set.json();
        store.kill(server).await;
        let server = store.start().await;
        assert_eq!(server.versions("/a").await, [set]);
        store.kill(server).await;
    }
    println!("{engine:?}: a start takes {start:?}");
}

/// The number of stores.
const STARTS: usize = 12;
