//! Properties of requests that are independent of the type.

use keywright_harness::Server;
use serde_json::json;

use crate::given;

#[tokio::test]
async fn the_response_equals_a_later_get_without_issuance_fields() {
    let server = Server::reused().await;
    for (credential_type, parameters) in given::generatable() {
        let name = format!("/{credential_type}");
        let mut made = server.generated(&name, credential_type, parameters).await;
        assert_eq!(made["type"], credential_type);
        assert_eq!(made["name"], *name);
        let id = made["id"].as_str().unwrap();
        let read = server.get_json(&format!("/api/v1/data/{id}")).await;
        let fields = made.as_object_mut().unwrap();
        for issuance_field in ["duration_overridden", "duration_used", "key_length"] {
            let is_certificate = credential_type == "certificate";
            assert_eq!(fields.remove(issuance_field).is_some(), is_certificate);
        }
        assert_eq!(read, made, "{credential_type}");
        assert_eq!(server.versions(&name).await, [read], "{credential_type}");
    }
}

const REFUSED: &str = r#"
    400 POST /api/v1/data {"name": "/a"} => type
    400 POST /api/v1/data {"name": "/a", "type": null} => type
    400 POST /api/v1/data {"name": "/a", "type": ""} => type
    400 POST /api/v1/data {"name": "/a", "type": "secret"} => type
    400 POST /api/v1/data {"name": "/a", "type": "value"} => can't be generated
    400 POST /api/v1/data {"name": "/a", "type": "json"} => can't be generated
    400 POST /api/v1/data {"name": "/a", "type": "JSON"} => can't be generated
    400 POST /api/v1/data {"name": "/a", "type": "value", "parameters": {}} => can't be generated
    400 POST /api/v1/data {"name": "/a", "type": "json", "parameters": {}} => can't be generated
    400 POST /api/v1/data {"name": "/a", "type": "JSON", "parameters": {}} => can't be generated
    400 POST /api/v1/data {"name": "/a", "type": "certificate"} => parameters
    400 POST /api/v1/data {"name": "/a", "type": "certificate", "parameters": null} => parameters
    400 POST /api/v1/data {"name": "/a", "type": "user", "value": {"password": "p"}} => password
    400 POST /api/v1/data {"name": "/a", "type": "user", "value": {"username": ["ada"]}}
    400 POST /api/v1/data {"name": "/a", "type": "user", "value": "ada"}
    400 POST /api/v1/data {"name": "/a", "type": "user", "parameters": {"username": [7]}}
    400 POST /api/v1/data {"name": "/a", "type": "password", "regenerate": false} => regenerate must be true or omitted
"#;

#[tokio::test]
async fn a_missing_or_unsuitable_type_or_parameter_is_400() {
    let server = Server::reused().await;
    given::assert_refused(&server, REFUSED).await;
}

#[tokio::test]
async fn parameters_are_optional_for_every_type_but_certificate() {
    let server = Server::reused().await;
    for (credential_type, _) in &given::generatable()[..4] {
        for body in given::each(json!([
            {"name": "/a", "type": credential_type},
            {"name": "/a", "type": credential_type, "parameters": null},
        ])) {
            server.post("/api/v1/data", body).await.expect(200);
        }
        server.delete("/api/v1/data?name=/a").await;
    }
}

#[tokio::test]
async fn a_parameter_of_another_type_is_400_and_named() {
    let server = Server::reused().await;
    for (credential_type, mut parameters) in given::generatable() {
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
            let response = server
                .generate("/a", credential_type, parameters.clone())
                .await;
            response.expect_error(400, parameter);
            parameters.as_object_mut().unwrap().remove(parameter);
        }
    }
}

#[tokio::test]
async fn a_value_is_accepted_for_users_only() {
    let server = Server::reused().await;
    for (credential_type, parameters) in given::generatable() {
        let body = json!({
            "name": "/a", "type": credential_type, "parameters": parameters, "value": {"username": "ada"},
        });
        if credential_type == "user" {
            server.post("/api/v1/data", body).await.expect(200);
            server.delete("/api/v1/data?name=/a").await.expect(204);
        } else {
            let response = server.post("/api/v1/data", body).await;
            response.expect_error(400, "value");
        }
    }
}

#[tokio::test]
async fn name_mode_type_parameters_and_metadata_are_checked_in_order() {
    let server = Server::reused().await;
    let mut body = json!({
        "name": "", "mode": "sometimes", "type": "secret", "parameters": {"colour": "red"},
    });
    for (mistake, corrected) in [
        ("name", "/a"),
        ("mode", "converge"),
        ("type", "password"),
        ("colour", ""),
    ] {
        let response = server.post("/api/v1/data", body.clone()).await;
        response.expect_error(400, mistake);
        body[mistake] = json!(corrected);
    }
    let too_long = "a".repeat(7_001);
    for (credential_type, mistake) in [
        ("value", "can't be generated"),
        ("certificate", "parameters"),
        ("password", "metadata"),
    ] {
        let body = json!({"name": "/a", "type": credential_type, "metadata": {"a": too_long}});
        let response = server.post("/api/v1/data", body).await;
        response.expect_error(400, mistake);
    }
}

// Regenerating through the data endpoint: `{"name": …, "regenerate": true}`.

#[tokio::test]
async fn regenerate_true_works_like_the_regenerate_endpoint() {
    let server = Server::reused().await;
    let parameters = json!({"length": 12, "include_special": true});
    let made = server.generated("/Path/A", "password", parameters).await;
    for name in ["/Path/A", "path/a"] {
        for regenerate in [json!(true), json!("true")] {
            let body = json!({"name": name, "regenerate": regenerate});
            let response = server.post("/api/v1/data", body).await.expect(200).json();
            assert_eq!(response["name"], "/Path/A");
            assert_eq!(response["value"].as_str().unwrap().len(), 12);
            assert_ne!(response["id"], made["id"]);
            assert_eq!(server.versions("/path/a").await[0], response);
        }
    }
    assert_eq!(server.versions("/path/a").await.len(), 5);
}

#[tokio::test]
async fn a_type_next_to_regenerate_is_ignored() {
    let server = Server::reused().await;
    server.generated("/a", "password", json!({})).await;
    for credential_type in ["password", "certificate", "nonsense"] {
        let body = json!({"name": "/a", "regenerate": true, "type": credential_type});
        let response = server.post("/api/v1/data", body).await.expect(200).json();
        assert_eq!(response["type"], "password");
    }
}
