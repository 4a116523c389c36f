use serde_json::json;

use super::*;

#[test]
fn invalid_coordinates_are_rejected() {
    // The base point of P-256 (FIPS 186-4, D.1.2.3).
    let x = "axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY";
    let y = "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU";
    assert!(VerificationKey::of_p256_coordinates(x, y).is_ok());
    for (x, y) in [
        (y, x),
        (x, x),
        ("", ""),
        (x, ""),
        ("AA", "AA"),
        (&format!("AAAA{x}"), y),
        ("!", y),
    ] {
        let refused = VerificationKey::of_p256_coordinates(x, y).err();
        assert_eq!(refused, Some(VerificationKeyError::Malformed), "{x} {y}");
    }
}

#[test]
fn an_rsa_key_has_2048_to_8192_bits() {
    for (bytes, is_refused) in [
        (128, true),
        (255, true),
        (256, false),
        (1_024, false),
        (1_025, true),
    ] {
        let modulus = URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
        let read = VerificationKey::of_rsa_components(&modulus, "AQAB");
        let expected = is_refused.then_some(VerificationKeyError::LengthRefused);
        assert_eq!(read.err(), expected, "{bytes}");
    }
    let modulus = URL_SAFE_NO_PAD.encode([vec![0], vec![0xff; 256]].concat());
    assert!(VerificationKey::of_rsa_components(&modulus, "AQAB").is_ok());
}

#[test]
fn malformed_numbers_are_rejected() {
    let modulus = URL_SAFE_NO_PAD.encode(vec![0xff; 256]);
    for (modulus, exponent) in [
        ("", "AQAB"),
        ("!", "AQAB"),
        (modulus.as_str(), ""),
        (modulus.as_str(), "AA"),
        (modulus.as_str(), "AQ"),
        (modulus.as_str(), "!"),
    ] {
        let read = VerificationKey::of_rsa_components(modulus, exponent);
        assert_eq!(
            read.err(),
            Some(VerificationKeyError::Malformed),
            "{exponent}"
        );
    }
}

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

/// Changes of an RSA key or a P-256 key, and whether the key is used, ignored, or ignored and logged.
const KEYS: &str = r#"
    used RSA {}
    used RSA {"use": "sig", "alg": "RS256", "value": "PEM"}
    used RSA {"key_ops": ["verify"], "x5c": ["x"], "x5u": "y"}
    ignored RSA {"use": "enc"}
    ignored RSA {"key_ops": ["encrypt"]}
    ignored RSA {"alg": "RS512"}
    ignored RSA {"alg": "ES256"}
    ignored RSA {"alg": "rs256"}
    ignored RSA {"kty": "EC"}
    ignored RSA {"kty": "oct", "k": "AAAA"}
    logged RSA {"n": null}
    logged RSA {"n": "!"}
    logged RSA {"kid": 1}
    logged RSA {"kty": null}
    used P-256 {}
    used P-256 {"alg": "ES256", "use": "sig"}
    ignored P-256 {"alg": "RS256"}
    ignored P-256 {"crv": "P-384"}
    ignored P-256 {"crv": null}
    ignored P-256 {"kty": "OKP"}
    logged P-256 {"y": null}
    logged P-256 {"y": "AAAA"}
"#;

#[test]
fn only_signing_keys_for_rs256_and_es256_are_used() {
    for line in KEYS.trim().lines() {
        let [result, key, changes] = line.trim().splitn(3, ' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let key = if key == "RSA" {
            rsa_key(256)
        } else {
            p256_key()
        };
        let changes: Value = serde_json::from_str(changes).unwrap();
        let usable = usable(&json!([changed(&key, &changes)]));
        assert_eq!(!usable.keys.is_empty(), result == "used", "{line}");
        assert_eq!(!usable.ignored.is_empty(), result == "logged", "{line}");
    }
}

#[test]
fn an_unusable_key_does_not_affect_others() {
    let usable = usable(&json!([1, rsa_key(128), {}, p256_key(), rsa_key(256)]));
    assert_eq!(usable.keys.len(), 2);
    assert_eq!(usable.ignored.len(), 3);
}

#[test]
fn at_most_the_maximum_number_of_keys_is_used() {
    let usable = usable(&vec![p256_key(); KEYS_MAX + 1].into());
    assert_eq!(usable.keys.len(), KEYS_MAX);
    assert_eq!(usable.ignored.len(), 1);
}

#[test]
fn ignored_keys_past_the_maximum_are_not_logged() {
    let unusable = changed(&p256_key(), &json!({"x": "!"}));
    let keys = vec![unusable; LOGGED_KEYS_MAX + 1];
    assert_eq!(usable(&json!(keys)).ignored.len(), LOGGED_KEYS_MAX);
}
