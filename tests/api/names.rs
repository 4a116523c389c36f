//! Names of credentials.

use keywright_harness::{Response, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{external_certificates::another_private_key, given};

// The syntax of names in request bodies.

#[tokio::test]
async fn a_name_has_at_most_255_characters_with_its_slash() {
    let server = Server::reused().await;
    let longest = format!("/{}", "n".repeat(254));
    let longest_in_parts = format!("/{}/{}", "a".repeat(100), "b".repeat(153));
    for name in [&longest, &longest[1..], &longest_in_parts] {
        let version = server.set_value(name, "v").await;
        let stored = version["name"].as_str().unwrap();
        assert_eq!(
            (stored.len(), stored.trim_start_matches('/')),
            (255, name.trim_start_matches('/'))
        );
        assert_eq!(server.versions(name).await[0]["id"], version["id"]);
    }
    let too_long = format!("{longest}n");
    for name in [
        &too_long,
        &too_long[1..],
        &"n".repeat(1_024),
        &"n".repeat(100_000),
    ] {
        for response in responses_of_each_body(&server, &json!(name)).await {
            assert_eq!(
                response.status,
                400,
                "{} characters: {response:?}",
                name.len()
            );
            assert!(response.error().contains("255"), "{response:?}");
        }
    }
}

#[tokio::test]
async fn every_allowed_character_is_accepted_in_a_name() {
    let server = Server::reused().await;
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
        let version = server.set_value(&name, "v").await;
        assert_eq!(version["name"], name);
        assert_eq!(server.versions(&name).await.len(), 1, "{name}");
    }
}

#[tokio::test]
async fn every_other_character_is_400() {
    let server = Server::reused().await;
    let other_ascii = (0_u8..128).map(char::from).filter(|character| {
        !character.is_ascii_alphanumeric() && !"_-/.:()[]".contains(*character)
    });
    let beyond_ascii = "äßéЖ中🔑\u{a0}\u{200b}\u{ff0f}".chars();
    let mut messages = Vec::new();
    for character in other_ascii.chain(beyond_ascii) {
        let body = json!({"name": format!("/a{character}b"), "type": "value", "value": "v"});
        let response = server.put("/api/v1/data", body).await;
        assert_eq!(response.status, 400, "{character:?}: {response:?}");
        messages.push(response.error());
    }
    messages.dedup();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(server.found_names("path=").await.is_empty());
}

#[tokio::test]
async fn a_malformed_name_is_400_in_every_body_of_a_write() {
    let server = Server::reused().await;
    for name in [
        "a b", "/a*", "a\\b", "a,b", "a+b", "a//b", "//a", "//", "/a/", "a/", "a%2Fb", "ä",
    ] {
        for response in responses_of_each_body(&server, &json!(name)).await {
            response.expect_error(400, "name");
        }
    }
}

#[tokio::test]
async fn a_name_is_required() {
    let server = Server::reused().await;
    for name in [json!(""), json!("/"), Value::Null] {
        for response in responses_of_each_body(&server, &name).await {
            response.expect_error(400, "name");
        }
        let sent = json!({"name": name});
        let response = server.post("/api/v1/regenerate", sent).await;
        response.expect_error(400, "name");
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
        let response = server.send(request).await;
        response.expect_error(400, "name");
    }
}

#[tokio::test]
async fn looking_up_a_malformed_name_finds_nothing() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
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
        let response = server.get(&format!("{path}&current=true")).await;
        response.expect(404);
        server.delete(&path).await.expect(404);
    }
    for name in ["a b", "/*", "a//b", "/a/"] {
        let body = json!({"name": name});
        server.post("/api/v1/regenerate", body).await.expect(404);
    }
    assert_eq!(server.found_names("path=").await, ["/a"]);
}

