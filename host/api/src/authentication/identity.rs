//! Who is asking, and how that was proved.

use super::Actor;

/// Who is asking, and how that was proved. It is in the extensions of every request that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// As whom permissions know the caller.
    pub actor: Actor,
    /// By what it was proved.
    pub method: AuthenticationMethod,
    /// What the proof itself calls the caller: the id of a token's client or user, or a certificate's Organization Unit.
    pub subject: String,
}

/// By what a caller proves an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthenticationMethod {
    /// A token in the `Authorization` header.
    BearerToken,
    /// A client certificate.
    MutualTls,
}

impl Identity {
    /// The identity of a token whose actor is known.
    pub(super) fn of_token(actor: Actor) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        Self {
            subject: id.to_owned(),
            method: AuthenticationMethod::BearerToken,
            actor,
        }
    }
}
