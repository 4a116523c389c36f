//! Credentials that pages show, and the fields of forms.

use keywright_harness::Server;
use serde_json::json;

/// Adds credentials that are typical for operators, and a CA in rotation.
pub(crate) async fn credentials(server: &Server) {
    let password = "correct horse battery staple";
    let user = json!({"username": "shop", "password": password});
    let body = json!({
        "name": "/shop/database/user", "type": "user", "value": user,
        "metadata": {"owner": "shop", "ticket": "OPS-1042"},
    });
    server.put("/api/v1/data", body).await.expect(200);
    for name in [
        "/shop/database/root-password",
        "/shop/session-secret",
        "/warehouse/api-password",
    ] {
        for _ in 0..2 {
            let body = json!({"name": name, "type": "password", "mode": "overwrite"});
            server.post("/api/v1/data", body).await.expect(200);
        }
    }
    server.set_value("/mail/dkim-selector", "s2026").await;
    let relay = json!({"host": "relay.example", "token": "t"});
    server.stored("/mail/relay", "json", relay).await;
    let root = json!({"common_name": "Example root", "is_ca": true, "duration": 300});
    server.generated("/pki/root", "certificate", root).await;
    for (name, days) in [
        ("shop", 6),
        ("warehouse", 25),
        ("mail", 80),
        ("archive", 200),
    ] {
        let leaf = json!({
            "common_name": format!("{name}.example"), "ca": "/pki/root", "duration": days,
            "alternative_names": [format!("{name}.example"), format!("www.{name}.example")],
        });
        let name = format!("/pki/{name}");
        server.generated(&name, "certificate", leaf).await;
    }
    server.regenerate_as_transitional("/pki/root").await;
}

/// Returns the fields that the form of a type requires. The credential `/input` exists.
pub(crate) fn required_fields(credential_type: &str) -> &'static [(&'static str, &'static str)] {
    match credential_type {
        "certificate" => &[
            ("parameter.common_name", "root"),
            ("parameter.is_ca", "true"),
            ("parameter.alternative_names", "one.example\r\ntwo.example"),
            ("parameter.key_usage", "key_cert_sign"),
            ("parameter.duration", "30"),
        ],
        "connection-string" => &[
            ("parameter.template", "db://ada:{key}@db.example"),
            ("parameter.credentials", r#"{"key": "/input"}"#),
        ],
        "htpasswd" => &[
            ("parameter.credential", "/input"),
            ("parameter.username", "ada"),
        ],
        _ => &[],
    }
}

/// Returns the types of the links on the page that lists the types.
pub(crate) fn listed_types(page: &str) -> Vec<String> {
    let links = page.split("href=\"/console/generate?type=").skip(1);
    let types = links.map(|link| link.split('"').next().unwrap().to_owned());
    types.collect()
}
