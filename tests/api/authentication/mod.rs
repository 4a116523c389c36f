//! Bearer tokens, and the built-in identity provider for development.

mod attacks;
mod claims;
mod development_identity;
mod provider;
mod settings;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use jsonwebtoken::{Algorithm, EncodingKey, jwk::Jwk};
use keywright_harness::{
    Options, ReceivedRequest, Reply, Stub,
    mint::{self, other_key, sign, signing_key},
};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};
use serde_json::{Value, json};

/// A stub identity provider. It runs until the test process exits.
struct StubProvider {
    stub: Stub,
    path: &'static str,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    documents: BTreeMap<String, Value>,
    requests: Vec<String>,
    is_unreachable: bool,
}

impl State {
    fn response(&mut self, request: &ReceivedRequest) -> Reply {
        if self.is_unreachable {
            return Reply::lost();
        }
        let (_, path) = request.line.split_once(' ').unwrap();
        self.requests.push(path.to_owned());
        match self.documents.get(path) {
            Some(document) => Reply::new(200, &document.to_string()),
            None => Reply::new(404, ""),
        }
    }
}

/// A key that a provider signs with.
struct Signer {
    key: EncodingKey,
    algorithm: Algorithm,
    key_id: String,
    /// The public half in the published format.
    published: Value,
}

impl Signer {
    fn rsa(key_id: &str) -> Self {
        Self::new(signing_key(), Algorithm::RS256, key_id)
    }

    /// Returns an RSA key that differs from [`Self::rsa`].
    fn other_rsa(key_id: &str) -> Self {
        Self::new(other_key(), Algorithm::RS256, key_id)
    }

    /// Generates a key on P-256.
    fn p256(key_id: &str) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let key = EncodingKey::from_ec_pem(key.serialize_pem().as_bytes()).unwrap();
        Self::new(key, Algorithm::ES256, key_id)
    }

    /// Generates a key on P-384.
    fn p384(key_id: &str) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let key = EncodingKey::from_ec_pem(key.serialize_pem().as_bytes()).unwrap();
        Self::new(key, Algorithm::ES384, key_id)
    }

    fn new(key: EncodingKey, algorithm: Algorithm, key_id: &str) -> Self {
        let mut published =
            serde_json::to_value(Jwk::from_encoding_key(&key, algorithm).unwrap()).unwrap();
        let fields = published.as_object_mut().unwrap();
        fields.remove("alg");
        fields.insert("kid".to_owned(), json!(key_id));
        Self {
            key,
            algorithm,
            key_id: key_id.to_owned(),
            published,
        }
    }

    /// Returns the header of the signer's tokens.
    fn header(&self) -> Value {
        json!({"alg": format!("{:?}", self.algorithm), "typ": "JWT", "kid": self.key_id})
    }

    fn token(&self, claims: &Value) -> String {
        self.token_with(&self.header(), claims)
    }

    fn token_with(&self, header: &Value, claims: &Value) -> String {
        sign(header, claims, self.algorithm, &self.key)
    }
}

impl StubProvider {
    /// Starts a provider below this path. Only its discovery document contains the URL of its keys.
    fn start(path: &'static str, keys: &[&Signer]) -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let reported = Arc::clone(&state);
        let provider = Self {
            stub: Stub::start(move |request, _, _| reported.lock().unwrap().response(request)),
            path,
            state,
        };
        let keys_url = format!("{}/keys", provider.url());
        provider.publish_discovery(&json!({"issuer": provider.url(), "jwks_uri": keys_url}));
        provider.publish_keys(keys);
        provider
    }

    fn url(&self) -> String {
        format!("{}{}", self.stub.url(), self.path)
    }

    /// Replaces the published keys.
    fn publish_keys(&self, keys: &[&Signer]) {
        let keys: Vec<&Value> = keys.iter().map(|key| &key.published).collect();
        self.publish("/keys", &json!({ "keys": keys }));
    }

    /// Replaces the discovery document.
    fn publish_discovery(&self, document: &Value) {
        self.publish("/.well-known/openid-configuration", document);
    }

    /// Publishes a document at this path below the provider's own path.
    fn publish(&self, path: &str, document: &Value) {
        let path = format!("{}{path}", self.path);
        let mut state = self.state.lock().unwrap();
        state.documents.insert(path, document.clone());
    }

    /// Sets whether it closes connections without a response.
    fn set_unreachable(&self, is_unreachable: bool) {
        self.state.lock().unwrap().is_unreachable = is_unreachable;
    }

    /// Returns the number of requests for this path below the provider's own path.
    fn requests(&self, path: &str) -> usize {
        let path = format!("{}{path}", self.path);
        let state = self.state.lock().unwrap();
        state
            .requests
            .iter()
            .filter(|request| **request == path)
            .count()
    }

    /// Returns options of a server that trusts the provider, and fetches keys without a minimum interval.
    fn options(&self) -> Options {
        Options::default()
            .identity_provider(&self.url())
            .authentication_settings("keys_interval_seconds_min = 0")
    }

    /// Returns the claims of an accepted token.
    fn claims(&self) -> Value {
        mint::claims(&self.url())
    }
}
