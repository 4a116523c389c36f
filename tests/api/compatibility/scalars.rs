//! Scalars whose type or notation differs from the declared one.

use keywright_harness::{Options, Response, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{certificates::Certificate, given, keys::with_certificate};

/// Sends a literal body, because `json!` does not preserve the notation of numbers.
async fn send(server: &Server, method: Method, path: &str, body: String) -> Response {
    let request = server.authorized(method, path).body(body);
    server.send(request).await
}

async fn generate(
    server: &Server,
    name: &str,
    credential_type: &str,
    parameters: &str,
) -> Response {
    let body =
        format!(r#"{{"name":"{name}","type":"{credential_type}","parameters":{parameters}}}"#);
    send(server, Method::POST, "/api/v1/data", body).await
}

async fn generated(server: &Server, name: &str, credential_type: &str, parameters: &str) -> Value {
    let response = generate(server, name, credential_type, parameters).await;
    response.expect(200).json()
}

/// Sends a POST request, and returns the body of the response.
async fn posted(server: &Server, path: &str, body: &str) -> Value {
    let response = send(server, Method::POST, path, body.to_owned()).await;
    response.expect(200).json()
}

async fn set(server: &Server, name: &str, credential_type: &str, value: &str) -> Response {
    let body = format!(r#"{{"name":"{name}","type":"{credential_type}","value":{value}}}"#);
    send(server, Method::PUT, "/api/v1/data", body).await
}

/// Returns the subject of a certificate version, and its DNS names.
fn names(version: &Value) -> (String, Vec<String>) {
    let pem = version["value"]["certificate"].as_str().unwrap();
    with_certificate(pem, |certificate| {
        let alternative = certificate.subject_alternative_name().unwrap();
        let alternative = alternative.map(|extension| &extension.value.general_names);
        let alternative = alternative.into_iter().flatten().map(ToString::to_string);
        (certificate.subject().to_string(), alternative.collect())
    })
}

/// Configures the plugin `plain`, which returns its parameters. The host checks them against the plugin's schema, and the
/// plugin does not validate them.
fn plain() -> Options {
    Options::default().plugin("plain", "plain", &["random"], "")
}

#[tokio::test]
async fn numbers_and_booleans_become_text_in_a_certificate() {
    let server = Server::reused().await;
    let parameters = r#"{
        "common_name": 5, "organization": 1.50, "organization_unit": 1e3, "state": true,
        "locality": 12345678901234567890123, "country": 42, "alternative_names": [false, "a.example"],
        "self_sign": true, "key_type": "ecdsa-p256"
    }"#;
    let version = generated(&server, "/a", "certificate", parameters).await;
    let (subject, alternative) = names(&version);
    assert_eq!(
        subject,
        "CN=5, OU=1e3, C=42, ST=true, O=1.50, L=12345678901234567890123"
    );
    assert_eq!(alternative, ["DNSName(false)", "DNSName(a.example)"]);
    let as_text = json!({
        "common_name": "5", "organization": "1.50", "organization_unit": "1e3", "state": "true",
        "locality": "12345678901234567890123", "country": "42",
        "alternative_names": ["false", "a.example"], "self_sign": true, "key_type": "ecdsa-p256",
    });
    let converged = server.generated("/a", "certificate", as_text).await;
    assert_eq!(converged["id"], version["id"]);
    // The number becomes text here too, and the text is not a valid DNS name.
    let parameters = r#"{"common_name": "a", "self_sign": true, "alternative_names": [5]}"#;
    let refused = generate(&server, "/b", "certificate", parameters).await;
    refused.expect_error(400, "`5`");
}

#[tokio::test]
async fn a_number_is_accepted_as_the_name_of_a_ca() {
    let server = Server::reused().await;
    server.issued("/2024", json!({"is_ca": true})).await;
    let parameters = r#"{"common_name": "a", "key_type": "ecdsa-p256", "ca": 2024}"#;
    generated(&server, "/a", "certificate", parameters).await;
    let parameters = parameters.replace("2024", "2025");
    let response = generate(&server, "/b", "certificate", &parameters).await;
    response.expect(404);
}

#[tokio::test]
async fn numbers_and_booleans_become_text_in_other_types() {
    let server = Server::start_with(&Options::default().beyond_the_specification()).await;
    for (written, text) in [("1.50", "1.50"), ("true", "true"), (r#""x1""#, "x1")] {
        let comment = format!(r#"{{"ssh_comment": {written}}}"#);
        let username = format!(r#"{{"username": {written}}}"#);
        for (credential_type, parameters, field) in [
            ("ssh", &comment, "public_key"),
            ("ecdsa", &comment, "public_key"),
            ("user", &username, "username"),
        ] {
            let name = format!("/{credential_type}");
            let version = generated(&server, &name, credential_type, parameters).await;
            let has = version["value"][field].as_str().unwrap();
            assert_eq!(has.split(' ').next_back(), Some(text), "{credential_type}");
        }
        let separator = format!(r#"{{"separator": {written}, "words": 4}}"#);
        let version = generated(&server, "/passphrase", "passphrase", &separator).await;
        let phrase = version["value"].as_str().unwrap();
        assert_eq!(phrase.split(text).count(), 4, "{phrase}");
    }
}

#[tokio::test]
async fn a_deprecated_username_becomes_text() {
    let server = Server::reused().await;
    for (written, text) in [("1.50", "1.50"), ("false", "false"), (r#""ada""#, "ada")] {
        let body = format!(r#"{{"name":"/u","type":"user","value":{{"username": {written} }}}}"#);
        let version = posted(&server, "/api/v1/data", &body).await;
        assert_eq!(version["value"]["username"], text);
    }
    let body = json!({"name": "/u", "type": "user", "value": {"username": [5]}});
    server.post("/api/v1/data", body).await.expect(400);
}

#[tokio::test]
async fn conversion_follows_the_schema_of_any_plugin() {
    let server = Server::start_with(&plain()).await;
    let parameters = r#"{"label": 1.50, "length": 5.0}"#;
    let version = generated(&server, "/a", "plain", parameters).await;
    let given = &version["value"]["given"];
    assert_eq!(*given, json!({"label": "1.50", "length": 5}));
    assert_eq!(given["length"].to_string(), "5");
    for parameters in [
        r#"{"label": null}"#,
        r#"{"label": [1]}"#,
        r#"{"length": 5.5}"#,
        r#"{"length": true}"#,
        r#"{"unknown": 5}"#,
    ] {
        let response = generate(&server, "/b", "plain", parameters).await;
        response.expect(400);
    }
}

#[tokio::test]
async fn setting_a_user_converts_its_password_to_text() {
    let server = Server::reused().await;
    for (written, text) in [
        ("1234", "1234"),
        ("1.50", "1.50"),
        ("1e3", "1e3"),
        ("-0", "-0"),
        ("12345678901234567890123", "12345678901234567890123"),
        ("true", "true"),
        ("false", "false"),
        (r#""null""#, "null"),
    ] {
        let value = format!(r#"{{"username": "ada", "password": {written}}}"#);
        let version = set(&server, "/u", "user", &value).await.expect(200).json();
        assert_eq!(version["value"]["password"], text);
        let stored = server.newest("/u").await;
        assert_eq!(stored["value"], version["value"]);
    }
}

#[tokio::test]
async fn booleans_are_accepted_as_words_and_digits() {
    let server = Server::reused().await;
    for (no_letters, letters) in [
        (r#""true""#, r#""false""#),
        (r#""True""#, r#""False""#),
        (r#""TRUE""#, r#""FALSE""#),
        ("1", "0"),
        ("true", "false"),
    ] {
        for (flag, expects_digits) in [(no_letters, true), (letters, false)] {
            let parameters = format!(
                r#"{{"exclude_upper":{flag},"exclude_lower":{flag},"include_special":{letters},"length":200}}"#
            );
            let version = generated(&server, "/p", "password", &parameters).await;
            let password = version["value"].as_str().unwrap();
            let only_digits = password.bytes().all(|byte| byte.is_ascii_digit());
            assert_eq!(only_digits, expects_digits, "{flag}");
        }
        let parameters = format!(
            r#"{{"common_name":"r","is_ca":{no_letters},"self_sign":{letters},"key_type":"ecdsa-p256"}}"#
        );
        let version = generated(&server, "/r", "certificate", &parameters).await;
        assert_eq!(version["certificate_authority"], true);
    }
    for flag in [
        "2",
        "1.0",
        r#""1""#,
        r#""yes""#,
        r#""maybe""#,
        r#""""#,
        "null",
        "[true]",
    ] {
        let parameters = format!(r#"{{"exclude_upper":{flag}}}"#);
        let response = generate(&server, "/q", "password", &parameters).await;
        response.expect(400).error();
    }
}

#[tokio::test]
async fn booleans_in_bodies_are_accepted_as_words_and_digits() {
    let server = Server::reused().await;
    server.issued("/c", json!({"self_sign": true})).await;
    let certificate = Certificate::named(&server, "/c").await;
    let regenerate = certificate.path("regenerate");
    for (yes, no) in [
        (r#""true""#, r#""false""#),
        (r#""True""#, r#""False""#),
        (r#""TRUE""#, r#""FALSE""#),
        ("1", "0"),
    ] {
        let before = server.versions("/p").await.len();
        for (flag, added) in [(yes, 1), (no, 1)] {
            let body = format!(r#"{{"name":"/p","type":"password","overwrite":{flag}}}"#);
            posted(&server, "/api/v1/data", &body).await;
            assert_eq!(server.versions("/p").await.len(), before + added);
        }
        let body = format!(r#"{{"name":"/p","regenerate":{yes}}}"#);
        posted(&server, "/api/v1/data", &body).await;
        for (flag, is_transitional) in [(no, false), (yes, true)] {
            let body = format!(
                r#"{{"set_as_transitional":{flag},"allow_transitional_parent_to_sign":{no}}}"#
            );
            let version = posted(&server, &regenerate, &body).await;
            assert_eq!(version["transitional"], is_transitional);
        }
        certificate.move_transitional(Value::Null).await.expect(200);
        for (flag, is_read_only) in [(yes, true), (no, false)] {
            let body = format!(r#"{{"read_only_mode":{flag}}}"#);
            let mode = posted(&server, "/management", &body).await;
            assert_eq!(mode["read_only_mode"], is_read_only);
        }
        let body = format!(r#"{{"signed_by":"/c","dry_run":{yes}}}"#);
        let reported = posted(&server, "/api/v1/bulk-regenerate", &body).await;
        assert_eq!(reported["dry_run"], true);
        let current = format!("/api/v1/data?name=/c&current={}", yes.trim_matches('"'));
        let actual = given::versions_in(&server.get(&current).await.expect(200)).len();
        assert_eq!(actual, 1);
    }
    for query in ["current=2", "current=yes", "current=1.0"] {
        let path = format!("/api/v1/data?name=/c&{query}");
        server.get(&path).await.expect(400);
    }
}

#[tokio::test]
async fn integers_may_have_a_fraction_of_zero() {
    let server = Server::reused().await;
    for length in ["20.0", "20", r#""20""#, "2e1"] {
        let parameters = format!(r#"{{"length":{length}}}"#);
        let version = generated(&server, "/p", "password", &parameters).await;
        assert_eq!(version["value"].as_str().unwrap().len(), 20);
    }
    assert_eq!(server.versions("/p").await.len(), 1);
    for length in [
        "20.5",
        r#""20.0""#,
        r#""long""#,
        r#""""#,
        "true",
        "null",
        "[7]",
        "201.0",
        "1e300",
    ] {
        let parameters = format!(r#"{{"length":{length}}}"#);
        let response = generate(&server, "/q", "password", &parameters).await;
        response.expect(400);
    }

    let parameters = r#"{"common_name":"c","self_sign":true,"key_length":2048.0,"duration":20.0}"#;
    let version = generated(&server, "/c", "certificate", parameters).await;
    assert_eq!(version["duration_used"], 20);
    let certificate = Certificate::named(&server, "/c").await;
    let regenerate = certificate.path("regenerate");
    let body = r#"{"duration":30.0,"key_length":2048.0}"#;
    let version = posted(&server, &regenerate, body).await;
    assert_eq!(version["duration_used"], 30);
    for body in [r#"{"duration":30.5}"#, r#"{"key_length":true}"#] {
        let response = send(&server, Method::POST, &regenerate, body.to_owned()).await;
        response.expect(400);
    }
}

#[tokio::test]
async fn a_null_overwrite_is_treated_as_absent() {
    let server = Server::reused().await;
    let body = json!({"name": "/p", "type": "password", "overwrite": null});
    let first = server.post("/api/v1/data", body.clone()).await.expect(200);
    let again = server.post("/api/v1/data", body.clone()).await.expect(200);
    assert_eq!(first.json()["id"], again.json()["id"]);
    let mut converging = body;
    converging["parameters"] = json!({"length": 40});
    server.post("/api/v1/data", converging).await.expect(200);
    assert_eq!(server.versions("/p").await.len(), 2);
    let refused = r#"
        400 POST /api/v1/data {"name": "/p", "type": "password", "overwrite": [null]}
        400 POST /api/v1/data {"name": "/p", "type": "password", "overwrite": "yes"}
        400 POST /api/v1/data {"name": "/p", "type": "password", "overwrite": "1"}
        400 POST /api/v1/data {"name": "/p", "type": "password", "overwrite": ""}
        400 POST /api/v1/data {"name": "/p", "type": "password", "overwrite": {}}
    "#;
    given::assert_refused(&server, refused).await;
}

#[tokio::test]
async fn empty_query_parameters_are_treated_as_absent() {
    let server = Server::reused().await;
    for text in ["1", "2"] {
        server.set_value("/a", text).await;
    }
    for (query, count) in [
        ("current=", 2),
        ("current", 2),
        ("versions=", 2),
        ("current=&versions=1", 1),
        ("current=true&versions=", 1),
        ("expires-within-days=", 2),
    ] {
        let response = server.get(&format!("/api/v1/data?name=/a&{query}")).await;
        let actual = given::versions_in(&response.expect(200)).len();
        assert_eq!(actual, count, "{query}");
    }
    for query in ["path=", "name-like=a"] {
        let query = format!("{query}&expires-within-days=&effective=");
        assert_eq!(server.found_names(&query).await, ["/a"]);
    }
}
