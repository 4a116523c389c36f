//! PostgreSQL is stopped and started under load: nothing that was acknowledged is lost, and the server recovers by itself.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test ends when what it needs is not there"
)]

mod load;

use keywright_test_postgres::PostgresServer;

use load::Load;

/// Ends all connections of servers to a database.
const CUT: &str = "select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'keywright' and datname = current_database()";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_stopped_or_crashes_and_is_started_again_loses_nothing() {
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
async fn connections_that_an_administrator_cuts_are_opened_anew() {
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
async fn a_database_that_is_read_only_for_a_while_goes_on_being_read() {
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
    // As after a change of roles: each new connection leads to a database that can't be written.
    postgres.run_at(&url, CUT);
    load.wait_until_each_server_refuses().await;
    load.assert_reads_go_on().await;
    load.wait_for_health("UP").await;
    // The connections that are open stay as they are; none of them may go on being used.
    set("reset default_transaction_read_only");
    load.wait_for_writes_at_each_server().await;
    load.end().await.assert_nothing_is_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_hangs_keeps_nobody_waiting() {
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
