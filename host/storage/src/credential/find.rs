//! Searching by path, by a part of the name, by expiry, by the expiry of a chain, by the plugin that generated a version, and by
//! the inputs of a version.
//! Each search is one query, however long the chains are.

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

pub(crate) mod statements {
    //! The SQL of searches by path, by a part of the name, by expiry, by the plugin that generated a version, and by the
    //! inputs of a version; and the SQL that counts credentials by type, and lists CAs with a transitional version.

    /// The statements of a search, one for each way to search the names.
    pub(crate) struct ByNames {
        pub(crate) all: &'static str,
        pub(crate) between: &'static str,
        pub(crate) postgres_containing: &'static str,
        pub(crate) sqlite_containing: &'static str,
        /// The trigrams that begin with a short text are between two bounds. As `between` if the search compares names.
        pub(crate) sqlite_trigrams_between: &'static str,
    }

    /// The columns of a search.
    macro_rules! select_found {
        ($($rest:expr),+) => {
            concat!(
                "select c.name, c.current_created_at as version_created_at, cast(null as bigint) as expires_at,
                    cast(null as bigint) as rotate_at
                 from credential c where c.current_sequence is not null and ",
                $($rest),+,
                " order by c.current_sequence desc"
            )
        };
    }

    /// The columns of a search by expiry. The times of types other than certificate are read from their latest version.
    macro_rules! select_found_expiring {
        ($($rest:expr),+) => {
            concat!(
                "select c.name, c.newest_created_at as version_created_at,
                    case when c.credential_type = 'certificate' then c.newest_expires_at else (
                        select coalesce(v.expires_at, v.value_expires_at) from credential_version v
                        where v.sequence = c.newest_sequence
                    ) end as expires_at,
                    case when c.credential_type = 'certificate' then null else (
                        select v.rotate_at from credential_version v where v.sequence = c.newest_sequence
                    ) end as rotate_at
                 from credential c where c.newest_expires_at <= $1 ",
                $($rest),+,
                " order by c.newest_sequence desc"
            )
        };
    }

    /// The credentials of a range of names, in the order of the names, at most `$3`.
    pub(crate) const LIST: &str = "select c.name, c.credential_type, c.current_created_at as version_created_at,
            c.newest_expires_at as due_at
         from credential c where c.name_folded >= $1 and c.name_folded < $2 and c.current_sequence is not null
         order by c.name_folded limit $3";

