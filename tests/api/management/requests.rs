//! GET and POST /management: requests and responses.

use keywright_harness::{Options, Server};
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::json;

use super::switch;

#[tokio::test]
async fn the_mode_is_off_at_start_and_then_as_last_set() {
    let server = Server::start().await;
    assert_mode(&server, false).await;
    for is_on in [true, true, false, false, true] {
        switch(&server, is_on).await;
        assert_mode(&server, is_on).await;
    }
}

#[tokio::test]
async fn the_mode_does_not_survive_a_restart() {
    let server = Server::start().await;
    switch(&server, true).await;
    let directory = server.stop().await;
    let server = Server::start_in(directory, &Options::default()).await;
    assert_mode(&server, false).await;
}

#[tokio::test]
async fn the_strings_true_and_false_are_accepted() {
    let server = Server::start().await;
    for (text, is_on) in [("true", true), ("false", false)] {
        let answer = server
            .post("/management", json!({"read_only_mode": text}))
            .await;
        assert_eq!(answer.expect(200).json(), json!({"read_only_mode": is_on}));
        assert_mode(&server, is_on).await;
    }
}

#[tokio::test]
async fn a_bad_body_switches_nothing() {
    let server = Server::start().await;
    for is_on in [false, true] {
        switch(&server, is_on).await;
        for (body, status) in [
            ("{}", 400),
            (r#"{"read_only_mode":null}"#, 400),
            (r#"{"read_only_mode":2}"#, 400),
            (r#"{"read_only_mode":"yes"}"#, 400),
            (r#"{"read_only_mode":[true]}"#, 400),
            (r#"{"read_only_mode":true,"read_only_mode":false}"#, 400),
            (r#"{"read_only_mode":true"#, 400),
            (r#"[{"read_only_mode":true}]"#, 400),
            ("true", 400),
            ("", 400),
            (r#"{"read_only_mode":true,"other":1}"#, 422),
            (r#"{"read_only_mode":false,"other":null}"#, 422),
        ] {
            let request = server.authorized(Method::POST, "/management").body(body);
            let answer = server.send(request).await;
            assert_eq!(answer.status, status, "{body}: {answer:?}");
            assert!(!answer.error().is_empty());
            assert_mode(&server, is_on).await;
        }
    }
}

#[tokio::test]
async fn a_missing_mode_and_an_unknown_field_are_named() {
    let server = Server::start().await;
    for (body, name) in [
        (json!({}), "read_only_mode"),
        (json!({"read_only_mode": "on"}), "read_only_mode"),
        (json!({"read_only_mode": true, "mode": 1}), "mode"),
    ] {
        let answer = server.post("/management", body).await;
        assert!(answer.error().contains(name), "{answer:?}");
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_type_is_400() {
    let server = Server::start().await;
    let request = server
        .request(Method::POST, "/management")
        .bearer_auth(server.token())
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body("read_only_mode=true");
    server.send(request).await.expect(400);
    assert_mode(&server, false).await;
}

#[tokio::test]
async fn the_actor_who_changes_the_mode_is_logged() {
    let server = Server::start().await;
    switch(&server, true).await;
    let log = server.log();
    let line = log.lines().find(|line| line.contains("switched the mode"));
    let line = line.unwrap_or_default();
    assert!(line.contains("uaa-client:developer"), "{line}");
    assert!(line.contains(r#""read_only_mode":true"#), "{line}");
}

async fn assert_mode(server: &Server, is_on: bool) {
    let answer = server.get("/management").await.expect(200);
    assert_eq!(answer.json(), json!({"read_only_mode": is_on}));
}
