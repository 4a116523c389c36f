//! The authenticated identity of a caller.

use keywright_core::{authorization::Authentication, permission::Actor};

/// The authenticated identity of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The actor in permissions.
    pub(super) actor: Actor,
    /// The method of authentication.
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
