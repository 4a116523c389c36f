//! The path of a permission: one name, or all names below a path.

use std::fmt;

use crate::credential::{CredentialName, LookupName, NAME_CHARACTERS_MAX, NameError};

/// The maximum length of a permission's path, in characters, including its slash and asterisk.
pub const PERMISSION_PATH_CHARACTERS_MAX: usize = NAME_CHARACTERS_MAX;

/// The full name of one credential, or a path that ends in `/*` and covers all names below it, at any depth. Case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermissionPath(String);

impl PermissionPath {
    /// Parses a path. Prepends a missing leading slash.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let with_slash = if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("/{text}")
        };
        if with_slash.chars().count() > PERMISSION_PATH_CHARACTERS_MAX {
            return Err(PathError::TooLong);
        }
        if with_slash == EVERYTHING {
            return Ok(Self(with_slash));
        }
        let name = with_slash.strip_suffix(BELOW).unwrap_or(&with_slash);
        CredentialName::parse(name).map_err(PathError::of)?;
        Ok(Self(with_slash))
    }

    /// Wraps a stored path without checking it.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the path for a lookup, without checking it. A malformed path matches no permission.
    #[must_use]
    pub fn of_lookup(name: &LookupName) -> Self {
        Self(name.requested().to_owned())
    }

    /// Returns the form in which permissions are evaluated.
    #[must_use]
    pub fn lookup(&self) -> LookupName {
        LookupName::new(&self.0)
    }

    /// Returns the path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the paths of all permissions that can cover a name or a path: itself and each enclosing path, nearest first.
    /// Paths longer than [`PERMISSION_PATH_CHARACTERS_MAX`] are omitted, which bounds the number of paths for any name.
    #[must_use]
    pub fn covering(name: &str) -> Vec<Self> {
        let enclosing = Self::enclosing_each(name)
            .map(|path| format!("{path}{BELOW}"))
            .filter(|path| path != name);
        let itself = (name.len() <= PERMISSION_PATH_CHARACTERS_MAX).then(|| name.to_owned());
        itself.into_iter().chain(enclosing).map(Self).collect()
    }

    /// Returns the path without its slash and asterisk, or `None` if it is a name.
    pub(crate) fn enclosing(&self) -> Option<&str> {
        self.0.strip_suffix(BELOW)
    }

    /// Returns the enclosing paths of a name without their slash and asterisk, as [`PermissionPath::enclosing`] does, nearest
    /// first. Paths longer than [`PERMISSION_PATH_CHARACTERS_MAX`] are omitted.
    pub(crate) fn enclosing_each(name: &str) -> impl Iterator<Item = &str> {
        name.rmatch_indices('/')
            .filter(|(slash, _)| slash + BELOW.len() <= PERMISSION_PATH_CHARACTERS_MAX)
            .filter_map(|(slash, _)| name.get(..slash))
    }
}

impl fmt::Display for PermissionPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The rule that a path breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The path has a character outside the allowed set, or an asterisk that is not the last segment.
    #[error(
        "a path may contain only letters, digits, the characters _ - / . : ( ) [ ], and an asterisk as its last segment"
    )]
    Character,
    /// The path is empty.
    #[error("a path is required")]
    Missing,
    /// The path has a doubled or a trailing slash.
    #[error("a path must not end with a slash or contain two in a row")]
    Slashes,
    /// The path is longer than [`PERMISSION_PATH_CHARACTERS_MAX`].
    #[error(
        "a path may have at most {PERMISSION_PATH_CHARACTERS_MAX} characters, including its leading slash"
    )]
    TooLong,
}

impl PathError {
    fn of(name: NameError) -> Self {
        match name {
            NameError::Character => Self::Character,
            NameError::Missing => Self::Missing,
            NameError::Slashes => Self::Slashes,
            NameError::TooLong => Self::TooLong,
        }
    }
}

const BELOW: &str = "/*";

const EVERYTHING: &str = BELOW;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asterisk_is_only_allowed_as_the_last_segment() {
        for (text, path) in [
            ("*", "/*"),
            ("/*", "/*"),
            ("a/*", "/a/*"),
            ("/a/b/*", "/a/b/*"),
            ("a", "/a"),
            ("/A/b", "/A/b"),
        ] {
            assert_eq!(PermissionPath::parse(text).unwrap().as_str(), path);
        }
        for (text, rule) in [
            ("", PathError::Missing),
            ("/", PathError::Missing),
            ("/a*", PathError::Character),
            ("/a/*/b", PathError::Character),
            ("/a/**", PathError::Character),
            ("/*/*", PathError::Character),
            ("/a b", PathError::Character),
            ("/a/", PathError::Slashes),
            ("//", PathError::Slashes),
            ("//*", PathError::Missing),
            ("/a//*", PathError::Slashes),
        ] {
            assert_eq!(PermissionPath::parse(text), Err(rule), "{text}");
        }
    }

    #[test]
    fn a_path_has_at_most_255_characters() {
        let longest = format!("/{}/*", "a".repeat(252));
        assert!(PermissionPath::parse(&longest).is_ok());
        let longer = format!("/{}/*", "a".repeat(253));
        assert_eq!(PermissionPath::parse(&longer), Err(PathError::TooLong));
    }

    #[test]
    fn covering_paths_are_the_name_and_each_enclosing_path() {
        for (name, paths) in [
            ("/a/b/c", &["/a/b/c", "/a/b/*", "/a/*", "/*"][..]),
            ("/a", &["/a", "/*"]),
            ("/a/*", &["/a/*", "/*"]),
            ("/*", &["/*"]),
        ] {
            let covering = PermissionPath::covering(name);
            let covering: Vec<_> = covering.iter().map(PermissionPath::as_str).collect();
            assert_eq!(covering, paths);
        }
    }

    #[test]
    fn covering_paths_are_bounded_for_names_with_many_slashes() {
        let covering = PermissionPath::covering(&"/".repeat(60_000));
        assert_eq!(covering.len(), PERMISSION_PATH_CHARACTERS_MAX - 1);
        let longest = format!("/a/{}", "b".repeat(PERMISSION_PATH_CHARACTERS_MAX - 3));
        assert_eq!(PermissionPath::covering(&longest).len(), 3);
        let longer = format!("{longest}b");
        let covering = PermissionPath::covering(&longer);
        let covering: Vec<_> = covering.iter().map(PermissionPath::as_str).collect();
        assert_eq!(covering, ["/a/*", "/*"]);
    }
}
