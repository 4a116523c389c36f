//! Minimum durations.

use keywright_harness::Server;
use serde_json::{Value, json};

use super::{days, options, server};
use crate::{
    certificates::Certificate,
    given::{self, generate_certificate},
};

const MINIMUMS: &str = "ca_minimum_duration_in_days = 1000\nleaf_minimum_duration_in_days = 90";

#[track_caller]
fn assert_used(version: &Value, used: i64, is_overridden: bool) {
    assert_eq!(version["duration_used"], used);
    assert_eq!(version["duration_overridden"], is_overridden);
    assert_eq!(days(version), used);
}

#[tokio::test]
async fn a_raised_duration_is_reported_in_the_generate_response() {
    let server = server(MINIMUMS).await;
    let root = generate_certificate(&server, "/root", json!({"is_ca": true})).await;
    assert_used(&root, 1000, true);
    for (name, parameters, used, is_overridden) in [
        ("/a", json!({"ca": "/root", "duration": 30}), 90, true),
        ("/b", json!({"ca": "/root", "duration": 89}), 90, true),
        ("/c", json!({"ca": "/root", "duration": 90}), 90, false),
        ("/d", json!({"ca": "/root", "duration": 91}), 91, false),
        ("/e", json!({"self_sign": true, "duration": 1}), 90, true),
        ("/f", json!({"self_sign": true}), 365, false),
        (
            "/g",
            json!({"is_ca": true, "ca": "/root", "duration": 999}),
            1000,
            true,
        ),
        ("/h", json!({"is_ca": true, "duration": 1001}), 1001, false),
    ] {
        let version = generate_certificate(&server, name, parameters).await;
        assert_used(&version, used, is_overridden);
    }
}

#[tokio::test]
async fn a_minimum_does_not_correct_an_invalid_duration() {
    let server = server(MINIMUMS).await;
    for duration in [0, -1, 3651] {
        let parameters = json!({"common_name": "own", "self_sign": true, "duration": duration});
        let answer = server.generate("/own", "certificate", parameters).await;
        answer.expect(400).error();
    }
}

#[tokio::test]
async fn the_same_short_request_converges() {
    let server = server(MINIMUMS).await;
    let parameters = |days: u32| json!({"self_sign": true, "duration": days});
    let first = generate_certificate(&server, "/own", parameters(30)).await;
    for days in [30, 31, 90] {
        let kept = generate_certificate(&server, "/own", parameters(days)).await;
        assert_eq!(kept["id"], first["id"], "{days}");
        assert_eq!(kept["duration_used"], 0);
        assert_eq!(kept["duration_overridden"], false);
    }
    let longer = generate_certificate(&server, "/own", parameters(91)).await;
    assert_ne!(longer["id"], first["id"]);
}

#[tokio::test]
async fn an_inherited_duration_is_raised_on_every_regenerate() {
    let server = Server::start().await;
    for (name, parameters) in [
        ("/root", json!({"is_ca": true, "duration": 30})),
        ("/leaf", json!({"ca": "/root", "duration": 30})),
        ("/through-data", json!({"ca": "/root", "duration": 30})),
        ("/other", json!({"is_ca": true})),
        ("/bulk", json!({"ca": "/other", "duration": 30})),
        ("/converged", json!({"self_sign": true, "duration": 30})),
    ] {
        generate_certificate(&server, name, parameters).await;
    }
    let server = Server::start_in(server.stop().await, &options(MINIMUMS)).await;
    let root = server.regenerate("/root").await.expect(200).json();
    assert_used(&root, 1000, true);
    let leaf = server.regenerate("/leaf").await.expect(200).json();
    assert_used(&leaf, 90, true);
    let again = server.regenerate("/leaf").await.expect(200).json();
    assert_used(&again, 90, false);
    let body = json!({"name": "/through-data", "regenerate": true});
    let version = server.post("/api/v1/data", body).await.expect(200).json();
    assert_used(&version, 90, true);
    server.bulk_regenerate("/other").await.expect(200);
    let bulk = given::newest(&server, "/bulk").await;
    assert_eq!(days(&bulk), 90);
    let parameters = json!({"self_sign": true, "duration": 30});
    let version = generate_certificate(&server, "/converged", parameters).await;
    assert_used(&version, 90, true);
}

#[tokio::test]
async fn regenerating_by_id_raises_inherited_and_requested_durations() {
    let server = Server::start().await;
    for name in ["/own", "/other"] {
        let parameters = json!({"self_sign": true, "duration": 30});
        generate_certificate(&server, name, parameters).await;
    }
    let server = Server::start_in(server.stop().await, &options(MINIMUMS)).await;
    let own = Certificate::named(&server, "/own").await;
    for (body, used, is_overridden) in [
        (json!({"duration": 100}), 100, false),
        (json!({"duration": 89}), 90, true),
        (json!({}), 90, false),
    ] {
        let version = own.regenerate(body).await.expect(200).json();
        assert_used(&version, used, is_overridden);
    }
    let other = Certificate::named(&server, "/other").await;
    let body = json!({"set_as_transitional": true});
    let version = other.regenerate(body).await.expect(200).json();
    assert_used(&version, 90, true);
}

#[tokio::test]
async fn without_minimums_nothing_is_raised() {
    let server = Server::start().await;
    let parameters = json!({"self_sign": true, "duration": 1});
    let version = generate_certificate(&server, "/own", parameters).await;
    assert_used(&version, 1, false);
}
