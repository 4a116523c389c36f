//! What a permission is about: one name, or all names below a path.

use std::fmt;

use crate::credential::{CredentialName, LookupName, NAME_CHARACTERS_MAX, NameMalformed};

/// The longest path of a permission, in characters, its slash and asterisk included.
pub const PERMISSION_PATH_CHARACTERS_MAX: usize = NAME_CHARACTERS_MAX;

/// The full name of one credential, or a path that ends in `/*`: all names below it, however deep. Casing counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PermissionPath(String);

impl PermissionPath {
    /// Parses a path; a leading slash is prepended when it is absent.
    ///
    /// # Errors
    /// Which rule of a path the text breaks.
    pub fn parse(text: &str) -> Result<Self, PathMalformed> {
        let with_slash = if text.starts_with('/') {
            text.to_owned()
        } else {
            format!("/{text}")
        };
        if with_slash.chars().count() > PERMISSION_PATH_CHARACTERS_MAX {
            return Err(PathMalformed::TooLong);
        }
        if with_slash == EVERYTHING {
            return Ok(Self(with_slash));
        }
        let name = with_slash.strip_suffix(BELOW).unwrap_or(&with_slash);
        CredentialName::parse(name).map_err(PathMalformed::of)?;
        Ok(Self(with_slash))
    }

    /// A path that is already stored and was parsed when it was.
    #[must_use]
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// A path as a caller looks for it: not checked, since on a malformed path there is simply nothing.
    #[must_use]
    pub fn of_lookup(asked: &LookupName) -> Self {
        Self(asked.asked().to_owned())
    }

    /// The form in which rules are asked about the path.
    #[must_use]
    pub fn lookup(&self) -> LookupName {
        LookupName::new(&self.0)
    }

    /// The path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The paths of all permissions that are about a name, or about a path: itself, and each that encloses it, the nearest
    /// first. There are no others: what a permission covers is a question of equal texts. Those that are longer than any
    /// permission's path are left out, so that there are few, whatever the name is.
    #[must_use]
    pub fn covering(name: &str) -> Vec<Self> {
        let enclosing = Self::enclosing_each(name)
            .map(|path| format!("{path}{BELOW}"))
            .filter(|path| path != name);
        let itself = (name.len() <= PERMISSION_PATH_CHARACTERS_MAX).then(|| name.to_owned());
        itself.into_iter().chain(enclosing).map(Self).collect()
    }

    /// What all the names have in common that this path covers: the path without its slash and asterisk; none when it is a
    /// name itself.
    pub(crate) fn enclosing(&self) -> Option<&str> {
        self.0.strip_suffix(BELOW)
    }

    /// The beginnings of a name that stand in [`PermissionPath::enclosing`] of the paths that cover it, the nearest first.
    /// Beginnings that are longer than any permission's path are left out.
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

/// Which rule of a permission's path a text breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathMalformed {
    /// It has a character outside the allowed set, or an asterisk that is not the last segment.
    #[error(
        "a path may hold letters, digits and the characters _ - / . : ( ) [ ], and an asterisk as its last segment alone"
    )]
    Character,
    /// There is none.
    #[error("a path is required")]
    Missing,
    /// It has a doubled or a trailing slash.
    #[error("a path must not end with a slash or hold two in a row")]
    Slashes,
    /// It is longer than [`PERMISSION_PATH_CHARACTERS_MAX`].
    #[error(
        "a path may have at most {PERMISSION_PATH_CHARACTERS_MAX} characters, its leading slash included"
    )]
    TooLong,
}

impl PathMalformed {
    fn of(name: NameMalformed) -> Self {
        match name {
            NameMalformed::Character => Self::Character,
            NameMalformed::Missing => Self::Missing,
            NameMalformed::Slashes => Self::Slashes,
            NameMalformed::TooLong => Self::TooLong,
        }
    }
}

const BELOW: &str = "/*";

const EVERYTHING: &str = BELOW;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asterisk_is_the_last_segment_or_nothing() {
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
            ("", PathMalformed::Missing),
            ("/", PathMalformed::Missing),
            ("/a*", PathMalformed::Character),
            ("/a/*/b", PathMalformed::Character),
            ("/a/**", PathMalformed::Character),
            ("/*/*", PathMalformed::Character),
            ("/a b", PathMalformed::Character),
            ("/a/", PathMalformed::Slashes),
            ("//", PathMalformed::Slashes),
            ("//*", PathMalformed::Missing),
            ("/a//*", PathMalformed::Slashes),
        ] {
            assert_eq!(PermissionPath::parse(text), Err(rule), "{text}");
        }
    }

    #[test]
    fn a_path_has_at_most_255_characters() {
        let longest = format!("/{}/*", "a".repeat(252));
        assert!(PermissionPath::parse(&longest).is_ok());
        let longer = format!("/{}/*", "a".repeat(253));
        assert_eq!(PermissionPath::parse(&longer), Err(PathMalformed::TooLong));
    }

    #[test]
    fn a_name_is_covered_by_itself_and_by_each_path_above_it() {
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
    fn however_many_slashes_a_name_has_few_paths_cover_it() {
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
