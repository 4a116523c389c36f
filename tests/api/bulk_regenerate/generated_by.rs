//! Regenerating all credentials that a plugin generated.

use keywright_harness::{BadPlugin, Server};
use serde_json::json;

use super::{BULK_REGENERATE, names};
use crate::{
    certificates::{Certificate, assert_signed_by},
    given,
};

async fn bulk(server: &Server, digest: &str) -> Vec<String> {
    let body = json!({"generated_by": digest});
    names(&server.post(BULK_REGENERATE, body).await)
}

#[tokio::test]
async fn only_credentials_of_the_plugin_are_regenerated() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/B", "/a", "/replaced"] {
        let parameters = json!({"length": 17, "exclude_upper": true});
        server.generated(name, "password", parameters).await;
    }
    server.generated("/user", "user", json!({})).await;
    server.stored("/set", "password", json!("mine")).await;
    server.stored("/replaced", "password", json!("mine")).await;
    let server = BadPlugin::replaced(server).await;
    let digest = &bad.digest();
    assert_eq!(bulk(&server, digest).await, ["/a", "/B"]);
    for (name, count) in [
        ("/a", 2),
        ("/b", 2),
        ("/replaced", 2),
        ("/set", 1),
        ("/user", 1),
    ] {
        assert_eq!(server.versions(name).await.len(), count, "{name}");
    }
    let versions = server.versions("/a").await;
    assert_ne!(versions[0]["value"], versions[1]["value"]);
    let password = versions[0]["value"].as_str().unwrap();
    assert_eq!(password.len(), 17);
    assert!(!password.bytes().any(|byte| byte.is_ascii_uppercase()));

    let found = format!("generated_by={digest}");
    assert!(server.found_names(&found).await.is_empty());
    assert!(bulk(&server, digest).await.is_empty());
    assert_eq!(server.versions("/a").await.len(), 2);
}

#[tokio::test]
async fn a_path_restricts_the_regeneration() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/team/a", "/team/b", "/teams", "/other/a"] {
        server.generated(name, "password", json!({})).await;
    }
    let server = BadPlugin::replaced(server).await;
    let body = json!({"generated_by": bad.digest(), "path": "Team/"});
    let response = server.post(BULK_REGENERATE, body).await;
    assert_eq!(names(&response), ["/team/a", "/team/b"]);
    assert_eq!(bulk(&server, &bad.digest()).await, ["/other/a", "/teams"]);
}

#[tokio::test]
async fn certificates_are_signed_by_the_new_versions_of_their_cas() {
    let bad = BadPlugin::of("certificate");
    let server = bad.server().await;
    server.generate_authority("/root", None).await;
    server.generate_authority("/z-inner", Some("/root")).await;
    server.generate_leaf("/a-leaf", "/z-inner").await;
    let server = BadPlugin::replaced(server).await;
    server.generate_leaf("/good", "/z-inner").await;
    let all = ["/a-leaf", "/root", "/z-inner"];
    assert_eq!(bulk(&server, &bad.digest()).await, all);
    let [leaf, root, inner] = all.map(|name| server.newest(name));
    let (leaf, root, inner) = (leaf.await, root.await, inner.await);
    assert_signed_by(&root, &root);
    assert_signed_by(&inner, &root);
    assert_signed_by(&leaf, &inner);
    assert_eq!(server.versions("/good").await.len(), 1);
}

#[tokio::test]
async fn a_certificate_being_rotated_by_another_plugin_is_skipped() {
    let bad = BadPlugin::of("certificate");
    let server = bad.server().await;
    server.generate_authority("/root", None).await;
    let server = BadPlugin::replaced(server).await;
    let root = Certificate::named(&server, "/root").await;
    let response = root.regenerate(json!({"set_as_transitional": true})).await;
    response.expect(200);
    let found = format!("generated_by={}", bad.digest());
    assert_eq!(server.found_names(&found).await, ["/root"]);
    assert!(bulk(&server, &bad.digest()).await.is_empty());
    assert_eq!(server.versions("/root").await.len(), 2);
}

#[tokio::test]
async fn a_credential_without_write_permission_prevents_all_changes() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/team/a", "/team/b", "/other/a"] {
        server.generated(name, "password", json!({})).await;
    }
    let server = BadPlugin::replaced(server).await;
    let caller = server.as_client("app").await;
    let requested = async |is_dry_run: bool| {
        let body = json!({"generated_by": bad.digest(), "dry_run": is_dry_run});
        caller.post(BULK_REGENERATE, body).await
    };
    assert!(names(&requested(false).await).is_empty());
    let team = server.grant("/team/*", caller.actor(), &["read"]).await;
    for is_dry_run in [false, true] {
        requested(is_dry_run).await.expect(403).error();
    }
    server.grant("/team/a", caller.actor(), &["write"]).await;
    requested(false).await.expect(403).error();
    server.grant("/team/b", caller.actor(), &["write"]).await;
    assert_eq!(names(&requested(true).await), ["/team/a", "/team/b"]);
    assert_eq!(names(&requested(false).await), ["/team/a", "/team/b"]);
    server.revoke(&team).await;
    assert_eq!(server.versions("/other/a").await.len(), 1);
}

const INVALID: &str = r#"
    400 POST /api/v1/bulk-regenerate {} => signed_by
    400 POST /api/v1/bulk-regenerate {"signed_by": null} => signed_by
    400 POST /api/v1/bulk-regenerate {"signed_by": ""} => signed_by
    400 POST /api/v1/bulk-regenerate {"signed_by": "/"} => signed_by
    400 POST /api/v1/bulk-regenerate {"signed_by": 7} => signed_by
    400 POST /api/v1/bulk-regenerate {"signed_by": ["/root"]} => signed_by
    400 POST /api/v1/bulk-regenerate {"signed_by": "/root", "path": 7} => path
    400 POST /api/v1/bulk-regenerate {"signed_by": "/root", "keep_going": "maybe"} => keep_going
    400 POST /api/v1/bulk-regenerate {"path": "/a"} => exactly one of signed_by, generated_by and derived_from is required
    400 POST /api/v1/bulk-regenerate {"generated_by": "DIGEST", "signed_by": "/root"} => exactly one of signed_by, generated_by and derived_from is required
    400 POST /api/v1/bulk-regenerate {"generated_by": ""} => generated_by
    400 POST /api/v1/bulk-regenerate {"generated_by": 7} => generated_by
    400 POST /api/v1/bulk-regenerate {"generated_by": "sha256:12"} => 64 hexadecimal digits
    400 POST /api/v1/bulk-regenerate {"generated_by": "DIGEST", "path": 7} => path
    400 POST /api/v1/bulk-regenerate {"generated_by": "DIGEST", "dry_run": "maybe"} => dry_run
    422 POST /api/v1/bulk-regenerate {"generated_by": "DIGEST", "name": "/a"} => name
"#;

#[tokio::test]
async fn invalid_requests_are_refused_and_name_the_field() {
    let server = Server::reused().await;
    let digest = "0".repeat(64);
    given::assert_refused(&server, &INVALID.replace("DIGEST", &digest)).await;
    assert!(bulk(&server, &digest).await.is_empty());
}
