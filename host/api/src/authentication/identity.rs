//! Who is asking, and how that was proved.

use keywright_core::{authorization::Authentication, permission::Actor};

/// Who is asking, and how that was proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// As whom permissions know the caller.
    pub(super) actor: Actor,
    /// By what it was proved.
    pub(super) authentication: Authentication,
}

impl Identity {
    /// The identity of a token that is good. One that does not name its subject has the client's or user's id as such.
    pub(super) fn of_token(actor: Actor, subject: Option<&str>) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        let subject = subject.unwrap_or(id).to_owned();
        Self {
            authentication: Authentication::Token { subject },
            actor,
        }
    }
}
