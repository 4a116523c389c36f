//! Importing the provenance of a value: `generated_by` and `parameters`.

use std::fs;

use keywright_harness::{Options, QUICK_KEY, Response, Server, digest, release};
use rcgen::{BasicConstraints, IsCa};
use serde_json::{Value, json};

use crate::{external_certificates::authority_changed, given};

const DATA: &str = "/api/v1/data";

/// The digest of a plugin that no server has.
const OTHER: &str = "sha256:abababababababababababababababababababababababababababababababab";

/// Returns a request to set a value that the plugin [`OTHER`] generated on another server.
fn imported(name: &str, credential_type: &str, value: &Value, parameters: &Value) -> Value {
    json!({
        "name": name, "type": credential_type, "value": value, "generated_by": OTHER, "parameters": parameters,
    })
}

async fn import(
    server: &Server,
    name: &str,
    credential_type: &str,
    value: &Value,
    parameters: &Value,
) -> Response {
    let body = imported(name, credential_type, value, parameters);
    server.put(DATA, body).await
}

/// Returns the active version with its provenance.
async fn read(server: &Server, name: &str) -> Value {
    let query = format!("{DATA}?current=true&provenance=true&name={name}");
    let response = server.get(&query).await.expect(200);
    given::versions_in(&response).remove(0)
}

async fn found(server: &Server) -> Value {
    let query = format!("{DATA}?generated_by={OTHER}");
    let mut found = server.get_json(&query).await;
    for item in found["credentials"].as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("version_created_at");
    }
    found["credentials"].take()
}

#[tokio::test]
async fn an_imported_password_is_found_kept_and_regenerated() {
    let server = Server::reused().await;
    let parameters = json!({"length": 17, "exclude_upper": true});
    let response = import(&server, "/a", "password", &json!("mine"), &parameters).await;
    let set = response.expect(200).json();
    assert!(set.get("generated_by").is_none(), "{set}");
    let version = read(&server, "/a").await;
    assert_eq!(version["generated_by"], OTHER);
    assert_eq!(version["imported"], true);
    assert_eq!(version["parameters"]["length"], 17);
    let actual = found(&server).await;
    assert_eq!(actual, json!([{"name": "/a", "imported": true}]));

    let kept = server.generated("/a", "password", parameters).await;
    assert_eq!(kept, set);

    let body = json!({"generated_by": OTHER});
    let bulk = server.post("/api/v1/bulk-regenerate", body).await;
    let regenerated = bulk.expect(200).json()["regenerated_credentials"].take();
    assert_eq!(regenerated, json!(["/a"]));
    let version = read(&server, "/a").await;
    let password = version["value"].as_str().unwrap();
    assert_eq!(password.len(), 17);
    assert!(!password.bytes().any(|byte| byte.is_ascii_uppercase()));
    let plugin = server.plugin_digest("password").await;
    assert_eq!(version["generated_by"], format!("sha256:{plugin}"));
    assert_eq!(version["imported"], false);
    assert_eq!(found(&server).await, json!([]));
}

#[tokio::test]
async fn provenance_is_only_returned_if_requested_and_known() {
    let server = Server::reused().await;
    server.generated("/made", "password", json!({})).await;
    server.stored("/set", "password", json!("mine")).await;
    for version in [server.newest("/made").await, read(&server, "/set").await] {
        for field in ["generated_by", "parameters", "imported"] {
            assert!(version.get(field).is_none(), "{version}");
        }
    }
    let query = format!("{DATA}?name=/made&provenance=maybe");
    server.get(&query).await.expect_error(400, "provenance");
}

#[tokio::test]
async fn returned_provenance_can_be_imported_for_every_type() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    let certificate = json!({"ca": "/root", "common_name": "a", "key_type": QUICK_KEY});
    for (credential_type, parameters) in [
        ("password", json!({})),
        ("user", json!({"username": "ada"})),
        ("rsa", json!({})),
        ("ssh", json!({"ssh_comment": "me"})),
        ("certificate", certificate),
    ] {
        let name = format!("/{credential_type}");
        server.generated(&name, credential_type, parameters).await;
        let made = read(&server, &name).await;
        let mut value = made["value"].clone();
        if credential_type == "certificate" {
            value = json!({
                "ca_name": "/root", "certificate": value["certificate"], "private_key": value["private_key"],
            });
        }
        let response = import(&server, &name, credential_type, &value, &made["parameters"]);
        response.await.expect(200);
        let copy = read(&server, &name).await;
        assert_eq!(copy["parameters"], made["parameters"]);
        assert_eq!(copy["imported"], true);
        if credential_type == "certificate" {
            assert_eq!(copy["generated"], false);
        }
        server.regenerated(&name).await;
    }
}

