//! JSON returned by plugins, and in tokens and documents of identity providers.

use std::sync::{Arc, Mutex};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::Algorithm;
use keywright_harness::{
    Options, Reply, Response, Server, Stub,
    mint::{Mint, present, sign_texts, signing_key},
    until,
};
use serde_json::{Value, json};

use super::{
    DATA,
    corpus::{Input, inputs, short_inputs},
    is_invalid_at_any_depth,
};
use crate::{assert_alive, assert_no_fault};

/// Starts a server whose plugin `hostile` returns the parameter `note` from this function.
async fn server(function: &str) -> Server {
    Server::start_with(
        &Options::default().hostile("deadline_ms = 600000", &format!("{function} = \"echo\"")),
    )
    .await
}

/// Returns the inputs that fit in a note.
fn texts() -> Vec<(Input, String)> {
    let inputs = inputs()
        .into_iter()
        .filter(|input| input.text.len() < 100_000);
    inputs
        .filter_map(|input| {
            let text = String::from_utf8(input.text.clone()).ok()?;
            Some((input, text))
        })
        .collect()
}

/// Asserts that an invalid text is rejected, as an error of the plugin or of the caller.
#[track_caller]
fn assert_refused(response: &Response, input: &Input) {
    let is_plugin_error =
        response.status == 500 && response.error().starts_with("the plugin hostile ");
    let is_caller_error = (400..500).contains(&response.status);
    assert!(
        is_plugin_error
            || is_caller_error
            || (response.status == 200 && !is_invalid_at_any_depth(input)),
        "{}: {} {}",
        input.what,
        response.status,
        response.body
    );
}

#[tokio::test]
async fn no_value_returned_by_a_plugin_crashes_the_server() {
    let server = server("generate").await;
    for (input, text) in texts() {
        for value in [
            text.clone(),
            format!(r#"{{"secret":"s","note":{text}}}"#),
            format!(r#"{{"secret":{text}}}"#),
        ] {
            let parameters = json!({"note": value});
            let response = server.generate("/a", "hostile", parameters).await;
            assert_refused(&response, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_parameters_returned_by_a_plugin_crash_the_server() {
    let server = server("normalize").await;
    for (input, text) in texts() {
        for parameters in [text.clone(), format!(r#"{{"a":{text}}}"#)] {
            let given = json!({"note": parameters});
            let response = server.generate("/a", "hostile", given.clone()).await;
            assert_refused(&response, &input);
            // The stored parameters are read again.
            let response = server
                .generate_in_mode("converge", "/a", "hostile", given)
                .await;
            assert_refused(&response, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_value_accepted_by_a_plugin_crashes_the_server() {
    let server = server("accept").await;
    for (input, text) in texts() {
        for value in [text.clone(), format!(r#"{{"secret":"s","note":{text}}}"#)] {
            let value: Value = json!({"secret": "s", "note": value});
            let response = server.set("/a", "hostile", value).await;
            assert_refused(&response, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_parameters_recovered_by_a_plugin_crash_the_server() {
    let server = server("recover").await;
    for (input, text) in texts() {
        // The text is part of a stored value, which must not be too large.
        if text.len() > 50_000 {
            continue;
        }
        for parameters in [text.clone(), format!(r#"{{"a":{text}}}"#)] {
            let value = json!({"secret": "s", "note": parameters});
            server.stored("/a", "hostile", value).await;
            let body =
                json!({"name": "/a", "type": "hostile", "mode": "converge", "parameters": {}});
            assert_refused(&server.post(DATA, body).await, &input);
        }
        assert_alive(&server, &input.what).await;
    }
}

/// Without a valid signature and a known key, every token is rejected.
#[tokio::test]
async fn no_untrusted_token_crashes_the_server() {
    // The stack has half of its usual size, so that a head can be large enough to overflow it. A development build has
    // small stack frames.
    let options = Options::default().environment("RUST_MIN_STACK", "1048576");
    let server = Server::start_with(&options).await;
    let mint = Mint::of(&server).await;
    let part = |text: &[u8]| URL_SAFE_NO_PAD.encode(text);
    for input in short_inputs() {
        let text = &input.text;
        let field = |name: &str| [format!(r#"{{"{name}":"#).as_bytes(), text, b"}"].concat();
        let header = mint.header().to_string();
        for (header, payload) in [
            (text.clone(), b"{}".to_vec()),
            (field("alg"), b"{}".to_vec()),
            (
                [br#"{"alg":"RS256","kid":"#, &text[..], b"}"].concat(),
                b"{}".to_vec(),
            ),
            (
                [br#"{"alg":"RS256","x":"#, &text[..], b"}"].concat(),
                b"{}".to_vec(),
            ),
            (header.clone().into_bytes(), text.clone()),
            (header.clone().into_bytes(), field("exp")),
        ] {
            let token = format!("{}.{}.c2ln", part(&header), part(&payload));
            let response = present(&server, &token).await;
            // A head that is too large is rejected with 431.
            assert!(
                matches!(response.status, 401 | 431),
                "{}: {response:?}",
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
            let response = present(&server, &token).await;
            assert_no_fault(&response, &format!("{claim} with {}", input.what));
            if input.fault.error(1).is_some() {
                let is_refused = matches!(response.status, 401 | 431);
                assert!(is_refused, "{claim} with {}: {response:?}", input.what);
            }
        }
        assert_alive(&server, &input.what).await;
    }
}

#[tokio::test]
async fn no_identity_provider_document_crashes_the_server() {
    let hostile = Arc::new(Mutex::new(None::<(&str, Vec<u8>)>));
    let published = Arc::clone(&hostile);
    let stub = Stub::start(move |request, _, url| {
        let (document_kind, sound) = if request.line.contains("openid-configuration") {
            let keys = format!("{url}/keys");
            ("discovery", json!({"issuer": url, "jwks_uri": keys}))
        } else {
            ("keys", json!({"keys": []}))
        };
        let mut published = published.lock().unwrap();
        match published.take_if(|(kind, _)| *kind == document_kind) {
            Some((_, text)) => Reply::bytes(&text),
            None => Reply::new(200, &sound.to_string()),
        }
    });
    let options = Options::default()
        .identity_provider(&stub.url())
        .authentication_settings("keys_interval_seconds_min = 0");
    let server = Server::start_with(&options).await;
    for (number, input) in inputs().into_iter().enumerate() {
        for (document_kind, body) in [
            ("discovery", "@"),
            ("discovery", r#"{"issuer":"i","jwks_uri":@}"#),
            ("discovery", r#"{"issuer":"i","x":@}"#),
            ("keys", "@"),
            ("keys", r#"{"keys":[@]}"#),
            ("keys", r#"{"keys":[{"kty":"RSA","n":@}]}"#),
        ] {
            let document = super::filled(body, &input.text);
            *hostile.lock().unwrap() = Some((document_kind, document));
            let header = json!({"alg": "RS256", "kid": format!("{number}{document_kind}{body}")});
            let token = sign_texts(&header.to_string(), "{}", Algorithm::RS256, &signing_key());
            // A token can share a fetch that began before.
            until("request for the document", async || {
                let response = present(&server, &token).await;
                assert!(
                    matches!(response.status, 401 | 503),
                    "{}: {response:?}",
                    input.what
                );
                hostile.lock().unwrap().is_none()
            })
            .await;
        }
        assert_alive(&server, &input.what).await;
    }
}
