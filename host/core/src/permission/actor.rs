//! Who is asking, by a name that permissions can hold.

use std::fmt;

use uuid::Uuid;

/// The longest actor, in characters.
pub const ACTOR_CHARACTERS_MAX: usize = 255;

/// How the names of those who can log in begin; an id comes after it.
pub const ACTOR_KINDS: [&str; 3] = [CLIENT, USER, APPLICATION];

const CLIENT: &str = "uaa-client:";
const USER: &str = "uaa-user:";
const APPLICATION: &str = "mtls-app:";

/// Who is asking, as permissions name it: `uaa-client:<client id>`, `uaa-user:<user id>`, `mtls-app:<application id>`, or
/// whatever else a permission is given to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Actor(String);

impl Actor {
    /// A client of the identity provider, which acts for itself.
    ///
    /// # Errors
    /// When there is no client id, or it is too long.
    pub fn client(client_id: &str) -> Result<Self, ActorMalformed> {
        Self::of_kind(CLIENT, client_id)
    }

    /// A user of the identity provider, by the id that never changes.
    ///
    /// # Errors
    /// When there is no user id, or it is too long.
    pub fn user(user_id: &str) -> Result<Self, ActorMalformed> {
        Self::of_kind(USER, user_id)
    }

    /// An application with a certificate of its own.
    #[must_use]
    pub fn application(application_id: Uuid) -> Self {
        Self(format!("{APPLICATION}{application_id}"))
    }

    /// An actor as a permission names it. Any text will do that every database can hold: it need not be one that can log in.
    ///
    /// # Errors
    /// When it is empty, longer than [`ACTOR_CHARACTERS_MAX`], or holds U+0000.
    pub fn parse(text: &str) -> Result<Self, ActorMalformed> {
        if text.is_empty() {
            return Err(ActorMalformed::Missing);
        }
        if text.chars().count() > ACTOR_CHARACTERS_MAX {
            return Err(ActorMalformed::TooLong);
        }
        if text.contains('\0') {
            return Err(ActorMalformed::Character);
        }
        Ok(Self(text.to_owned()))
    }

    /// An actor that is already stored and was parsed when it was.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// An actor as a caller looks for it: not checked, since nobody whose name is malformed has a permission.
    #[must_use]
    pub fn of_lookup(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The actor's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a caller can be this actor: one of [`ACTOR_KINDS`], and an id. A permission of any other is nobody's.
    #[must_use]
    pub fn can_log_in(&self) -> bool {
        ACTOR_KINDS
            .iter()
            .filter_map(|kind| self.0.strip_prefix(kind))
            .any(|id| !id.trim().is_empty())
    }

    fn of_kind(kind: &str, id: &str) -> Result<Self, ActorMalformed> {
        if id.is_empty() {
            return Err(ActorMalformed::Missing);
        }
        Self::parse(&format!("{kind}{id}"))
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Which rule of an actor a text breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActorMalformed {
    /// It holds U+0000, which the texts of PostgreSQL can't.
    #[error("an actor must not hold the character U+0000")]
    Character,
    /// There is none.
    #[error("an actor is required")]
    Missing,
    /// It is longer than [`ACTOR_CHARACTERS_MAX`].
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
    fn an_actor_is_any_text_but_without_the_null_character() {
        for text in ["a", "uaa-client:app", "\u{1}", "ä b"] {
            assert_eq!(Actor::parse(text).unwrap().as_str(), text);
        }
        assert_eq!(Actor::parse("a\0b"), Err(ActorMalformed::Character));
        assert_eq!(Actor::client("\0"), Err(ActorMalformed::Character));
    }

    #[test]
    fn those_can_log_in_who_are_of_a_kind_and_have_an_id() {
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
    fn an_actor_is_a_text_of_at_most_255_characters() {
        assert_eq!(Actor::parse(""), Err(ActorMalformed::Missing));
        assert_eq!(Actor::client(""), Err(ActorMalformed::Missing));
        assert!(Actor::parse(&"ä".repeat(255)).is_ok());
        assert_eq!(Actor::parse(&"ä".repeat(256)), Err(ActorMalformed::TooLong));
    }
}
