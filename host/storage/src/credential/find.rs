//! Searching by path, by a part of the name, by expiry, by the expiry of a chain, by the plugin that generated a version, and by
//! the inputs of a version.
//! Each search is one query, however long the chains are.

pub(crate) mod statements;

use async_trait::async_trait;
use keywright_core::{
    credential::{
        CredentialType, Find, FindNames, FoundCredential, GeneratedCredential, ListedCredential,
        LookupName, NAME_CHARACTERS_MAX, PathPrefix, PluginDigest,
    },
    permission::{Actor, PermissionPath},
    ports::{CredentialSearches, Receive, RepositoryError},
};

use super::row;
use crate::{
    Database,
    connections::Engine,
    statement::{Row, Statement, column, count, statement},
};

#[async_trait]
impl CredentialSearches for Database {
    async fn find(
        &self,
        actor: &Actor,
        find: &Find,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let Some(names) = NameSearch::new(&find.names, reader.engine()) else {
            return Ok(());
        };
        let expires_until = find.expires_until.map(|time| time.timestamp_millis());
        let query = match expires_until {
            Some(until) => names
                .choose(&statements::FIND_EXPIRING, reader.engine())
                .bind(until),
            None => names.choose(&statements::FIND, reader.engine()),
        };
        let query = match (names, expires_until) {
            (NameSearch::All, None) => query.bind(ROOT).bind(AFTER_ROOT),
            (names, _) => names.bind_to(query),
        };
        let decode = |row: &Row| row::found_credential(row).map(Some);
        reader.decode_each(query, decode, receive).await
    }

    async fn list(
        &self,
        actor: &Actor,
        from: &str,
        before: &str,
        count_max: u32,
    ) -> Result<Vec<ListedCredential>, RepositoryError> {
        let reader = &self.reader;
        let query = statement(statements::LIST)
            .bind(from)
            .bind(before)
            .bind(i64::from(count_max));
        let rows = if count_max <= LISTED_IN_PLACE_MAX {
            reader.fetch_all(query.short()).await?
        } else {
            reader.of_actor(actor).fetch_all(query).await?
        };
        rows.iter().map(row::listed_credential).collect()
    }

    async fn generated_by(
        &self,
        actor: &Actor,
        digest: &PluginDigest,
        names: &FindNames,
        receive: Receive<'_, GeneratedCredential>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let Some(names) = NameSearch::by_comparison(names) else {
            return Ok(());
        };
        let query = names.choose(&statements::GENERATED_BY, reader.engine());
        let query = names.bind_to(query.bind(digest.as_str()));
        // The rows of one credential are adjacent, the latest version first.
        let mut last = None;
        let first_of_each = |row: &Row| {
            let generated = row::generated_credential(row)?;
            let name = Some(generated.found.name.clone());
            let is_first = last != name;
            last = name;
            Ok(is_first.then_some(generated))
        };
        reader.decode_each(query, first_of_each, receive).await
    }

    async fn derived_from(
        &self,
        actor: &Actor,
        input: &LookupName,
        names: &FindNames,
        receive: Receive<'_, FoundCredential>,
    ) -> Result<(), RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let Some(names) = NameSearch::by_comparison(names) else {
            return Ok(());
        };
        let query = names.choose(&statements::DERIVED_FROM, reader.engine());
        let query = names.bind_to(query.bind(input.folded()));
        let decode = |row: &Row| row::derived_credential(row).map(Some);
        reader.decode_each(query, decode, receive).await
    }

    async fn count_by_type(
        &self,
        actor: &Actor,
        path: &PermissionPath,
        count_max: u64,
    ) -> Result<Vec<(CredentialType, u64)>, RepositoryError> {
        let reader = self.reader.of_actor(actor);
        let count_max = i64::try_from(count_max).unwrap_or(i64::MAX);
        let query = if path.covers_everything() {
            statement(statements::COUNT_ALL).bind(count_max)
        } else {
            // The condition on the prefix compares the casing. The range of folded names lets the database use the index.
            let (prefix, end) = match path.enclosing() {
                Some(path) => (format!("{path}/"), format!("{path}{AFTER_SLASH}")),
                None => (path.to_string(), format!("{path}{BEFORE_NAME_CHARACTERS}")),
            };
            statement(statements::COUNT_BELOW)
                .bind(count_max)
                .bind(prefix.to_ascii_lowercase())
                .bind(end.to_ascii_lowercase())
                .bind(prefix)
        };
        let rows = reader.fetch_all(query).await?;
        let counted = rows.iter().map(|row| {
            let credentials = column!(row, "credential", "credentials")?;
            Ok((row::credential_type(row)?, count(credentials)))
        });
        counted.collect()
    }
}

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

    /// Like [`NameSearch::new`], for a query that finds names in another way and then compares them. Never uses trigrams.
    pub(super) fn by_comparison(names: &FindNames) -> Option<Self> {
        match names {
            FindNames::Below(prefix) if prefix.as_str() == ROOT => Some(Self::All),
            FindNames::Below(prefix) => Self::below(prefix),
            FindNames::Between(from, before) if from == ROOT && before == AFTER_ROOT => {
                Some(Self::All)
            }
            FindNames::Between(from, before) => Some(Self::Between(from.clone(), before.clone())),
            FindNames::Containing(text) => Self::containing(text),
        }
    }

    pub(super) fn choose(&self, of: &statements::ByNames, engine: Engine) -> Statement {
        statement(match self {
            Self::All => of.all,
            Self::Between(..) => of.between,
            Self::Containing(_) => engine.choose(of.postgres_containing, of.sqlite_containing),
            Self::TrigramsBetween(..) => of.sqlite_trigrams_between,
        })
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
        // No name contains other characters; the index pads names with control characters, which the text could otherwise match.
        // No name is longer than the limit, and the cost of a search grows with the length of the text.
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

/// The character after the slash.
const AFTER_SLASH: char = '0';

/// A character that is smaller than all characters of names.
const BEFORE_NAME_CHARACTERS: char = '!';

const TRIGRAM_CHARACTERS: usize = 3;

/// The maximum number of listed credentials that SQLite reads on the calling thread.
const LISTED_IN_PLACE_MAX: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

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
}