#[tokio::test]
async fn refused_provenance_is_400_and_stores_nothing() {
    let server = Server::reused().await;
    let without = |field: &str| {
        let mut body = imported("/a", "password", &json!("v"), &json!({}));
        body.as_object_mut().unwrap().remove(field);
        body
    };
    let mut malformed = without("parameters");
    malformed["generated_by"] = json!("sha256:12");
    let certificate = crate::external_certificates::authority("a").public();
    let kept = json!({"common_name": "a", "self_sign": true, "kept": {}});
    let password = |parameters| imported("/a", "password", &json!("v"), &parameters);
    let absent = "parameters must be an object if generated_by is given";
    for (body, named) in [
        (without("parameters"), absent),
        (malformed, "64 hexadecimal digits"),
        (password(json!([])), "parameters must be an object"),
        (password(json!({"length": 3})), "length"),
        (password(json!({"other": 3})), "other"),
        (imported("/a", "value", &json!("v"), &json!({})), "value"),
        (imported("/a", "json", &json!({}), &json!({})), "json"),
        (
            imported("/a", "certificate", &certificate, &kept),
            "kept is read-only",
        ),
    ] {
        let response = server.put(DATA, body.clone()).await;
        response.expect_error(400, named);
    }
    let unknown = server.put(DATA, without("generated_by")).await;
    unknown.expect_error(422, "parameters");
    assert!(server.versions("/a").await.is_empty());
}

#[tokio::test]
async fn parameters_must_name_the_ca_that_signed_the_certificate() {
    let server = Server::reused().await;
    for name in ["/root", "/other"] {
        server.issued(name, json!({"is_ca": true})).await;
    }
    let leaf = server.issued("/leaf", json!({"ca": "/root"})).await;
    let leaf = &leaf["value"];
    let signed = json!({"ca_name": "/root", "certificate": leaf["certificate"]});
    let unnamed = json!({"ca": leaf["ca"], "certificate": leaf["certificate"]});
    let with_ca = |ca: &str| json!({"common_name": "/leaf", "ca": ca});
    let self_signed = json!({"common_name": "/leaf", "self_sign": true});
    for (value, parameters) in [
        (&signed, with_ca("/other")),
        (&signed, self_signed),
        (&unnamed, with_ca("/root")),
    ] {
        let response = import(&server, "/a", "certificate", value, &parameters).await;
        response.expect_error(400, "ca must equal the ca_name");
    }
    let response = import(&server, "/a", "certificate", &signed, &with_ca("/absent")).await;
    response.expect(404);
    assert!(server.versions("/a").await.is_empty());
    let response = import(&server, "/a", "certificate", &signed, &with_ca("/Root")).await;
    response.expect(200);
    let body = json!({"generated_by": OTHER});
    let bulk = server.post("/api/v1/bulk-regenerate", body).await;
    let regenerated = bulk.expect(200).json()["regenerated_credentials"].take();
    assert_eq!(regenerated, json!(["/a"]));
    let root = server.newest("/root").await;
    let copy = server.newest("/a").await;
    assert_eq!(copy["value"]["ca"], root["value"]["certificate"]);
    assert_eq!(copy["generated"], true);
}

/// Otherwise, the next regeneration could replace a harmless certificate with one that allows more, such as a CA.
#[tokio::test]
async fn parameters_must_describe_the_certificate() {
    let server = Server::reused().await;
    server.issued("/root", json!({"is_ca": true})).await;
    let parameters = json!({
        "ca": "/root", "common_name": "a", "alternative_names": ["a.example.com"], "key_type": QUICK_KEY,
        "extended_key_usage": ["client_auth"],
    });
    let leaf = server.issued("/leaf", parameters.clone()).await;
    let leaf = &leaf["value"];
    let signed = json!({"ca_name": "/root", "certificate": leaf["certificate"]});
    let key_only = json!({"ca_name": "/root", "private_key": leaf["private_key"]});
    let other = |name: &str, value: Value| {
        let mut parameters = parameters.clone();
        parameters[name] = value;
        parameters
    };
    let constrained = authority_changed("a", |ca| {
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    });
    let constrained = constrained.public();
    let exceeds = "must not allow more than the certificate";
    let names = "alternative names";
    let other_names = other("alternative_names", json!(["b.example.com"]));
    for (value, parameters, reason) in [
        (&signed, other("is_ca", json!(true)), exceeds),
        (&signed, other("duration", json!(366)), exceeds),
        (
            &signed,
            other("key_usage", json!(["key_cert_sign"])),
            exceeds,
        ),
        (
            &signed,
            other("extended_key_usage", json!(["server_auth"])),
            exceeds,
        ),
        (&signed, other("extended_key_usage", json!([])), exceeds),
        (
            &constrained,
            json!({"common_name": "a", "is_ca": true}),
            "they can't express",
        ),
        (&signed, other("common_name", json!("b")), names),
        (&signed, other("organization", json!("b")), names),
        (&signed, other_names, names),
        (&signed, other("alternative_names", json!([])), names),
        (&key_only, parameters.clone(), "they require a certificate"),
    ] {
        let response = import(&server, "/a", "certificate", value, &parameters).await;
        response.expect_error(400, reason);
    }
    assert!(server.versions("/a").await.is_empty());
    let shorter = other("duration", json!(30));
    let response = import(&server, "/a", "certificate", &signed, &shorter);
    response.await.expect(200);
}

