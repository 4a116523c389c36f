//! Setting, generating and regenerating. A plugin's normalized parameters are checked against the request: otherwise a plugin
//! could get access to a CA.

use std::sync::atomic::Ordering;

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::{fakes::SET_DURATION_DAYS, harness::Service};

/// The path of most requests.
pub(crate) const DATA: &str = "/api/v1/data";

/// Sends a body, asserts the status, and returns the `error` of an error response.
pub(crate) async fn check(
    service: &Service,
    method: &str,
    path: &str,
    body: Value,
    status: u16,
) -> String {
    let response = service.send_json(method, path, &body).await;
    assert_eq!(
        response.status.as_u16(),
        status,
        "{body}: {}",
        response.text
    );
    if response.status.is_success() {
        return String::new();
    }
    response.error()
}

#[tokio::test]
async fn each_error_in_a_set_request_has_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (
            json!({"name": "a", "value": "x"}),
            422,
            "value, json, certificate",
        ),
        (json!({"name": "a", "type": "", "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": null, "value": "x"}),
            422,
            "type",
        ),
        (json!({"name": "a", "type": 1, "value": "x"}), 422, "type"),
        (
            json!({"name": "a", "type": "pgp", "value": "x"}),
            422,
            "type",
        ),
        (json!({"type": "pgp"}), 422, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "value", "value": null}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": ""}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "value", "value": 1}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "json", "value": []}),
            400,
            "value",
        ),
        (json!({"type": "value", "value": "x"}), 400, "name"),
        (
            json!({"name": "/", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a b", "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": 1, "type": "value", "value": "x"}),
            400,
            "name",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "mode": "overwrite"}),
            422,
            "mode",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "overwrite": true}),
            422,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "parameters": {}}),
            422,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "certificate", "value": {"bogus": 1}}),
            422,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
        (
            json!({"name": "a", "type": "value", "value": "x".repeat(65_537)}),
            413,
            "65,536",
        ),
    ] {
        let error = check(&service, "PUT", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
}

#[tokio::test]
async fn any_configured_type_is_set_and_generated() {
    let service = Service::new();
    let body = json!({"name": "w", "type": "WireGuard", "value": {"key": 1}});
    check(&service, "PUT", DATA, body, 200).await;
    let generated = service
        .send_json(
            "POST",
            DATA,
            &json!({"name": "g", "type": "wireguard", "parameters": {"a": 1}}),
        )
        .await;
    assert_eq!(generated.json()["value"], json!({"a": 1}));
}

#[tokio::test]
async fn each_error_in_a_generate_request_has_its_status() {
    let service = Service::new();
    let long = "x".repeat(7_000);
    for (body, status, named) in [
        (json!({"name": "a"}), 400, "type"),
        (json!({"name": "a", "type": "pgp"}), 400, "type"),
        (json!({"name": "a", "type": "value"}), 400, "value"),
        (
            json!({"name": "a", "type": "json", "parameters": {}}),
            400,
            "json",
        ),
        (json!({"type": "password"}), 400, "name"),
        (json!({"type": "pgp"}), 400, "name"),
        (
            json!({"name": "a", "type": "certificate"}),
            400,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "password", "mode": "OVERWRITE"}),
            400,
            "mode",
        ),
        (
            json!({"name": "a", "type": "password", "mode": 1}),
            400,
            "mode",
        ),
        (
            json!({"name": "a", "type": "password", "overwrite": [null]}),
            400,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "password", "overwrite": "yes"}),
            400,
            "overwrite",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": []}),
            400,
            "parameters",
        ),
        (
            json!({"name": "a", "type": "password", "bogus": 1}),
            400,
            "bogus",
        ),
        (
            json!({"name": "a", "type": "password", "value": {"username": "x"}}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "user", "value": {"password": "x"}}),
            400,
            "password",
        ),
        (
            json!({"name": "a", "type": "user", "value": "x"}),
            400,
            "value",
        ),
        (
            json!({"name": "a", "type": "password", "regenerate": false}),
            400,
            "regenerate",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": {"fault": "?"}}),
            400,
            "fault",
        ),
        (
            json!({"name": "a", "type": "password", "parameters": {"fault": "trap"}}),
            500,
            "echo",
        ),
        (
            json!({"name": "a", "type": "password", "metadata": {"a": long}}),
            400,
            "metadata",
        ),
    ] {
        let error = check(&service, "POST", DATA, body.clone(), status).await;
        assert!(error.contains(named), "{body}: {error}");
    }
    let full = json!({"name": "a", "type": "password", "parameters": {"fault": "full"}});
    let response = service.send_json("POST", DATA, &full).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers["retry-after"], "3");
}

