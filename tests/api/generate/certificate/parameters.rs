//! Accepted parameters.

use keywright_harness::{QUICK_KEY, Response, Server, Text};
use serde_json::{Value, json};
use x509_parser::extensions::GeneralName;

use super::contents::KEY_USAGES;
use crate::keys::with_certificate;

/// Returns parameters of a self-signed leaf, with one added or replaced.
fn with(parameter: &str, value: Value) -> Value {
    let mut parameters = json!({"common_name": "leaf", "self_sign": true});
    // Only keys of the type rsa have a selectable length, and allow every usage.
    if !["key_length", "key_usage"].contains(&parameter) {
        parameters["key_type"] = json!(QUICK_KEY);
    }
    parameters[parameter] = value;
    parameters
}

async fn generate(server: &Server, parameters: Value) -> Response {
    server
        .generate_in_mode("overwrite", "/a", "certificate", parameters)
        .await
}

#[track_caller]
fn refused(response: &Response, parts: &[&str]) {
    assert_eq!(response.status, 400, "{}", response.body);
    let error = response.error();
    for part in parts {
        error.assert_contains(part);
    }
}

#[tokio::test]
async fn a_subject_needs_at_least_one_field() {
    let server = Server::reused().await;
    for (field, text) in [
        ("common_name", "cn"),
        ("organization", "o"),
        ("organization_unit", "ou"),
        ("locality", "l"),
        ("state", "st"),
        ("country", "AT"),
    ] {
        let parameters = json!({field: text, "self_sign": true, "key_type": QUICK_KEY});
        generate(&server, parameters).await.expect(200);
        for empty in [json!(""), Value::Null] {
            let parameters = json!({field: empty, "self_sign": true});
            refused(&generate(&server, parameters).await, &[]);
        }
    }
    refused(&generate(&server, json!({"self_sign": true})).await, &[]);
    refused(&generate(&server, json!({})).await, &[]);
}

#[tokio::test]
async fn one_of_ca_is_ca_and_self_sign_is_required() {
    let server = Server::reused().await;
    for parameters in [
        json!({"common_name": "leaf"}),
        json!({"common_name": "leaf", "ca": ""}),
        json!({"common_name": "leaf", "ca": null}),
        json!({"common_name": "leaf", "ca": "", "is_ca": false, "self_sign": false}),
    ] {
        refused(&generate(&server, parameters).await, &["ca"]);
    }
}

#[tokio::test]
async fn a_leaf_without_common_name_must_not_have_the_subject_of_its_ca() {
    let server = Server::reused().await;
    let root = json!({"organization": "Acme", "is_ca": true, "key_type": QUICK_KEY});
    server.generated("/ca", "certificate", root).await;
    for organization in ["acme", "Acme "] {
        let parameters = json!({"organization": organization, "ca": "/ca"});
        refused(&generate(&server, parameters).await, &["common_name"]);
    }
}

#[tokio::test]
async fn ca_and_self_sign_together_are_400() {
    let server = Server::reused().await;
    let response = generate(&server, json!({"common_name": "root", "is_ca": true})).await;
    response.expect(200);
    let parameters = json!({"common_name": "leaf", "ca": "/a", "self_sign": true});
    refused(&generate(&server, parameters).await, &["ca", "self_sign"]);
}

#[tokio::test]
async fn a_too_long_or_unprintable_subject_field_is_400() {
    let server = Server::reused().await;
    for (field, characters_max) in [
        ("common_name", 64),
        ("organization", 64),
        ("organization_unit", 64),
        ("locality", 128),
        ("state", 128),
        ("country", 2),
    ] {
        let longest = "a".repeat(characters_max);
        let response = generate(&server, with(field, json!(longest))).await;
        response.expect(200);
        let too_long = format!("{longest}a");
        let response = generate(&server, with(field, json!(too_long))).await;
        refused(&response, &[field, &characters_max.to_string()]);
        response.assert_lacks(&too_long);
    }
    let non_ascii = "ä".repeat(64);
    let response = generate(&server, with("common_name", json!(non_ascii))).await;
    response.expect(200);
    for (field, text) in [
        ("common_name", "a\0b"),
        ("common_name", "a\nb"),
        ("common_name", "\u{7f}"),
        ("common_name", "\u{85}"),
        ("country", "Ü"),
        ("country", "*"),
        ("country", "d\n"),
    ] {
        refused(&generate(&server, with(field, json!(text))).await, &[field]);
    }
}

#[tokio::test]
async fn key_lengths_are_2048_3072_and_4096() {
    let server = Server::reused().await;
    for key_length in [2048, 3072, 4096] {
        let response = generate(&server, with("key_length", json!(key_length)))
            .await
            .expect(200);
        let certificate = response.json()["value"]["certificate"].clone();
        let bits = crate::keys::certificate_key_bits(certificate.as_str().unwrap());
        assert_eq!(bits, key_length);
        assert_eq!(response.json()["key_length"], key_length);
    }
    for key_length in [
        json!(0),
        json!(1024),
        json!(2049),
        json!(8192),
        json!("x"),
        Value::Null,
    ] {
        refused(
            &generate(&server, with("key_length", key_length)).await,
            &["key_length"],
        );
    }
}

