//! The identity of a caller, and its encoding in a client certificate.
//!
//! The listener has verified the certificate's chain, its validity, and that the client has its key. This module determines the
//! identity, and checks that the certificate is for client authentication and has not expired since the connection was opened.

use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use keywright_core::{
    authorization::Authentication, certificate::ClientCertificateFacts, permission::Actor,
};
use strum::IntoStaticStr;
use uuid::Uuid;

use crate::{measure::authentication_failed, response::ApiError};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) actor: Actor,
    pub(super) authentication: Authentication,
}

impl Identity {
    /// Creates the identity of a valid token. Without a subject, the client's or user's id is the subject.
    pub(super) fn of_token(actor: Actor, subject: Option<&str>) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        let subject = subject.unwrap_or(id).to_owned();
        Self {
            authentication: Authentication::Token { subject },
            actor,
        }
    }
}

/// The reason to reject a client certificate, even if the request also has a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum ClientCertificateError {
    /// The organizational units contain different identities.
    Ambiguous,
    /// The certificate or a CA in its chain has expired since the connection was opened.
    Expired,
    /// No organizational unit contains an identity.
    NoIdentity,
    /// The certificate is not for client authentication.
    Purpose,
}

/// Returns the identity in a certificate, from its organizational unit of the form `app:<version 4 UUID>`.
pub(super) fn identity_in(
    certificate: &ClientCertificateFacts,
    now: DateTime<Utc>,
) -> Result<Identity, ClientCertificateError> {
    if !certificate.is_for_client_authentication {
        return Err(ClientCertificateError::Purpose);
    }
    if now.timestamp() > certificate.expires_at.timestamp() {
        return Err(ClientCertificateError::Expired);
    }
    let units = certificate.organization_units.iter();
    let mut identities = units.filter_map(|unit| Some((unit, application_id(unit)?)));
    let (unit, id) = identities
        .next()
        .ok_or(ClientCertificateError::NoIdentity)?;
    if identities.any(|(_, other)| other != id) {
        return Err(ClientCertificateError::Ambiguous);
    }
    Ok(Identity {
        actor: Actor::application(id),
        authentication: Authentication::ClientCertificate {
            subject: unit.clone(),
        },
    })
}

/// Returns the id in an organizational unit of exactly the form `app:<version 4 UUID>` (RFC 9562), in lower case. The variant is
/// not checked, as on the platforms that issue such certificates.
fn application_id(unit: &str) -> Option<Uuid> {
    let text = unit.strip_prefix("app:")?;
    let has_form = text.len() == UUID_FORM.len()
        && text.bytes().zip(UUID_FORM).all(|(digit, form)| match form {
            b'x' => matches!(digit, b'0'..=b'9' | b'a'..=b'f'),
            fixed => digit == *fixed,
        });
    has_form.then(|| Uuid::try_parse(text).ok()).flatten()
}

impl IntoResponse for ClientCertificateError {
    fn into_response(self) -> Response {
        tracing::debug!(reason = ?self, "rejected client certificate");
        authentication_failed("client_certificate", self.into());
        ApiError::unidentified(match self {
            Self::Ambiguous => "the client certificate contains more than one identity",
            Self::Expired => {
                "the client certificate or a CA in its chain has expired since the connection was opened"
            }
            Self::NoIdentity => {
                "the client certificate provides no valid identity: one of its organizational units must be app: followed by a \
                 version 4 UUID in lower case"
            }
            Self::Purpose => {
                "the client certificate is not meant for client use: its extended key usage must include client \
                 authentication"
            }
        })
        .into_response()
    }
}

/// An `x` is a hexadecimal digit in lower case; other characters are literal.
const UUID_FORM: &[u8; 36] = b"xxxxxxxx-xxxx-4xxx-xxxx-xxxxxxxxxxxx";

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn a_certificate_is_valid_through_its_last_second() {
        let unit = "app:0d8c5e9e-0a0f-4f9d-8b1f-2c1f0f1d3a55".to_owned();
        let expires_at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let certificate = ClientCertificateFacts {
            organization_units: vec![unit.clone()],
            is_for_client_authentication: true,
            expires_at,
        };
        for (milliseconds, is_good) in [(-1, true), (0, true), (999, true), (1_000, false)] {
            let now = expires_at + TimeDelta::milliseconds(milliseconds);
            let actor = identity_in(&certificate, now).map(|identity| identity.actor.to_string());
            let expired = Err(ClientCertificateError::Expired);
            let expected = if is_good {
                Ok(format!("mtls-{unit}"))
            } else {
                expired
            };
            assert_eq!(actor, expected, "{milliseconds}");
        }
    }
}