#[tokio::test]
async fn the_mode_decides_whether_a_version_is_added() {
    let service = Service::new();
    let generate = async |fields: Value| {
        let mut body = json!({"name": "p", "type": "password", "parameters": {"length": 20}});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let response = service.send_json("POST", DATA, &body).await;
        assert_eq!(response.status, StatusCode::OK, "{body}: {}", response.text);
        response.json()["id"].as_str().unwrap().to_owned()
    };
    let mut newest = generate(json!({})).await;
    for (fields, is_written) in [
        (json!({}), false),
        (json!({"mode": null}), false),
        (json!({"mode": "converge"}), false),
        (json!({"mode": "converge", "overwrite": false}), false),
        (json!({"mode": "converge", "overwrite": true}), false),
        (
            json!({"parameters": {"length": 21}, "mode": "no-overwrite"}),
            false,
        ),
        (
            json!({"parameters": {"length": 21}, "overwrite": false}),
            false,
        ),
        (
            json!({"parameters": {"length": 21}, "overwrite": "false"}),
            false,
        ),
        (json!({"parameters": {"length": 21}}), true),
        (json!({"mode": "overwrite"}), true),
        (json!({"mode": "overwrite", "overwrite": false}), true),
        (json!({"overwrite": true}), true),
    ] {
        let id = generate(fields.clone()).await;
        assert_eq!(id != newest, is_written, "{fields}");
        newest = id;
    }
}

#[tokio::test]
async fn a_username_in_the_value_overrides_the_parameter() {
    let service = Service::new();
    for (fields, username) in [
        (json!({"value": {"username": "v"}}), json!("v")),
        (
            json!({"value": {"username": "v"}, "parameters": {"username": "p"}}),
            json!("v"),
        ),
        (
            json!({"value": {"username": ""}, "parameters": {"username": "p"}}),
            json!("p"),
        ),
        (
            json!({"value": {"username": ""}, "parameters": {}}),
            Value::Null,
        ),
        (json!({"value": {"username": null}}), Value::Null),
        (json!({"value": null}), Value::Null),
        (json!({}), Value::Null),
    ] {
        let mut body = json!({"name": "u", "type": "User", "mode": "overwrite"});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        let response = service.send_json("POST", DATA, &body).await;
        assert_eq!(response.json()["value"]["username"], username, "{body}");
    }
}

#[tokio::test]
async fn a_credential_deleted_meanwhile_is_not_recreated() {
    let service = Service::new();
    for (name, credential_type) in [("/p", "password"), ("/c", "certificate")] {
        let generate = json!({"name": name, "type": credential_type, "parameters": {"length": 20}});
        check(&service, "POST", DATA, generate, 200).await;
        let deleted = &service.memory.is_deleted_before_append;
        deleted.store(true, Ordering::SeqCst);
        let body = json!({"name": name});
        check(&service, "POST", "/api/v1/regenerate", body, 404).await;
        deleted.store(false, Ordering::SeqCst);
        assert_eq!(service.memory.count(), 0);
    }
}

#[tokio::test]
async fn a_recreated_credential_gets_no_version_of_the_old_one() {
    let service = Service::new();
    let generate = json!({"name": "/p", "type": "password", "parameters": {"length": 20}});
    check(&service, "POST", DATA, generate, 200).await;
    let is_recreated = &service.memory.is_recreated_before_append;
    is_recreated.store(true, Ordering::SeqCst);
    let body = json!({"name": "/p"});
    check(&service, "POST", "/api/v1/regenerate", body, 404).await;
    assert_eq!(service.memory.count(), 1);
}

#[tokio::test]
async fn each_error_in_a_regenerate_request_has_its_status() {
    let service = Service::new();
    let set = json!({"name": "/s", "type": "password", "value": "x"});
    check(&service, "PUT", DATA, set, 200).await;
    let long = json!({"a": "x".repeat(7_000)});
    for (body, by_name, through_data) in [
        (json!({}), 400, 400),
        (json!({"name": null}), 400, 400),
        (json!({"name": ""}), 400, 400),
        (json!({"name": 1}), 400, 400),
        (json!({"name": "absent"}), 404, 404),
        (json!({"name": "s"}), 400, 400),
        (json!({"name": "s", "bogus": 1}), 422, 400),
        (json!({"name": "s", "mode": "overwrite"}), 422, 400),
        (json!({"name": "s", "metadata": long}), 413, 413),
    ] {
        check(
            &service,
            "POST",
            "/api/v1/regenerate",
            body.clone(),
            by_name,
        )
        .await;
        let mut body = body;
        body["regenerate"] = json!(true);
        check(&service, "POST", DATA, body, through_data).await;
    }
}

/// Returns a service with the CAs `/root` and `/dev`.
async fn service_with_root() -> Service {
    let service = Service::new();
    let value = json!({"certificate": "root", "private_key": "k"});
    for name in ["/root", "/dev"] {
        let set = json!({"name": name, "type": "certificate", "value": value});
        check(&service, "PUT", DATA, set, 200).await;
    }
    service
}

