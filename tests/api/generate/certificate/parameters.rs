//! Accepted parameters.

#![expect(
    clippy::indexing_slicing,
    reason = "a test ends when what it needs is not there"
)]

use keywright_harness::{Answer, Server};
use serde_json::{Value, json};

/// Parameters of a self-signed leaf, with one added or replaced.
fn with(parameter: &str, value: Value) -> Value {
    let mut parameters = json!({"common_name": "leaf", "self_sign": true});
    parameters[parameter] = value;
    parameters
}

async fn generate(server: &Server, parameters: Value) -> Answer {
    server
        .generate_in_mode("overwrite", "/a", "certificate", parameters)
        .await
}

#[track_caller]
fn refused(answer: &Answer, parts: &[&str]) {
    assert_eq!(answer.status, 400, "{}", answer.body);
    let error = answer.error();
    for part in parts {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[tokio::test]
async fn any_one_subject_field_is_enough_and_without_one_it_is_400() {
    let server = Server::start().await;
    for (field, text) in [
        ("common_name", "cn"),
        ("organization", "o"),
        ("organization_unit", "ou"),
        ("locality", "l"),
        ("state", "st"),
        ("country", "AT"),
    ] {
        let parameters = json!({field: text, "self_sign": true});
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
async fn without_an_issuer_of_any_kind_it_is_400() {
    let server = Server::start().await;
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
async fn ca_and_self_sign_together_are_400() {
    let server = Server::start().await;
    generate(&server, json!({"common_name": "root", "is_ca": true}))
        .await
        .expect(200);
    let parameters = json!({"common_name": "leaf", "ca": "/a", "self_sign": true});
    refused(&generate(&server, parameters).await, &["ca", "self_sign"]);
}

#[tokio::test]
async fn a_subject_field_one_character_over_its_limit_is_400() {
    let server = Server::start().await;
    for (field, characters_max) in [
        ("common_name", 64),
        ("organization", 64),
        ("organization_unit", 64),
        ("locality", 128),
        ("state", 128),
        ("country", 2),
    ] {
        let longest = "a".repeat(characters_max);
        generate(&server, with(field, json!(longest)))
            .await
            .expect(200);
        let too_long = format!("{longest}a");
        let answer = generate(&server, with(field, json!(too_long))).await;
        refused(&answer, &[field, &characters_max.to_string()]);
        assert!(!answer.body.contains(&too_long));
    }
    let non_ascii = "ä".repeat(64);
    generate(&server, with("common_name", json!(non_ascii)))
        .await
        .expect(200);
}

#[tokio::test]
async fn key_lengths_are_2048_3072_and_4096() {
    let server = Server::start().await;
    for key_length in [2048, 3072, 4096] {
        let answer = generate(&server, with("key_length", json!(key_length)))
            .await
            .expect(200);
        let certificate = answer.json()["value"]["certificate"].clone();
        let bits = crate::keys::certificate_key_bits(certificate.as_str().unwrap());
        assert_eq!(bits, key_length);
        assert_eq!(answer.json()["key_length"], key_length);
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
    let server = Server::start().await;
    for duration in [1, 2, 3_649, 3_650] {
        let answer = generate(&server, with("duration", json!(duration)))
            .await
            .expect(200)
            .json();
        assert_eq!(answer["duration_used"], duration);
        assert_eq!(answer["duration_overridden"], false);
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
    let default = generate(&server, with("common_name", json!("leaf")))
        .await
        .expect(200)
        .json();
    assert_eq!(default["duration_used"], 365);
}

#[tokio::test]
async fn an_unknown_usage_is_400_and_named() {
    let server = Server::start().await;
    for (parameter, known) in [
        (
            "key_usage",
            &[
                "digital_signature",
                "non_repudiation",
                "key_encipherment",
                "data_encipherment",
                "key_agreement",
                "key_cert_sign",
                "crl_sign",
                "encipher_only",
                "decipher_only",
            ][..],
        ),
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
        generate(&server, with(parameter, json!(known)))
            .await
            .expect(200);
        for usage in known {
            generate(&server, with(parameter, json!([usage])))
                .await
                .expect(200);
            let upper = usage.to_uppercase();
            let answer = generate(&server, with(parameter, json!([known[0], upper]))).await;
            refused(&answer, &[&upper]);
        }
        for unknown in ["", "serverAuth", "server-auth", "any", " crl_sign"] {
            let answer = generate(&server, with(parameter, json!([unknown]))).await;
            refused(&answer, &[unknown]);
        }
        for wrong in [json!(known[0]), json!([1]), json!({"0": known[0]})] {
            refused(
                &generate(&server, with(parameter, wrong)).await,
                &[parameter],
            );
        }
        generate(&server, with(parameter, json!([])))
            .await
            .expect(200);
    }
}

#[tokio::test]
async fn an_unknown_usage_is_reported_before_the_ca_is_looked_up() {
    let server = Server::start().await;
    let parameters = json!({"common_name": "leaf", "ca": "/nowhere", "key_usage": ["any_usage"]});
    refused(&generate(&server, parameters).await, &["any_usage"]);
}

#[tokio::test]
async fn texts_of_another_json_kind_are_400_and_named() {
    let server = Server::start().await;
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
    for flag in ["is_ca", "self_sign"] {
        for wrong in [json!("maybe"), json!(2), Value::Null] {
            refused(&generate(&server, with(flag, wrong)).await, &[flag]);
        }
    }
}
