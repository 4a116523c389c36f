//! Makes tokens with the test servers' signing key, and such as only look like it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test ends when a token can't be made"
)]

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use keywright_harness::{Answer, Server, key_file};
use reqwest::Method;
use serde_json::{Value, json};

/// What a server's identity provider signs with.
pub(crate) struct Mint {
    issuer: String,
    key_id: String,
}

impl Mint {
    /// That of this server's own identity provider.
    pub(crate) async fn of(server: &Server) -> Self {
        let get = |path| server.send(server.request(Method::GET, path));
        let discovery = get("/identity/.well-known/openid-configuration")
            .await
            .expect(200)
            .json();
        let keys = get("/identity/token_keys").await.expect(200).json();
        Self {
            issuer: discovery["issuer"].as_str().unwrap().to_owned(),
            key_id: keys["keys"][0]["kid"].as_str().unwrap().to_owned(),
        }
    }

    /// The header of a token that is accepted.
    pub(crate) fn header(&self) -> Value {
        json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id})
    }

    /// The claims of a token that is accepted.
    pub(crate) fn claims(&self) -> Value {
        let now = seconds_since_epoch();
        json!({
            "iss": self.issuer,
            "sub": "developer",
            "client_id": "developer",
            "grant_type": "client_credentials",
            "scope": ["credhub.read", "credhub.write"],
            "iat": now,
            "exp": now + 600,
            "jti": "9c0e3f7a5d9a4b6c8e1f2a3b4c5d6e7f",
        })
    }

    /// The claims of a token that is accepted, with one claim changed, or absent when it is to be null.
    pub(crate) fn claims_with(&self, claim: &str, value: Value) -> Value {
        let mut claims = self.claims();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(claim);
        } else {
            claims[claim] = value;
        }
        claims
    }

    /// A token with these claims, signed as the provider does.
    pub(crate) fn token(&self, claims: &Value) -> String {
        sign(&self.header(), claims, Algorithm::RS256, &signing_key())
    }
}

/// The key that the provider signs with.
pub(crate) fn signing_key() -> EncodingKey {
    rsa_key("token-signing-key.pem")
}

/// A key that no server trusts.
pub(crate) fn other_key() -> EncodingKey {
    rsa_key("other-signing-key.pem")
}

/// Signs any header and claims with any algorithm, whether they fit or not.
pub(crate) fn sign(
    header: &Value,
    claims: &Value,
    algorithm: Algorithm,
    key: &EncodingKey,
) -> String {
    let message = format!("{}.{}", encode(header), encode(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

/// One part of a token.
pub(crate) fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

/// The claims of a token, which are not checked.
pub(crate) fn claims_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// What a server answers to this token.
pub(crate) async fn present(server: &Server, token: &str) -> Answer {
    let request = server.request(Method::GET, "/version").bearer_auth(token);
    server.send(request).await
}

/// The time, in seconds since 1970.
pub(crate) fn seconds_since_epoch() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    elapsed.as_secs().try_into().unwrap()
}

fn rsa_key(file: &str) -> EncodingKey {
    EncodingKey::from_rsa_pem(&fs::read(key_file(file)).unwrap()).unwrap()
}