#[tokio::test]
async fn durations_outside_1_to_3650_days_are_400() {
    let server = Server::reused().await;
    for duration in [1, 2, 3_649, 3_650] {
        let response = generate(&server, with("duration", json!(duration)))
            .await
            .expect(200)
            .json();
        assert_eq!(response["duration_used"], duration);
        assert_eq!(response["duration_overridden"], false);
    }
    for duration in [
        json!(0),
        json!(-1),
        json!(3_651),
        json!(1_000_000),
        json!(1.5),
        json!("x"),
        Value::Null,
    ] {
        refused(
            &generate(&server, with("duration", duration)).await,
            &["duration"],
        );
    }
    let response = generate(&server, with("common_name", json!("leaf"))).await;
    let default = response.expect(200).json();
    assert_eq!(default["duration_used"], 365);
}

#[tokio::test]
async fn an_unknown_usage_is_400_and_named() {
    let server = Server::reused().await;
    for (parameter, known) in [
        ("key_usage", &KEY_USAGES[..]),
        (
            "extended_key_usage",
            &[
                "client_auth",
                "server_auth",
                "code_signing",
                "email_protection",
                "timestamping",
            ],
        ),
    ] {
        let response = generate(&server, with(parameter, json!(known))).await;
        response.expect(200);
        for usage in known {
            let upper = usage.to_uppercase();
            let response = generate(&server, with(parameter, json!([known[0], upper]))).await;
            refused(&response, &[&upper]);
        }
        for unknown in ["", "serverAuth", "server-auth", "any", " crl_sign"] {
            let response = generate(&server, with(parameter, json!([unknown]))).await;
            refused(&response, &[unknown]);
        }
        for wrong in [json!(known[0]), json!([1]), json!({"0": known[0]})] {
            refused(
                &generate(&server, with(parameter, wrong)).await,
                &[parameter],
            );
        }
        let response = generate(&server, with(parameter, json!([]))).await;
        response.expect(200);
    }
}

#[tokio::test]
async fn an_unknown_usage_is_reported_before_the_ca_is_looked_up() {
    let server = Server::reused().await;
    let parameters = json!({"common_name": "leaf", "ca": "/nowhere", "key_usage": ["any_usage"]});
    refused(&generate(&server, parameters).await, &["any_usage"]);
}

#[tokio::test]
async fn parameters_of_another_json_type_are_400_and_named() {
    let server = Server::reused().await;
    for field in [
        "organization",
        "organization_unit",
        "locality",
        "state",
        "country",
        "ca",
    ] {
        for wrong in [json!(["x"]), json!({"x": 1})] {
            refused(&generate(&server, with(field, wrong)).await, &[field]);
        }
    }
    for wrong in [json!("example.org"), json!([1]), json!({})] {
        let response = generate_with_names(&server, wrong).await;
        response.expect_error(400, "alternative_names");
    }
    for flag in ["is_ca", "self_sign"] {
        for wrong in [json!("maybe"), json!(2), Value::Null] {
            refused(&generate(&server, with(flag, wrong)).await, &[flag]);
        }
    }
}

// Accepted alternative names and their encoding.

async fn generate_with_names(server: &Server, alternative_names: Value) -> Response {
    generate(server, with("alternative_names", alternative_names)).await
}

/// Returns the type and text of a certificate's only alternative name.
fn only_name(version: &Value) -> (&'static str, String) {
    let certificate = version["value"]["certificate"].as_str().unwrap();
    with_certificate(certificate, |certificate| {
        let extension = certificate.subject_alternative_name().unwrap().unwrap();
        assert!(!extension.critical);
        let [name] = extension.value.general_names.as_slice() else {
            panic!("expected one name")
        };
        match name {
            GeneralName::DNSName(name) => ("DNS", (*name).to_owned()),
            GeneralName::RFC822Name(address) => ("e-mail", (*address).to_owned()),
            GeneralName::URI(uri) => ("URI", (*uri).to_owned()),
            GeneralName::IPAddress(octets) => ("IP", octets.len().to_string()),
            other => panic!("another name: {other:?}"),
        }
    })
}

