//! Commands of the program that work on a server's database.

mod backup;
mod check;
mod check_damage;

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use crate::{certificates::Certificate, given};

/// Stores set and generated credentials of every type, certificate chains, a CA in rotation, and metadata.
async fn fill(server: &Server) {
    let keys = json!({"public_key": "p", "private_key": "k"});
    for (credential_type, value) in [
        ("value", json!("v\u{1}\"ä")),
        ("json", json!({"a": [1, {"b": null}]})),
        ("password", json!("p")),
        ("user", json!({"username": "u", "password": "p"})),
        ("rsa", keys.clone()),
        ("ssh", keys),
    ] {
        let name = format!("/Set/{credential_type}");
        for _ in 0..2 {
            given::set(server, &name, credential_type, value.clone()).await;
        }
    }
    for credential_type in ["password", "user", "ssh"] {
        let name = format!("/Generated/{credential_type}");
        given::generate(server, &name, credential_type, json!({})).await;
    }
    let longest = format!("/{}", "n".repeat(254));
    for name in ["/a", "/b/(c)[d].e:f_g-h", &longest] {
        let body = json!({"name": name, "type": "value", "value": "v", "metadata": {"k": "v"}});
        server.put("/api/v1/data", body).await.expect(200);
    }
    let root = Certificate::generate(server, "/root", json!({"is_ca": true})).await;
    let parameters = json!({"is_ca": true, "ca": "/root"});
    given::generate_certificate(server, "/intermediate", parameters).await;
    let parameters = json!({"ca": "/Intermediate"});
    given::generate_certificate(server, "/leaf", parameters).await;
    let parameters = json!({"self_sign": true, "key_type": "ed25519"});
    given::generate_certificate(server, "/alone", parameters).await;
    let response = root.regenerate(json!({"set_as_transitional": true})).await;
    response.expect(200);
    server.bulk_regenerate("/root").await.expect(200);
    let leaf = given::newest(server, "/leaf").await;
    let value = &leaf["value"];
    let fields = json!({"certificate": value["certificate"], "private_key": value["private_key"]});
    given::set(server, "/set/alone", "certificate", fields.clone()).await;
    for (name, field, ca) in [
        ("/set/with-ca", "ca", value["ca"].clone()),
        ("/set/with-ca-name", "ca_name", json!("/intermediate")),
    ] {
        let mut fields = fields.clone();
        fields[field] = ca;
        given::set(server, name, "certificate", fields).await;
    }
    given::set(server, "/set/ca", "certificate", json!({"ca": value["ca"]})).await;
    let root = given::newest(server, "/root").await;
    given::set(server, "/set/root", "certificate", root["value"].clone()).await;
    let alone = given::newest(server, "/alone").await;
    given::set(
        server,
        "/set/self-signed",
        "certificate",
        alone["value"].clone(),
    )
    .await;
    // A CA that is deleted after it has signed a certificate.
    given::generate_certificate(server, "/gone", json!({"is_ca": true})).await;
    given::generate_certificate(server, "/orphan", json!({"ca": "/gone"})).await;
    let gone = server.authorized(Method::DELETE, "/api/v1/data?name=/gone");
    server.send(gone).await.expect(204);
}