    /// Up to eight trigrams of a parameter's text that few names contain, as `rare_part`: trigrams that are missing from a sample of
    /// names, which is chosen by random ids. An index lookup takes time for every trigram of the text. For a common trigram, as at
    /// the beginning of a path, that time grows with the store. For a text as short as a word, there are no rare parts: finding them
    /// would cost as much as they save.
    macro_rules! rare_parts {
        ($text:literal, $position:literal) => {
            concat!(
                "sampled_name as materialized (
                    select sampled.name_folded from credential sampled order by sampled.id limit 128
                ),
                rare_part (part) as materialized (
                    select substr(",
                $text,
                ", place, 3) from text_place where length(",
                $text,
                ") > 8 and not exists (
                        select 1 from sampled_name s where ",
                $position,
                "(s.name_folded, substr(",
                $text,
                ", place, 3)) > 0
                    ) limit 8
                )"
            )
        };
    }

    /// PostgreSQL: the sequences of the credentials whose names contain the text of a parameter. Looks up the text's rare parts
    /// and compares the names that match. Looks up all trigrams of a text without rare parts, or the text itself if it is shorter
    /// than a trigram. Gathers the sequences first: the plan does not depend on the text, and the planner expects more matches in
    /// a larger store, so it would eventually read all credentials instead.
    macro_rules! postgres_containing {
        ($text:literal) => {
            concat!(
                "c.sequence = any (array(
                    with text_place as materialized (
                        select place from generate_series(1, greatest(length(",
                $text,
                ") - 2, 1)) as place
                    ), ",
                rare_parts!($text, "strpos"),
                "
                    select n.credential_sequence from credential_name n where n.parts @> coalesce(
                        nullif(array(select part from rare_part), '{}'),
                        array(select substr(",
                $text,
                ", place, 3) from text_place)
                    )
                )) and strpos(c.name_folded, ",
                $text,
                ") > 0"
            )
        };
    }

    /// SQLite: as [`postgres_containing`], for texts of at least three characters. Queries the full-text index for all rare parts,
    /// or for the text as a phrase.
    macro_rules! sqlite_containing {
        ($text:literal) => {
            concat!(
                "c.sequence in (
                    select rowid from credential_name where credential_name match (
                        with recursive text_place (place) as (
                            select 1 union all select place + 1 from text_place where place < length(",
                $text,
                ") - 2
                        ), ",
                rare_parts!($text, "instr"),
                "
                        select coalesce(
                            group_concat('\"' || replace(part, '\"', '\"\"') || '\"', ' AND '),
                            '\"' || replace(",
                $text,
                ", '\"', '\"\"') || '\"'
                        ) from rare_part
                    )
                ) and instr(c.name_folded, ",
                $text,
                ") > 0"
            )
        };
    }

    /// A search of all names has the bounds of all names.
    pub(crate) const FIND: ByNames = ByNames {
        all: FIND_BETWEEN,
        between: FIND_BETWEEN,
        postgres_containing: select_found!(postgres_containing!("$1")),
        sqlite_containing: select_found!(sqlite_containing!("$1")),
        sqlite_trigrams_between: select_found!(
            "c.sequence in (select doc from credential_name_trigram where term >= $1 and term < $2)"
        ),
    };

    const FIND_BETWEEN: &str = select_found!("c.name_folded >= $1 and c.name_folded < $2");

    pub(crate) const FIND_EXPIRING: ByNames = ByNames {
        all: select_found_expiring!(""),
        between: select_found_expiring!("and c.name_folded >= $2 and c.name_folded < $3"),
        postgres_containing: select_found_expiring!("and ", postgres_containing!("$2")),
        sqlite_containing: select_found_expiring!("and ", sqlite_containing!("$2")),
        sqlite_trigrams_between: select_found_expiring!(
            "and c.sequence in (select doc from credential_name_trigram where term >= $2 and term < $3)"
        ),
    };

    // ---- Expiry with the chain --------------------------------------------------------------------------------------------

    /// The first links of chains: the versions in use. Here and in later links, an equality is written as a range of one value, as
    /// in `newest_first!`, so that each link is looked up. Otherwise a planner that expects many chains reads and joins all
    /// versions.
    macro_rules! select_chain_ends {
        () => {
            "select c.sequence, c.name, c.current_created_at as version_created_at, cast(0 as bigint) as depth,
                v.expires_at as first_at, cast(0 as bigint) as first_depth, c.name as first_name, v.id as first_id,
                v.signed_by, v.issuer_version_id, v.issuer_expires_at
             from credential c join credential_version v on v.sequence between c.current_sequence and c.current_sequence "
        };
    }

    /// Selects a column of the link that expires first: `$of_link` if the added link expires before all earlier ones, otherwise
    /// `$before`.
    macro_rules! first_of_chain {
        ($of_link:literal, $before:literal) => {
            concat!(
                "case when coalesce(v.expires_at, l.issuer_expires_at) < l.first_at then ",
                $of_link,
                " else ",
                $before,
                " end"
            )
        };
    }

    /// For each version in use, the link of its chain that expires first, if it expires until `$1`, in the order of expiry. A chain goes from each
    /// version to the older version that signed it, so it has no cycle. Links have a depth of at most `$2`. Each row contains the
    /// first expiry of its chain so far: sorting the links of all chains would take memory for each link.
    macro_rules! select_effective_expiries {
        ($($names:expr),*) => {
            concat!(
                "with recursive chain_link as (",
                select_chain_ends!(),
                "where c.credential_type = 'certificate' and v.expires_at is not null ",
                $($names,)*
                " union all ",
                select_chain_ends!(),
                // Other types: only with the record of a certificate that expires after 1970. They have no transitional versions.
                "where c.credential_type <> 'certificate' and c.newest_expires_at > 0 and v.expires_at is not null ",
                $($names,)*
                "
                    union all
                    select l.sequence, l.name, l.version_created_at, l.depth + 1, ",
                first_of_chain!("coalesce(v.expires_at, l.issuer_expires_at)", "l.first_at"),
                ", ",
                first_of_chain!("l.depth + 1", "l.first_depth"),
                ", ",
                first_of_chain!("coalesce(i.name, l.signed_by)", "l.first_name"),
                ", ",
                first_of_chain!("v.id", "l.first_id"),
                ", v.signed_by, v.issuer_version_id, v.issuer_expires_at
                    from chain_link l
                        left join credential_version v on v.id between l.issuer_version_id and l.issuer_version_id
                        left join credential i on i.sequence between v.credential_sequence and v.credential_sequence
                    where l.issuer_expires_at is not null and l.depth < $2
                )
                select name, version_created_at, first_at, first_depth, first_name, first_id from chain_link
                where (issuer_expires_at is null or depth = $2) and first_at <= $1 order by first_at, first_depth, sequence"
            )
        };
    }

    pub(crate) const EFFECTIVE_EXPIRIES: ByNames = ByNames {
        all: select_effective_expiries!(),
        between: select_effective_expiries!("and c.name_folded >= $3 and c.name_folded < $4"),
        postgres_containing: select_effective_expiries!("and ", postgres_containing!("$3")),
        sqlite_containing: select_effective_expiries!("and ", sqlite_containing!("$3")),
        sqlite_trigrams_between: select_effective_expiries!(
            "and c.sequence in (select doc from credential_name_trigram where term >= $3 and term < $4)"
        ),
    };

    // ---- Generated by a plugin --------------------------------------------------------------------------------------------

    /// The latest, active and transitional versions that the plugin with the digest `$1` generated, grouped by credential.
    macro_rules! select_generated_by {
        ($($names:literal),*) => {
            concat!(
                "select c.name, coalesce(c.current_created_at, c.newest_created_at) as version_created_at,
                    cast(null as bigint) as expires_at, cast(null as bigint) as rotate_at, v.sequence, v.is_generated, c.newest_sequence
                 from credential_version v join credential c on c.sequence = v.credential_sequence
                 where v.plugin_digest = $1
                    and (v.is_transitional or v.sequence = c.current_sequence or v.sequence = c.newest_sequence) ",
                $($names,)*
                " order by coalesce(c.current_sequence, c.newest_sequence) desc, v.sequence desc"
            )
        };
    }

    pub(crate) const GENERATED_BY: ByNames = ByNames {
        all: select_generated_by!(),
        between: GENERATED_BY_BETWEEN,
        postgres_containing: select_generated_by!("and strpos(c.name_folded, $2) > 0"),
        sqlite_containing: select_generated_by!("and instr(c.name_folded, $2) > 0"),
        sqlite_trigrams_between: GENERATED_BY_BETWEEN,
    };

    const GENERATED_BY_BETWEEN: &str =
        select_generated_by!("and c.name_folded >= $2 and c.name_folded < $3");

    // ---- Derived from an input --------------------------------------------------------------------------------------------

    /// The credentials whose latest version was derived from the credential with the folded name `$1`, and whether that was its
    /// active version. The order is an expression, so that no plan reads the versions or credentials in that order.
    macro_rules! select_derived_from {
        ($($names:literal),*) => {
            concat!(
                "select c.name, coalesce(c.current_created_at, c.newest_created_at) as version_created_at,
                    cast(null as bigint) as expires_at, cast(null as bigint) as rotate_at,
                    coalesce(d.input_version_id = (
                        select a.id from credential n
                            join credential_version a on a.sequence between n.current_sequence and n.current_sequence
                        where n.name_folded = $1
                    ), false) as is_derived_from_active
                 from credential_version_input d
                    join credential_version v on v.sequence = d.version_sequence
                    join credential c on c.sequence = v.credential_sequence and c.newest_sequence - v.sequence = 0
                 where d.input_name_folded = $1 ",
                $($names,)*
                " order by coalesce(c.newest_sequence, 0) desc"
            )
        };
    }

    pub(crate) const DERIVED_FROM: ByNames = ByNames {
        all: select_derived_from!(),
        between: DERIVED_FROM_BETWEEN,
        postgres_containing: select_derived_from!("and strpos(c.name_folded, $2) > 0"),
        sqlite_containing: select_derived_from!("and instr(c.name_folded, $2) > 0"),
        sqlite_trigrams_between: DERIVED_FROM_BETWEEN,
    };

    const DERIVED_FROM_BETWEEN: &str =
        select_derived_from!("and c.name_folded >= $2 and c.name_folded < $3");

    macro_rules! count {
        ($condition:literal) => {
            concat!(
                "select chosen.credential_type, count(*) as credentials from (
                     select c.credential_type from credential c where ",
                $condition,
                " and c.current_sequence is not null limit cast($1 as bigint)
                 ) chosen group by chosen.credential_type order by chosen.credential_type"
            )
        };
    }

    /// Reads the table in its own order: much faster than by name.
    pub(crate) const COUNT_ALL: &str = count!("c.sequence > 0");

    pub(crate) const COUNT_BELOW: &str = count!(
        "c.name_folded >= $2 and c.name_folded < $3
         and substr(c.name, 1, length(cast($4 as text))) = cast($4 as text)"
    );

    /// The condition on the sequence makes the index of transitional versions usable.
    pub(crate) const TRANSITIONAL_AUTHORITIES: &str = "
        select c.name from credential_version v join credential c on c.sequence = v.credential_sequence
        where v.is_transitional and v.credential_sequence > 0 and v.is_certificate_authority
        order by v.credential_sequence";
}

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
