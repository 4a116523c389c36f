//! All types share one namespace, and a name keeps its type.

use keywright_harness::Server;
use serde_json::{Value, json};

use crate::{given, made_elsewhere::another_private_key};

#[tokio::test]
async fn a_set_with_another_type_is_400_and_changes_nothing() {
    let server = Server::start().await;
    for (stored, value) in settable() {
        let name = format!("/{stored}");
        let version = given::set(&server, &name, stored, value).await;
        for (other, value) in settable().into_iter().filter(|(other, _)| *other != stored) {
            for name in [name.clone(), name.to_uppercase()] {
                let body = json!({"name": name, "type": other, "value": value});
                let answer = server.put("/api/v1/data", body).await;
                assert_eq!(answer.status, 400, "{stored} to {other}: {answer:?}");
                assert!(!answer.error().is_empty());
            }
        }
        assert_eq!(given::versions(&server, &name).await, [version], "{stored}");
    }
}

#[tokio::test]
async fn a_generate_with_another_type_is_400_in_every_mode() {
    let server = Server::start().await;
    let version = given::set_value(&server, "/a", "v").await;
    for credential_type in ["password", "user", "rsa", "ssh", "certificate"] {
        let parameters = match credential_type {
            "certificate" => json!({"common_name": "c", "self_sign": true}),
            _ => json!({}),
        };
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
            let answer = server.post("/api/v1/data", body).await;
            assert_eq!(answer.status, 400, "{credential_type} {mode}: {answer:?}");
            assert!(!answer.error().is_empty());
        }
    }
    assert_eq!(given::versions(&server, "/a").await, [version]);
}

#[tokio::test]
async fn a_deleted_name_is_free_for_another_type() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "v").await;
    server.delete("/api/v1/data?name=/a").await.expect(204);
    let version = given::generate(&server, "/a", "password", json!({})).await;
    assert_eq!(given::versions(&server, "/a").await, [version]);
}

#[tokio::test]
async fn a_name_may_be_the_path_of_others() {
    let server = Server::start().await;
    given::set_value(&server, "/a", "outer").await;
    given::set(&server, "/a/b", "password", json!("inner")).await;
    assert_eq!(given::versions(&server, "/a").await[0]["value"], "outer");
    assert_eq!(given::versions(&server, "/a/b").await[0]["value"], "inner");
    server.delete("/api/v1/data?name=/a").await.expect(204);
    assert_eq!(given::versions(&server, "/a/b").await.len(), 1);
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
