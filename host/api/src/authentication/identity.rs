//! Who is asking, and how that was proved.

use super::Actor;

/// Who is asking, and how that was proved. It is in the extensions of every request that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// As whom permissions know the caller.
    pub actor: Actor,
    /// By what it was proved.
    pub method: AuthenticationMethod,
    /// What the proof itself calls the caller: a token's subject, or a certificate's Organization Unit.
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
    /// The identity of a token that is good. One that does not name its subject has the client's or user's id as such.
    pub(super) fn of_token(actor: Actor, subject: Option<&str>) -> Self {
        let (_, id) = actor.as_str().split_once(':').unwrap_or_default();
        Self {
            subject: subject.unwrap_or(id).to_owned(),
            method: AuthenticationMethod::BearerToken,
            actor,
        }
    }
}
