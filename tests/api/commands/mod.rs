//! Commands of the program that work on a server's database.

mod backup;
mod check;
mod check_damage;

use keywright_harness::Server;
use reqwest::Method;
use serde_json::json;

use crate::certificates::Certificate;

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
            server.stored(&name, credential_type, value.clone()).await;
        }
    }
    for credential_type in ["password", "user", "ssh"] {
        let name = format!("/Generated/{credential_type}");
        server.generated(&name, credential_type, json!({})).await;
    }
    let longest = format!("/{}", "n".repeat(254));
    for name in ["/a", "/b/(c)[d].e:f_g-h", &longest] {
        let body = json!({"name": name, "type": "value", "value": "v", "metadata": {"k": "v"}});
        server.put("/api/v1/data", body).await.expect(200);
    }
    let root = Certificate::generate(server, "/root", json!({"is_ca": true})).await;
    let parameters = json!({"is_ca": true, "ca": "/root"});
    server.issued("/intermediate", parameters).await;
    let parameters = json!({"ca": "/Intermediate"});
    server.issued("/leaf", parameters).await;
    let parameters = json!({"self_sign": true, "key_type": "ed25519"});
    server.issued("/alone", parameters).await;
    let response = root.regenerate(json!({"set_as_transitional": true})).await;
    response.expect(200);
    server.bulk_regenerate("/root").await.expect(200);
    let leaf = server.newest("/leaf").await;
    let value = &leaf["value"];
    let fields = json!({"certificate": value["certificate"], "private_key": value["private_key"]});
    server
        .stored("/set/alone", "certificate", fields.clone())
        .await;
    for (name, field, ca) in [
        ("/set/with-ca", "ca", value["ca"].clone()),
        ("/set/with-ca-name", "ca_name", json!("/intermediate")),
    ] {
        let mut fields = fields.clone();
        fields[field] = ca;
        server.stored(name, "certificate", fields).await;
    }
    let value = json!({"ca": value["ca"]});
    server.stored("/set/ca", "certificate", value).await;
    let root = server.newest("/root").await;
    server
        .stored("/set/root", "certificate", root["value"].clone())
        .await;
    let alone = server.newest("/alone").await;
    server
        .stored("/set/self-signed", "certificate", alone["value"].clone())
        .await;
    // A CA that is deleted after it has signed a certificate.
    server.issued("/gone", json!({"is_ca": true})).await;
    server.issued("/orphan", json!({"ca": "/gone"})).await;
    let gone = server.authorized(Method::DELETE, "/api/v1/data?name=/gone");
    server.send(gone).await.expect(204);
}
