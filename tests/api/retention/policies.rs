//! The policies and the versions that they delete or keep.

use keywright_harness::{QUICK_KEY, Server, Text};
use serde_json::{Value, json};

use super::{after_a_run, ids, options, set_times, trust_the_clock_at_once, values};
use crate::{certificates::Certificate, given};

// The policy that applies to a credential.

#[tokio::test]
async fn the_most_specific_path_applies_in_any_casing() {
    let policies = [
        ("/*", "versions_max = 1"),
        ("/a/*", "versions_max = 2"),
        ("/a/b", "versions_max = 3"),
        ("/A/kept/*", "keep_all = true"),
        ("/a/kept/Not/*", "versions_max = 1"),
    ];
    let server = Server::start_with(&options(&policies)).await;
    let names = [
        ("/z", 1),
        ("/a", 1),
        ("/ab", 1),
        ("/a(", 1),
        ("/a-b/c", 1),
        ("/a0", 1),
        ("/A/x", 2),
        ("/a/b-", 2),
        ("/a/bb", 2),
        ("/a/b/c", 2),
        ("/a/B", 3),
        ("/a/kept", 2),
        ("/a/kept/x", 4),
        ("/a/kept/nothing", 4),
        ("/a/kept/not-", 4),
        ("/a/kept/not/x", 1),
    ];
    for (name, _) in names {
        set_times(&server, name, 4).await;
    }
    after_a_run(&[&server]).await;
    for (name, kept) in names {
        assert_eq!(ids(&server, name).await.len(), kept, "{name}");
    }
}

#[tokio::test]
async fn permissions_and_access_survive_retention() {
    let server = Server::start_with(&options(&[("/a", "versions_max = 1")])).await;
    let reader = server.as_client("reader").await;
    let permission = serde_json::json!({
        "path": "/a", "actor": "uaa-client:reader", "operations": ["read"],
    });
    let permission = server.post("/api/v2/permissions", permission).await;
    let permission = permission.expect(201).json();
    let [_, old, newest] = &set_times(&server, "/a", 3).await[..] else {
        panic!("three versions")
    };
    after_a_run(&[&server]).await;
    let path = format!(
        "/api/v2/permissions/{}",
        permission["uuid"].as_str().unwrap()
    );
    assert_eq!(server.get_json(&path).await, permission);
    let by_id = |id: &str| format!("/api/v1/data/{id}");
    let read = reader.get(&by_id(newest)).await.expect(200);
    assert_eq!(given::id(&read.json()), *newest);
    reader.get(&by_id(old)).await.expect(404);
    server.get(&by_id(old)).await.expect(404);
    assert_eq!(values(&server, "/a").await, ["2"]);
}

// Limits on the number and age of versions.

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
    log.assert_contains("deleted versions according to the retention policies");
}

