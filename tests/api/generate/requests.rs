//! The request, independent of the type.

use keywright_harness::Server;
use serde_json::{Value, json};

/// Parameters for each type that can be generated.
pub(super) fn generatable() -> [(&'static str, Value); 5] {
    [
        ("password", json!({})),
        ("user", json!({})),
        ("rsa", json!({})),
        ("ssh", json!({})),
        ("certificate", json!({"common_name": "root", "is_ca": true})),
    ]
}

async fn refused(server: &Server, body: Value) -> String {
    let answer = server.post("/api/v1/data", body.clone()).await;
    assert_eq!(answer.status, 400, "{body}: {}", answer.body);
    answer.error()
}

#[tokio::test]
async fn the_response_equals_that_of_a_get() {
    let server = Server::start().await;
    for (credential_type, parameters) in generatable() {
        let name = format!("/{credential_type}");
        let mut made = server
            .generate(&name, credential_type, parameters)
            .await
            .expect(200)
            .json();
        assert_eq!(made["type"], credential_type);
        assert_eq!(made["name"], *name);
        let id = made["id"].as_str().unwrap();
        let read = server
            .get(&format!("/api/v1/data/{id}"))
            .await
            .expect(200)
            .json();
        let members = made.as_object_mut().unwrap();
        for of_generating in ["duration_overridden", "duration_used", "key_length"] {
            let is_certificate = credential_type == "certificate";
            assert_eq!(members.remove(of_generating).is_some(), is_certificate);
        }
        assert_eq!(read, made, "{credential_type}");
    }
}

#[tokio::test]
async fn parameters_are_optional_for_every_type_but_certificate() {
    let server = Server::start().await;
    for (credential_type, _) in generatable() {
        for body in [
            json!({"name": "/a", "type": credential_type}),
            json!({"name": "/a", "type": credential_type, "parameters": null}),
        ] {
            if credential_type == "certificate" {
                let error = refused(&server, body).await;
                assert!(error.contains("parameters"), "{error}");
            } else {
                server.post("/api/v1/data", body).await.expect(200);
            }
        }
        server.delete("/api/v1/data?name=/a").await;
    }
}

#[tokio::test]
async fn a_missing_or_unknown_type_is_400() {
    let server = Server::start().await;
    for body in [
        json!({"name": "/a"}),
        json!({"name": "/a", "type": null}),
        json!({"name": "/a", "type": ""}),
        json!({"name": "/a", "type": "secret"}),
    ] {
        let error = refused(&server, body).await;
        assert!(error.contains("type"), "{error}");
    }
}

#[tokio::test]
async fn value_and_json_cannot_be_generated() {
    let server = Server::start().await;
    for credential_type in ["value", "json", "JSON"] {
        for body in [
            json!({"name": "/a", "type": credential_type}),
            json!({"name": "/a", "type": credential_type, "parameters": {}}),
        ] {
            refused(&server, body).await;
        }
    }
}

#[tokio::test]
async fn the_type_may_have_any_casing_and_is_returned_in_lower_case() {
    let server = Server::start().await;
    for credential_type in ["PASSWORD", "Password", "passWord"] {
        let answer = server
            .generate("/a", credential_type, json!({}))
            .await
            .expect(200)
            .json();
        assert_eq!(answer["type"], "password");
    }
}

#[tokio::test]
async fn an_unknown_field_is_400_and_named() {
    let server = Server::start().await;
    for (field, value) in [
        ("additional_permissions", json!([])),
        ("colour", json!("red")),
        ("regenerate", json!(false)),
    ] {
        let mut body = json!({"name": "/a", "type": "password"});
        body[field] = value;
        let error = refused(&server, body).await;
        assert!(error.contains(field), "{error}");
    }
}

#[tokio::test]
async fn a_parameter_of_another_type_is_400_and_named() {
    let server = Server::start().await;
    for (credential_type, mut parameters) in generatable() {
        for (parameter, value, known_to) in [
            ("length", json!(20), &["password", "user"][..]),
            ("include_special", json!(true), &["password", "user"]),
            ("username", json!("ada"), &["user"]),
            ("key_length", json!(2048), &["rsa", "ssh", "certificate"]),
            ("ssh_comment", json!("ada@host"), &["ssh"]),
            ("common_name", json!("ada"), &["certificate"]),
            ("colour", json!("red"), &[]),
        ] {
            if known_to.contains(&credential_type) {
                continue;
            }
            parameters[parameter] = value;
            let body = json!({"name": "/a", "type": credential_type, "parameters": parameters});
            let error = refused(&server, body).await;
            assert!(error.contains(parameter), "{credential_type}: {error}");
            parameters.as_object_mut().unwrap().remove(parameter);
        }
    }
}

#[tokio::test]
async fn a_value_is_accepted_for_users_only() {
    let server = Server::start().await;
    for (credential_type, parameters) in generatable() {
        let body = json!({
            "name": "/a",
            "type": credential_type,
            "parameters": parameters,
            "value": {"username": "ada"},
        });
        if credential_type == "user" {
            server.post("/api/v1/data", body).await.expect(200);
            server.delete("/api/v1/data?name=/a").await.expect(204);
        } else {
            let error = refused(&server, body).await;
            assert!(error.contains("value"), "{credential_type}: {error}");
        }
    }
    let body = json!({"name": "/a", "type": "user", "value": {"password": "p"}});
    let error = refused(&server, body).await;
    assert!(error.contains("password"), "{error}");
}

#[tokio::test]
async fn parameters_of_another_json_kind_are_400() {
    let server = Server::start().await;
    for (credential_type, _) in generatable() {
        for parameters in [json!([]), json!("length"), json!(30), json!(true)] {
            let body = json!({"name": "/a", "type": credential_type, "parameters": parameters});
            refused(&server, body).await;
        }
    }
}

#[tokio::test]
async fn of_several_errors_the_first_in_order_is_reported() {
    let server = Server::start().await;
    let mut body = json!({
        "name": "",
        "mode": "sometimes",
        "type": "secret",
        "parameters": {"colour": "red"},
    });
    for (mistake, corrected) in [
        ("name", json!("/a")),
        ("mode", json!("converge")),
        ("type", json!("password")),
    ] {
        let error = refused(&server, body.clone()).await;
        assert!(error.contains(mistake), "{mistake}: {error}");
        body[mistake] = corrected;
    }
    let error = refused(&server, body).await;
    assert!(error.contains("colour"), "{error}");
}

#[tokio::test]
async fn the_type_of_a_credential_cannot_be_changed_in_any_mode() {
    let server = Server::start().await;
    let existing = server
        .set("/Taken", "value", json!("v"))
        .await
        .expect(200)
        .json();
    for mode in ["overwrite", "no-overwrite", "converge"] {
        for (credential_type, parameters) in generatable() {
            let answer = server
                .generate_in_mode(mode, "/taken", credential_type, parameters)
                .await;
            assert_eq!(
                answer.status, 400,
                "{mode} {credential_type}: {}",
                answer.body
            );
        }
    }
    assert_eq!(server.versions("/taken").await, [existing]);
}
