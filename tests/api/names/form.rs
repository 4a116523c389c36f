//! The syntax of names in request bodies.

use keywright_harness::{Answer, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::given;

#[tokio::test]
async fn a_name_has_at_most_255_characters_with_its_slash() {
    let server = Server::start().await;
    let longest = format!("/{}", "n".repeat(254));
    let longest_in_parts = format!("/{}/{}", "a".repeat(100), "b".repeat(153));
    for name in [&longest, &longest[1..], &longest_in_parts] {
        let version = given::set_value(&server, name, "v").await;
        let stored = version["name"].as_str().unwrap();
        assert_eq!(
            (stored.len(), stored.trim_start_matches('/')),
            (255, name.trim_start_matches('/'))
        );
        assert_eq!(given::versions(&server, name).await[0]["id"], version["id"]);
    }
    let too_long = format!("{longest}n");
    for name in [
        &too_long,
        &too_long[1..],
        &"n".repeat(1_024),
        &"n".repeat(100_000),
    ] {
        for answer in answers_of_each_body(&server, &json!(name)).await {
            assert_eq!(answer.status, 400, "{} characters: {answer:?}", name.len());
            assert!(answer.error().contains("255"), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn every_allowed_character_is_accepted_in_a_name() {
    let server = Server::start().await;
    let letters_and_digits: String = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    for name in [
        format!("/{letters_and_digits}"),
        "/_-.:()[]".to_owned(),
        "/a/b/c".to_owned(),
        "/-".to_owned(),
        "/.".to_owned(),
        "/a/..".to_owned(),
        "/0".to_owned(),
    ] {
        let version = given::set_value(&server, &name, "v").await;
        assert_eq!(version["name"], name);
        assert_eq!(given::versions(&server, &name).await.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn every_other_character_is_400() {
    let server = Server::start().await;
    let other_ascii = (0_u8..128).map(char::from).filter(|character| {
        !character.is_ascii_alphanumeric() && !"_-/.:()[]".contains(*character)
    });
    let beyond_ascii = "äßéЖ中🔑\u{a0}\u{200b}\u{ff0f}".chars();
    let mut messages = Vec::new();
    for character in other_ascii.chain(beyond_ascii) {
        let body = json!({"name": format!("/a{character}b"), "type": "value", "value": "v"});
        let answer = server.put("/api/v1/data", body).await;
        assert_eq!(answer.status, 400, "{character:?}: {answer:?}");
        messages.push(answer.error());
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(given::found(&server, "path=").await.is_empty());
}

#[tokio::test]
async fn a_malformed_name_is_400_in_every_body_of_a_write() {
    let server = Server::start().await;
    for name in [
        "a b", "/a*", "a\\b", "a,b", "a+b", "a//b", "//a", "//", "/a/", "a/", "a%2Fb", "ä",
    ] {
        for answer in answers_of_each_body(&server, &json!(name)).await {
            assert_eq!(answer.status, 400, "{name}: {answer:?}");
            assert!(answer.error().contains("name"), "{name}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_name_is_required() {
    let server = Server::start().await;
    for name in [json!(""), json!("/"), Value::Null] {
        for answer in answers_of_each_body(&server, &name).await {
            assert_eq!(answer.status, 400, "{name}: {answer:?}");
            assert!(answer.error().contains("name"), "{name}: {answer:?}");
        }
        let answer = server
            .post("/api/v1/regenerate", json!({"name": name}))
            .await;
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
        assert!(answer.error().contains("name"), "{name}: {answer:?}");
    }
    for (method, path, body) in [
        (
            Method::PUT,
            "/api/v1/data",
            json!({"type": "value", "value": "v"}),
        ),
        (Method::POST, "/api/v1/data", json!({"type": "password"})),
        (Method::POST, "/api/v1/data", json!({"regenerate": true})),
        (Method::POST, "/api/v1/regenerate", json!({})),
    ] {
        let request = server.authorized(method, path).body(body.to_string());
        let answer = server.send(request).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.error().contains("name"), "{body}: {answer:?}");
    }
}

#[tokio::test]
async fn looking_up_a_malformed_name_finds_nothing() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    let too_long = "n".repeat(1_024);
    for name in [
        "a%20b",
        "%2A",
        "/*",
        "a//b",
        "/a/",
        "//a",
        "/",
        "%00",
        "%F0%9F%94%91",
        "a'b",
        &too_long,
    ] {
        let path = format!("/api/v1/data?name={name}");
        server.get(&path).await.expect(404);
        server
            .get(&format!("{path}&current=true"))
            .await
            .expect(404);
        server.delete(&path).await.expect(404);
    }
    for name in ["a b", "/*", "a//b", "/a/"] {
        server
            .post("/api/v1/regenerate", json!({"name": name}))
            .await
            .expect(404);
    }
    assert_eq!(given::found(&server, "path=").await, ["/a"]);
}

/// Returns the responses to each writing body with this name.
async fn answers_of_each_body(server: &Server, name: &Value) -> [Answer; 3] {
    [
        server
            .put(
                "/api/v1/data",
                json!({"name": name, "type": "value", "value": "v"}),
            )
            .await,
        server
            .post("/api/v1/data", json!({"name": name, "type": "password"}))
            .await,
        server
            .post("/api/v1/data", json!({"name": name, "regenerate": true}))
            .await,
    ]
}