#[tokio::test]
async fn inactive_versions_over_the_age_limit_are_deleted() {
    let server = Server::start_with(&options(&[("/a", "age_days_max = 30")])).await;
    trust_the_clock_at_once(&server).await;
    let mut all = set_times(&server, "/a", 5).await;
    set_times(&server, "/b", 2).await;
    after_a_run(&[&server]).await;
    all.reverse();
    assert_eq!(ids(&server, "/a").await, all);
    // Ages in seconds, oldest first. A version exceeds the limit only after 30 whole days.
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
async fn a_malformed_clock_record_is_replaced() {
    let policies = [("/a", "versions_max = 1"), ("/b", "age_days_max = 30")];
    let server = Server::start_with(&options(&policies)).await;
    trust_the_clock_at_once(&server).await;
    let malformed = "update retention_clock set seen_at = 9223372036854775807";
    server.run_sql(malformed).await;
    set_times(&server, "/a", 2).await;
    after_a_run(&[&server]).await;
    assert_eq!(values(&server, "/a").await, ["1"]);
    let trusted = "select count(*) from retention_clock where trusted_from = 0";
    assert_eq!(server.run_sql(trusted).await, "0");
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
    // This server starts later and has the same interval. Once it has completed a run, the others have had time for one.
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

/// Makes the versions older by these numbers of seconds, in the order of their creation. A single statement changes all of
/// them, so that no run finds only some of them changed.
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

// Versions that retention keeps regardless of policies because other responses depend on them.

const ONE_OF_EACH: (&str, &str) = ("/*", "versions_max = 1");

#[tokio::test]
async fn active_and_transitional_versions_are_kept() {
    let server = Server::start_with(&options(&[ONE_OF_EACH])).await;
    let root = Certificate::generate_root(&server, "/root").await;
    for _ in 0..2 {
        root.regenerate(json!({})).await.expect(200);
    }
    let transitional = json!({"set_as_transitional": true});
    root.regenerate(transitional).await.expect(200);
    let current = root.current().await;
    assert_eq!(current.len(), 2);
    after_a_run(&[&server]).await;
    assert_eq!(root.current().await, current);
    assert_eq!(root.versions().await.len(), 2);
    // The flag moves to the older version and is then cleared, so that retention deletes the older version.
    let [active, newest] = [&current[0], &current[1]].map(given::id);
    root.move_transitional(json!(active)).await.expect(200);
    after_a_run(&[&server]).await;
    assert_eq!(ids(&server, "/root").await, [newest.clone(), active]);
    root.move_transitional(Value::Null).await.expect(200);
    after_a_run(&[&server]).await;
    assert_eq!(ids(&server, "/root").await, [newest]);
}

#[tokio::test]
async fn a_ca_version_is_kept_while_a_certificate_it_signed_exists() {
    let server = Server::start_with(&options(&[ONE_OF_EACH])).await;
    let soon = json!({"is_ca": true, "duration": 20});
    let signed_with = given::id(&server.issued("/root", soon).await);
    let parameters = json!({"ca": "/root", "duration": 300});
    server.issued("/leaf", parameters).await;
    let root = Certificate::named(&server, "/root").await;
    for _ in 0..2 {
        root.regenerate(json!({"duration": 900})).await.expect(200);
    }
    let newest = given::id(&server.newest("/root").await);
    let before = responses(&server).await;
    after_a_run(&[&server]).await;
    let actual = ids(&server, "/root").await;
    assert_eq!(actual, [newest.clone(), signed_with.clone()]);
    let after = responses(&server).await;
    assert_eq!(after, before);
    let link = &after[0]["credentials"][0]["expiring_link"];
    assert_eq!(link["version_id"], Value::String(signed_with));
    let leaf = Certificate::named(&server, "/leaf").await;
    leaf.regenerate(json!({})).await.expect(200);
    // The leaf's old version is deleted first, then its signer.
    after_a_run(&[&server]).await;
    after_a_run(&[&server]).await;
    assert_eq!(ids(&server, "/leaf").await.len(), 1);
    assert_eq!(ids(&server, "/root").await, [newest]);
}

#[tokio::test]
async fn certificates_remain_linked_to_their_signing_ca() {
    let server = Server::start_with(&options(&[ONE_OF_EACH])).await;
    for root in ["/one", "/two"] {
        server.issued(root, json!({"is_ca": true})).await;
    }
    let mut all = Vec::new();
    for ca in ["/one", "/one", "/two", "/two"] {
        let parameters = json!({"common_name": "leaf", "ca": ca, "key_type": QUICK_KEY});
        let generated = server.generate_in_mode("overwrite", "/leaf", "certificate", parameters);
        all.push(given::id(&generated.await.expect(200).json()));
    }
    let before = responses(&server).await;
    after_a_run(&[&server]).await;
    let actual = ids(&server, "/leaf").await;
    assert_eq!(actual, [all[3].clone(), all[1].clone()]);
    assert_eq!(responses(&server).await, before);
    let regenerated = server.bulk_regenerate("/one").await.expect(200).json();
    assert_eq!(regenerated["regenerated_credentials"], json!(["/leaf"]));
}

/// Returns the responses about all certificates, without their lists of versions.
async fn responses(server: &Server) -> Vec<Value> {
    let mut responses = Vec::new();
    for path in [
        "/api/v1/data?name-like=/&expires-within-days=5000&effective=true",
        "/api/v1/data?name-like=/&expires-within-days=5000",
        "/api/v1/data?path=/",
        "/api/v1/certificates",
        "/api/v1/certificates?name=/one",
        "/api/v1/certificates?name=/two",
        "/api/v1/certificates?name=/root",
        "/api/v1/data?name=/leaf&current=true",
        "/api/v1/data?name=/root&current=true",
    ] {
        let mut response = server.get(path).await.json();
        if let Some(certificates) = response["certificates"].as_array_mut() {
            for certificate in certificates {
                certificate["versions"].take();
            }
        }
        responses.push(response);
    }
    responses
}
