//! A token taken apart: what it says before anybody has looked at its signature.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{
    TokenRefused,
    verification_key::{SignatureAlgorithm, VerificationKey},
};

/// A JWS in its compact form (RFC 7515, section 7.1), not checked yet.
pub(super) struct SignedToken<'a> {
    message: &'a str,
    payload: &'a str,
    signature: Vec<u8>,
    algorithm: SignatureAlgorithm,
    key_id: Option<String>,
}

/// Which key a token says that it was signed with.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyWanted<'a> {
    /// The key's name, if the token has one.
    pub(super) id: Option<&'a str>,
    /// What the key must be for.
    pub(super) algorithm: SignatureAlgorithm,
}

impl<'a> SignedToken<'a> {
    /// Takes a token apart: three parts in base64url without padding, of which the first is a header that asks for nothing
    /// but what is done here. What the header says of keys (`jku`, `jwk`, `x5u`, `x5c`) is not looked at: keys come from
    /// the configuration and from the trusted provider alone.
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn parse(token: &'a str) -> Result<Self, TokenRefused> {
        let malformed = TokenRefused::Invalid("it is malformed");
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

    /// Which key it says that it was signed with.
    pub(super) fn key_wanted(&self) -> KeyWanted<'_> {
        KeyWanted {
            id: self.key_id.as_deref(),
            algorithm: self.algorithm,
        }
    }

    /// Whether this key signed it, in the way that the key is for.
    pub(super) fn is_signed_by(&self, key: &VerificationKey) -> bool {
        key.algorithm() == self.algorithm && key.has_signed(self.message, &self.signature)
    }

    /// What it claims: a JSON object by the rules of [`keywright_json::check`].
    ///
    /// # Errors
    /// [`TokenRefused::Invalid`].
    pub(super) fn claims(&self) -> Result<Map<String, Value>, TokenRefused> {
        decode_object(self.payload).ok_or(TokenRefused::Invalid(
            "its payload is no object, or names a claim twice",
        ))
    }
}

fn algorithm(header: &Map<String, Value>) -> Result<SignatureAlgorithm, TokenRefused> {
    header
        .get("alg")
        .and_then(Value::as_str)
        .and_then(SignatureAlgorithm::named)
        .ok_or(TokenRefused::Invalid(
            "its algorithm is neither RS256 nor ES256",
        ))
}

/// Refuses what would make the token mean something else: critical extensions (`crit`), a payload that is not claims but a
/// further document, as in a nested token (`cty`), and a type of token that is for another use (`typ`; RFC 8725, section
/// 3.11), as a proof or a logout token is.
fn refuse_extensions(header: &Map<String, Value>) -> Result<(), TokenRefused> {
    if header.contains_key("crit") {
        return Err(TokenRefused::Invalid("it asks for extensions"));
    }
    if header.contains_key("cty") {
        return Err(TokenRefused::Invalid("its payload is a further document"));
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
        Err(TokenRefused::Invalid("it is a token for another use"))
    }
}

fn key_id(header: &Map<String, Value>) -> Result<Option<String>, TokenRefused> {
    match header.get("kid") {
        None => Ok(None),
        Some(Value::String(key_id)) => Ok(Some(key_id.clone())),
        Some(_) => Err(TokenRefused::Invalid("its key id is no text")),
    }
}

fn decode_object(part: &str) -> Option<Map<String, Value>> {
    keywright_json::read_bytes(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// The types of token that are taken (RFC 7519, section 5.1; RFC 9068, section 2.1), in any casing.
const TYPES: [&str; 4] = ["JWT", "application/jwt", "at+jwt", "application/at+jwt"];