#[tokio::test]
async fn extended_parameters_are_reported_as_a_plugin_fault() {
    let service = service_with_root().await;
    for (requested, more, status) in [
        (json!({}), json!({}), 200),
        (json!({}), json!({"ca": "/root"}), 500),
        (json!({"ca": ""}), json!({"ca": "/root"}), 500),
        (json!({"ca": "/dev"}), json!({"ca": "/root"}), 500),
        (json!({"ca": "/dev"}), json!({"ca": "/DEV"}), 500),
        (json!({"ca": "/dev"}), json!({"ca": null}), 500),
        (json!({"ca": "dev"}), json!({"ca": "/dev"}), 200),
        (json!({}), json!({"is_ca": true}), 500),
        (json!({"is_ca": "false"}), json!({"is_ca": true}), 500),
        (json!({"is_ca": "true"}), json!({"is_ca": true}), 200),
        (json!({"is_ca": true}), json!({"is_ca": true}), 200),
        (json!({"is_ca": true}), json!({"is_ca": false}), 200),
        (json!({}), json!({"duration": 3_650}), 200),
        (json!({}), json!({"duration": 3_651}), 500),
        (json!({"duration": 4_000}), json!({"duration": 4_000}), 200),
        (
            json!({"duration": 4_000}),
            json!({"duration": 4_000_000_000_u64}),
            500,
        ),
    ] {
        for credential_type in ["certificate", "wireguard"] {
            let mut parameters = requested.clone();
            parameters["more"] = more.clone();
            let name = format!("/{credential_type}");
            let body = json!({
                "name": name, "type": credential_type, "mode": "overwrite", "parameters": parameters,
            });
            check(&service, "POST", DATA, body, status).await;
        }
    }
}

#[tokio::test]
async fn changed_parameters_are_checked_on_regeneration_too() {
    let service = service_with_root().await;
    for (more, status) in [(json!({}), 200), (json!({"ca": "/root"}), 500)] {
        service
            .memory
            .store_generated("/c", &json!({"ca": "/dev", "is_ca": false}), &more);
        let id = service.memory.credential_id("/c");
        let path = format!("/api/v1/certificates/{id}/regenerate");
        check(&service, "POST", &path, json!({"duration": 9}), status).await;
    }
}

#[tokio::test]
async fn stored_parameters_override_recovered_ones() {
    let service = service_with_root().await;
    let stored = json!({"ca": "/dev", "is_ca": false, "duration": 9});
    for name in ["/signed", "/self-signed"] {
        let mut parameters = stored.clone();
        if name == "/self-signed" {
            parameters["ca"] = Value::Null;
        }
        service.memory.store_generated(
            name,
            &parameters,
            &json!({"ca": "/root", "is_ca": true, "duration": 4_000_000_000_u64}),
        );
        let body = json!({"name": name});
        check(&service, "POST", "/api/v1/regenerate", body, 200).await;
        let made = service.memory.newest_plaintext(name)["parameters"].take();
        assert_eq!(made["is_ca"], false);
        assert_eq!(made["duration"], 9);
        assert_eq!(made["ca"], parameters["ca"]);
    }
}

#[tokio::test]
async fn recovering_more_than_was_set_is_reported_as_a_plugin_fault() {
    let service = service_with_root().await;
    let recovered = |more: Value| {
        let mut recovered = json!({"self_sign": true});
        let fields = more.as_object().unwrap().clone();
        recovered.as_object_mut().unwrap().extend(fields);
        json!({"certificate": recovered.to_string()})
    };
    // The properties of the fake certificates: CAs with this validity in days.
    let days = SET_DURATION_DAYS;
    for (credential_type, more, status) in [
        ("certificate", json!({"is_ca": true, "duration": days}), 200),
        ("certificate", json!({"duration": days + 1}), 500),
        ("wireguard", json!({"is_ca": false, "duration": 3_650}), 200),
        ("wireguard", json!({"is_ca": true}), 500),
        ("wireguard", json!({"duration": 3_651}), 500),
    ] {
        let name = format!("/{credential_type}");
        let set = json!({"name": name, "type": credential_type, "value": recovered(more)});
        check(&service, "PUT", DATA, set, 200).await;
        check(
            &service,
            "POST",
            "/api/v1/regenerate",
            json!({"name": name}),
            status,
        )
        .await;
    }
    for credential_type in ["certificate", "wireguard"] {
        let name = format!("/{credential_type}");
        let value = recovered(json!({"ca": "/root"}));
        let set = json!({"name": name, "type": credential_type, "value": value});
        check(&service, "PUT", DATA, set, 200).await;
        check(
            &service,
            "POST",
            "/api/v1/regenerate",
            json!({"name": name}),
            200,
        )
        .await;
        let made = service.memory.newest_plaintext(&name);
        assert_eq!(
            made["parameters"].get("ca"),
            None,
            "the plugin got no access to the root"
        );
    }
}
