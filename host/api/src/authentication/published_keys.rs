//! The key set that an identity provider publishes (RFC 7517, section 5).

use serde::Deserialize;
use serde_json::Value;

use super::{
    trusted_keys::TrustedKey,
    verification_key::{KeyRefused, SignatureAlgorithm, VerificationKey},
};

/// A key set as it was published.
#[derive(Deserialize)]
pub(super) struct PublishedKeys {
    keys: Vec<Value>,
}

/// The usable keys of a key set.
pub(super) struct UsableKeys {
    /// The keys to verify tokens with.
    pub(super) keys: Vec<TrustedKey>,
    /// The keys that should be usable but are not: messages for the log.
    pub(super) passed_over: Vec<String>,
}

#[derive(Deserialize)]
struct PublishedKey {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    key_use: Option<String>,
    key_ops: Option<Vec<String>>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublishedKeys {
    /// Returns the RSA keys for RS256 and the P-256 keys for ES256. Keys of other types and for other uses are ignored silently:
    /// the provider publishes them for other services.
    pub(super) fn usable(self) -> UsableKeys {
        let mut usable = UsableKeys {
            keys: Vec::new(),
            passed_over: Vec::new(),
        };
        for published in self.keys {
            let Ok(published) = serde_json::from_value::<PublishedKey>(published) else {
                usable.pass_over(None, "does not conform to RFC 7517");
                continue;
            };
            if !published.is_for_tokens() {
                continue;
            }
            match published.verification_key() {
                Ok(_) if usable.keys.len() == KEYS_MAX => {
                    usable.pass_over(published.kid.as_deref(), "there are too many keys");
                }
                Ok(key) => usable.keys.push(TrustedKey {
                    id: published.kid,
                    key,
                }),
                Err(KeyRefused::LengthRefused) => usable.pass_over(
                    published.kid.as_deref(),
                    "length of the modulus must be between 2048 and 8192 bits",
                ),
                Err(KeyRefused::Malformed) => {
                    usable.pass_over(published.kid.as_deref(), "not a public key");
                }
            }
        }
        usable
    }
}

impl UsableKeys {
    fn pass_over(&mut self, key_id: Option<&str>, reason: &str) {
        let key_id: String = key_id
            .unwrap_or("without an id")
            .chars()
            .take(LOGGED_ID_CHARACTERS_MAX)
            .collect();
        self.passed_over.push(format!("{key_id}: {reason}"));
    }
}

impl PublishedKey {
    /// Returns the algorithm of the key, which depends on its type. `alg` is optional, but must match.
    fn algorithm(&self) -> Option<SignatureAlgorithm> {
        match (self.kty.as_str(), self.crv.as_deref()) {
            ("RSA", _) => Some(SignatureAlgorithm::Rs256),
            ("EC", Some("P-256")) => Some(SignatureAlgorithm::Es256),
            _ => None,
        }
    }

    fn is_for_tokens(&self) -> bool {
        let agrees = |algorithm: SignatureAlgorithm| {
            let named = self.alg.as_deref();
            named.is_none_or(|named| named == algorithm.name())
        };
        let key_use = self.key_use.as_deref();
        let operations = self.key_ops.as_ref();
        self.algorithm().is_some_and(agrees)
            && key_use.is_none_or(|key_use| key_use == "sig")
            && operations.is_none_or(|names| names.iter().any(|name| name == "verify"))
    }

    fn verification_key(&self) -> Result<VerificationKey, KeyRefused> {
        fn member(value: Option<&String>) -> Result<&str, KeyRefused> {
            value.map(String::as_str).ok_or(KeyRefused::Malformed)
        }
        match self.algorithm() {
            Some(SignatureAlgorithm::Rs256) => VerificationKey::of_rsa_components(
                member(self.n.as_ref())?,
                member(self.e.as_ref())?,
            ),
            Some(SignatureAlgorithm::Es256) => VerificationKey::of_p256_coordinates(
                member(self.x.as_ref())?,
                member(self.y.as_ref())?,
            ),
            None => Err(KeyRefused::Malformed),
        }
    }
}

/// Maximum number of keys used from a provider.
const KEYS_MAX: usize = 32;

/// Maximum length of a key's id in the log.
const LOGGED_ID_CHARACTERS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
    use serde_json::json;

