//! Tokens and documents of identity providers.

use std::sync::{Arc, Mutex};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use keywright_harness::{
    Answer, Options, Reply, Server, Stub,
    mint::{Mint, present, sign_texts, signing_key},
};
use serde_json::json;

use super::corpus::{inputs, short_inputs};
use crate::alive::{assert_alive, assert_no_fault};

/// Without a valid signature and a known key, every token is rejected.
#[tokio::test]
async fn no_untrusted_token_crashes_the_server() {
    // A development build has small stack frames: with half of the usual stack, a head can be large enough to overflow
    // it.
    let options = Options::default().environment("RUST_MIN_STACK", "1048576");
    let server = Server::start_with(&options).await;
    let mint = Mint::of(&server).await;
    let part = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
    for input in short_inputs() {
        let text = &input.text;
        let member = |name: &str| [format!(r#"{{"{name}":"#).as_bytes(), text, b"}"].concat();
        let header = mint.header().to_string();
        for (header, payload) in [
            (text.clone(), b"{}".to_vec()),
            (member("alg"), b"{}".to_vec()),
            (
                [br#"{"alg":"RS256","kid":"#, &text[..], b"}"].concat(),
                b"{}".to_vec(),
            ),
            (
                [br#"{"alg":"RS256","x":"#, &text[..], b"}"].concat(),
                b"{}".to_vec(),
            ),
            (header.clone().into_bytes(), text.clone()),
            (header.clone().into_bytes(), member("exp")),
        ] {
            let token = format!("{}.{}.c2ln", part(&header), part(&payload));
            let answer = present(&server, &token).await;
            // Too large heads are rejected otherwise.
            assert!(
                matches!(answer.status, 401 | 431),
                "{}: {answer:?}",
                input.what
            );
        }
        assert_alive(&server, &input.what).await;
    }
}

/// Claims signed by the identity provider can be malformed, too.
#[tokio::test]
async fn no_signed_claim_crashes_the_server() {
    let server = Server::start().await;
    let mint = Mint::of(&server).await;
    for input in short_inputs() {
        let Ok(text) = str::from_utf8(&input.text) else {
            continue;
        };
        for claim in ["aud", "exp", "scope", "grant_type", "client_id", "unknown"] {
            let claims = mint.claims_with(claim, json!("@"));
            let claims = claims.to_string().replace("\"@\"", text);
            let header = mint.header().to_string();
            let token = sign_texts(&header, &claims, Algorithm::RS256, &signing_key());
            let answer = present(&server, &token).await;
            assert_no_fault(&answer, &format!("{claim} with {}", input.what));
            if input.fault.error(1).is_some() {
                let is_refused = matches!(answer.status, 401 | 431);
                assert!(is_refused, "{claim} with {}: {answer:?}", input.what);
            }
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_identity_provider_document_crashes_the_server() {
    let hostile: Arc<Mutex<Vec<u8>>> = Arc::default();
    let published = Arc::clone(&hostile);
    let stub = Stub::start(move |asked, _, url| {
        let text = published.lock().unwrap().clone();
        let is_discovery = asked.line.contains("openid-configuration");
        let sound = if is_discovery {
            json!({"issuer": url, "jwks_uri": format!("{url}/keys")})
        } else {
            json!({"keys": []})
        };
        let document_kind = if is_discovery { b'd' } else { b'k' };
        match text.split_first() {
            Some((at, text)) if *at == document_kind => Reply::bytes(text),
            _ => Reply::new(200, &sound.to_string()),
        }
    });
    let options = Options::default()
        .identity_provider(&stub.url())
        .authentication_settings("keys_interval_seconds_min = 0");
    let server = Server::start_with(&options).await;
    for (number, input) in inputs().into_iter().enumerate() {
        for (document_kind, body) in [
            ("d", "@"),
            ("d", r#"{"issuer":"i","jwks_uri":@}"#),
            ("d", r#"{"issuer":"i","x":@}"#),
            ("k", "@"),
            ("k", r#"{"keys":[@]}"#),
            ("k", r#"{"keys":[{"kty":"RSA","n":@}]}"#),
        ] {
            let document = super::filled(body, &input.text);
            *hostile.lock().unwrap() = [document_kind.as_bytes(), &document].concat();
            let header = json!({"alg": "RS256", "kid": format!("{number}{document_kind}{body}")});
            let token = sign_texts(&header.to_string(), "{}", Algorithm::RS256, &signing_key());
            let before = stub.asked().len();
            let answer: Answer = present(&server, &token).await;
            assert!(
                matches!(answer.status, 401 | 503),
                "{}: {answer:?}",
                input.what
            );
            assert!(stub.asked().len() > before, "the document was not read");
        }
        assert_alive(&server, &input.what).await;
    }
}