/// Returns the responses to each kind of write with this name.
async fn responses_of_each_body(server: &Server, name: &Value) -> [Response; 3] {
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

#[tokio::test]
async fn a_leading_slash_is_prepended_in_every_request() {
    let server = Server::reused().await;
    let version = server.stored("a/json", "json", json!({"k": 1})).await;
    assert_eq!(version["name"], "/a/json");
    let version = server.generated("a/password", "password", json!({})).await;
    assert_eq!(version["name"], "/a/password");

    for path in [
        "name=a/password",
        "name=/a/password",
        "name=a%2Fpassword&current=true",
    ] {
        let response = server
            .get(&format!("/api/v1/data?{path}"))
            .await
            .expect(200);
        assert_eq!(
            given::versions_in(&response)[0]["id"],
            version["id"],
            "{path}"
        );
    }
    for name in ["a/password", "/a/password"] {
        let sent = json!({"name": name});
        server.post("/api/v1/regenerate", sent).await.expect(200);
        let body = json!({"name": name, "regenerate": true});
        server.post("/api/v1/data", body).await.expect(200);
    }
    assert_eq!(server.versions("/a/password").await.len(), 5);
    for path in ["a", "/a", "a/", "/a/"] {
        let found = server.found_names(&format!("path={path}")).await;
        assert_eq!(found, ["/a/password", "/a/json"], "{path}");
    }
    for reference in ["a/json", "/a/json", "((a/json))"] {
        let document = json!({"s": [{"credentials": {"credhub-ref": reference}}]});
        let response = server
            .post("/api/v1/interpolate", document)
            .await
            .expect(200);
        assert_eq!(
            response.json(),
            json!({"s": [{"credentials": {"k": 1}}]}),
            "{reference}"
        );
    }
    server.delete("/api/v1/data?name=a/json").await.expect(204);
    let response = server.delete("/api/v1/data?name=a/password").await;
    response.expect(204);
}

// Names are looked up in any case, and keep the case of their first version.

#[tokio::test]
async fn a_name_is_found_in_any_casing_and_returned_as_first_set() {
    let server = Server::reused().await;
    let version = server
        .generated("/Team/Password", "password", json!({}))
        .await;
    for name in [
        "/Team/Password",
        "/team/password",
        "/TEAM/PASSWORD",
        "tEAM/pASSWORD",
    ] {
        let actual = server.versions(name).await;
        assert_eq!(actual, std::slice::from_ref(&version), "{name}");
    }
    let by_id = server
        .get(&format!("/api/v1/data/{}", given::id(&version)))
        .await
        .expect(200);
    assert_eq!(by_id.json()["name"], "/Team/Password");
    let actual = server.found_names("path=/TEAM").await;
    assert_eq!(actual, ["/Team/Password"]);
}

#[tokio::test]
async fn writing_in_another_casing_adds_a_version_and_keeps_the_name() {
    let server = Server::reused().await;
    server
        .generated("/Team/Password", "password", json!({}))
        .await;
    let value = json!("p");
    let set = server.stored("/TEAM/password", "password", value).await;
    assert_eq!(set["name"], "/Team/Password");
    let overwrite = json!({"name": "/team/PASSWORD", "type": "password", "mode": "overwrite"});
    let response = server.post("/api/v1/data", overwrite).await;
    let overwritten = response.expect(200).json();
    assert_eq!(overwritten["name"], "/Team/Password");
    let regenerate = json!({"name": "/team/password"});
    let response = server.post("/api/v1/regenerate", regenerate).await;
    let regenerated = response.expect(200).json();
    assert_eq!(regenerated["name"], "/Team/Password");
    for mode in ["no-overwrite", "converge"] {
        let kept = json!({"name": "/TEAM/PASSWORD", "type": "password", "mode": mode});
        let kept = server.post("/api/v1/data", kept).await.expect(200).json();
        assert_eq!(kept, regenerated);
    }
    let versions = server.versions("/team/password").await;
    assert_eq!(versions.len(), 4);
    assert!(
        versions
            .iter()
            .all(|version| version["name"] == "/Team/Password")
    );
}

#[tokio::test]
async fn the_first_writer_after_deletion_chooses_the_casing() {
    let server = Server::reused().await;
    server.set_value("/Team/Value", "v").await;
    let response = server.delete("/api/v1/data?name=/team/value").await;
    response.expect(204);
    assert_eq!(
        server.set_value("/TEAM/VALUE", "v").await["name"],
        "/TEAM/VALUE"
    );
}

// All types share one namespace, and a name keeps its type.

#[tokio::test]
async fn a_set_with_another_type_is_400_and_changes_nothing() {
    let server = Server::reused().await;
    for (stored, value) in settable() {
        let name = format!("/{stored}");
        let version = server.stored(&name, stored, value).await;
        for (other, value) in settable().into_iter().filter(|(other, _)| *other != stored) {
            for name in [name.clone(), name.to_uppercase()] {
                let body = json!({"name": name, "type": other, "value": value});
                let response = server.put("/api/v1/data", body).await;
                assert_eq!(response.status, 400, "{stored} to {other}: {response:?}");
                assert!(!response.error().is_empty());
            }
        }
        assert_eq!(server.versions(&name).await, [version], "{stored}");
    }
}

#[tokio::test]
async fn a_generate_with_another_type_is_400_in_every_mode() {
    let server = Server::reused().await;
    let version = server.set_value("/a", "v").await;
    for (credential_type, parameters) in given::generatable() {
        for mode in [
            json!({"mode": "overwrite"}),
            json!({"mode": "no-overwrite"}),
            json!({"mode": "converge"}),
            json!({"overwrite": true}),
            json!({"overwrite": false}),
            json!({}),
        ] {
            let mut body = json!({"name": "/a", "type": credential_type, "parameters": parameters});
            body.as_object_mut()
                .unwrap()
                .extend(mode.as_object().unwrap().clone());
            let response = server.post("/api/v1/data", body).await;
            assert_eq!(
                response.status, 400,
                "{credential_type} {mode}: {response:?}"
            );
            assert!(!response.error().is_empty());
        }
    }
    assert_eq!(server.versions("/a").await, [version]);
}

#[tokio::test]
async fn a_deleted_name_is_free_for_another_type() {
    let server = Server::reused().await;
    server.set_value("/a", "v").await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    let version = server.generated("/a", "password", json!({})).await;
    assert_eq!(server.versions("/a").await, [version]);
}

fn settable() -> [(&'static str, Value); 7] {
    [
        ("value", json!("v")),
        ("password", json!("p")),
        ("json", json!({"k": 1})),
        ("user", json!({"password": "p"})),
        ("rsa", json!({"private_key": "k"})),
        ("ssh", json!({"private_key": "k"})),
        ("certificate", json!({"private_key": another_private_key()})),
    ]
}