    use super::*;

    fn usable(keys: &Value) -> UsableKeys {
        let published: PublishedKeys = serde_json::from_value(json!({ "keys": keys })).unwrap();
        published.usable()
    }

    fn changed(key: &Value, changes: &Value) -> Value {
        let mut key = key.clone();
        for (name, value) in changes.as_object().unwrap() {
            key[name] = value.clone();
        }
        key
    }

    fn rsa_key(bytes: usize) -> Value {
        json!({"kty": "RSA", "kid": "a", "n": URL_SAFE_NO_PAD.encode(vec![0xff; bytes]), "e": "AQAB"})
    }

    fn p256_key() -> Value {
        json!({
            "kty": "EC",
            "crv": "P-256",
            "x": "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY",
            "y": "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
        })
    }

    #[test]
    fn signing_keys_of_the_two_types_are_used() {
        for (key, changes, is_used, is_told) in [
            (rsa_key(256), json!({}), true, false),
            (
                rsa_key(256),
                json!({"use": "sig", "alg": "RS256", "value": "PEM"}),
                true,
                false,
            ),
            (
                rsa_key(256),
                json!({"key_ops": ["verify"], "x5c": ["x"], "x5u": "y"}),
                true,
                false,
            ),
            (rsa_key(256), json!({"use": "enc"}), false, false),
            (rsa_key(256), json!({"key_ops": ["encrypt"]}), false, false),
            (rsa_key(256), json!({"alg": "RS512"}), false, false),
            (rsa_key(256), json!({"alg": "ES256"}), false, false),
            (rsa_key(256), json!({"alg": "rs256"}), false, false),
            (rsa_key(256), json!({"kty": "EC"}), false, false),
            (
                rsa_key(256),
                json!({"kty": "oct", "k": "AAAA"}),
                false,
                false,
            ),
            (rsa_key(256), json!({"n": null}), false, true),
            (rsa_key(256), json!({"n": "!"}), false, true),
            (rsa_key(256), json!({"kid": 1}), false, true),
            (rsa_key(256), json!({"kty": null}), false, true),
            (rsa_key(255), json!({}), false, true),
            (p256_key(), json!({}), true, false),
            (
                p256_key(),
                json!({"alg": "ES256", "use": "sig"}),
                true,
                false,
            ),
            (p256_key(), json!({"alg": "RS256"}), false, false),
            (p256_key(), json!({"crv": "P-384"}), false, false),
            (p256_key(), json!({"crv": null}), false, false),
            (p256_key(), json!({"kty": "OKP"}), false, false),
            (p256_key(), json!({"y": null}), false, true),
            (p256_key(), json!({"y": "AAAA"}), false, true),
        ] {
            let usable = usable(&json!([changed(&key, &changes)]));
            assert_eq!(!usable.keys.is_empty(), is_used, "{changes}");
            assert_eq!(!usable.passed_over.is_empty(), is_told, "{changes}");
        }
    }

    #[test]
    fn an_unusable_key_does_not_affect_others() {
        let usable = usable(&json!([1, rsa_key(128), {}, p256_key(), rsa_key(256)]));
        assert_eq!(usable.keys.len(), 2);
        assert_eq!(usable.passed_over.len(), 3);
    }

    #[test]
    fn at_most_the_maximum_number_of_keys_is_used() {
        let usable = usable(&vec![p256_key(); KEYS_MAX + 1].into());
        assert_eq!(usable.keys.len(), KEYS_MAX);
        assert_eq!(usable.passed_over.len(), 1);
    }
}
