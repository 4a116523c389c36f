//! Generates WireGuard key pairs: Curve25519 keys in base64, as printed by `wg genkey` and `wg pubkey`.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;
use x25519_dalek::{PublicKey, StaticSecret};

/// The schema of the parameters. The host validates them and fills in the defaults.
pub const PARAMETERS_SCHEMA: &str = include_str!("parameters.schema.json");

/// The schema of the value. The host validates each value. `writeOnly` fields are secret.
pub const VALUE_SCHEMA: &str = include_str!("value.schema.json");

/// Builds the value of a key pair from 32 random bytes, and 32 more for a preshared key.
pub fn key_pair(mut private_key: [u8; 32], preshared_key: Option<[u8; 32]>) -> String {
    private_key[0] &= 248;
    private_key[31] = private_key[31] & 127 | 64;
    let public_key = PublicKey::from(&StaticSecret::from(private_key));
    let mut value = json!({
        "private_key": BASE64_STANDARD.encode(private_key),
        "public_key": BASE64_STANDARD.encode(public_key),
    });
    if let Some(preshared_key) = preshared_key {
        value["preshared_key"] = BASE64_STANDARD.encode(preshared_key).into();
    }
    value.to_string()
}

#[cfg(target_arch = "wasm32")]
mod component {
    use exports::keywright::generator::{descriptor, generator};
    use keywright::generator::types::Failure;
    use wasi::random::random::get_random_bytes;

    wit_bindgen::generate!({path: "wit", world: "plugin", generate_all});

    struct Component;

    export!(Component);

    impl descriptor::Guest for Component {
        fn describe() -> descriptor::Description {
            descriptor::Description {
                credential_type: "wireguard".to_owned(),
                plugin_version: env!("CARGO_PKG_VERSION").to_owned(),
                summary: "WireGuard key pairs".to_owned(),
                parameters_schema: super::PARAMETERS_SCHEMA.to_owned(),
                value_schema: super::VALUE_SCHEMA.to_owned(),
                issuer_parameter: None,
                entropy_bits_min: Some(251),
            }
        }
    }

    impl generator::Guest for Component {
        fn generate(generation: generator::Generation) -> Result<String, Failure> {
            let parameters: serde_json::Value = serde_json::from_str(&generation.parameters)
                .map_err(|error| Failure::Other(error.to_string()))?;
            let preshared_key = (parameters["preshared_key"] == true)
                .then(random)
                .transpose()?;
            Ok(super::key_pair(random()?, preshared_key))
        }
    }

    fn random() -> Result<[u8; 32], Failure> {
        get_random_bytes(32)
            .try_into()
            .map_err(|_| Failure::Other("too few random bytes".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_match_rfc_7748() {
        // Section 6.1, Alice. Clamping her private key does not change the public key.
        let private_key = bytes("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a");
        let value: serde_json::Value = serde_json::from_str(&key_pair(private_key, None)).unwrap();
        let public_key = bytes("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
        assert_eq!(value["public_key"], BASE64_STANDARD.encode(public_key));
        assert_eq!(value.as_object().unwrap().len(), 2);
    }

    #[test]
    fn private_key_is_clamped() {
        let value: serde_json::Value = serde_json::from_str(&key_pair([255; 32], None)).unwrap();
        let private_key = BASE64_STANDARD
            .decode(value["private_key"].as_str().unwrap())
            .unwrap();
        assert_eq!(
            (private_key[0], private_key[1], private_key[31]),
            (0xf8, 0xff, 0x7f)
        );
    }

    #[test]
    fn requested_preshared_key_is_present() {
        let value: serde_json::Value =
            serde_json::from_str(&key_pair([1; 32], Some([2; 32]))).unwrap();
        assert_eq!(value["preshared_key"], BASE64_STANDARD.encode([2; 32]));
    }

    fn bytes(hex: &str) -> [u8; 32] {
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
    }
}
