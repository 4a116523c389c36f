//! Stored values that cannot be decrypted.

use keywright_harness::Server;
use serde_json::Value;

use super::{active_key_id, usage, used, with_keys};
use crate::given;

#[tokio::test]
async fn a_value_under_an_unconfigured_key_is_refused_with_the_key_id() {
    let server = Server::start_with(&with_keys(&["KEY_A"])).await;
    let one = given::set_value(&server, "/one", "canary-one").await;
    let key_id = active_key_id(&server);
    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B", "KEY_A"])).await;
    given::set_value(&server, "/two", "canary-two").await;

    let server = Server::start_in(server.stop().await, &with_keys(&["KEY_B"])).await;
    let by_id = format!("/api/v1/data/{}", one["id"].as_str().unwrap());
    for path in ["/api/v1/data?name=/one", &by_id] {
        let refused = server.get(path).await.expect(500).error();
        assert_eq!(
            refused,
            format!("the encryption key {key_id} is not configured")
        );
    }
    assert_eq!(given::newest(&server, "/two").await["value"], "canary-two");
    assert_eq!(usage(&server).await, used(1, 0, 1));
    // A new version replaces the unreadable one.
    given::set_value(&server, "/one", "canary-three").await;
    let newest = "/api/v1/data?name=/one&current=true";
    let newest: Value = server.get(newest).await.expect(200).json();
    assert_eq!(newest["data"][0]["value"], "canary-three");
    assert!(!server.log().contains("canary-"));
}

/// Puts the bytes of one row into another.
const COPY: &str = "update credential_version
    set (encryption_key_id, nonce, ciphertext) = (
        select v.encryption_key_id, v.nonce, v.ciphertext from credential_version v where v.sequence = FROM)
    where sequence = TO";

#[tokio::test]
async fn a_ciphertext_copied_to_another_row_is_refused_undisclosed() {
    let server = Server::start().await;
    given::set_value(&server, "/one", "canary-one").await;
    given::set_value(&server, "/two", "canary-two").await;
    given::set_value(&server, "/two", "canary-three").await;
    let sequences = "select sequence from credential_version order by sequence";
    let sequences = server.run_sql(sequences).await;
    let [one, two, three] = sequences.lines().collect::<Vec<_>>()[..] else {
        panic!("not three versions: {sequences}");
    };
    // From one credential into another, and from one version of a credential into another.
    for (from, to, path) in [
        (three, one, "/api/v1/data?name=/one"),
        (two, three, "/api/v1/data?name=/two&current=true"),
    ] {
        let copy = COPY.replace("FROM", from).replace("TO", to);
        server.run_sql(&copy).await;
        let refused = server.get(path).await.expect(500);
        assert_eq!(
            refused.error(),
            "the stored value could not be decrypted: its ciphertext was modified or moved from another record"
        );
        assert!(!refused.body.contains("canary-"), "{}", refused.body);
    }
    assert!(!server.log().contains("canary-"));
}