/// Otherwise, a caller without access to a CA could make another caller's bulk regeneration sign with it.
#[tokio::test]
async fn a_ca_in_parameters_requires_permission_to_read_it() {
    let options = Options::default().plugin("app-svid", "svid", &["random", "signing"], "");
    let server = Server::start_with(&options).await;
    server.issued("/root", json!({"is_ca": true})).await;
    let app = server.as_client("app").await;
    let operations = ["read", "write"];
    server.grant("/app/*", app.actor(), &operations).await;
    let value = json!({"x509_svid_key": "mine"});
    let body = imported("/app/a", "app-svid", &value, &json!({"ca": "/root"}));
    let absent = imported("/app/a", "app-svid", &value, &json!({"ca": "/absent"}));
    let refused = app.put(DATA, body.clone()).await.expect(404).error();
    assert_eq!(refused, app.put(DATA, absent).await.expect(404).error());
    assert!(server.versions("/app/a").await.is_empty());

    let granted = server.grant("/root", app.actor(), &["read"]).await;
    app.put(DATA, body).await.expect(200);
    server.revoke(&granted).await;
    let body = json!({"name": "/app/a"});
    app.post("/api/v1/regenerate", body).await.expect(404);

    // Nothing proves that the CA signed the value.
    let issued = async || {
        let query = "/api/v1/certificates?name=/root";
        let listed = server.get_json(query).await;
        listed["certificates"][0]["issued"].clone()
    };
    assert_eq!(issued().await, Value::Null);
    let bulk = server.bulk_regenerate("/root").await.expect(200);
    assert_eq!(bulk.json()["regenerated_credentials"], json!([]));
    let body = json!({"generated_by": OTHER});
    let bulk = server.post("/api/v1/bulk-regenerate", body).await;
    bulk.expect(200);
    assert_eq!(issued().await[0]["name"], "/app/a");
}

/// An import is checked by the configured plugin. The plugin that the import names may normalize the parameters differently.
#[tokio::test]
async fn the_imported_plugin_normalizes_the_parameters_again() {
    let folder = tempfile::TempDir::new().unwrap();
    let release = |version: &str| {
        let newer = format!("release: {version}");
        let bytes = release("versioned", ("release: 1.0.0", &newer));
        let path = folder.path().join(version);
        fs::write(&path, &bytes).unwrap();
        let options = Options::default().random_generator("versioned", &path);
        (digest(&bytes), options)
    };
    let (_, old) = release("1.0.1");
    let (new_digest, new) = release("1.1.0");
    let server = Server::start_with(&old).await;
    let value = json!({"given": {}, "secret": "mine"});
    let mut body = imported("/a", "versioned", &value, &json!({"length": 16}));
    body["generated_by"] = json!(new_digest);
    server.put(DATA, body).await.expect(200);
    let server = Server::start_in(server.stop().await, &new).await;
    let regenerated = server.regenerated("/a").await;
    let given = json!({"length": 16, "style": "lower", "prefix": ""});
    assert_eq!(regenerated["value"]["given"], given);
}

#[tokio::test]
async fn the_audit_trail_names_the_imported_plugin() {
    let server = Server::reused().await;
    let response = import(&server, "/a", "password", &json!("mine"), &json!({})).await;
    response.expect(200);
    let trail = server.audit_trail();
    let line = trail
        .lines()
        .find(|line| line.contains(r#""action":"SET""#));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    let digest = OTHER.trim_start_matches("sha256:");
    assert_eq!(line["request_details"], json!({"generated_by": digest}));
}
