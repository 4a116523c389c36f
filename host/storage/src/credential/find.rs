//! Searching by path, by a part of the name and by expiry. Each search is one query.

use keywright_core::{
    credential::{Find, FindNames, FoundCredential, NAME_CHARACTERS_MAX, PathPrefix},
    ports::{Receive, RepositoryFailure},
};

use super::{row, statements};
use crate::{
    connections::{Connections, Engine},
    row::Row,
    statement::{Statement, statement},
};

pub(super) async fn find(
    reader: &Connections,
    find: &Find,
    receive: Receive<'_, FoundCredential>,
) -> Result<(), RepositoryFailure> {
    let Some(names) = NameSearch::new(&find.names, reader.engine()) else {
        return Ok(());
    };
    let expires_until = find.expires_until.map(|time| time.timestamp_millis());
    let sql = match (&names, expires_until) {
        (NameSearch::All, Some(_)) => statements::FIND_EXPIRING,
        (NameSearch::All | NameSearch::Between(..), None) => statements::FIND_BELOW,
        (NameSearch::Between(..), Some(_)) => statements::FIND_EXPIRING_BELOW,
        (NameSearch::Containing(_), None) => match reader.engine() {
            Engine::Postgres => statements::POSTGRES_FIND_CONTAINING,
            Engine::Sqlite => statements::SQLITE_FIND_CONTAINING,
        },
        (NameSearch::Containing(_), Some(_)) => match reader.engine() {
            Engine::Postgres => statements::POSTGRES_FIND_EXPIRING_CONTAINING,
            Engine::Sqlite => statements::SQLITE_FIND_EXPIRING_CONTAINING,
        },
        (NameSearch::TrigramsBetween(..), None) => statements::SQLITE_FIND_CONTAINING_SHORT,
        (NameSearch::TrigramsBetween(..), Some(_)) => {
            statements::SQLITE_FIND_EXPIRING_CONTAINING_SHORT
        }
    };
    let mut query = statement(sql);
    if let Some(expires_until) = expires_until {
        query = query.bind(expires_until);
    }
    query = match names {
        NameSearch::All if expires_until.is_none() => query.bind(ROOT).bind(AFTER_ROOT),
        names => names.bind_to(query),
    };
    let decode = |row: &Row| row::found_credential(row).map(Some);
    reader.decode_each(query, decode, receive).await
}

/// How to search the index of names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NameSearch {
    /// Every name.
    All,
    /// Folded names from the first bound up to, but not including, the second.
    Between(String, String),
    /// Names that contain a text. On SQLite, the text has at least three characters.
    Containing(String),
    /// SQLite: names with a trigram from the first bound up to, but not including, the second.
    TrigramsBetween(String, String),
}

impl NameSearch {
    /// Returns `None` if no name can match.
    pub(super) fn new(names: &FindNames, engine: Engine) -> Option<Self> {
        match Self::by_comparison(names)? {
            Self::Containing(text)
                if engine == Engine::Sqlite && text.len() < TRIGRAM_CHARACTERS =>
            {
                let before = successor(&text)?;
                Some(Self::TrigramsBetween(text, before))
            }
            search => Some(search),
        }
    }

    /// As [`NameSearch::new`], for a query that finds names in another way and then compares them. Never uses trigrams.
    pub(super) fn by_comparison(names: &FindNames) -> Option<Self> {
        match names {
            FindNames::Below(prefix) if prefix.as_str() == ROOT => Some(Self::All),
            FindNames::Below(prefix) => Self::below(prefix),
            FindNames::Containing(text) => Self::containing(text),
        }
    }

    /// Binds the bounds or the text.
    pub(super) fn bind_to(self, query: Statement) -> Statement {
        match self {
            Self::All => query,
            Self::Containing(text) => query.bind(text),
            Self::Between(from, before) | Self::TrigramsBetween(from, before) => {
                query.bind(from).bind(before)
            }
        }
    }

    fn below(prefix: &PathPrefix) -> Option<Self> {
        let before = successor(prefix.as_str())?;
        Some(Self::Between(prefix.as_str().to_owned(), before))
    }

    fn containing(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::All);
        }
        // Names contain no other characters, and the index pads names with control characters. No name is longer, and the cost
        // of a search grows with the length of the text.
        let is_of_name = text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_of_name || text.len() > NAME_CHARACTERS_MAX {
            return None;
        }
        Some(Self::Containing(text.to_owned()))
    }
}

/// Returns the smallest text that is greater than all texts with this prefix.
fn successor(text: &str) -> Option<String> {
    let mut characters: Vec<char> = text.chars().collect();
    let last = characters.pop()?;
    characters.push(char::from_u32(u32::from(last) + 1)?);
    Some(characters.into_iter().collect())
}

/// The root path, and the smallest text after all names.
const ROOT: &str = "/";
const AFTER_ROOT: &str = "0";

const TRIGRAM_CHARACTERS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_range_that_excludes_its_neighbours() {
        for engine in [Engine::Postgres, Engine::Sqlite] {
            let search = NameSearch::new(&FindNames::below("/My-Names"), engine);
            assert_eq!(
                search,
                Some(NameSearch::Between(
                    "/my-names/".into(),
                    "/my-names0".into()
                ))
            );
        }
    }

    #[test]
    fn a_text_longer_than_any_name_matches_nothing() {
        for engine in [Engine::Postgres, Engine::Sqlite] {
            let search = |length| {
                let text = "a".repeat(length);
                NameSearch::new(&FindNames::containing(&text), engine)
            };
            let longest = "a".repeat(NAME_CHARACTERS_MAX);
            assert_eq!(
                search(NAME_CHARACTERS_MAX),
                Some(NameSearch::Containing(longest))
            );
            assert_eq!(search(NAME_CHARACTERS_MAX + 1), None);
        }
    }

    #[test]
    fn a_text_with_invalid_characters_matches_nothing() {
        for text in [" ", "ä", "a\u{1}", "a\0b", "abc\n", "abc def"] {
            for engine in [Engine::Postgres, Engine::Sqlite] {
                let search = NameSearch::new(&FindNames::containing(text), engine);
                assert_eq!(search, None, "{text:?}");
            }
        }
    }
}
