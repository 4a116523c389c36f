//! Valid and invalid bearer tokens, verified with a configured key or with the keys that a provider publishes.

use std::{
    convert::Infallible,
    net::Ipv4Addr,
    sync::{Arc, atomic::Ordering},
};

use aws_lc_rs::hmac;
use axum::http::StatusCode;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto::Builder,
};
use keywright_api::authentication::{HttpsIdentityProvider, HttpsIdentityProviderSettings};
use rcgen::CertifiedKey;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto, pki_types::PrivateKeyDer},
};

use crate::harness::{ISSUER, NOW_SECONDS, Service, TestKey, good_claims, trusted_key};

fn with(changes: &Value) -> Value {
    let mut claims = good_claims();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims
}

fn part(json: &Value) -> String {
    URL_SAFE_NO_PAD.encode(json.to_string())
}

async fn code(service: &Service, token: &str) -> (StatusCode, String) {
    let response = service.get_as("/version", Some(token)).await;
    if response.status.is_success() {
        return (response.status, String::new());
    }
    assert!(response.headers.contains_key("www-authenticate"));
    assert!(response.json()["error_description"].is_string());
    (response.status, response.error())
}

#[tokio::test]
async fn a_valid_token_is_accepted_repeatedly() {
    let service = Service::new();
    let token = trusted_key().sign(&good_claims());
    for _ in 0..3 {
        assert_eq!(code(&service, &token).await.0, StatusCode::OK);
    }
}

#[tokio::test]
async fn without_credentials_the_code_is_access_denied() {
    let service = Service::new();
    for path in ["/version", "/api/v1/data?name=a", "/no/such/path"] {
        let response = service.get_as(path, None).await;
        assert_eq!(response.status, StatusCode::UNAUTHORIZED, "{path}");
        assert_eq!(response.error(), "access_denied");
        assert_eq!(response.headers["www-authenticate"], "Bearer");
    }
    let basic = [("authorization", "Basic dTpw".to_owned())];
    let response = service.send_with("GET", "/version", &basic, "").await;
    assert_eq!(response.error(), "access_denied");
}

#[tokio::test]
async fn forged_tokens_are_invalid() {
    let service = Service::new();
    let good = trusted_key().sign(&good_claims());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, claims) = message.split_once('.').unwrap();
    let none = part(&json!({"alg": "none", "typ": "JWT"}));
    let hs256 = part(&json!({"alg": "HS256", "typ": "JWT"}));
    let crit = part(&json!({"alg": "RS256", "crit": ["exp"]}));
    let public_pem = trusted_key().public_pem.as_bytes();
    let hmac_key = hmac::Key::new(hmac::HMAC_SHA256, public_pem);
    let hmac_tag = hmac::sign(&hmac_key, format!("{hs256}.{claims}").as_bytes());
    let confused = URL_SAFE_NO_PAD.encode(hmac_tag.as_ref());
    let other_claims = part(&with(&json!({"client_id": "root"})));
    for (attack, token) in [
        ("empty", String::new()),
        ("no token", "abc".to_owned()),
        ("two parts", message.to_owned()),
        ("four parts", format!("{good}.x")),
        ("no signature", format!("{message}.")),
        ("alg none", format!("{none}.{claims}.")),
        ("alg none, signed", format!("{none}.{claims}.{signature}")),
        (
            "public key as HMAC key",
            format!("{hs256}.{claims}.{confused}"),
        ),
        ("unknown extension", format!("{crit}.{claims}.{signature}")),
        (
            "other claims",
            format!("{header}.{other_claims}.{signature}"),
        ),
        ("other key", TestKey::generate().sign(&good_claims())),
        ("too long", format!("{good}{}", "A".repeat(16 * 1024))),
    ] {
        let refused = (StatusCode::UNAUTHORIZED, "invalid_token".to_owned());
        assert_eq!(code(&service, &token).await, refused, "{attack}");
    }
}

#[tokio::test]
async fn a_token_with_any_one_character_changed_is_invalid() {
    let service = Service::new();
    let good = trusted_key().sign(&good_claims());
    for position in 0..good.len() {
        for other in ["A", "Q", "_", ".", "=", " "] {
            let mut changed = good.clone();
            changed.replace_range(position..=position, other);
            if changed == good {
                continue;
            }
            let (status, code) = code(&service, &changed).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{position} {other}");
            assert_eq!(code, "invalid_token", "{position} {other}");
        }
    }
}

