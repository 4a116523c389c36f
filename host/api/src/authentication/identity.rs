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
    /// The identity of a token whose actor is known.
    pub(super) fn of_token(actor: Actor) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        let subject = id.to_owned();
        Self {
            authentication: Authentication::Token { subject },
            actor,
        }
    }
}
