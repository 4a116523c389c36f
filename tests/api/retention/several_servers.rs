//! Servers that share a database, one of which is killed.

use keywright_harness::Server;

use super::{after_a_run, events, ids, options, poll, runs, set_times};

#[tokio::test]
async fn of_several_servers_one_deletes_and_another_takes_over() {
    let Some(postgres) = keywright_test_postgres::shared() else {
        return;
    };
    let storage = format!("url = \"{}\"", postgres.new_database());
    let options = options(&[("/a/*", "versions_max = 1")]).storage(&storage);
    let one = Server::start_with(&options).await;
    let two = Server::start_with(&options).await;
    for number in 0..8 {
        set_times(&one, &format!("/a/{number}"), 4).await;
    }
    after_a_run(&[&one, &two]).await;
    let mut reported: Vec<String> = Vec::new();
    for event in [events(&one), events(&two)].concat() {
        assert_eq!(event["status"], 200);
        reported.push(event["version_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(reported.len(), 8 * 3);
    reported.sort();
    reported.dedup();
    assert_eq!(reported.len(), 8 * 3);
    drop(one.kill());
    set_times(&two, "/a/0", 2).await;
    let before = runs(&[&two]).await;
    poll(async || runs(&[&two]).await >= before + 2.0).await;
    assert_eq!(ids(&two, "/a/0").await.len(), 1);
}
