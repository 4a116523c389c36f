//! A plugin's normalized parameters are checked against the request: otherwise a plugin could get access to a CA.

use serde_json::{Value, json};

use super::{DATA, check};
use crate::{fakes::SET_DURATION_DAYS, harness::Service};

/// A CA that the plugin must not use.
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
async fn a_plugin_that_extends_the_parameters_is_at_fault() {
    let service = service_with_root().await;
    for (asked, more, status) in [
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
            let mut parameters = asked.clone();
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
async fn a_plugin_that_recovers_more_than_was_set_is_at_fault() {
    let service = service_with_root().await;
    let recovered = |more: Value| {
        let mut recovered = json!({"self_sign": true});
        let members = more.as_object().unwrap().clone();
        recovered.as_object_mut().unwrap().extend(members);
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
