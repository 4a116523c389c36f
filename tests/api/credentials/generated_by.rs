//! `GET /api/v1/data?generated_by=`

use keywright_harness::{BadPlugin, Server};
use serde_json::json;

use crate::{certificates::Certificate, given};

/// A digest that generated nothing.
const NOTHING: &str = "sha256:6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d";

async fn found(server: &Server, query: &str, digest: &str) -> Vec<String> {
    given::found(server, &format!("{query}generated_by={digest}")).await
}

#[tokio::test]
async fn active_versions_of_a_plugin_are_found_newest_first() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/a/One", "/a/two", "/b/three", "/kept"] {
        given::generate(&server, name, "password", json!({})).await;
    }
    given::set(&server, "/set", "password", json!("mine")).await;
    given::generate(&server, "/user", "user", json!({})).await;
    let server = BadPlugin::replaced(server).await;
    let digest = &bad.digest();
    let all = ["/kept", "/b/three", "/a/two", "/a/One"];
    assert_eq!(found(&server, "", digest).await, all);
    server.regenerate("/a/two").await.expect(200);
    given::generate(&server, "/new", "password", json!({})).await;
    given::set(&server, "/b/three", "password", json!("mine")).await;
    assert_eq!(found(&server, "", digest).await, ["/kept", "/a/One"]);
    assert!(found(&server, "", NOTHING).await.is_empty());
}

#[tokio::test]
async fn the_digest_may_be_uppercase_or_lack_its_algorithm() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    given::generate(&server, "/a", "password", json!({})).await;
    let digest = bad.digest();
    let digits = digest.strip_prefix("sha256:").unwrap();
    let upper = digits.to_uppercase();
    for written in [
        digits,
        &upper,
        &format!("sha256:{upper}"),
        &format!("sha256%3A{digits}"),
    ] {
        assert_eq!(found(&server, "", written).await, ["/a"], "{written}");
    }
}

#[tokio::test]
async fn a_path_or_a_part_of_the_name_restricts_it() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/a/One", "/a/two", "/b/three"] {
        given::generate(&server, name, "password", json!({})).await;
    }
    let digest = &bad.digest();
    for (query, expected) in [
        ("path=/a&", &["/a/two", "/a/One"][..]),
        ("path=A/&", &["/a/two", "/a/One"]),
        ("path=&", &["/b/three", "/a/two", "/a/One"]),
        ("path=/c&", &[]),
        ("name-like=ONE&", &["/a/One"]),
        ("name-like=t&", &["/b/three", "/a/two"]),
        ("name-like=e&", &["/b/three", "/a/One"]),
        ("name-like=&", &["/b/three", "/a/two", "/a/One"]),
        ("name-like=%25&", &[]),
        ("name=/a/One&", &["/b/three", "/a/two", "/a/One"]),
    ] {
        assert_eq!(found(&server, query, digest).await, expected, "{query}");
    }
}

#[tokio::test]
async fn a_certificate_is_found_while_any_of_its_versions_counts() {
    let bad = BadPlugin::of("certificate");
    let server = bad.server().await;
    let parameters = json!({"common_name": "ca", "is_ca": true, "key_type": "ecdsa-p256"});
    given::generate(&server, "/ca", "certificate", parameters).await;
    let server = BadPlugin::replaced(server).await;
    let certificate = Certificate::named(&server, "/ca").await;
    let digest = &bad.digest();
    // The bad plugin's version is active, then transitional, then neither.
    certificate
        .regenerate(json!({"set_as_transitional": true}))
        .await
        .expect(200);
    assert_eq!(found(&server, "", digest).await, ["/ca"]);
    let bad_version = given::versions(&server, "/ca").await[1]["id"].clone();
    let move_to = async |version: &serde_json::Value| {
        let moved = certificate.move_transitional(version.clone()).await;
        moved.expect(200);
    };
    move_to(&bad_version).await;
    assert_eq!(found(&server, "", digest).await, ["/ca"]);
    move_to(&json!(null)).await;
    assert!(found(&server, "", digest).await.is_empty());
}

#[tokio::test]
async fn only_readable_credentials_are_found() {
    let bad = BadPlugin::of("password");
    let server = bad.server().await;
    for name in ["/team/a", "/other/a"] {
        given::generate(&server, name, "password", json!({})).await;
    }
    let caller = server.as_client("app").await;
    let path = format!("/api/v1/data?generated_by={}", bad.digest());
    let none = caller.get(&path).await.expect(200).json();
    assert_eq!(none, json!({"credentials": []}));
    server.grant("/team/*", caller.actor(), &["read"]).await;
    let found = caller.get(&path).await.expect(200).json();
    assert_eq!(found["credentials"].as_array().unwrap().len(), 1);
    assert_eq!(found["credentials"][0]["name"], "/team/a");
}

#[tokio::test]
async fn an_invalid_digest_or_conflicting_parameter_is_400_and_named() {
    let server = Server::start().await;
    let digits = "0".repeat(64);
    for (query, named) in [
        ("generated_by=".to_owned(), "generated_by"),
        ("generated_by=sha256:12".to_owned(), "64 hexadecimal digits"),
        (format!("generated_by={digits}0"), "generated_by"),
        (format!("generated_by=sha512:{digits}"), "generated_by"),
        (
            format!("generated_by={digits}&generated_by={digits}"),
            "only once",
        ),
        (
            format!("generated_by={digits}&expires-within-days=3"),
            "expires-within-days",
        ),
        (format!("generated_by={digits}&path=/&name-like=a"), "path"),
        (format!("generated_by={digits}&effective=true"), "effective"),
    ] {
        let answer = server.get(&format!("/api/v1/data?{query}")).await;
        let error = answer.expect(400).error();
        assert!(error.contains(named), "{query}: {error}");
    }
}

#[tokio::test]
async fn a_credential_with_several_matching_versions_is_found_once() {
    let bad = BadPlugin::of("certificate");
    let server = bad.server().await;
    let parameters = json!({"common_name": "ca", "is_ca": true, "key_type": "ecdsa-p256"});
    for name in ["/one", "/two"] {
        let certificate = Certificate::generate(&server, name, parameters.clone()).await;
        let body = json!({"set_as_transitional": true});
        certificate.regenerate(body).await.expect(200);
    }
    assert_eq!(found(&server, "", &bad.digest()).await, ["/two", "/one"]);
}
