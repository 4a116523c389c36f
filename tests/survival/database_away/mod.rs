//! PostgreSQL is stopped and started under load: no acknowledged write is lost, and the server recovers by itself.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod load;

use keywright_test_postgres::PostgresServer;

use load::Load;

/// Terminates all connections of servers to a database.
const CUT: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_write_is_lost_when_the_database_stops_or_crashes() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let load = Load::start(&postgres.new_database()).await;
    for end in [PostgresServer::stop, PostgresServer::crash] {
        load.wait_for_writes_at_each_server().await;
        end(&postgres);
        load.wait_until_each_server_refuses().await;
        load.wait_for_health("DOWN").await;
        postgres.start_again();
        load.wait_for_writes_at_each_server().await;
        load.wait_for_health("UP").await;
    }
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminated_connections_are_reopened() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let url = postgres.new_database();
    let load = Load::start(&url).await;
    for _ in 0..5 {
        load.wait_for_writes_at_each_server().await;
        postgres.run_at(&url, CUT);
    }
    load.wait_for_writes_at_each_server().await;
    load.wait_for_health("UP").await;
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_temporarily_read_only_database_still_serves_reads() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let url = postgres.new_database();
    let name = postgres.run_at(&url, "select current_database()");
    let elsewhere = postgres.new_database();
    let set = |rest: &str| postgres.run_at(&elsewhere, &format!("alter database {name} {rest}"));
    let load = Load::start(&url).await;
    load.wait_for_writes_at_each_server().await;
    set("set default_transaction_read_only = on");
    // As after a failover: each new connection reaches a read-only database.
    postgres.run_at(&url, CUT);
    load.wait_until_each_server_refuses().await;
    load.assert_reads_go_on().await;
    load.wait_for_health("UP").await;
    // Open connections stay open, but none may be used again.
    set("reset default_transaction_read_only");
    load.wait_for_writes_at_each_server().await;
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_time_out_while_the_database_hangs() {
    let Some(postgres) = PostgresServer::start() else {
        return;
    };
    let load = Load::start(&postgres.new_database()).await;
    load.wait_for_writes_at_each_server().await;
    postgres.freeze();
    load.wait_until_each_server_refuses().await;
    load.wait_for_health("DOWN").await;
    postgres.thaw();
    load.wait_for_writes_at_each_server().await;
    load.wait_for_health("UP").await;
    load.end().await.assert_nothing_is_lost().await;
}
