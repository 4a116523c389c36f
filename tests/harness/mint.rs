//! Issues tokens with the signing key of the test servers, and forges tokens.

use std::{
    fs,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, crypto};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{Response, Server, key_file};

/// An issuer of tokens with the signing key of a server's identity provider.
pub struct Mint {
    issuer: String,
    key_id: String,
}

impl Mint {
    /// Returns an issuer that uses the issuer name and the key id of the server's identity provider.
    pub async fn of(server: &Server) -> Self {
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

    /// Returns the header of an accepted token.
    pub fn header(&self) -> Value {
        json!({"alg": "RS256", "typ": "JWT", "kid": self.key_id})
    }

    /// Returns the claims of an accepted token.
    pub fn claims(&self) -> Value {
        claims(&self.issuer)
    }

    /// Returns the claims of an accepted token, with one claim replaced, or removed if the value is null.
    pub fn claims_with(&self, claim: &str, value: Value) -> Value {
        let mut claims = self.claims();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(claim);
        } else {
            claims[claim] = value;
        }
        claims
    }

    /// Returns the claims of a token for this client, acting for itself.
    pub fn client_claims(&self, client_id: &str) -> Value {
        let mut claims = self.claims_with("client_id", json!(client_id));
        claims["sub"] = json!(client_id);
        claims
    }

    /// Returns the claims of a token for this user, who logged in with a password.
    pub fn user_claims(&self, user_id: &str) -> Value {
        let mut claims = self.claims_with("grant_type", json!("password"));
        claims["sub"] = json!(user_id);
        claims["user_id"] = json!(user_id);
        claims
    }

    /// Returns a token with these claims, signed as the provider does.
    pub fn token(&self, claims: &Value) -> String {
        sign(&self.header(), claims, Algorithm::RS256, &signing_key())
    }
}

/// Returns the key that the provider signs with.
pub fn signing_key() -> EncodingKey {
    rsa_key("token-signing-key.pem")
}

/// Returns a key that no server trusts.
pub fn other_key() -> EncodingKey {
    rsa_key("other-signing-key.pem")
}

/// Signs any header and claims with any algorithm, even if the header names another one.
pub fn sign(header: &Value, claims: &Value, algorithm: Algorithm, key: &EncodingKey) -> String {
    sign_texts(&header.to_string(), &claims.to_string(), algorithm, key)
}

/// Signs any two texts as header and claims, whether they are JSON or not.
pub fn sign_texts(header: &str, claims: &str, algorithm: Algorithm, key: &EncodingKey) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", part(header), part(claims));
    let signature = crypto::sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

/// Encodes the header or the claims of a token.
pub fn encode(part: &Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

/// Returns the claims of a token of this issuer that a server accepts.
pub fn claims(issuer: &str) -> Value {
    let now = seconds_since_epoch();
    json!({
        "iss": issuer,
        "sub": "developer",
        "client_id": "developer",
        "grant_type": "client_credentials",
        "scope": ["credhub.read", "credhub.write"],
        "iat": now,
        "exp": now + 600,
        "jti": "9c0e3f7a5d9a4b6c8e1f2a3b4c5d6e7f",
    })
}

/// Returns the claims of a token, without verification.
pub fn claims_of(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

/// Returns a server's response to this token.
pub async fn present(server: &Server, token: &str) -> Response {
    let request = server.request(Method::GET, "/version").bearer_auth(token);
    server.send(request).await
}

/// Presents a token, and asserts that the server refuses it. The body must contain this error code, and the challenge must
/// contain the matching code of RFC 6750 (section 3.1). Messages of failed assertions start with `attack`, a description of
/// the token.
pub async fn expect_refused(server: &Server, token: &str, code: &str, attack: &str) {
    let (status, challenge) = match code {
        "insufficient_scope" => (403, r#"Bearer error="insufficient_scope""#),
        _ => (401, r#"Bearer error="invalid_token""#),
    };
    let response = present(server, token).await;
    assert_eq!(response.status, status, "{attack}: {response:?}");
    assert_eq!(response.error(), code, "{attack}");
    let description = &response.json()["error_description"];
    let is_described = description.as_str().is_some_and(|text| !text.is_empty());
    assert!(is_described, "{attack}");
    let challenged = response.header("www-authenticate").unwrap();
    assert!(challenged.starts_with(challenge), "{attack}: {challenged}");
}

/// Returns the current time, in seconds since 1970.
pub fn seconds_since_epoch() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    elapsed.as_secs().try_into().unwrap()
}

fn rsa_key(file: &str) -> EncodingKey {
    EncodingKey::from_rsa_pem(&fs::read(key_file(file)).unwrap()).unwrap()
}
