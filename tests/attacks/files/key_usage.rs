//! An encryption key at its maximum number of encryptions, beyond which nonces may collide.

use keywright_harness::{Server, is_on_postgres};
use serde_json::{Value, json};

use super::{get, options, set};

#[tokio::test]
async fn a_worn_key_warns_and_an_exhausted_key_encrypts_nothing() {
    let server = Server::start_with(&options()).await;
    let (half, most) = (1_u64 << 31, (1_u64 << 32) - (1 << 16));

    // A server first reserves 1,024 encryptions.
    count_as(&server, most - 1_023).await;
    let refused = server.set("/a", "value", json!("v")).await.expect(503);
    assert!(
        refused.error().contains("activate a new key"),
        "{}",
        refused.body
    );
    assert!(refused.header("retry-after").is_some());
    assert_eq!(counted(&server).await, most - 1_023);

    count_as(&server, most - 1_024).await;
    assert_eq!(set(&server, "/a", "v").await, 200);
    assert_eq!(counted(&server).await, most);
    for number in 1..1_024 {
        assert_eq!(set(&server, &format!("/b/{number}"), "v").await, 200);
    }
    assert_eq!(set(&server, "/c", "v").await, 503);
    assert_eq!(get(&server, "/a").await, 200);

    count_as(&server, half - 1_024).await;
    let server = Server::start_in(server.kill(), &options()).await;
    let warning = "has encrypted more than half of its maximum";
    assert!(!server.log().contains(warning));
    assert_eq!(set(&server, "/a", "w").await, 200);
    assert_eq!(counted(&server).await, half);
    assert!(server.log().contains(warning));
    let status = server.run_command(&["keys", "status", "--json"]).expect(0);
    let status: Value = serde_json::from_str(&status.output).unwrap();
    assert_eq!(status["keys"][0]["encryptions"], json!(half));
    assert_eq!(status["encryptions_max"], json!(most));
    let people = server.run_command(&["keys", "status"]).expect(0);
    assert!(
        people.output.contains("configure a new active key"),
        "{people:?}"
    );
    let scrape = server.scrape().await;
    let measured = scrape.sum("keywright_encryption_key_encryptions", &[]);
    assert_eq!(measured, u32::try_from(half).ok().map(f64::from));

    // The reservation of a killed server counts as used, and servers add up.
    let server = Server::start_in(server.kill(), &options()).await;
    let other = server.start_another().await;
    for server in [&server, &other] {
        assert_eq!(set(server, "/a", "x").await, 200);
    }
    assert_eq!(counted(&server).await, half + 2 * 1_024);
}

/// Sets the number of encryptions of the only key.
async fn count_as(server: &Server, encryptions: u64) {
    let sql = format!(
        "insert into encryption_key_usage (encryption_key_id, encryptions)
         select k.id, {encryptions} from encryption_key k where {}
         on conflict (encryption_key_id) do update set encryptions = excluded.encryptions",
        if is_on_postgres() { "true" } else { "1" }
    );
    server.run_sql(&sql).await;
}

async fn counted(server: &Server) -> u64 {
    let sql = "select encryptions from encryption_key_usage";
    server.run_sql(sql).await.parse().unwrap()
}