#[tokio::test]
async fn well_signed_tokens_with_wrong_claims_are_invalid() {
    let service = Service::new();
    for changes in [
        json!({"iss": "https://elsewhere"}),
        json!({"iss": ""}),
        json!({"iss": null}),
        json!({"iss": 1}),
        json!({"exp": null}),
        json!({"exp": "tomorrow"}),
        json!({"nbf": NOW_SECONDS + 61}),
        json!({"nbf": "now"}),
        json!({"grant_type": "authorization_code"}),
        json!({"grant_type": null}),
        json!({"client_id": null}),
        json!({"client_id": ""}),
        json!({"grant_type": "password"}),
        json!({"scope": "credhub.read credhub.write"}),
        json!({"iss": "https://elsewhere", "exp": NOW_SECONDS - 1_000}),
    ] {
        let token = trusted_key().sign(&with(&changes));
        let refused = (StatusCode::UNAUTHORIZED, "invalid_token".to_owned());
        assert_eq!(code(&service, &token).await, refused, "{changes}");
    }
    let no_object = trusted_key().sign(&json!([1]));
    assert_eq!(code(&service, &no_object).await.1, "invalid_token");
}

#[tokio::test]
async fn times_may_differ_by_a_minute() {
    let service = Service::new();
    for (changes, status, error) in [
        (json!({"exp": NOW_SECONDS - 60}), 200, ""),
        (
            json!({"exp": NOW_SECONDS - 61}),
            401,
            "access_token_expired",
        ),
        (json!({"exp": i64::MIN}), 401, "access_token_expired"),
        (json!({"nbf": NOW_SECONDS + 60}), 200, ""),
        (json!({"nbf": NOW_SECONDS + 61}), 401, "invalid_token"),
    ] {
        let token = trusted_key().sign(&with(&changes));
        let (responded, code) = code(&service, &token).await;
        assert_eq!(
            (responded.as_u16(), code.as_str()),
            (status, error),
            "{changes}"
        );
    }
}

#[tokio::test]
async fn a_cached_token_expires() {
    let service = Service::new();
    let token = trusted_key().sign(&good_claims());
    assert_eq!(code(&service, &token).await.0, StatusCode::OK);
    service.clock.0.fetch_add(661, Ordering::SeqCst);
    assert_eq!(code(&service, &token).await.1, "access_token_expired");
}

/// Serves a service's development identity provider over TLS; returns its address and its certificate.
async fn serve() -> (String, String) {
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config =
        ServerConfig::builder_with_provider(Arc::new(crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let pipeline = Service::new().pipeline();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (acceptor, pipeline) = (acceptor.clone(), Arc::clone(&pipeline));
            tokio::spawn(async move {
                if let Ok(connection) = acceptor.accept(connection).await {
                    let service = service_fn(move |request: Request<Incoming>| {
                        let pipeline = Arc::clone(&pipeline);
                        async move { Ok::<_, Infallible>(pipeline.respond(None, request).await) }
                    });
                    let _ = Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(connection), service)
                        .await;
                }
            });
        }
    });
    (format!("https://localhost:{port}/identity"), cert.pem())
}

fn service(url: String, trusted_certificates_pem: Option<String>) -> Service {
    let settings = HttpsIdentityProviderSettings {
        url,
        public_url: Some(ISSUER.to_owned()),
        trusted_certificates_pem,
        timeout: HttpsIdentityProviderSettings::TIMEOUT,
    };
    Service::with_identity_provider(HttpsIdentityProvider::new(&settings).unwrap())
}

#[tokio::test]
async fn tokens_are_verified_with_published_keys() {
    let (url, certificate) = serve().await;
    let service = service(url, Some(certificate));
    let token = trusted_key().sign(&good_claims());
    for _ in 0..2 {
        let response = service.get_as("/version", Some(&token)).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.text);
    }
    let forged = format!("{token}A");
    let response = service.get_as("/version", Some(&forged)).await;
    assert_eq!(response.error(), "invalid_token");
}

#[tokio::test]
async fn without_a_trusted_provider_tokens_get_503() {
    let (url, _) = serve().await;
    let (_, other_certificate) = serve().await;
    for service in [
        service("https://localhost:1/identity".to_owned(), None),
        service(url, Some(other_certificate)),
    ] {
        let token = trusted_key().sign(&good_claims());
        let response = service.get_as("/version", Some(&token)).await;
        assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers["retry-after"], "5");
        assert!(!response.error().contains("localhost"));
        let open = service.get_as("/info", None).await;
        assert_eq!(open.status, StatusCode::OK);
        let malformed = service.get_as("/version", Some("no token")).await;
        assert_eq!(malformed.error(), "invalid_token");
    }
}
