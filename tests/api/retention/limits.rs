//! Limits on the number and age of versions.

use keywright_harness::Server;

use super::{after_a_run, ids, options, set_times, trust_the_clock, values};

#[tokio::test]
async fn only_the_newest_versions_within_the_limit_are_kept() {
    let server = Server::start_with(&options(&[("/a/*", "versions_max = 3")])).await;
    for count in [1, 3, 4, 6] {
        set_times(&server, &format!("/a/{count}"), count).await;
    }
    set_times(&server, "/other", 5).await;
    after_a_run(&[&server]).await;
    for (name, kept) in [
        ("/a/1", &["0"][..]),
        ("/a/3", &["2", "1", "0"]),
        ("/a/4", &["3", "2", "1"]),
        ("/a/6", &["5", "4", "3"]),
        ("/other", &["4", "3", "2", "1", "0"]),
    ] {
        assert_eq!(values(&server, name).await, kept, "{name}");
    }
    let scrape = server.scrape().await;
    let deleted = scrape.sum("keywright_retention_versions_deleted_total", &[]);
    assert_eq!(deleted, Some(4.0));
    let log = server.log();
    assert!(log.contains("deleted versions according to the retention policies"));
}

#[tokio::test]
async fn versions_over_the_age_limit_are_deleted_but_not_active_ones() {
    let server = Server::start_with(&options(&[("/a", "age_days_max = 30")])).await;
    trust_the_clock(&server).await;
    let mut all = set_times(&server, "/a", 5).await;
    set_times(&server, "/b", 2).await;
    after_a_run(&[&server]).await;
    all.reverse();
    assert_eq!(ids(&server, "/a").await, all);
    // Ages in seconds, oldest first. A version is not younger than 30 days only when 30 days have passed.
    let days = |days: i64| days * 86_400;
    let ages = [days(31), days(30) + 1, days(30) - 600, days(1), 0];
    make_older(&server, &ages).await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["4", "3", "2"]);
    make_older(&server, &[days(1_000); 5]).await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["4"]);
    assert_eq!(values(&server, "/b").await, ["1", "0"]);
}

#[tokio::test]
async fn versions_beyond_one_batch_are_deleted() {
    let server = Server::start_with(&options(&[])).await;
    set_times(&server, "/a", 202).await;
    let limited = options(&[("/*", "versions_max = 1")]);
    let server = Server::start_in(server.stop().await, &limited).await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["201"]);
}

#[tokio::test]
async fn a_server_without_a_policy_deletes_nothing() {
    let servers = [
        Server::start_with(&options(&[])).await,
        Server::start_with(&options(&[("/*", "keep_all = true")])).await,
    ];
    for server in &servers {
        set_times(server, "/a", 3).await;
    }
    // A later server with the same interval has completed a run, so the others would have by now.
    let other = Server::start_with(&options(&[("/*", "versions_max = 1")])).await;
    after_a_run(&[&other]).await;
    for server in servers {
        let leases = "select count(*) from lease where name like 'retention%'";
        assert_eq!(server.run_sql(leases).await, "0");
        let scrape = server.scrape().await;
        assert!(!scrape.text().contains("keywright_retention"));
        assert_eq!(values(&server, "/a").await.len(), 3);
    }
}

/// Makes all versions older by these seconds, in the order of their creation; in one step, so that no run sees only
/// some of them changed.
async fn make_older(server: &Server, seconds: &[i64]) {
    let sequences = "select sequence from credential_version order by sequence";
    let sequences = server.run_sql(sequences).await;
    let cases = sequences
        .lines()
        .zip(seconds)
        .map(|(sequence, seconds)| format!("when {sequence} then {}", seconds * 1_000));
    let sql = format!(
        "update credential_version
         set created_at = created_at - case sequence {} else 0 end",
        cases.collect::<Vec<_>>().join(" ")
    );
    server.run_sql(&sql).await;
}
