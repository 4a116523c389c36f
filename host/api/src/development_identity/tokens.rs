//! Creates and parses tokens, and stores revoked logins.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use jsonwebtoken::{
    Algorithm, DecodingKey, EncodingKey, Header, TokenData, Validation, decode, encode,
    jwk::{AlgorithmParameters, Jwk, PublicKeyUse, ThumbprintHash},
};
use keywright_core::Secret;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::authentication::VerificationKey;

pub(super) struct TokenSigner {
    issuer: String,
    jwk: Jwk,
    signing_key: EncodingKey,
    decoding_key: DecodingKey,
    verification_key: VerificationKey,
}

/// The signing key is invalid.
#[derive(Debug, thiserror::Error)]
#[error("the signing key must be an RSA private key of at least 2048 bits, in PEM")]
pub struct SigningKeyError;

#[derive(Serialize)]
pub(super) struct AccessClaims<'a> {
    pub(super) jti: String,
    pub(super) sub: &'a str,
    pub(super) iat: i64,
    pub(super) exp: i64,
    pub(super) aud: [&'a str; 1],
    pub(super) grant_type: &'a str,
    pub(super) client_id: &'a str,
    pub(super) scope: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_name: Option<&'a str>,
}

/// The claims of an ID token (OIDC Core 1.0, section 2).
#[derive(Serialize)]
pub(super) struct IdClaims<'a> {
    pub(super) sub: String,
    pub(super) aud: &'a str,
    pub(super) iat: i64,
    pub(super) exp: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) nonce: Option<&'a str>,
}

/// The claims of a refresh token. The type in its header differs from the types of access tokens, so no server accepts it as an
/// access token.
#[derive(Serialize, Deserialize)]
pub(super) struct RefreshClaims {
    pub(super) jti: String,
    pub(super) iat: i64,
    pub(super) exp: i64,
    pub(super) client_id: String,
    pub(super) user_id: Uuid,
    pub(super) scope: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct SessionClaims {
    pub(super) jti: String,
}

/// A login; the ids of its tokens start with the login's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Session(pub(super) Uuid);

#[derive(Serialize)]
struct Signed<'a, T> {
    iss: &'a str,
    #[serde(flatten)]
    claims: &'a T,
}

impl Session {
    pub(super) fn begin() -> Self {
        Self(Uuid::new_v4())
    }

    pub(super) fn of_token_id(token_id: &str) -> Option<Self> {
        token_id
            .get(..UUID_CHARACTERS)
            .and_then(|session| Uuid::try_parse(session).ok())
            .map(Self)
    }

    pub(super) fn access_token_id(self) -> String {
        format!("{}-{}", self.0, Uuid::new_v4().simple())
    }

    pub(super) fn refresh_token_id(self) -> String {
        format!("{}-r", self.0)
    }
}

impl TokenSigner {
    pub(super) fn new(signing_key_pem: &Secret, issuer: String) -> Result<Self, SigningKeyError> {
        let signing_key = EncodingKey::from_rsa_pem(signing_key_pem.expose().as_bytes())
            .map_err(|_| SigningKeyError)?;
        let mut jwk =
            Jwk::from_encoding_key(&signing_key, Algorithm::RS256).map_err(|_| SigningKeyError)?;
        let key_id = jwk.thumbprint(ThumbprintHash::SHA256);
        jwk.common.key_id = Some(key_id.map_err(|_| SigningKeyError)?);
        jwk.common.public_key_use = Some(PublicKeyUse::Signature);
        let AlgorithmParameters::RSA(public) = &jwk.algorithm else {
            return Err(SigningKeyError);
        };
        Ok(Self {
            issuer,
            decoding_key: DecodingKey::from_jwk(&jwk).map_err(|_| SigningKeyError)?,
            verification_key: VerificationKey::of_rsa_components(&public.n, &public.e)
                .map_err(|_| SigningKeyError)?,
            jwk,
            signing_key,
        })
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    pub(super) fn verification_key(&self) -> &VerificationKey {
        &self.verification_key
    }

    pub(super) fn published_keys(&self) -> Value {
        json!({"keys": [self.jwk]})
    }

    pub(super) fn sign<T: Serialize>(
        &self,
        token_type: &str,
        claims: &T,
    ) -> Result<String, jsonwebtoken::errors::Error> {
        let header = Header {
            typ: Some(token_type.to_owned()),
            kid: self.jwk.common.key_id.clone(),
            ..Header::new(Algorithm::RS256)
        };
        let signed = Signed {
            iss: &self.issuer,
            claims,
        };
        encode(&header, &signed, &self.signing_key)
    }

    pub(super) fn read_refresh_token(
        &self,
        token: &str,
        now: DateTime<Utc>,
    ) -> Option<RefreshClaims> {
        let TokenData { header, claims } = self.read::<RefreshClaims>(token)?;
        let is_valid = header.typ.as_deref() == Some(REFRESH_TOKEN) && claims.exp > now.timestamp();
        is_valid.then_some(claims)
    }

    /// Returns a token of this issuer, even if it has expired.
    pub(super) fn read<T: DeserializeOwned>(&self, token: &str) -> Option<TokenData<T>> {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.set_required_spec_claims(&["iss"]);
        validation.set_issuer(&[&self.issuer]);
        validation.validate_exp = false;
        validation.validate_aud = false;
        decode(token, &self.decoding_key, &validation).ok()
    }
}

/// The revoked logins. Each is stored until it expires.
#[derive(Default)]
pub(super) struct RevokedSessions(Mutex<HashMap<Uuid, i64>>);

impl RevokedSessions {
    /// Revokes a login that expires at `ends_at_seconds`. Both times are in seconds since 1970.
    pub(super) fn revoke(&self, session: Uuid, ends_at_seconds: i64, now_seconds: i64) {
        let mut revoked = self.0.lock();
        revoked.retain(|_, ends_at_seconds| *ends_at_seconds >= now_seconds);
        revoked.insert(session, ends_at_seconds);
    }

    pub(super) fn contains(&self, session: Uuid) -> bool {
        self.0.lock().contains_key(&session)
    }
}

/// The type of access tokens and ID tokens, in their headers.
pub(super) const TOKEN: &str = "JWT";

/// The type of refresh tokens, in their headers.
pub(super) const REFRESH_TOKEN: &str = "refresh+jwt";

const UUID_CHARACTERS: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revoked_login_is_stored_until_its_expiry() {
        let revoked = RevokedSessions::default();
        let (early, late) = (Uuid::from_u128(1), Uuid::from_u128(2));
        revoked.revoke(early, 100, 10);
        assert!(revoked.contains(early) && !revoked.contains(late));
        revoked.revoke(late, 200, 101);
        assert!(!revoked.contains(early) && revoked.contains(late));
    }
}