#[tokio::test]
async fn each_alternative_name_is_encoded_as_its_type() {
    let server = Server::reused().await;
    let longest_label = "a".repeat(63);
    let longest = format!("{0}.{0}.{0}.{1}", longest_label, "d".repeat(61));
    assert_eq!(longest.len(), 253);
    let longest_address = format!("{}@{}", "a".repeat(64), &longest[64..]);
    assert_eq!(longest_address.len(), 254);
    let longest_uri = format!("spiffe://example.org/{}", "a".repeat(2_027));
    assert_eq!(longest_uri.len(), 2_048);
    for (what, names) in [
        (
            "DNS",
            &[
                "example.org",
                "EXAMPLE.org",
                "localhost",
                "*.example.org",
                ".example.org",
                "under_score.example.org",
                "_service.example.org",
                "1and1.example",
                "xn--bcher-kva.example",
                "1.2.3.com",
                "1e5",
                "0xg",
                &longest_label,
                &longest,
            ][..],
        ),
        (
            "e-mail",
            &[
                "ada@example.org",
                "Ada.King+tag@Example.org",
                "root@localhost",
                "!#$%&'*+-/=?^_`{|}~@x",
                "\"ada king\"@example.org",
                &longest_address,
            ],
        ),
        (
            "URI",
            &[
                "spiffe://example.org/ns/prod/sa/web",
                "https://example.org",
                "https://ada@example.org:8443/path?query#fragment",
                "ldap://[2001:db8::7]/c=GB",
                "http://10.0.0.1/%20",
                "HTTPS://EXAMPLE.org/",
                &longest_uri,
            ],
        ),
    ] {
        for name in names {
            let response = generate_with_names(&server, json!([name]))
                .await
                .expect(200);
            assert_eq!(only_name(&response.json()), (what, (*name).to_owned()));
        }
    }
    for (address, octets) in [
        ("10.0.0.1", "4"),
        ("255.255.255.255", "4"),
        ("::1", "16"),
        ("2001:db8::ff00:42:8329", "16"),
    ] {
        let response = generate_with_names(&server, json!([address]))
            .await
            .expect(200);
        assert_eq!(only_name(&response.json()), ("IP", octets.to_owned()));
    }
}

const INVALID_NAMES: &str = r"
    0x7f000001 1.2.3.0x7f 0X
    . * *. a..b a.*.b *a.b **.example.org *..b example.* example.org. *.example.org. -a.b a-.b
    example.рф 例え.jp exämple.org bücher.example example.org/path localhost:8080
    1.2.3 10.0.0 1.2.3.999 256.0.0.1 10.0.0.1/8 2001:db8::zz [::1] fe80::1%eth0
    @example.org ada@ ada@@example.org ada@example..org ädä@example.org ada@bücher.example
    x@[10.0.0.1] x@1.2.3 x@.example.com
    //example.org/path ://example.org https:// https:///path https://:443/ https://example.org/ä
    https://example.org/%zz https://a..b/ https://*.example.com/ https://[fe80::1%25eth0]/
    https://example.org:port/ 1https://example.com urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6
";

#[tokio::test]
async fn an_invalid_alternative_name_is_400() {
    let server = Server::reused().await;
    let label = "a".repeat(64);
    let others = [
        "",
        " ",
        " a",
        "a b",
        "a\0b",
        "exam\nple.org",
        "example.org ",
        "ada king@example.org",
        "x@example.org\n",
        "Ada <ada@example.org>",
        "https://exam ple.org",
        &format!("{label}.example"),
        &format!("a{label}@example.org"),
    ];
    for name in INVALID_NAMES.split_whitespace().chain(others) {
        let response = generate_with_names(&server, json!(["ok.org", name])).await;
        response.expect_error(400, "alternative_names");
    }
}

#[tokio::test]
async fn a_name_one_character_too_long_is_400_with_the_limit() {
    let server = Server::reused().await;
    let label = "a".repeat(63);
    for (name, limit) in [
        (format!("{label}.{label}.{label}.{}", "d".repeat(62)), "253"),
        (
            format!("a{label}@{label}.{label}.{}", "d".repeat(62)),
            "254",
        ),
        (
            format!("spiffe://example.org/{}", "a".repeat(2_028)),
            "2048",
        ),
    ] {
        let response = generate_with_names(&server, json!([name]))
            .await
            .expect(400);
        let error = response.error();
        error.assert_contains(limit);
        error.assert_contains("alternative_names");
    }
}

#[tokio::test]
async fn a_certificate_beyond_the_limit_of_a_value_is_refused() {
    let server = Server::reused().await;
    let root = json!({"common_name": "root", "is_ca": true, "key_type": "ecdsa-p256"});
    server.generated("/root", "certificate", root).await;
    let name = format!("https://a/{}", "a".repeat(2_000));
    for (issuer, value, count, status) in [
        ("self_sign", json!(true), 10, 200),
        ("self_sign", json!(true), 15, 413),
        ("self_sign", json!(true), 30, 400),
        ("ca", json!("/root"), 20, 200),
        ("ca", json!("/root"), 30, 413),
    ] {
        let names = vec![&name; count];
        let parameters = json!({
            "common_name": "a", "key_type": "ecdsa-p256", issuer: value, "alternative_names": names,
        });
        let response = server.generate("/a", "certificate", parameters).await;
        let response = response.expect(status);
        assert!(status != 400 || response.error().contains("alternative_names"));
    }
    let names = vec!["a"; 20_000];
    let response = generate_with_names(&server, json!(names)).await;
    response.expect_error(400, "alternative_names");
}
