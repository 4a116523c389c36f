//! The actor of a request or a permission.

use std::{fmt, sync::Arc};

use uuid::Uuid;

/// The maximum length of an actor, in characters.
pub const ACTOR_CHARACTERS_MAX: usize = 255;

/// The prefixes of actors that can authenticate. An id follows the prefix.
pub const ACTOR_KINDS: [&str; 3] = [CLIENT, USER, APPLICATION];

const CLIENT: &str = "uaa-client:";
const USER: &str = "uaa-user:";
const APPLICATION: &str = "mtls-app:";

/// The actor of a request or a permission: `uaa-client:<client id>`, `uaa-user:<user id>`, `mtls-app:<application id>`, or
/// any other text that a permission names. Clones share the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(Arc<str>);

impl Actor {
    /// Returns the actor for a client of the identity provider that acts for itself.
    pub fn client(client_id: &str) -> Result<Self, ActorError> {
        Self::of_kind(CLIENT, client_id)
    }

    /// Returns the actor for a user of the identity provider, by its immutable id.
    pub fn user(user_id: &str) -> Result<Self, ActorError> {
        Self::of_kind(USER, user_id)
    }

    /// Returns the actor for an application that authenticates with a certificate.
    #[must_use]
    pub fn application(application_id: Uuid) -> Self {
        Self(format!("{APPLICATION}{application_id}").into())
    }

    /// Parses the actor of a permission. It need not be able to authenticate.
    pub fn parse(text: &str) -> Result<Self, ActorError> {
        if text.is_empty() {
            return Err(ActorError::Missing);
        }
        if text.chars().count() > ACTOR_CHARACTERS_MAX {
            return Err(ActorError::TooLong);
        }
        if text.contains('\0') {
            return Err(ActorError::Character);
        }
        Ok(Self(text.into()))
    }

    /// Wraps a stored actor without checking it.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text.into())
    }

    /// Returns the actor for a lookup, without checking it. A malformed actor matches no permission.
    #[must_use]
    pub fn of_lookup(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the actor's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a caller can log in as this actor: it must be one of [`ACTOR_KINDS`] followed by an id. Permissions of
    /// other actors have no effect.
    #[must_use]
    pub fn can_log_in(&self) -> bool {
        ACTOR_KINDS
            .iter()
            .filter_map(|kind| self.0.strip_prefix(kind))
            .any(|id| !id.trim().is_empty())
    }

    fn of_kind(kind: &str, id: &str) -> Result<Self, ActorError> {
        if id.is_empty() {
            return Err(ActorError::Missing);
        }
        Self::parse(&format!("{kind}{id}"))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The rule for actors that a text breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActorError {
    /// The actor contains U+0000, which PostgreSQL can't store in text columns.
    #[error("an actor must not contain the character U+0000")]
    Character,
    /// The actor is empty.
    #[error("an actor is required")]
    Missing,
    /// The actor is longer than [`ACTOR_CHARACTERS_MAX`].
    #[error("an actor may have at most {ACTOR_CHARACTERS_MAX} characters")]
    TooLong,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_actor_has_its_prefix() {
        assert_eq!(Actor::client("app").unwrap().as_str(), "uaa-client:app");
        assert_eq!(Actor::user("7").unwrap().as_str(), "uaa-user:7");
        assert_eq!(
            Actor::application(Uuid::nil()).as_str(),
            "mtls-app:00000000-0000-0000-0000-000000000000"
        );
    }

    #[test]
    fn an_actor_is_any_text_without_the_null_character() {
        for text in ["a", "uaa-client:app", "\u{1}", "ä b"] {
            assert_eq!(Actor::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(Actor::parse("a\0b"), Err(ActorError::Character));
        assert_eq!(Actor::client("\0"), Err(ActorError::Character));
    }

    #[test]
    fn actors_with_a_known_prefix_and_an_id_can_log_in() {
        for actor in ["uaa-client:a", "uaa-user:7", "mtls-app:a", "uaa-client:a:b"] {
            assert!(Actor::of_lookup(actor).can_log_in(), "{actor}");
        }
        for actor in [
            "",
            "a",
            "uaa-client",
            "uaa-client:",
            "uaa-user: ",
            "UAA-USER:7",
            "mtls:a",
        ] {
            assert!(!Actor::of_lookup(actor).can_log_in(), "{actor}");
        }
    }

    #[test]
    fn an_actor_has_1_to_255_characters() {
        assert_eq!(Actor::parse(""), Err(ActorError::Missing));
        assert_eq!(Actor::client(""), Err(ActorError::Missing));
        assert!(Actor::parse(&"ä".repeat(255)).is_ok());
        assert_eq!(Actor::parse(&"ä".repeat(256)), Err(ActorError::TooLong));
    }
}
