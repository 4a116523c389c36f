//! A parsed token, before its signature is verified.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{
    TokenRefused,
    verification_key::{SignatureAlgorithm, VerificationKey},
};

/// A JWS in compact form (RFC 7515, section 7.1), not verified yet.
pub(super) struct SignedToken<'a> {
    message: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
    algorithm: SignatureAlgorithm,
    key_id: Option<String>,
}

/// The key that a token's header refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyWanted<'a> {
    /// The key's id, if the header has one.
    pub(super) id: Option<&'a str>,
    /// The algorithm of the key.
    pub(super) algorithm: SignatureAlgorithm,
}

impl<'a> SignedToken<'a> {
    /// Parses a token: three parts in base64url without padding, the first of which is a header with only supported features.
    /// Keys in the header (`jku`, `jwk`, `x5u`, `x5c`) are ignored: keys come only from the configuration and the trusted
    /// provider.
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenRefused> {
        let malformed = TokenRefused::Invalid("malformed");
        let (message, signature) = token.rsplit_once('.').ok_or(malformed.clone())?;
        let (header, payload) = message
            .split_once('.')
            .filter(|(_, payload)| !payload.contains('.'))
            .ok_or(malformed.clone())?;
        let header = decode_object(header).ok_or(malformed.clone())?;
        let algorithm = algorithm(&header)?;
        refuse_extensions(&header)?;
        Ok(Self {
            message,
            payload,
            signature: URL_SAFE_NO_PAD.decode(signature).map_err(|_| malformed)?,
            algorithm,
            key_id: key_id(&header)?,
        })
    }

    /// Returns the key that the header refers to.
    pub(super) fn key_wanted(&self) -> KeyWanted<'_> {
        KeyWanted {
            id: self.key_id.as_deref(),
            algorithm: self.algorithm,
        }
    }

    /// Returns whether the signature is valid for this key and its algorithm.
    pub(super) fn is_signed_by(&self, key: &VerificationKey) -> bool {
        key.algorithm() == self.algorithm && key.has_signed(self.message, &self.signature)
    }

    /// Parses the claims: a JSON object, with the checks of [`keywright_json::check`].
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn claims(&self) -> Result<Map<String, Value>, TokenRefused> {
        decode_object(self.payload).ok_or(TokenRefused::Invalid(
            "payload is not an object, or has duplicate claims",
        ))
    }
}

fn algorithm(header: &Map<String, Value>) -> Result<SignatureAlgorithm, TokenRefused> {
    header
        .get("alg")
        .and_then(Value::as_str)
        .and_then(SignatureAlgorithm::named)
        .ok_or(TokenRefused::Invalid(
            "algorithm is neither RS256 nor ES256",
        ))
}

/// Rejects headers that change the meaning of the token: critical extensions (`crit`), nested tokens (`cty`), and token types for
/// other uses, such as proofs or logout tokens (`typ`; RFC 8725, section 3.11).
fn refuse_extensions(header: &Map<String, Value>) -> Result<(), TokenRefused> {
    if header.contains_key("crit") {
        return Err(TokenRefused::Invalid(
            "critical extensions are not supported",
        ));
    }
    if header.contains_key("cty") {
        return Err(TokenRefused::Invalid("nested tokens are not supported"));
    }
    let Some(token_type) = header.get("typ") else {
        return Ok(());
    };
    let is_known = token_type.as_str().is_some_and(|token_type| {
        TYPES
            .iter()
            .any(|known| token_type.eq_ignore_ascii_case(known))
    });
    if is_known {
        Ok(())
    } else {
        Err(TokenRefused::Invalid("wrong token type"))
    }
}

fn key_id(header: &Map<String, Value>) -> Result<Option<String>, TokenRefused> {
    match header.get("kid") {
        None => Ok(None),
        Some(Value::String(key_id)) => Ok(Some(key_id.clone())),
        Some(_) => Err(TokenRefused::Invalid("key id is not a string")),
    }
}

fn decode_object(part: &str) -> Option<Map<String, Value>> {
    keywright_json::read_bytes(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// The accepted token types (RFC 7519, section 5.1; RFC 9068, section 2.1); not case-sensitive.
const TYPES: [&str; 4] = ["JWT", "application/jwt", "at+jwt", "application/at+jwt"];
