//! Metrics of failed authentication, by reason.

use keywright_harness::{
    Options, Server,
    mint::{Mint, present, seconds_since_epoch},
};
use reqwest::Method;
use serde_json::json;

const FAILURES: &str = "keywright_authentication_failures_total";

#[tokio::test]
async fn each_reason_for_refusing_a_token_is_counted_separately() {
    let server = Server::start_with(&Options::default().watched()).await;
    let mint = Mint::of(&server).await;
    let expired = mint.claims_with("exp", json!(seconds_since_epoch() - 3_600));
    let without_scopes = mint.claims_with("scope", json!([]));
    let reasons = [
        ("absent", String::new()),
        ("expired", mint.token(&expired)),
        ("invalid", "a.b.c".to_owned()),
        ("scopes_missing", mint.token(&without_scopes)),
    ];
    for (times, (reason, token)) in reasons.iter().enumerate() {
        let failures = |reason| [("mechanism", "token"), ("reason", reason)];
        assert_eq!(server.scrape().await.sum(FAILURES, &failures(reason)), None);
        for _ in 0..=times {
            if token.is_empty() {
                let answer = server.send(server.request(Method::GET, "/version")).await;
                answer.expect(401);
            } else {
                let answer = present(&server, token).await;
                assert!([401, 403].contains(&answer.status), "{answer:?}");
            }
        }
        for (position, (reason, _)) in reasons.iter().enumerate().take(times + 1) {
            let counted = server.scrape().await.sum(FAILURES, &failures(reason));
            let count = u32::try_from(position + 1).unwrap_or_default();
            assert_eq!(counted, Some(f64::from(count)), "{reason}");
        }
    }
}

#[tokio::test]
async fn an_unresponsive_provider_is_counted_separately() {
    let options = Options::default()
        .identity_provider("https://127.0.0.1:1/identity")
        .watched();
    let server = Server::start_with(&options).await;
    let stranger = Server::start().await;
    present(&server, stranger.token()).await.expect(503);
    let failures = [("mechanism", "token"), ("reason", "unverifiable")];
    assert_eq!(server.scrape().await.sum(FAILURES, &failures), Some(1.0));
}
